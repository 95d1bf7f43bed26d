// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options of gdn-compile.
#include "CommandLine.h"

#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"

using namespace gdn;
namespace cl = llvm::cl;

static constexpr llvm::StringLiteral overview =
    "Compiles the gated-delta-network layers of a model, ahead of time, into "
    "an "
    "image (.gdnk)\nthat gdn-run and libgdnrt run.\n\n"
    "  gdn-compile --preset qwen3.5-4b --target=x86-64-v3 -o qwen.gdnk\n"
    "  gdn-compile --config config.json --target=x86-64-v3,x86-64-v4 -o "
    "m.gdnk\n"
    "  gdn-compile layer.mlir --target=native -o layer.gdnk\n"
    "  gdn-compile --preset qwen3.5-4b --target=sm_90a,sm_80,x86-64-v3 -o "
    "qwen.gdnk\n"
    "  gdn-compile --preset qwen3.5-4b --emit=gdn        show what is "
    "compiled\n";

/// The options of entries with states in that format.
static EntryOptions withState(EntryOptions entries, StateFormat format) {
  switch (format) {
  case StateFormat::f32:
    entries.state = FloatKind::f32;
    break;
  case StateFormat::bf16:
    entries.state = FloatKind::bf16;
    break;
  case StateFormat::f16:
    entries.state = FloatKind::f16;
    break;
  case StateFormat::i8x2Upper:
    entries.readsUpper = true;
    [[fallthrough]];
  case StateFormat::i8x2:
    entries.statePlanes = 2;
    break;
  case StateFormat::i8:
    entries.statePlanes = 1;
    break;
  }
  return entries;
}

std::vector<EntryOptions>
CommandLine::variants(const ModelConfig &config) const {
  std::vector<FloatKind> ioKinds = io;
  if (ioKinds.empty())
    ioKinds.push_back(config.io.value_or(FloatKind::bf16));
  std::vector<EntryOptions> variants;
  for (FloatKind ioKind : ioKinds) {
    EntryOptions variant = entries;
    variant.io = ioKind;
    variant.state = config.state.value_or(FloatKind::f32);
    if (state.empty())
      variants.push_back(variant);
    for (StateFormat format : state)
      variants.push_back(withState(variant, format));
  }
  return variants;
}

llvm::StringRef CommandLine::getInputName() const {
  return !preset.empty()       ? preset
         : !configPath.empty() ? configPath
                               : layerPath;
}

static std::string presetHelp() {
  std::string text = "A model by name: ";
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(presetNames(), stream);
  return text;
}

namespace {
/// LLVM keeps pointers to options for as long as the process lives, so there
/// is one object of this kind, in the function that parses.
struct Options {
  cl::OptionCategory inputs{"What to compile (one of these)"};
  cl::OptionCategory outputs{"What to make of it"};
  cl::OptionCategory entries{"Generated entries (with --config or --preset)"};

  cl::opt<std::string> layer{cl::Positional, cl::desc("[layer.mlir]"),
                             cl::cat(inputs)};
  cl::opt<std::string> config{
      "config", cl::value_desc("file"), cl::cat(inputs),
      cl::desc("A Hugging Face config.json, its folder, or a .safetensors "
               "file whose metadata has one under 'config'")};
  cl::opt<std::string> preset{"preset", cl::value_desc("name"), cl::cat(inputs),
                              cl::desc(presetText)};

