// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From gdn, or from kernels, to code for a GPU; see CompileGpu.h.
#include "gdn/Pipelines/CompileGpu.h"

#include "CachedModule.h"
#include "RunPasses.h"
#include "SourcesBehindGpu.h"

#include "gdn/Dialect/Tile/IR/StageFields.h"
#include "gdn/Pipelines/GpuToLlvm.h"
#include "gdn/Target/CudaProgram.h"
#include "gdn/Target/NvptxCodegen.h"
#include "gdn/Target/PtxDigest.h"
#include "gdn/Target/PtxText.h"
#include "gdn/Target/SharedCode.h"

#include "gdn/Target/TemporaryFile.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace gdn;

/// The entries of `source` that nothing in `lowered` is a program or kernel of.
static SmallVector<func::FuncOp> getLeftOut(ModuleOp source, ModuleOp lowered) {
  llvm::StringSet<> present;
  for (Operation &op : lowered.getBody()->getOperations()) {
    StringAttr owner = tile::StageFields(&op).getStageOf();
    if (!owner)
      owner = op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
    if (owner)
      present.insert(owner.getValue());
  }
  SmallVector<func::FuncOp> missing;
  for (auto func : source.getOps<func::FuncOp>())
    if (func->hasAttr("gdn.entry") && !present.contains(func.getName()))
      missing.push_back(func);
  return missing;
}

/// Whether there is something to lower: a module may have kernels already.
static bool hasEntries(ModuleOp source) {
  return llvm::any_of(source.getOps<func::FuncOp>(), [](func::FuncOp func) {
    return func->hasAttr("gdn.entry");
  });
}

FailureOr<OwningOpRef<ModuleOp>>
gdn::lowerForGpu(ModuleOp source, const TargetModel &target, GpuLevel level,
                 const GpuPipelineOptions &options, ConfigurePasses configure) {
  OwningOpRef<ModuleOp> module = source.clone();
  PassManager passes(source.getContext());
  if (failed(configure(passes)))
    return failure();
  if (!hasEntries(source)) // but for what nvvm has no intrinsic for
    passes.addPass(createConvertNVVMToLLVMPass());
  else if (level == GpuLevel::gpu)
    buildGdnToGpuPipeline(passes, target, options);
  else
    buildGpuPipeline(passes, target, options);
  if (failed(runPasses(passes, *module)))
    return failure();
  for (func::FuncOp entry : getLeftOut(source, *module))
    entry.emitWarning() << "entry '" << entry.getName()
                        << "' has no schedule for " << target.getName()
                        << " and is left out";
  return module;
}

/// All that decides what compileForGpu gives.
static ContentKey keyOf(ModuleOp source, const TargetModel &target,
                        const GpuCompileOptions &options) {
  ContentKey key("compile for a GPU");
  key.add(identityOfThisProgram()).add(textForKey(source));
  key.add(target.getName()).add(options.pipeline.everyThreadArrives);
  key.add(options.pipeline.segmentMaps);
  return key.add(options.ptxas ? options.ptxas->getIdentity() : "none");
}

/// All that decides what compilePrograms gives: not the sources of the passes
/// that made the programs.
static ContentKey keyOfPrograms(ModuleOp programs, const TargetModel &target,
                                const GpuCompileOptions &options) {
  ContentKey key("programs for a GPU");
  key.add(sourcesBehindGpu).add(identityOfLlvm()).add(textForKey(programs));
  key.add(target.getName()).add(options.pipeline.everyThreadArrives);
  return key.add(options.ptxas ? options.ptxas->getIdentity() : "none");
}

