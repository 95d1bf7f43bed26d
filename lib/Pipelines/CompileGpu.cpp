// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From gdn, or from kernels, to code for a GPU; see CompileGpu.h.
#include "gdn/Pipelines/CompileGpu.h"

#include "gdn/Target/CudaProgram.h"
#include "gdn/Target/NvptxCodegen.h"
#include "gdn/Target/PtxDigest.h"

#include "gdn/Target/TemporaryFile.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"

using namespace mlir;
using namespace gdn;

FailureOr<OwningOpRef<ModuleOp>>
gdn::lowerForGpu(ModuleOp source, const TargetModel &target, GpuLevel level,
                 const GpuPipelineOptions &options, ConfigurePasses configure) {
  OwningOpRef<ModuleOp> module = source.clone();
  PassManager passes(source.getContext());
  if (failed(configure(passes)))
    return failure();
  bool hasEntries =
      llvm::any_of(module->getOps<func::FuncOp>(), [](func::FuncOp func) {
        return func->hasAttr("gdn.entry");
      });
  if (!hasEntries) // kernels already, but for what nvvm has no intrinsic for
    passes.addPass(createConvertNVVMToLLVMPass());
  else if (level == GpuLevel::gpu)
    buildGdnToGpuPipeline(passes, target, options);
  else
    buildGpuPipeline(passes, target, options);
  if (failed(passes.run(*module)))
    return failure();
  return module;
}

FailureOr<GpuCode> gdn::compileForGpu(ModuleOp source,
                                      const TargetModel &target,
                                      const GpuCompileOptions &options,
                                      ConfigurePasses configure) {
  FailureOr<OwningOpRef<ModuleOp>> lowered =
      lowerForGpu(source, target, GpuLevel::nvvm, options.pipeline, configure);
  if (failed(lowered))
    return failure();
  ModuleOp module = **lowered;
  GpuCode code;
  FailureOr<KernelText> text =
      generateKernels(module, target, /*wantsPtx=*/true);
  if (failed(text))
    return failure();
  code.ptx = std::move(text->ptx);
  FailureOr<SmallVector<EntryCode, 0>> entries = collectEntryCodes(module);
  if (failed(entries))
    return failure();
  code.entries = std::move(*entries);
  if (code.entries.empty())
    return module.emitError("expects at least one entry with a schedule, or a "
                            "kernel, but got none");
  SmallVector<StageCode *> stages;
  for (EntryCode &entry : code.entries)
    for (VariantCode &variant : entry.variants)
      for (StageCode &stage : variant.stages)
        stages.push_back(&stage);
  for (StageCode *stage : stages) {
    llvm::Expected<std::string> digest = digestPtx(code.ptx, stage->symbol);
    if (!digest)
      return module.emitError(llvm::toString(digest.takeError()));
    stage->digest = std::move(*digest);
  }
  if (!options.ptxas)
    return code;
  // A digest is of what the compiler asked for; what ptxas makes of it may
  // take another attempt.
  for (;;) {
    llvm::Expected<Cubin> cubin = options.ptxas->assemble(code.ptx, target);
    if (!cubin)
      return module.emitError(llvm::toString(cubin.takeError()));
    if (takeFewerBlocks(module, cubin->report, target)) {
      text = generateKernels(module, target, /*wantsPtx=*/true);
      if (failed(text))
        return failure();
      code.ptx = std::move(text->ptx);
      continue;
    }
    if (failed(checkReport(module, cubin->report, target)))
      return failure();
    for (StageCode *stage : stages)
      stage->resources = cubin->report.kernels.lookup(stage->symbol);
    code.cubin = std::move(*cubin);
    return code;
  }
}

FailureOr<SmallVector<TargetCode, 0>>
gdn::makeGpuTargetCodes(ModuleOp source, const TargetModel &target,
                        const GpuCompileOptions &options,
                        ConfigurePasses configure) {
  FailureOr<GpuCode> code = compileForGpu(source, target, options, configure);
  if (failed(code))
    return failure();
  SmallVector<TargetCode, 0> codes;
  auto add = [&](CodeFormat format, StringRef bytes) {
    TargetCode &added = codes.emplace_back();
    added.target = target.getName().str();
    added.format = format;
    added.entries = code->entries;
    added.blob.assign(bytes.begin(), bytes.end());
  };
  if (code->cubin)
    add(CodeFormat::cubin, code->cubin->bytes);
  else
    source.emitRemark("no ptxas was found: the image has PTX for ")
        << target.getName() << ", which a driver of CUDA 13 assembles when it "
        << "loads it";
  if (!code->cubin || target.runsOnLaterChips())
    add(CodeFormat::ptx, code->ptx);
  return codes;
}

llvm::Expected<std::string> gdn::disassemble(llvm::StringRef cubin) {
  std::optional<std::string> program = findCudaProgram("nvdisasm");
  if (!program)
    return llvm::createStringError(
        "expects nvdisasm on PATH or in .venv to show machine code, but found "
        "none; tools/scripts/setup.sh installs it");
  TemporaryFile file;
  if (llvm::Error error = file.create("cubin", cubin))
    return std::move(error);
  llvm::Expected<ProgramOutput> said =
      runProgram(*program, {"-c", file.getPath()}, /*seconds=*/300);
  if (!said)
    return said.takeError();
  if (said->exitCode != 0)
    return llvm::createStringError(
        *program + " failed: " + llvm::StringRef(said->text).trim());
  return std::move(said->text);
}