  cl::list<std::string> targets{
      "target", cl::CommaSeparated, cl::value_desc("name,..."),
      cl::cat(outputs),
      cl::desc("Chips to make code for: x86-64-v3 (default), x86-64-v4, a "
               "CPU's name, native, or a GPU: sm_80, sm_86, sm_89, sm_90a, "
               "sm_100a, sm_103a, sm_120a")};
  cl::opt<std::string> output{"o", cl::value_desc("file"), cl::cat(outputs),
                              cl::desc("Where to write it; - is standard "
                                       "output, the default for text")};
  cl::opt<Emit> emit{
      "emit", cl::init(Emit::image), cl::cat(outputs),
      cl::desc("Stage to write:"),
      cl::values(
          clEnumValN(Emit::image, "image", "The image (default)"),
          clEnumValN(Emit::gdn, "gdn", "The layer in the gdn dialect"),
          clEnumValN(Emit::tile, "tile", "Tile programs (gdn_tile)"),
          clEnumValN(Emit::llvm, "llvm", "The llvm dialect"),
          clEnumValN(Emit::llvmIr, "llvm-ir", "LLVM IR after optimisation"),
          clEnumValN(Emit::assembly, "asm", "Assembly of a CPU"),
          clEnumValN(Emit::gpu, "gpu", "GPU programs (gdn_gpu)"),
          clEnumValN(Emit::nvvm, "nvvm", "GPU kernels in llvm and nvvm"),
          clEnumValN(Emit::ptx, "ptx", "PTX"),
          clEnumValN(Emit::sass, "sass", "Machine code of a GPU"),
          clEnumValN(Emit::report, "report",
                     "A table of the GPU kernels: registers, shared memory, "
                     "spills, code size, launch"),
          clEnumValN(Emit::digest, "digest",
                     "Name, target and digest of each GPU kernel"))};
  cl::opt<std::string> ptxas{
      "ptxas", cl::value_desc("path"), cl::cat(outputs),
      cl::desc(
          "The assembler for GPUs, or none to do without (default: the one "
          "on PATH or in .venv)")};
  cl::opt<std::string> cache{
      "cache", cl::value_desc("folder"), cl::cat(outputs),
      cl::desc("Keep what is compiled in this folder, and take from there what "
               "was compiled before; several processes may share it. Not used "
               "with --line-info and options of MLIR and LLVM")};
  cl::opt<int64_t> tokens{"tokens", cl::init(16), cl::cat(outputs),
                          cl::desc("Tokens per block of prefill's loop "
                                   "(default 16)")};
  cl::opt<int64_t> chunk{"chunk", cl::init(64), cl::cat(outputs),
                         cl::desc("Tokens per chunk of the chunk form: 16, 32, "
                                  "64 (default) or 128")};
  cl::opt<int64_t> chunkFrom{
      "chunk-from", cl::init(0), cl::cat(outputs), cl::value_desc("tokens"),
      cl::desc("Prefill goes in chunks while so many tokens are left of a row; "
               "negative: never; 0: by the target's rule (default)")};
  cl::opt<Precision> precision{
      "precision", cl::init(Precision::f32), cl::cat(outputs),
      cl::desc("Operands of the chunk form's products:"),
      cl::values(
          clEnumValN(Precision::f32, "f32", "f32, as loaded (default)"),
          clEnumValN(Precision::mixed, "mixed",
                     "Rounded to f16, as tensor cores take them"),
          clEnumValN(Precision::mixedIo, "mixed-io",
                     "The same, with keys and queries that are handed over, "
                     "and the state, in the type of --io"))};
  cl::opt<ChunkStages> chunkStages{
      "chunk-stages", cl::init(ChunkStages::onePass), cl::cat(outputs),
      cl::desc("Stages of the chunk form on a CPU:"),
      cl::values(
          clEnumValN(ChunkStages::onePass, "one-pass", "One (default)"),
          clEnumValN(ChunkStages::staged, "staged",
                     "Also a variant of two, as GPUs run it; with --precision "
                     "mixed or mixed-io"),
          clEnumValN(ChunkStages::staged, "split",
                     "Deprecated name of staged"))};
  cl::opt<int64_t> segments{
      "segments", cl::init(-1), cl::cat(outputs), cl::value_desc("n"),
      cl::desc("Segments of a row of prefill in the variant for idle workers; "
               "0: none; negative: by the target's rule (default)")};
  cl::opt<int64_t> segmentsFrom{
      "segments-from", cl::init(-1), cl::cat(outputs), cl::value_desc("tokens"),
      cl::desc("Mean tokens of a sequence from which that variant is taken; "
               "negative: by the target's rule (default)")};
  cl::opt<bool> segmentMaps{
      "segment-maps", cl::cat(outputs),
      cl::desc("Prefill also has the variant segment-maps: what tokens of a "
               "row do to the state, and nothing else; launches take it only "
               "if told to")};
  cl::opt<bool> everyThreadArrives{
      "every-thread-arrives", cl::cat(outputs),
      cl::desc("For tools that look for races in kernels: at barriers between "
               "roles each thread arrives, not one for its warp")};
  cl::opt<bool> verifyEach{
      "verify-each", cl::cat(outputs),
      cl::desc("Verify the program after each pass; turns --cache off")};
  cl::opt<bool> lineInfo{
      "line-info", cl::cat(outputs),
      cl::desc("For debuggers and profilers: write the GPU programs (gdn_gpu) "
               "to <output>.<target>.gpu.mlir, and name the line of its op at "
               "each instruction (.loc in PTX). The code stays the same")};

