// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Replays recorded activations; see Replay.h.
#include "gdn/Run/Replay.h"

#include "gdn/Run/Arguments.h"
#include "gdn/Run/RunEntry.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FormatVariadic.h"

using namespace gdn;
using namespace gdn::run;

/// The pools have three slots: the null slot, the layer's, and one that is left
/// alone. All but the layer's hold NaN.
static constexpr int64_t numSlots = 3, nullSlot = 0, layerSlot = 1;

namespace {
/// One entry with its meaning in float64.
struct Side {
  Kernel kernel;
  ReferenceEntry reference;

  static llvm::Expected<Side> load(const Program &program,
                                   mlir::MLIRContext &context,
                                   llvm::StringRef entry);
};

/// Replays the steps of one recording.
class Replayer {
public:
  Replayer(const Recording &recording, const Side &prefill, const Side &decode)
      : recording(recording), prefill(prefill), decode(decode) {}

  llvm::Error run(std::vector<ReplayRow> &rows);

private:
  llvm::Error runStep(const RecordedStep &step, std::vector<ReplayRow> &rows);
  ReplayRow compare(const Kernel &kernel, const RecordedStep &step,
                    const Parameter &parameter, const data::Array &array,
                    const Outcome &want) const;
  llvm::Expected<Symbols> symbolsOf(const Kernel &kernel,
                                    const RecordedStep &step) const;
  llvm::Error addArguments(const Kernel &kernel, const RecordedStep &step,
                           const Symbols &symbols, Arrays &arguments) const;
  void startLayer() {
    pools.clear();
    states.clear();
  }

  const Recording &recording;
  const Side &prefill, &decode;
  Arrays pools; // of the current layer, as the last step left them
  std::map<std::string, reference::Pool> states; // the same in float64
};
} // namespace

llvm::Expected<Side> Side::load(const Program &program,
                                mlir::MLIRContext &context,
                                llvm::StringRef entry) {
  llvm::Expected<Kernel> kernel = program.kernel(entry);
  if (!kernel)
    return kernel.takeError();
  llvm::Expected<ReferenceEntry> reference =
      ReferenceEntry::create(context, *kernel);
  if (!reference)
    return reference.takeError();
  return Side{std::move(*kernel), std::move(*reference)};
}

/// A pool of zeros in the layer's slot and NaN elsewhere.
static data::Array makePool(const Parameter &parameter,
                            llvm::ArrayRef<int64_t> shape) {
  data::Array pool = data::Array::zeros(parameter.dtype, shape);
  size_t slotBytes = pool.bytes.size() / numSlots;
  for (int64_t slot = 0; slot < numSlots; ++slot)
    if (slot != layerSlot)
      std::fill_n(pool.bytes.begin() + slot * slotBytes, slotBytes, char(0xff));
  return pool;
}

/// The values of the layer's slot.
static llvm::ArrayRef<double> layerPart(llvm::ArrayRef<double> pool) {
  size_t size = pool.size() / numSlots;
  return pool.slice(layerSlot * size, size);
}

llvm::Expected<Symbols> Replayer::symbolsOf(const Kernel &kernel,
                                            const RecordedStep &step) const {
  const Parameter *state = kernel.find("state_pool");
  if (!state || state->dims.size() != 4)
    return llvm::createStringError(
        kernel.getName() + ": expects the parameter 'state_pool' with four "
                           "dimensions, as generated entries have it");
  return recording.symbols(step, state->dims[2].getConstant(),
                           state->dims[3].getConstant(), numSlots);
}

llvm::Error Replayer::addArguments(const Kernel &kernel,
                                   const RecordedStep &step,
                                   const Symbols &symbols,
                                   Arrays &arguments) const {
  for (const Parameter &parameter : kernel.getParameters()) {
    if (!parameter.isRead)
      continue;
    data::Array &array = arguments[parameter.name];
    auto shape = shapeOf(parameter, symbols);
    if (!shape)
      return shape.takeError();
    if (parameter.isPool) {
      auto carried = pools.find(parameter.name);
      array = carried != pools.end() ? carried->second
                                     : makePool(parameter, *shape);
      continue;
    }
    auto fill = [&](llvm::ArrayRef<double> values) {
      array = data::Array::fromDoubles(parameter.dtype, *shape, values);
    };
    if (parameter.name == "cu_seqlens") {
      fill({0, double(symbols.at("T"))});
    } else if (parameter.name == "slots" || parameter.name == "write_slots") {
      fill({double(layerSlot)});
    } else if (parameter.name == "has_initial") {
      fill({0});
    } else {
      auto recorded = recording.argument(step, parameter, symbols);
      if (!recorded)
        return recorded.takeError();
      array = std::move(*recorded);
    }
  }
  return llvm::Error::success();
}

