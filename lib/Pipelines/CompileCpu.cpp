// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the CPU pipeline; see CompileCpu.h.
#include "gdn/Pipelines/CompileCpu.h"

using namespace mlir;
using namespace gdn;

FailureOr<OwningOpRef<ModuleOp>>
gdn::lowerForCpu(ModuleOp source, const TargetModel &target, Level level,
                 const CpuPipelineOptions &options, ConfigurePasses configure) {
  OwningOpRef<ModuleOp> module = source.clone();
  PassManager passes(source.getContext());
  if (failed(configure(passes)))
    return failure();
  switch (level) {
  case Level::gdn:
    break;
  case Level::tile:
    buildTilePipeline(passes, options);
    break;
  case Level::llvm:
    buildCpuPipeline(passes, target, options);
    break;
  }
  if (failed(passes.run(*module)))
    return failure();
  return module;
}

/// Refuses element types that the target would convert by calling a library.
static LogicalResult checkElementTypes(ModuleOp source,
                                       const TargetModel &target) {
  if (target.hasF16Conversion())
    return success();
  WalkResult result = source.walk([&](Operation *op) {
    auto isF16 = [](Type type) { return getElementTypeOrSelf(type).isF16(); };
    if (llvm::none_of(op->getOperandTypes(), isF16) &&
        llvm::none_of(op->getResultTypes(), isF16))
      return WalkResult::advance();
    op->emitOpError("has f16 elements, which the target ")
        << target.getName() << " has no instructions for";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

FailureOr<TargetCode> gdn::compileForCpu(ModuleOp source,
                                         const TargetModel &target,
                                         const CpuPipelineOptions &options,
                                         ConfigurePasses configure) {
  if (failed(checkElementTypes(source, target)))
    return failure();
  FailureOr<OwningOpRef<ModuleOp>> lowered =
      lowerForCpu(source, target, Level::llvm, options, configure);
  if (failed(lowered))
    return failure();
  TargetCode code;
  FailureOr<SmallVector<EntryCode>> entries = collectEntryCodes(**lowered);
  if (failed(entries))
    return failure();
  code.entries = std::move(*entries);
  code.features = target.getRequiredFeatures();
  FailureOr<CpuCodegen> codegen = CpuCodegen::create(**lowered, target);
  if (failed(codegen))
    return failure();
  FailureOr<Bytes> blob = codegen->emitSharedObject();
  if (failed(blob))
    return failure();
  code.blob = std::move(*blob);
  return code;
}

FailureOr<std::vector<uint8_t>>
gdn::compileImage(ModuleOp source, ArrayRef<TargetModel> targets,
                  const CpuPipelineOptions &options,
                  ConfigurePasses configure) {
  SmallVector<const TargetModel *> ordered;
  for (const TargetModel &target : targets)
    ordered.insert(llvm::find_if(ordered,
                                 [&](const TargetModel *other) {
                                   return other->getRank() < target.getRank();
                                 }),
                   &target);
  SmallVector<TargetCode> codes;
  for (const TargetModel *target : ordered) {
    FailureOr<TargetCode> code =
        compileForCpu(source, *target, options, configure);
    if (failed(code))
      return failure();
    codes.push_back(std::move(*code));
  }
  return buildImage(source, codes);
}
