// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Options of a command line, and mlir-opt behind them.
#include "gdn/Support/OptimizerMain.h"

#include "gdn/Support/InputFile.h"
#include "gdn/Support/OutputFile.h"

#include "mlir/Support/ToolUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;

/// IR with constants inline; nothing that gdn makes comes near.
static constexpr uint64_t mostInputBytes = uint64_t(1) << 30;

int gdn::runOptimizer(int argc, char **argv, llvm::StringRef title,
                      DialectRegistry &registry) {
  auto [input, output] =
      registerAndParseCLIOptions(argc, argv, title, registry);
  auto config = MlirOptMainConfig::createFromCLOptions();
  // Lists, which read and write no file.
  if (config.shouldShowDialects() || config.shouldListPasses())
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
  llvm::InitLLVM init(argc, argv);
  auto report = [&](llvm::Error error) {
    llvm::WithColor::error(llvm::errs(), llvm::sys::path::filename(argv[0]))
        << llvm::toString(std::move(error)) << "\n";
    return EXIT_FAILURE;
  };
  auto buffer = readProgramFile(input, mostInputBytes);
  if (!buffer)
    return report(buffer.takeError());
  if (output == "-")
    return asMainReturnCode(
        MlirOptMain(llvm::outs(), std::move(*buffer), registry, config));
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (failed(MlirOptMain(stream, std::move(*buffer), registry, config)))
    return EXIT_FAILURE;
  if (llvm::Error error = writeOutputFile(output, text))
    return report(std::move(error));
  return EXIT_SUCCESS;
}
