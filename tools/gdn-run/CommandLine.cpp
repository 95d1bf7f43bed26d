// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The options of gdn-run.
#include "CommandLine.h"

#include "gdn/Run/Arguments.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"

using namespace gdn;
namespace cl = llvm::cl;

static constexpr llvm::StringLiteral overview =
    "Runs entries of an image (.gdnk) that gdn-compile made.\n\n"
    "  gdn-run x.gdnk                                     what is in the "
    "image\n"
    "  gdn-run x.gdnk --entry decode --generate --check   run on made-up "
    "inputs "
    "and\n"
    "                                                     compare with "
    "float64\n"
    "  gdn-run x.gdnk --entry decode --input in.safetensors --output "
    "out.safetensors\n"
    "  gdn-run x.gdnk --replay model.safetensors  recorded activations\n\n"
    "Exits with 0 if all went well, 1 on errors, 2 if a result is out of "
    "bounds.\n";

static const std::string &generateHelp() {
  static const std::string text =
      "Make up the inputs; every key has a default: " +
      run::GenerateOptions::help().str();
  return text;
}

namespace {
/// LLVM keeps pointers to options for as long as the process lives, so there
/// is one object of this kind, in the function that parses.
struct Options {
  cl::OptionCategory category{"gdn-run"};
  cl::opt<std::string> image{cl::Positional, cl::Required,
                             cl::desc("<image.gdnk>"), cl::cat(category)};
  cl::opt<std::string> entry{"entry", cl::value_desc("name"), cl::cat(category),
                             cl::desc("The entry to run; 'decode' also finds "
                                      "decode_bf16_f32")};
  cl::opt<std::string> input{
      "input", cl::value_desc("file.safetensors"), cl::cat(category),
      cl::desc("Tensors by parameter name; with --generate they replace what "
               "was made up")};
  cl::opt<std::string> generate{"generate", cl::value_desc("key=value,..."),
                                cl::cat(category), cl::desc(generateHelp())};
  cl::opt<std::string> output{
      "output", cl::value_desc("file.safetensors"), cl::cat(category),
      cl::desc("Write the results and the pools after the run")};
  cl::opt<std::string> replay{
      "replay", cl::value_desc("file.safetensors"), cl::cat(category),
      cl::desc("Run prefill and decode on recorded activations of a model")};
  cl::opt<bool> check{"check", cl::cat(category),
                      cl::desc("Compare with the float64 reference")};
  cl::opt<bool> convert{
      "convert", cl::cat(category),
      cl::desc("Round floats of --input to the entry's types")};
  cl::opt<bool> json{"json", cl::cat(category),
                     cl::desc("Print JSON instead of a table")};
  cl::opt<int64_t> repeat{"repeat", cl::value_desc("n"), cl::cat(category),
                          cl::desc("Launch n more times and show the time")};
  cl::opt<std::string> device{"device", cl::init("cpu"),
                              cl::value_desc("cpu|cuda[:n]|any"),
                              cl::cat(category),
                              cl::desc("Where to run (default: cpu); any: on a "
                                       "GPU what there is code for")};
  cl::opt<int> workers{"workers", cl::value_desc("n"), cl::cat(category),
                       cl::desc("Threads of a launch (default: all)")};
  cl::opt<int64_t> nullSlot{"null-slot", cl::init(0), cl::value_desc("id"),
                            cl::cat(category),
                            cl::desc("The slot of pools that counts as none "
                                     "(default 0; -1 for no such slot)")};
  cl::opt<bool> byPosition{
      "windows-by-position", cl::cat(category),
      cl::desc("Windows of convolutions lie position after position in memory, "
               "as variants for aligned arrays ask for")};
  cl::opt<std::string> variant{
      "variant", cl::value_desc("name"), cl::cat(category),
      cl::desc(
          "The variant of the entry's code to run, whatever its conditions "
          "say (default: the device chooses)")};
};
} // namespace

llvm::Expected<CommandLine> gdn::parseCommandLine(int argc, char **argv) {
  static Options options;
  cl::HideUnrelatedOptions(options.category);
  cl::ParseCommandLineOptions(argc, argv, overview);
  CommandLine line;
  line.imagePath = options.image;
  line.entry = options.entry;
  line.inputPath = options.input;
  if (options.generate.getNumOccurrences())
    line.generate = options.generate;
  line.outputPath = options.output;
  line.replayPath = options.replay;
  line.check = options.check;
  line.convert = options.convert;
  line.json = options.json;
  line.repeat = options.repeat;
  line.device = options.device;
  line.workers = options.workers;
  line.nullSlot = options.nullSlot;
  line.variant = options.variant;
  line.byPosition = options.byPosition;

  if (line.repeat < 0)
    return llvm::createStringError(
        llvm::formatv("--repeat: expects 0 or more, but got {0}", line.repeat));
  bool hasInputs = !line.inputPath.empty() || line.generate;
  if (!line.replayPath.empty() && (!line.entry.empty() || hasInputs))
    return llvm::createStringError(
        "--replay takes its inputs from the recording and runs the entries "
        "prefill and decode; it goes without --entry, --input and --generate");
  if (!line.entry.empty() && !hasInputs)
    return llvm::createStringError(
        "expects --input or --generate for the entry's inputs");
  if (line.entry.empty() && hasInputs)
    return llvm::createStringError("expects --entry to say what to run");
  return line;
}
