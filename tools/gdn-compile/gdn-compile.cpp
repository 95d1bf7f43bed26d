// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-compile: gated-delta-network layers to an image that libgdnrt runs.
#include "CommandLine.h"
#include "LayerInput.h"

#include "gdn/Pipelines/CompileImage.h"
#include "gdn/Pipelines/CrashReproducer.h"
#include "gdn/Support/OutputFile.h"
#include "gdn/Target/CudaProgram.h"
#include "gdn/Target/NvptxCodegen.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace gdn;

static std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, OpPrintingFlags().printNameLocAsPrefix());
  return text + "\n";
}

/// Prints what is said of no place in a file, such as of generated entries, as
/// if it were of the input.
static LogicalResult printWithInput(StringRef input, Diagnostic &diagnostic) {
  if (diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
    return failure();
  auto print = [&](Diagnostic &part) {
    llvm::errs() << input << ": ";
    switch (part.getSeverity()) {
    case DiagnosticSeverity::Error:
      llvm::WithColor::error(llvm::errs());
      break;
    case DiagnosticSeverity::Warning:
      llvm::WithColor::warning(llvm::errs());
      break;
    case DiagnosticSeverity::Note:
      llvm::WithColor::note(llvm::errs());
      break;
    case DiagnosticSeverity::Remark:
      llvm::WithColor::remark(llvm::errs());
      break;
    }
    llvm::errs() << part << "\n";
  };
  print(diagnostic);
  for (Diagnostic &note : diagnostic.getNotes())
    print(note);
  return success();
}

/// A stage of the way to a CPU.
static FailureOr<std::string> showForCpu(ModuleOp source, Emit emit,
                                         const TargetModel &target,
                                         const CpuPipelineOptions &options,
                                         ConfigurePasses configure) {
  Level level = emit == Emit::tile ? Level::tile : Level::llvm;
  FailureOr<OwningOpRef<ModuleOp>> lowered =
      lowerForCpu(source, target, level, options, configure);
  if (failed(lowered))
    return failure();
  if (emit == Emit::tile || emit == Emit::llvm)
    return print(**lowered);
  FailureOr<CpuCodegen> codegen = CpuCodegen::create(**lowered, target);
  if (failed(codegen))
    return failure();
  if (emit == Emit::llvmIr)
    return codegen->getLlvmIr();
  return codegen->emitAssembly();
}

/// A stage of the way to a GPU.
static FailureOr<std::string> showForGpu(ModuleOp source, Emit emit,
                                         const TargetModel &target,
                                         const GpuCompileOptions &options,
                                         ConfigurePasses configure) {
  if (emit == Emit::gpu || emit == Emit::nvvm || emit == Emit::llvmIr) {
    GpuLevel level = emit == Emit::gpu ? GpuLevel::gpu : GpuLevel::nvvm;
    FailureOr<OwningOpRef<ModuleOp>> lowered =
        lowerForGpu(source, target, level, options.pipeline, configure);
    if (failed(lowered))
      return failure();
    if (emit != Emit::llvmIr)
      return print(**lowered);
    FailureOr<KernelText> text =
        generateKernels(**lowered, target, /*wantsPtx=*/false);
    if (failed(text))
      return failure();
    return std::move(text->llvmIr);
  }
  FailureOr<GpuCode> code = compileForGpu(source, target, options, configure);
  if (failed(code))
    return failure();
  switch (emit) {
  case Emit::ptx:
    return std::move(code->ptx);
  case Emit::digest: {
    std::string lines;
    for (const EntryCode &entry : code->entries)
      lines += entry.entry + " " + target.getName().str() + " " + entry.digest +
               "\n";
    return lines;
  }
  default:
    break;
  }
  if (!code->cubin)
    return source.emitError("expects ptxas to show machine code, but found "
                            "none; tools/scripts/setup.sh installs it");
  llvm::Expected<std::string> text = disassemble(code->cubin->bytes);
  if (!text)
    return source.emitError(llvm::toString(text.takeError()));
  return std::move(*text);
}

/// What the command line asks for, as the bytes of the output file.
static FailureOr<std::string> compile(ModuleOp source, const CommandLine &line,
                                      ArrayRef<TargetModel> targets,
                                      const std::optional<Ptxas> &ptxas,
                                      const ContentCache *cache,
                                      ConfigurePasses configure) {
  CompileOptions options;
  options.cpu.tokens = line.tokens;
  options.cpu.chunk = line.chunk;
  options.cpu.chunkFrom = line.chunkFrom;
  options.cpu.precision = line.precision;
  options.cpu.chunkStages = line.chunkStages;
  options.cpu.segments = line.segments;
  options.cpu.segmentsFrom = line.segmentsFrom;
  options.gpu.ptxas = ptxas;
  options.gpu.needsCubin = line.emit != Emit::digest;
  options.gpu.needsAllEntries = line.needsAllEntries();
  options.gpu.cache = cache;
  options.cpu.segmentMaps = options.gpu.pipeline.segmentMaps = line.segmentMaps;
  options.gpu.pipeline.everyThreadArrives = line.everyThreadArrives;
  if (line.lineInfo) {
    SmallString<128> stem(line.output);
    // Programs that read the code run elsewhere.
    (void)llvm::sys::fs::make_absolute(stem);
    options.gpu.pipeline.lineInfo = stem.str().str();
  }
  if (line.emit == Emit::gdn)
    return print(source);
  if (line.emit == Emit::image) {
    FailureOr<std::vector<uint8_t>> image =
        compileImage(source, targets, options, configure);
    if (failed(image))
      return failure();
    return std::string(image->begin(), image->end());
  }
  if (line.emit == Emit::report) {
    KernelTable table;
    for (const TargetModel &target : targets) {
      FailureOr<GpuCode> code =
          compileForGpu(source, target, options.gpu, configure);
      if (failed(code))
        return failure();
      table.add(target, *code);
    }
    return table.print();
  }
  std::string text;
  for (const TargetModel &target : targets) {
    FailureOr<std::string> stage =
        target.getKind() == TargetKind::cpu
            ? showForCpu(source, line.emit, target, options.cpu, configure)
            : showForGpu(source, line.emit, target, options.gpu, configure);
    if (failed(stage))
      return failure();
    text += *stage;
  }
  return text;
}

/// Fails if the stage is not on the way to the target.
static llvm::Error checkStage(Emit emit, const TargetModel &target) {
  bool isGpu = target.getKind() == TargetKind::nvptx;
  switch (emit) {
  case Emit::image:
  case Emit::gdn:
  case Emit::llvmIr:
    return llvm::Error::success();
  case Emit::tile:
  case Emit::llvm:
  case Emit::assembly:
    if (!isGpu)
      return llvm::Error::success();
    return llvm::createStringError(
        "expects a CPU to show this stage for, but got " + target.getName());
  default:
    if (isGpu)
      return llvm::Error::success();
    return llvm::createStringError(
        "expects a GPU to show this stage for, but got " + target.getName());
  }
}

/// The assembler, if a target and the stage want one.
static llvm::Expected<std::optional<Ptxas>>
findPtxas(const CommandLine &line, ArrayRef<TargetModel> targets) {
  bool wanted = line.emit == Emit::image || line.emit == Emit::report ||
                line.emit == Emit::sass ||
                (line.emit == Emit::digest && !line.cache.empty());
  bool anyGpu = llvm::any_of(targets, [](const TargetModel &target) {
    return target.getKind() == TargetKind::nvptx;
  });
  if (!wanted || !anyGpu || line.ptxas == "none")
    return std::nullopt;
  std::string path = line.ptxas;
  if (path.empty()) {
    std::optional<std::string> found = findCudaProgram("ptxas");
    if (!found)
      return std::nullopt;
    path = *found;
  }
  llvm::Expected<Ptxas> ptxas = Ptxas::open(path);
  if (!ptxas)
    return ptxas.takeError();
  return std::move(*ptxas);
}

static llvm::Expected<SmallVector<TargetModel>>
findTargets(const CommandLine &line) {
  SmallVector<TargetModel> targets;
  for (const std::string &name : line.targets) {
    if (name.empty())
      return llvm::createStringError(
          "--target: expects names separated by commas, but got an empty one");
    if (llvm::count(line.targets, name) > 1)
      return llvm::createStringError(
          "--target: expects each name once, but got " + name + " twice");
    llvm::Expected<TargetModel> target = TargetModel::get(name);
    if (!target)
      return target.takeError();
    if (llvm::Error error = checkStage(line.emit, *target))
      return std::move(error);
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
  llvm::Expected<std::optional<Ptxas>> ptxas = findPtxas(*line, *targets);
  if (!ptxas)
    return fail(ptxas.takeError());
  std::optional<ContentCache> cache;
  if (!line->cache.empty()) {
    llvm::Expected<ContentCache> opened = ContentCache::open(line->cache);
    if (!opened)
      return fail(opened.takeError());
    cache = std::move(*opened);
  }

  DialectRegistry registry;
  registry.insert<GDNDialect, arith::ArithDialect, func::FuncDialect,
                  tensor::TensorDialect>();
  registerKernelDialects(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  auto sources = std::make_shared<llvm::SourceMgr>();
  SourceMgrDiagnosticHandler diagnostics(*sources, &context);
  ScopedDiagnosticHandler withInput(&context, [&](Diagnostic &diagnostic) {
    return printWithInput(line->getInputName(), diagnostic);
  });

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
    passes.enableVerifier(line->verifyEach);
    return applyPassManagerCLOptions(passes);
  };
  FailureOr<std::string> output = compile(**module, *line, *targets, *ptxas,
                                          cache ? &*cache : nullptr, configure);
  if (failed(output))
    return 1;
  if (llvm::Error error = writeOutputFile(line->output, *output))
    return fail(std::move(error));
  return 0;
}