  cl::opt<Engine> engine{
      "for", cl::cat(entries),
      cl::desc("What serves the layers, which sets other options of entries "
               "unless they are given, and wants each entry for each target:"),
      cl::values(
          clEnumValN(Engine::vllm, "vllm",
                     "--has-initial --decode-initial --write-slots "
                     "--verify=slots; for block tables of mode all also "
                     "--checkpoints"),
          clEnumValN(Engine::sglang, "sglang",
                     "--layout=split --outputs=core --has-initial "
                     "--checkpoints --verify=buffer"),
          clEnumValN(Engine::pymllm, "pymllm", "--layout=split --outputs=core"),
          clEnumValN(Engine::c, "c",
                     "--has-initial --write-slots: gdn-c/serving.h, and "
                     "gdn.layers.attention; with speculation also "
                     "--verify=KIND"))};

  cl::ValuesClass floats{clEnumValN(FloatKind::f32, "f32", ""),
                         clEnumValN(FloatKind::bf16, "bf16", ""),
                         clEnumValN(FloatKind::f16, "f16", "")};
  cl::list<FloatKind> io{
      "io", cl::CommaSeparated, cl::cat(entries), floats,
      cl::desc("Types of projections and outputs; several make several pairs "
               "of entries (default: the model's, else bf16)")};
  cl::list<StateFormat> state{
      "state", cl::CommaSeparated, cl::cat(entries),
      cl::desc("Formats of the recurrent state (default: the model's, else "
               "f32):"),
      cl::values(clEnumValN(StateFormat::f32, "f32", ""),
                 clEnumValN(StateFormat::bf16, "bf16", ""),
                 clEnumValN(StateFormat::f16, "f16", ""),
                 clEnumValN(StateFormat::i8x2, "i8x2",
                            "Integers of 8 + 8 bits, and a scale for each row"),
                 clEnumValN(StateFormat::i8x2Upper, "i8x2_upper",
                            "The same, but decode reads the upper 8 bits alone "
                            "unless it writes a state; with --defer-writes"),
                 clEnumValN(StateFormat::i8, "i8",
                            "Integers of 8 bits; with --defer-writes"))};
  cl::opt<StateLayout> stateLayout{
      "state-layout", cl::init(StateLayout::vk), cl::cat(entries),
      cl::desc("How a head's state lies in memory:"),
      cl::values(clEnumValN(StateLayout::vk, "vk",
                            "[dv, dk], as vLLM and sglang keep it (default)"),
                 clEnumValN(StateLayout::kv, "kv",
                            "[dk, dv], as FLA and transformers keep it"))};
  cl::opt<FloatKind> convState{"conv-state", cl::cat(entries), floats,
                               cl::desc("Type of the convolution's state "
                                        "(default: that of --io)")};
  cl::opt<FloatKind> convWeight{"conv-weight", cl::cat(entries), floats,
                                cl::desc("Type of the convolution's weights "
                                         "(default: that of --io)")};
  cl::opt<FloatKind> normWeight{"norm-weight", cl::cat(entries), floats,
                                cl::desc("Type of the norm's weight (default: "
                                         "that of --io)")};
  cl::opt<bool> normConstants{
      "norm-constants", cl::cat(entries),
      cl::desc("Give entries with a norm a parameter norm_constants with eps "
               "and the gate (1 silu, 0 sigmoid) instead of the model's")};
  cl::opt<FloatKind> dtBias{"dt-bias", cl::init(FloatKind::f32),
                            cl::cat(entries), floats,
                            cl::desc("Type of dt_bias (default f32)")};
  cl::opt<InputLayout> layout{
      "layout", cl::cat(entries),
      cl::desc("How projections are handed over (default: the model's):"),
      cl::values(
          clEnumValN(InputLayout::interleaved, "interleaved",
                     "qkvz and ba, one block per key head"),
          clEnumValN(InputLayout::flat, "flat", "qkvz and ba, part after part"),
          clEnumValN(InputLayout::split, "split", "qkv, z, b and a"),
          clEnumValN(InputLayout::separate, "separate",
                     "q, k, v, z, b and a, head by head"),
          clEnumValN(InputLayout::gated, "gated",
                     "q, k and v that are convolved, and raw b and a, head by "
                     "head; with --outputs=core"),
          clEnumValN(
              InputLayout::ready, "ready",
              "q, k, v, log_decay and beta, as the rule takes them; with "
              "--outputs=core"))};
  cl::opt<bool> l2norm{
      "l2norm", cl::cat(entries),
      cl::desc("Scale gated or ready q and k to unit length in the entries")};
  cl::opt<EntryOutputs> results{
      "outputs", cl::init(EntryOutputs::norm), cl::cat(entries),
      cl::desc("What the entries give:"),
      cl::values(
          clEnumValN(EntryOutputs::core, "core", "The delta rule's output"),
          clEnumValN(EntryOutputs::norm, "norm", "After the norm (default)"),
          clEnumValN(EntryOutputs::both, "both", "Both"))};
  cl::list<std::string> only{
      "only", cl::cat(entries), cl::value_desc("name,.."), cl::CommaSeparated,
      cl::desc("Make these entries alone, such as verify,commit; each of all "
               "types (default: all)")};
  cl::opt<bool> slots64{"slots64", cl::cat(entries),
                        cl::desc("Slot ids are i64 instead of i32")};
  cl::opt<bool> hasInitial{
      "has-initial", cl::cat(entries),
      cl::desc("Give prefill a parameter that says which rows have a state")};
  cl::opt<bool> decodeInitial{
      "decode-initial", cl::cat(entries),
      cl::desc("Give decode that parameter, so that graphs of decodes can take "
               "requests of one token")};
  cl::opt<bool> writeSlots{
      "write-slots", cl::cat(entries),
      cl::desc("Give entries a parameter with the slots to write to")};
  cl::opt<bool> mixedBatch{
      "mixed-batch", cl::cat(entries),
      cl::desc("Give verify and prefill a parameter is_prefill that says whose "
               "a row is. Each takes all rows of a step and leaves the other's "
               "as they are")};
  cl::opt<bool> checkpoints{
      "checkpoints", cl::cat(entries),
      cl::desc("Give prefill parameters that ask for states after multiples "
               "of 64 tokens of a sequence")};
  cl::opt<bool> combineMaps{
      "combine-maps", cl::cat(entries),
      cl::desc("Make entries combine_maps and apply_maps, for sequences that "
               "are spread over ranks: one map of many segments, and states "
               "from maps of ranks. Goes with --segment-maps")};
  cl::opt<VerifyStates> verify{
      "verify", cl::cat(entries),
      cl::desc("Make an entry verify, whose tokens may be taken back:"),
      cl::values(clEnumValN(VerifyStates::none, "none", "No (default)"),
                 clEnumValN(VerifyStates::slots, "slots",
                            "The state after each token goes to a slot"),
                 clEnumValN(VerifyStates::tree, "tree",
                            "The same, and tokens have parents"),
                 clEnumValN(VerifyStates::buffer, "buffer",
                            "The state after each token goes to a slot of "
                            "another pool, from which an entry commit copies "
                            "one"),
                 clEnumValN(VerifyStates::lazy, "lazy",
                            "Tokens stay pending until the next step, or until "
                            "an entry commit"))};
  cl::opt<long> verifyTokens{
      "verify-tokens", cl::cat(entries), cl::value_desc("number"),
      cl::desc(
          "The most tokens of a sequence of verify, 0 for any number: longer "
          "rows are skipped, and eight or fewer are faster (default: 8; "
          "tree and buffer have no bound)")};

