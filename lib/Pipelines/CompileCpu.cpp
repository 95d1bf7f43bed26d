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
    buildTilePipeline(passes, target, options);
    break;
  case Level::llvm:
    buildCpuPipeline(passes, target, options);
    break;
  }
  if (failed(passes.run(*module)))
    return failure();
  return module;
}

FailureOr<TargetCode> gdn::compileForCpu(ModuleOp source,
                                         const TargetModel &target,
                                         const CpuPipelineOptions &options,
                                         ConfigurePasses configure) {
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