ReplayRow Replayer::compare(const Kernel &kernel, const RecordedStep &step,
                            const Parameter &parameter,
                            const data::Array &array,
                            const Outcome &want) const {
  ReplayRow row;
  row.phase = step.phase;
  row.layer = step.layer;
  row.tensor = parameter.name;
  std::vector<double> values = array.toDoubles();
  llvm::ArrayRef<double> got = values, exact;
  if (parameter.isPool) {
    got = layerPart(got);
    exact = layerPart(want.pools.at(parameter.name).data.data);
  } else {
    exact = want.results.at(parameter.name).data;
  }
  row.reference = compareValues(parameter, got, exact);
  // The recording was made from inputs that are not rounded.
  if (kernel.getAttribute("io") != "f32")
    return row;
  std::optional<data::Array> recorded = recording.result(step, parameter);
  if (recorded && recorded->size() == int64_t(got.size()))
    row.model = compareValues(parameter, got, recorded->toDoubles());
  return row;
}

llvm::Error Replayer::runStep(const RecordedStep &step,
                              std::vector<ReplayRow> &rows) {
  const Side &side = step.isPrefill() ? prefill : decode;
  llvm::Expected<Symbols> symbols = symbolsOf(side.kernel, step);
  if (!symbols)
    return symbols.takeError();
  Arrays arguments;
  if (llvm::Error error = addArguments(side.kernel, step, *symbols, arguments))
    return error;
  llvm::Expected<Outcome> want =
      side.reference.evaluate(arguments, *symbols, nullSlot, states);
  if (!want)
    return want.takeError();
  if (llvm::Error error = addOutputs(side.kernel, *symbols, arguments))
    return error;
  llvm::Expected<Binding> binding = side.kernel.bind(arguments, nullSlot);
  if (!binding)
    return binding.takeError();
  llvm::Expected<double> time = timedLaunch(*binding);
  if (!time)
    return time.takeError();
  if (llvm::Error error = binding->readResults(arguments))
    return error;

  std::string device = side.kernel.getDeviceName();
  for (const Parameter &parameter : side.kernel.getParameters()) {
    if (!parameter.isWritten)
      continue;
    const data::Array &got = arguments.at(parameter.name);
    ReplayRow row = compare(side.kernel, step, parameter, got, *want);
    row.microseconds = *time;
    row.device = device;
    rows.push_back(std::move(row));
    if (parameter.isPool)
      pools[parameter.name] = got;
  }
  states = std::move(want->pools);
  return llvm::Error::success();
}

llvm::Error Replayer::run(std::vector<ReplayRow> &rows) {
  for (const RecordedStep &step : recording.getSteps()) {
    if (step.isPrefill())
      startLayer();
    if (llvm::Error error = runStep(step, rows))
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<ReplayRow>> run::replay(const Program &program,
                                                   const Recording &recording) {
  mlir::MLIRContext context;
  llvm::Expected<Side> prefill = Side::load(program, context, "prefill");
  if (!prefill)
    return prefill.takeError();
  llvm::Expected<Side> decode = Side::load(program, context, "decode");
  if (!decode)
    return decode.takeError();
  std::vector<ReplayRow> rows;
  if (llvm::Error error = Replayer(recording, *prefill, *decode).run(rows))
    return std::move(error);
  return rows;
}

/// The names under which people know what entries write.
static std::string displayName(llvm::StringRef tensor) {
  if (tensor == "core")
    return "core output";
  if (tensor == "out")
    return "post-norm";
  if (tensor == "conv_pool")
    return "conv state";
  if (tensor == "state_pool")
    return "recurrent state";
  return tensor.str();
}

static std::string errorCell(const std::optional<Comparison> &comparison) {
  if (!comparison)
    return "-";
  if (comparison->limit == 0)
    return comparison->ok ? "equal" : "differs";
  return formatError(comparison->relativeRMSE);
}

void run::printReplay(llvm::ArrayRef<ReplayRow> rows,
                      llvm::raw_ostream &stream) {
  Table table({"phase", "layer", "tensor", "transformers", "float64", "limit",
               "time", "device", ""});
  for (const ReplayRow &row : rows)
    table.addRow(
        {row.phase, row.layer, displayName(row.tensor), errorCell(row.model),
         errorCell(row.reference), formatLimit(row.reference->limit),
         formatTime(row.microseconds), row.device, row.ok() ? "ok" : "FAILED"});
  table.print(stream);
}

llvm::json::Value run::toJson(const ReplayRow &row) {
  llvm::json::Object object{
      {"phase", row.phase},          {"layer", row.layer},
      {"tensor", row.tensor},        {"device", row.device},
      {"time_us", row.microseconds}, {"ok", row.ok()}};
  if (row.model)
    object["transformers"] = toJson(*row.model);
  if (row.reference)
    object["float64"] = toJson(*row.reference);
  return object;
}