  cl::opt<long> deferWrites{
      "defer-writes", cl::cat(entries), cl::value_desc("number"),
      cl::desc("Decode keeps up to so many tokens pending and writes a state "
               "when it has no room for more, as does entry commit (default: "
               "0, it writes at each step)")};
  cl::opt<FloatKind> pending{
      "pending", cl::init(FloatKind::f32), cl::cat(entries),
      cl::desc(
          "Type of keys and deltas of pending tokens, with --defer-writes:"),
      cl::values(clEnumValN(FloatKind::f32, "f32", "(default)"),
                 clEnumValN(FloatKind::f16, "f16",
                            "f16, with a scale for each delta"))};

  CommandLine collect();

private:
  // `presetHelp` has to outlive the option that points at it.
  static inline const std::string presetText = presetHelp();
};
} // namespace

CommandLine Options::collect() {
  CommandLine line;
  line.layerPath = layer;
  line.configPath = config;
  line.preset = preset;
  line.targets = targets;
  if (line.targets.empty())
    line.targets.push_back("x86-64-v3");
  line.emit = emit;
  line.ptxas = ptxas;
  line.cache = cache;
  line.output = output;
  if (line.output.empty() && line.emit != Emit::image)
    line.output = "-";
  line.tokens = tokens;
  line.chunk = chunk;
  line.chunkFrom = chunkFrom;
  line.precision = precision;
  line.chunkStages = chunkStages;
  line.segments = segments;
  line.segmentsFrom = segmentsFrom;
  line.segmentMaps = segmentMaps;
  line.everyThreadArrives = everyThreadArrives;
  line.verifyEach = verifyEach;
  line.lineInfo = lineInfo;
  line.io = io;
  line.state = state;
  auto given = [](const auto &option, auto &place) {
    if (option.getNumOccurrences())
      place = option.getValue();
  };
  if (engine.getNumOccurrences()) {
    line.engine = engine;
    const bool inPlanes = llvm::any_of(state, [](StateFormat format) {
      return withState({}, format).statePlanes != 0;
    });
    line.entries = inPlanes || deferWrites != 0
                       ? getPendingEntryOptions(engine, deferWrites != 0)
                       : getEntryOptions(engine);
  }
  line.entries.stateLayout = stateLayout;
  given(convState, line.entries.convState);
  given(convWeight, line.entries.convWeight);
  given(normWeight, line.entries.normWeight);
  given(layout, line.entries.layout);
  given(verifyTokens, line.entries.verifyTokens);
  given(deferWrites, line.entries.deferWrites);
  line.entries.pending = pending;
  line.entries.dtBias = dtBias;
  given(results, line.entries.outputs);
  line.entries.l2norm = l2norm;
  line.entries.normConstants = normConstants;
  line.only.assign(only.begin(), only.end());
  line.entries.slots64 = slots64;
  given(hasInitial, line.entries.hasInitial);
  given(decodeInitial, line.entries.decodeInitial);
  given(writeSlots, line.entries.writeSlots);
  given(mixedBatch, line.entries.mixedBatch);
  given(checkpoints, line.entries.checkpoints);
  line.entries.combineMaps = combineMaps;
  given(verify, line.entries.verify);
  for (auto &[name, option] : cl::getRegisteredOptions()) {
    if (!option->getNumOccurrences())
      continue;
    auto isIn = [&, option = option](cl::OptionCategory &category) {
      return llvm::is_contained(option->Categories, &category);
    };
    line.changesEntries |= isIn(entries);
    // Options of MLIR and LLVM ask to see passes at work, or change them.
    if (!isIn(inputs) && !isIn(outputs) && !isIn(entries))
      line.cache.clear();
  }
  if (lineInfo || verifyEach) // which a cached program has behind it
    line.cache.clear();
  return line;
}

