// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names and shapes of recorded activations; see Recording.h.
#include "gdn/Run/Recording.h"

#include "gdn/Run/Arguments.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cstring>

using namespace gdn;
using namespace gdn::run;

namespace {
/// The modules whose outputs, side by side, make a parameter. The first
/// alternative that was recorded counts.
struct Source {
  llvm::StringLiteral parameter;
  std::vector<std::vector<llvm::StringLiteral>> alternatives;
};
} // namespace

static const std::vector<Source> &projections() {
  static const std::vector<Source> sources = {
      {"qkvz",
       {{"in_proj_qkvz"},
        {"in_proj_qkv", "in_proj_z"},
        {"q_proj", "k_proj", "v_proj", "g_proj"}}},
      {"ba",
       {{"in_proj_ba"}, {"in_proj_b", "in_proj_a"}, {"b_proj", "a_proj"}}},
      {"qkv", {{"in_proj_qkv"}, {"q_proj", "k_proj", "v_proj"}}},
      {"q", {{"q_proj"}}},
      {"k", {{"k_proj"}}},
      {"v", {{"v_proj"}}},
      {"z", {{"in_proj_z"}, {"g_proj"}, {"g_b_proj"}}},
      {"b", {{"in_proj_b"}, {"b_proj"}}},
      {"a", {{"in_proj_a"}, {"a_proj"}, {"f_proj"}, {"f_b_proj"}}},
  };
  return sources;
}

/// The names that weights have in the models.
static llvm::ArrayRef<llvm::StringLiteral> weightNames(llvm::StringRef name) {
  static constexpr llvm::StringLiteral conv[] = {"conv1d.weight"};
  static constexpr llvm::StringLiteral aLog[] = {"A_log"};
  static constexpr llvm::StringLiteral dtBias[] = {"dt_bias"};
  static constexpr llvm::StringLiteral norm[] = {"norm.weight",
                                                 "o_norm.weight"};
  if (name == "conv_weight")
    return conv;
  if (name == "A_log")
    return aLog;
  if (name == "dt_bias")
    return dtBias;
  if (name == "norm_weight")
    return norm;
  return {};
}

llvm::Expected<Recording> Recording::load(llvm::StringRef path) {
  llvm::Expected<data::Tensors> tensors = data::readSafetensors(path);
  if (!tensors)
    return tensors.takeError();
  Recording recording;
  recording.tensors = std::move(*tensors);

  // Phases in the order of time, which is not that of their names.
  std::vector<std::string> layers, phases = {"prefill"};
  for (const auto &[name, array] : recording.tensors.arrays) {
    auto [phase, rest] = llvm::StringRef(name).split('.');
    std::string layer = rest.split('.').first.str();
    if (phase == "prefill" && rest.ends_with(".core_pre_norm") &&
        !llvm::is_contained(layers, layer))
      layers.push_back(layer);
  }
  if (layers.empty())
    return llvm::createStringError(
        path + ": expects recorded activations (prefill.<layer>.core_pre_norm "
               "and others), but got none");
  for (const std::string &layer : layers)
    for (int64_t i = -1;; ++i) {
      RecordedStep step;
      step.phase = i < 0 ? "prefill" : "decode" + std::to_string(i);
      step.layer = layer;
      if (!recording.find(step, "core_pre_norm"))
        break;
      recording.steps.push_back(step);
    }
  return recording;
}

const data::Array *Recording::find(const RecordedStep &step,
                                   llvm::StringRef module) const {
  return tensors.find(step.phase + "." + step.layer + "." + module.str());
}

const data::Array *Recording::findWeight(const RecordedStep &step,
                                         llvm::StringRef name) const {
  return tensors.find("weights." + step.layer + "." + name.str());
}

static int64_t rowsOf(const data::Array &array) {
  return array.size() / array.shape.back();
}

/// What parts of a row are: arrays [..., tokens, columns] of one element type,
/// with the same tokens. The name of one that is none, with what it should be.
static std::optional<std::string>
differentPart(llvm::ArrayRef<const data::Array *> parts,
              llvm::ArrayRef<std::string> names) {
  for (auto [part, name] : llvm::zip_equal(parts, names)) {
    if (part->shape.empty() || part->shape.back() == 0)
      return name + "': expects rows with columns, but got " +
             part->typeString();
    if (part->dtype != parts.front()->dtype ||
        rowsOf(*part) != rowsOf(*parts.front()))
      return name + "': expects the element type and the rows of '" +
             names.front() + "', " + parts.front()->typeString() +
             ", but got " + part->typeString();
  }
  return std::nullopt;
}

/// Such arrays side by side.
static data::Array
concatenateColumns(llvm::ArrayRef<const data::Array *> parts) {
  int64_t columns = 0;
  for (const data::Array *part : parts)
    columns += part->shape.back();
  int64_t rows = rowsOf(*parts.front());
  data::Array whole = data::Array::zeros(parts.front()->dtype, {rows, columns});
  size_t width = data::byteSize(whole.dtype);
  char *to = whole.bytes.data();
  for (int64_t row = 0; row < rows; ++row)
    for (const data::Array *part : parts) {
      size_t bytes = part->shape.back() * width;
      std::memcpy(to, part->bytes.data() + row * bytes, bytes);
      to += bytes;
    }
  return whole;
}