/// Puts the digest of each entry on its kernels (`gdn_gpu.digest`): that of the
/// only one, or of the digests of all, in the order of variants, which
/// `digests` then has by kernel. It is of what the compiler
/// asked for, so ptxas has no say in it: not by variants that it makes the
/// entry do without, not by kernels that get more registers than first.
static LogicalResult addDigests(ModuleOp module, StringRef ptx,
                                ArrayRef<EntryCode> entries,
                                llvm::StringMap<std::string> &digests) {
  const PtxLines lines(ptx);
  for (const EntryCode &entry : entries) {
    llvm::SetVector<StringRef> kernels;
    SmallVector<StringRef> ofStages;
    for (const VariantCode &variant : entry.variants)
      for (const StageCode &stage : variant.stages) {
        std::string &digest = digests[stage.symbol];
        if (digest.empty()) {
          llvm::Expected<std::string> found = digestPtx(lines, stage.symbol);
          if (!found)
            return module.emitError(llvm::toString(found.takeError()));
          digest = std::move(*found);
        }
        kernels.insert(stage.symbol);
        ofStages.push_back(digest);
      }
    std::string whole = ofStages.front().str();
    if (ofStages.size() > 1) {
      llvm::SHA256 hash;
      for (StringRef digest : ofStages)
        hash.update(digest);
      whole = llvm::toHex(hash.final(), /*LowerCase=*/true);
    }
    for (StringRef kernel : kernels)
      module.lookupSymbol(kernel)->setAttr(
          "gdn_gpu.digest", StringAttr::get(module.getContext(), whole));
  }
  return success();
}

/// Assembles the kernels that may take fewer blocks alone until none of these
/// spills, so that all the others are assembled once. `module` and `ptx` then
/// say how many blocks each of them gets.
static LogicalResult settleBlocks(ModuleOp module, std::string &ptx,
                                  const TargetModel &target,
                                  const GpuCompileOptions &options) {
  if (!options.ptxas)
    return success();
  auto kernels = llvm::make_filter_range(module.getOps<LLVM::LLVMFuncOp>(),
                                         mayTakeFewerBlocks);
  SmallVector<LLVM::LLVMFuncOp> open(kernels.begin(), kernels.end());
  while (!open.empty()) {
    llvm::StringSet<> names;
    for (LLVM::LLVMFuncOp kernel : open)
      names.insert(kernel.getName());
    auto isOpen = [&](StringRef name) { return names.contains(name); };
    llvm::Expected<Cubin> cubin = options.ptxas->assemble(
        llvm::join(PtxLines(ptx).keep(isOpen), "\n"), target, options.cache);
    if (!cubin)
      return module.emitError(llvm::toString(cubin.takeError()));
    reportSharedCode(module, cubin->report);
    open = takeFewerBlocks(module, cubin->report, target);
    for (LLVM::LLVMFuncOp kernel : open)
      ptx = withBlocksPerSm(ptx, kernel.getName(),
                            getBlocksPerSm(kernel).getInt());
  }
  return success();
}

/// The kernels of `module` with their digests, its PTX, and with an assembler
/// the cubin and what was said about it.
static FailureOr<CachedModule>
assembleKernels(OwningOpRef<ModuleOp> kernels, const TargetModel &target,
                const GpuCompileOptions &options) {
  CachedModule compiled;
  compiled.module = std::move(kernels);
  ModuleOp module = *compiled.module;
  FailureOr<KernelText> text =
      generateKernels(module, target, /*wantsPtx=*/true, options.cache);
  if (failed(text))
    return failure();
  FailureOr<SmallVector<EntryCode, 0>> entries = collectEntryCodes(module);
  if (failed(entries))
    return failure();
  if (entries->empty())
    return module.emitError("expects at least one entry with a schedule, or a "
                            "kernel, but got none");
  llvm::StringMap<std::string> digests;
  if (failed(addDigests(module, text->ptx, *entries, digests)))
    return failure();
  text->ptx = shareCode(module, digests, text->ptx);
  if (failed(settleBlocks(module, text->ptx, target, options)))
    return failure();
  while (options.ptxas) {
    llvm::Expected<Cubin> cubin =
        options.ptxas->assemble(text->ptx, target, options.cache);
    if (!cubin)
      return module.emitError(llvm::toString(cubin.takeError()));
    reportSharedCode(module, cubin->report);
    if (leaveOutVariants(module, cubin->report, target)) {
      text = generateKernels(module, target, /*wantsPtx=*/true, options.cache);
      if (failed(text))
        return failure();
      text->ptx = shareCode(module, digests, text->ptx);
      continue;
    }
    if (failed(checkReport(module, cubin->report, target)))
      return failure();
    compiled.parts = {std::move(text->ptx), std::move(cubin->bytes),
                      std::move(cubin->said)};
    return compiled;
  }
  compiled.parts = {std::move(text->ptx)};
  return compiled;
}

