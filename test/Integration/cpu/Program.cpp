// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles, loads and caches programs; see Program.h.
#include "Program.h"

#include "gdn/Pipelines/CompileImage.h"
#include "gdn/Pipelines/Registration.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace gdn;
using namespace gdn::integration;

std::string Config::key() const {
  auto kind = [](std::optional<FloatKind> kind) {
    return kind ? stringify(*kind) : StringRef("io");
  };
  const EntryOptions &o = options;
  return llvm::formatv(
      "{0}x{1} K{2} form{3} {4} io {5} state {6} conv {7} weight {8} norm {9} "
      "dt {10} {11} slots64={12} initial={13} write={14} gate{15} eps={16} "
      "beta2={17} after={18} channels={19} bias={20} {21} tokens={22} "
      "chunk={23} from={24} checkpoints={25} segments={26} precision{27} "
      "verify={28} stages{29} variants={30} unit={31} decode={32} "
      "constants={33} mixed={34} order={35} defers={36} bound={37} erase={38}",
      dk, dv, convWidth, int(form), stringify(layout), stringify(o.io),
      getStateName(o), kind(o.convState), kind(o.convWeight),
      kind(o.normWeight), stringify(o.dtBias), stringify(o.outputs), o.slots64,
      o.hasInitial, o.writeSlots, int(gate), eps, doubleBeta, normAfterGate,
      perChannelDecay, convBias, target, pipeline.tokens, pipeline.chunk,
      pipeline.chunkFrom, o.checkpoints, pipeline.segments,
      int(pipeline.precision), int(o.verify), int(pipeline.chunkStages),
      llvm::iterator_range(pipeline.variants), o.l2norm, o.decodeInitial,
      o.normConstants, o.mixedBatch, stringify(o.stateLayout), o.deferWrites,
      decayBound.value_or(0), erase);
}

bool Parameter::isPerToken() const {
  // In a decode entry the tokens are the sequences; slots and flags are not
  // data.
  const std::string form = dims.front().str();
  return form == "T" || (form == "N" && !isPool && data::isFloat(dtype));
}

[[noreturn]] static void fail(const Config &config, const llvm::Twine &why) {
  llvm::report_fatal_error(config.key() + ": " + why, /*gen_crash_diag=*/false);
}

/// One context for all modules; it lives until the process ends.
static MLIRContext &sharedContext() {
  static MLIRContext *context = [] {
    DialectRegistry registry;
    registerAllDialects(registry);
    return new MLIRContext(registry, MLIRContext::Threading::DISABLED);
  }();
  return *context;
}

static gdnrt_device *sharedDevice(int workers) {
  static auto &devices = *new std::map<int, gdnrt_device *>;
  gdnrt_device *&device = devices[workers];
  if (!device) {
    gdnrt_cpu_options options = gdnrt_cpu_options_default();
    options.num_workers = workers;
    gdnrt_error error;
    if (gdnrt_device_create_cpu(&options, &device, &error) != GDNRT_OK)
      llvm::report_fatal_error(error.message);
  }
  return device;
}

/// What other shards and earlier runs of this program have compiled, or null.
static const ContentCache *sharedCache() {
  static auto &cache = *new std::optional<ContentCache>([] {
    StringRef folder = GDN_IMAGE_CACHE;
    return folder.empty() ? std::nullopt
                          : std::optional<ContentCache>(
                                llvm::cantFail(ContentCache::open(folder)));
  }());
  return cache ? &*cache : nullptr;
}

Program &Program::get(const Config &config) {
  // Never destroyed, so that what programs hold stays reachable.
  static auto &programs = *new std::map<std::string, std::unique_ptr<Program>>;
  std::unique_ptr<Program> &program = programs[config.key()];
  if (!program)
    program.reset(new Program(config));
  return *program;
}

Program::Program(const Config &config)
    : config(config), module(buildModule(sharedContext(), config)) {}

Program::Image &Program::image(StringRef name) {
  auto [it, fresh] = images.try_emplace(name.str());
  Image &image = it->second;
  if (!fresh)
    return image;
  OwningOpRef<ModuleOp> alone = module->clone();
  for (auto function :
       llvm::make_early_inc_range(alone->getOps<func::FuncOp>()))
    if (function.getName() != name)
      function.erase();
  llvm::Expected<TargetModel> target = TargetModel::get(config.target);
  if (!target)
    fail(config, llvm::toString(target.takeError()));
  CompileOptions options;
  options.cpu = config.pipeline;
  options.gpu.cache = sharedCache();
  FailureOr<std::vector<uint8_t>> result = compileImage(
      *alone, *target, options, [](PassManager &) { return success(); });
  if (failed(result))
    fail(config, "does not compile");
  image.bytes = std::move(*result);
  gdnrt_error error;
  if (gdnrt_image_load_memory(image.bytes.data(), image.bytes.size(),
                              &image.handle, &error) != GDNRT_OK)
    fail(config, error.message);
  return image;
}

/// The parameters of an entry as the image describes them.
static std::vector<Parameter> describe(const gdnrt_entry *entry) {
  std::vector<Parameter> parameters;
  for (size_t i = 0; i < gdnrt_entry_param_count(entry); ++i) {
    gdnrt_param_info info = gdnrt_param_info_default();
    gdnrt_error error;
    if (gdnrt_entry_param(entry, i, &info, &error) != GDNRT_OK)
      llvm::report_fatal_error(error.message);
    Parameter parameter = {info.name,
                           info.kind == GDNRT_POOL,
                           info.access == GDNRT_WRITE,
                           data::DType(info.dtype),
                           {}};
    for (int32_t d = 0; d < info.rank; ++d)
      parameter.dims.push_back(llvm::cantFail(LinearForm::parse(info.dims[d])));
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

Entry &Program::entry(StringRef name, int workers) {
  auto [it, fresh] = entries.try_emplace({name.str(), workers});
  Entry &entry = it->second;
  if (fresh) {
    gdnrt_error error;
    if (gdnrt_kernel_create(sharedDevice(workers), image(name).handle,
                            name.str().c_str(), &entry.kernel,
                            &error) != GDNRT_OK)
      fail(config, error.message);
    entry.function = module->lookupSymbol<func::FuncOp>(name);
    entry.parameters = describe(gdnrt_kernel_entry(entry.kernel));
  }
  return entry;
}
