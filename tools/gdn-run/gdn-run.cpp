// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-run: runs entries of an image and says how right and how fast they are.
#include "CommandLine.h"
#include "ListImage.h"

#include "gdn/Run/Arguments.h"
#include "gdn/Run/Replay.h"
#include "gdn/Run/RunEntry.h"

#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

using namespace gdn;
using namespace gdn::run;

/// A result was out of bounds; failures are 1.
static constexpr int outOfBounds = 2;

static void printJson(llvm::json::Value value) {
  llvm::outs() << llvm::formatv("{0:2}", value) << '\n';
}

static llvm::Expected<int> replayRecording(const Program &program,
                                           const CommandLine &line) {
  llvm::Expected<Recording> recording = Recording::load(line.replayPath);
  if (!recording)
    return recording.takeError();
  llvm::Expected<std::vector<ReplayRow>> rows = replay(program, *recording);
  if (!rows)
    return rows.takeError();
  bool ok = llvm::all_of(*rows, [](const ReplayRow &row) { return row.ok(); });
  if (line.json) {
    llvm::json::Array array;
    for (const ReplayRow &row : *rows)
      array.push_back(toJson(row));
    printJson(llvm::json::Object{{"recording", line.replayPath},
                                 {"device", program.deviceName()},
                                 {"rows", std::move(array)},
                                 {"ok", ok}});
  } else {
    printReplay(*rows, llvm::outs());
  }
  return ok ? 0 : outOfBounds;
}

static llvm::Expected<Arrays> findArguments(const Kernel &kernel,
                                            const CommandLine &line) {
  Arrays arguments;
  if (line.generate) {
    llvm::Expected<GenerateOptions> options =
        GenerateOptions::parse(*line.generate);
    if (!options)
      return options.takeError();
    llvm::Expected<Arrays> made =
        generateArguments(kernel, *options, line.nullSlot);
    if (!made)
      return made.takeError();
    arguments = std::move(*made);
  }
  if (!line.inputPath.empty()) {
    llvm::Expected<data::Tensors> tensors =
        data::readSafetensors(line.inputPath);
    if (!tensors)
      return tensors.takeError();
    if (llvm::Error error = takeArguments(kernel, *tensors, !line.generate,
                                          line.convert, arguments))
      return std::move(error);
  }
  return arguments;
}

static void report(const Kernel &kernel, const EntryRun &run, bool json) {
  if (json) {
    llvm::json::Array comparisons;
    for (const Comparison &comparison : run.comparisons)
      comparisons.push_back(toJson(comparison));
    llvm::json::Object object{{"entry", kernel.getName()},
                              {"features", kernel.getFeatures()},
                              {"variant", run.variant},
                              {"workspace_bytes", int64_t(run.workspaceBytes)},
                              {"comparisons", std::move(comparisons)},
                              {"ok", run.ok()}};
    if (run.timing)
      object["time"] = toJson(*run.timing);
    return printJson(std::move(object));
  }
  llvm::outs() << kernel.getName() << "  (" << kernel.getFeatures() << ")";
  if (kernel.getVariants().size() > 1)
    llvm::outs() << "  variant " << run.variant << ", workspace "
                 << run.workspaceBytes << " bytes";
  llvm::outs() << '\n';
  if (!run.comparisons.empty()) {
    Table table({"tensor", "rel. RMSE", "max |error|", "limit", ""});
    for (const Comparison &c : run.comparisons)
      table.addRow({c.tensor, formatError(c.relativeRMSE),
                    formatError(c.maxAbs), formatLimit(c.limit),
                    c.ok ? "ok" : "FAILED"});
    table.print(llvm::outs());
  }
  if (run.timing)
    llvm::outs() << "time " << formatTime(run.timing->median) << " (median of "
                 << run.timing->launches << ", min "
                 << formatTime(run.timing->min) << ", max "
                 << formatTime(run.timing->max) << ")\n";
}

static llvm::Error writeOutputs(const Kernel &kernel, const EntryRun &run,
                                const CommandLine &line) {
  data::Tensors tensors;
  tensors.metadata["entry"] = kernel.getName();
  for (const Parameter &parameter : kernel.getParameters())
    if (parameter.isWritten)
      tensors.arrays[parameter.name] = run.arrays.at(parameter.name);
  return data::writeSafetensors(line.outputPath, tensors);
}

static llvm::Expected<int> runOne(const Program &program,
                                  const CommandLine &line) {
  llvm::Expected<Kernel> kernel = program.kernel(line.entry);
  if (!kernel)
    return kernel.takeError();
  if (line.byPosition)
    kernel->layWindowsByPosition();
  llvm::Expected<Arrays> arguments = findArguments(*kernel, line);
  if (!arguments)
    return arguments.takeError();
  RunOptions options;
  options.check = line.check;
  options.repeat = line.repeat;
  options.nullSlot = line.nullSlot;
  options.variant = line.variant;
  llvm::Expected<EntryRun> run =
      runEntry(*kernel, std::move(*arguments), options);
  if (!run)
    return run.takeError();
  if (!line.outputPath.empty())
    if (llvm::Error error = writeOutputs(*kernel, *run, line))
      return std::move(error);
  report(*kernel, *run, line.json);
  return run->ok() ? 0 : outOfBounds;
}

static llvm::Expected<int> execute(const CommandLine &line) {
  if (line.replayPath.empty() && line.entry.empty()) {
    if (llvm::Error error = listImage(line.imagePath, llvm::outs()))
      return std::move(error);
    return 0;
  }
  llvm::Expected<Program> program =
      Program::load(line.imagePath, line.workers, line.device);
  if (!program)
    return program.takeError();
  if (!line.replayPath.empty())
    return replayRecording(*program, line);
  return runOne(*program, line);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::Expected<CommandLine> line = parseCommandLine(argc, argv);
  llvm::Expected<int> status =
      line ? execute(*line) : llvm::Expected<int>(line.takeError());
  if (status)
    return *status;
  llvm::WithColor::error(llvm::errs(), "gdn-run")
      << llvm::toString(status.takeError()) << '\n';
  return 1;
}