llvm::Expected<data::Array> Recording::argument(const RecordedStep &step,
                                                const Parameter &parameter,
                                                const Symbols &symbols) const {
  std::vector<const data::Array *> parts;
  std::vector<std::string> names;
  for (llvm::StringRef name : weightNames(parameter.name))
    if (parts.empty())
      if (const data::Array *weight = findWeight(step, name))
        parts = {weight};
  for (const Source &source : projections()) {
    if (source.parameter != parameter.name)
      continue;
    for (const auto &alternative : source.alternatives) {
      if (!parts.empty())
        break;
      names.clear();
      for (llvm::StringRef module : alternative) {
        parts.push_back(find(step, module));
        names.push_back(module.str());
      }
      if (llvm::is_contained(parts, nullptr))
        parts.clear();
    }
  }
  if (parts.empty())
    return llvm::createStringError(llvm::formatv(
        "{0}: {1}.{2}: nothing was recorded for the entry's parameter '{3}'",
        tensors.origin, step.phase, step.layer, parameter.name));
  bool isWeight = !weightNames(parameter.name).empty();
  if (!isWeight)
    if (std::optional<std::string> why = differentPart(parts, names))
      return llvm::createStringError(llvm::formatv(
          "{0}: '{1}.{2}.{3}", tensors.origin, step.phase, step.layer, *why));
  data::Array array = isWeight ? *parts.front() : concatenateColumns(parts);
  auto shape = shapeOf(parameter, symbols);
  if (!shape)
    return shape.takeError();
  std::optional<int64_t> size = data::elementCount(*shape);
  if (!size || *size != array.size())
    return llvm::createStringError(llvm::formatv(
        "{0}: {1}.{2}: expects {3} elements for the entry's parameter '{4}', "
        "but got {5}",
        tensors.origin, step.phase, step.layer, data::shapeString(*shape),
        parameter.name, array.typeString()));
  array.shape = *shape;
  return array.as(parameter.dtype);
}

llvm::Expected<Symbols> Recording::symbols(const RecordedStep &step,
                                           int64_t valueDim, int64_t keyDim,
                                           int64_t slots) const {
  auto missing = [&](llvm::StringRef name) {
    return llvm::createStringError(
        llvm::formatv("{0}: expects the tensor '{1}', but it is not there",
                      tensors.origin, name));
  };
  // A number for each value head: [Hv], in some models [1, 1, Hv, 1].
  const data::Array *aLog = findWeight(step, "A_log");
  if (!aLog || aLog->shape.empty() || aLog->size() == 0 ||
      llvm::count_if(aLog->shape, [](int64_t dim) { return dim > 1; }) > 1)
    return missing("weights." + step.layer + ".A_log");
  const data::Array *conv = findWeight(step, "conv1d.weight");
  if (!conv || conv->shape.empty())
    return missing("weights." + step.layer + ".conv1d.weight");
  int64_t valueHeads = aLog->size();
  auto wrong = [&](const std::string &name, const data::Array &array,
                   const llvm::Twine &expected) {
    return llvm::createStringError(
        llvm::formatv("{0}: '{1}': expects {2}, but got {3}", tensors.origin,
                      name, expected.str(), array.typeString()));
  };
  int64_t keys = conv->shape[0] - valueDim * valueHeads;
  if (keys <= 0 || keys % (2 * keyDim) != 0)
    return wrong("weights." + step.layer + ".conv1d.weight", *conv,
                 llvm::Twine(valueDim * valueHeads) +
                     " channels of values and a multiple of " +
                     llvm::Twine(2 * keyDim) + " of keys");
  int64_t keyHeads = keys / (2 * keyDim);
  // Rows of the core output are tokens times value heads.
  const data::Array *core = find(step, "core_pre_norm");
  if (core->size() == 0 || core->size() % (valueHeads * valueDim) != 0)
    return wrong(step.phase + "." + step.layer + ".core_pre_norm", *core,
                 "tokens of " + llvm::Twine(valueHeads) + " x " +
                     llvm::Twine(valueDim) + " elements");
  int64_t tokens = core->size() / (valueHeads * valueDim);
  return Symbols{{"T", tokens},
                 {"N", step.isPrefill() ? 1 : tokens},
                 {"P", slots},
                 {"Hk", keyHeads},
                 {"Hv", valueHeads}};
}

std::optional<data::Array> Recording::result(const RecordedStep &step,
                                             const Parameter &parameter) const {
  const data::Array *found = nullptr;
  if (parameter.name == "core")
    found = find(step, "core_pre_norm");
  else if (parameter.name == "out")
    found = find(step, "post_norm");
  else if (parameter.name == "conv_pool")
    found = find(step, "conv_states");
  else if (parameter.name == "state_pool")
    found = find(step, "recurrent_states");
  if (!found)
    return std::nullopt;
  if (!parameter.isPool)
    return *found;
  std::vector<double> values = found->toDoubles(), kept;
  if (parameter.name == "conv_pool") {
    // [1, D, K] with K raw inputs, of which the last K-1 are the state.
    int64_t width = found->shape.empty() ? 0 : found->shape.back();
    if (width < 2)
      return std::nullopt;
    for (int64_t i = 0, e = values.size(); i < e; ++i)
      if (i % width != 0)
        kept.push_back(values[i]);
    return data::Array::fromDoubles(
        found->dtype, {int64_t(kept.size()) / (width - 1), width - 1}, kept);
  }
  // [1, Hv, dk, dv] to [Hv, dv, dk].
  int64_t rank = found->shape.size();
  if (rank < 2)
    return std::nullopt;
  int64_t dk = found->shape[rank - 2], dv = found->shape[rank - 1];
  int64_t heads = dk * dv ? int64_t(values.size()) / (dk * dv) : 0;
  kept.resize(values.size());
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < dk; ++i)
      for (int64_t j = 0; j < dv; ++j)
        kept[(h * dv + j) * dk + i] = values[(h * dk + i) * dv + j];
  return data::Array::fromDoubles(found->dtype, {heads, dv, dk}, kept);
}
