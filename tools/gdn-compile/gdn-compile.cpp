// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-compile: gated-delta-network layers to an image that libgdnrt runs.
#include "CommandLine.h"
#include "LayerInput.h"

#include "gdn/Pipelines/CompileCpu.h"
#include "gdn/Pipelines/CrashReproducer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace gdn;

/// Writes the whole of `text` or nothing.
static llvm::Error write(StringRef path, StringRef text) {
  return llvm::writeToOutput(path, [&](raw_ostream &stream) {
    stream << text;
    return llvm::Error::success();
  });
}

static std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, OpPrintingFlags().printNameLocAsPrefix());
  return text + "\n";
}

/// What the command line asks for, as the bytes of the output file.
static FailureOr<std::string> compile(ModuleOp source, const CommandLine &line,
                                      ArrayRef<TargetModel> targets,
                                      ConfigurePasses configure) {
  CpuPipelineOptions options;
  options.tokens = line.tokens;
  options.chunk = line.chunk;
  options.chunkFrom = line.chunkFrom;
  options.precision = line.precision;
  if (line.emit == Emit::gdn)
    return print(source);
  if (line.emit == Emit::image) {
    FailureOr<std::vector<uint8_t>> image =
        compileImage(source, targets, options, configure);
    if (failed(image))
      return failure();
    return std::string(image->begin(), image->end());
  }
  Level level = line.emit == Emit::tile ? Level::tile : Level::llvm;
  FailureOr<OwningOpRef<ModuleOp>> lowered =
      lowerForCpu(source, targets.front(), level, options, configure);
  if (failed(lowered))
    return failure();
  if (line.emit == Emit::tile || line.emit == Emit::llvm)
    return print(**lowered);
  FailureOr<CpuCodegen> codegen =
      CpuCodegen::create(**lowered, targets.front());
  if (failed(codegen))
    return failure();
  if (line.emit == Emit::llvmIr)
    return codegen->getLlvmIr();
  return codegen->emitAssembly();
}

static llvm::Expected<SmallVector<TargetModel>>
findTargets(const CommandLine &line) {
  SmallVector<TargetModel> targets;
  for (const std::string &name : line.targets) {
    llvm::Expected<TargetModel> target = TargetModel::get(name);
    if (!target)
      return target.takeError();
    targets.push_back(std::move(*target));
  }
  return targets;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  auto fail = [](llvm::Error error) {
    llvm::WithColor::error(llvm::errs(), "gdn-compile")
        << llvm::toString(std::move(error)) << "\n";
    return 1;
  };
  llvm::Expected<CommandLine> line = parseCommandLine(argc, argv);
  if (!line)
    return fail(line.takeError());
  llvm::Expected<SmallVector<TargetModel>> targets = findTargets(*line);
  if (!targets)
    return fail(targets.takeError());

  DialectRegistry registry;
  registry.insert<GDNDialect, arith::ArithDialect, func::FuncDialect,
                  tensor::TensorDialect>();
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  auto sources = std::make_shared<llvm::SourceMgr>();
  SourceMgrDiagnosticHandler diagnostics(*sources, &context);

  llvm::Expected<OwningOpRef<ModuleOp>> module =
      loadLayer(context, *line, sources);
  if (!module)
    return fail(module.takeError());
  if (!*module)
    return 1;

  DefaultTimingManager timing;
  applyDefaultTimingManagerCLOptions(timing);
  TimingScope scope = timing.getRootScope();
  std::string stem = line->output == "-" ? "gdn-compile" : line->output;
  CrashReproducer reproducer(context, stem + ".reproducer.mlir");
  auto configure = [&](PassManager &passes) {
    reproducer.attach(passes);
    passes.enableTiming(scope);
    return applyPassManagerCLOptions(passes);
  };
  FailureOr<std::string> output = compile(**module, *line, *targets, configure);
  if (failed(output))
    return 1;
  if (llvm::Error error = write(line->output, *output))
    return fail(std::move(error));
  return 0;
}