/// Fails where options contradict each other.
static llvm::Error check(const CommandLine &line) {
  unsigned numInputs =
      !line.layerPath.empty() + !line.configPath.empty() + !line.preset.empty();
  if (numInputs != 1)
    return llvm::createStringError(llvm::formatv(
        "expects one of a layer, --config and --preset, but got {0}",
        numInputs == 0 ? "none" : "several"));
  if (line.changesEntries && !line.layerPath.empty())
    return llvm::createStringError(
        "options about generated entries go with --config or --preset; the "
        "entries of a layer are written in its file");
  // What a block of tokens takes on a CPU fits in 64 bits, and more segments
  // than workers have no use.
  constexpr int64_t mostTokens = 1 << 16, mostSegments = 1 << 16;
  if (line.tokens < 1 || line.tokens > mostTokens)
    return llvm::createStringError(llvm::formatv(
        "--tokens: expects 1 to {0}, but got {1}", mostTokens, line.tokens));
  if (line.chunk != 16 && line.chunk != 32 && line.chunk != 64 &&
      line.chunk != 128)
    return llvm::createStringError(llvm::formatv(
        "--chunk: expects 16, 32, 64 or 128, but got {0}", line.chunk));
  if (line.chunkStages == ChunkStages::staged &&
      line.precision == Precision::f32)
    return llvm::createStringError(
        "--chunk-stages=staged: expects --precision mixed or mixed-io, but got "
        "f32");
  if (line.segments == 1)
    return llvm::createStringError(
        "--segments: expects 0, a number of at least 2 or a negative one, but "
        "got 1");
  if (line.segments > mostSegments)
    return llvm::createStringError(
        llvm::formatv("--segments: expects at most {0}, but got {1}",
                      mostSegments, line.segments));
  if (line.output.empty())
    return llvm::createStringError("expects -o <file> for the image");
  if (line.lineInfo && line.output == "-")
    return llvm::createStringError(
        "--line-info: expects -o <file>, beside which it writes the GPU "
        "programs, but got the standard output");
  bool anyTargets = line.emit == Emit::image || line.emit == Emit::gdn ||
                    line.emit == Emit::report || line.emit == Emit::digest;
  if (!anyTargets && line.targets.size() != 1)
    return llvm::createStringError(llvm::formatv(
        "expects one target for this stage, but got {0}", line.targets.size()));
  return llvm::Error::success();
}

llvm::Expected<CommandLine> gdn::parseCommandLine(int argc, char **argv) {
  static Options options;
  mlir::registerAsmPrinterCLOptions();
  mlir::registerMLIRContextCLOptions();
  mlir::registerPassManagerCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
  cl::HideUnrelatedOptions(
      {&options.inputs, &options.outputs, &options.entries});
  // MLIR's own, but worth showing.
  if (cl::Option *timing = cl::getRegisteredOptions().lookup("mlir-timing"))
    timing->setHiddenFlag(cl::NotHidden);
  cl::ParseCommandLineOptions(argc, argv, overview);
  CommandLine line = options.collect();
  if (llvm::Error error = check(line))
    return std::move(error);
  return line;
}