/// The same of gdn_gpu programs.
static FailureOr<CachedModule> compilePrograms(OwningOpRef<ModuleOp> programs,
                                               const TargetModel &target,
                                               const GpuCompileOptions &options,
                                               ConfigurePasses configure) {
  PassManager passes(programs->getContext());
  if (failed(configure(passes)))
    return failure();
  buildGpuProgramsToLlvmPipeline(passes, target, options.pipeline);
  if (failed(runPasses(passes, *programs)))
    return failure();
  return assembleKernels(std::move(programs), target, options);
}

/// The same of entries, or of kernels that are there already. With a cache,
/// programs that were compiled before are not compiled again, whichever passes
/// have made them.
static FailureOr<CachedModule> compileKernels(ModuleOp source,
                                              const TargetModel &target,
                                              const GpuCompileOptions &options,
                                              ConfigurePasses configure) {
  FailureOr<OwningOpRef<ModuleOp>> lowered =
      lowerForGpu(source, target, GpuLevel::gpu, options.pipeline, configure);
  if (failed(lowered))
    return failure();
  if (!hasEntries(source))
    return assembleKernels(std::move(*lowered), target, options);
  auto compile = [&] {
    return compilePrograms(std::move(*lowered), target, options, configure);
  };
  if (!options.cache)
    return compile();
  return compileOnce(*options.cache, keyOfPrograms(**lowered, target, options),
                     source.getContext(), compile);
}

FailureOr<GpuCode> gdn::compileForGpu(ModuleOp source,
                                      const TargetModel &target,
                                      const GpuCompileOptions &options,
                                      ConfigurePasses configure) {
  // Whoever does without a cubin takes code that has one, but makes none.
  GpuCompileOptions used = options;
  if (!options.needsCubin &&
      !(options.cache && options.cache->has(keyOf(source, target, options))))
    used.ptxas.reset();
  auto compile = [&] {
    return compileKernels(source, target, used, configure);
  };
  FailureOr<CachedModule> compiled =
      options.cache ? compileOnce(*options.cache, keyOf(source, target, used),
                                  source.getContext(), compile)
                    : compile();
  if (failed(compiled))
    return failure();
  ModuleOp module = *compiled->module;
  SmallVector<func::FuncOp> leftOut = getLeftOut(source, module);
  if (options.needsAllEntries && !leftOut.empty()) {
    auto quoted = llvm::map_range(leftOut, [](func::FuncOp entry) {
      return "'" + entry.getName().str() + "'";
    });
    return source.emitError("expects code for ")
           << target.getName()
           << " of every entry that was asked for, but got none of "
           << llvm::join(quoted, ", ");
  }
  FailureOr<SmallVector<EntryCode, 0>> entries = collectEntryCodes(module);
  if (failed(entries))
    return failure();
  GpuCode code;
  code.entries = std::move(*entries);
  code.ptx = std::move(compiled->parts[0]);
  if (compiled->parts.size() > 1) {
    llvm::Expected<Cubin> cubin =
        makeCubin(std::move(compiled->parts[1]), std::move(compiled->parts[2]));
    if (!cubin)
      return module.emitError(llvm::toString(cubin.takeError()));
    code.cubin = std::move(*cubin);
  }
  for (EntryCode &entry : code.entries)
    for (VariantCode &variant : entry.variants)
      for (StageCode &stage : variant.stages) {
        if (code.cubin)
          stage.resources = code.cubin->report.kernels.lookup(stage.symbol);
      }
  return code;
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
