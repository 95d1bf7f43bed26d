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
  FailureOr<SmallVector<EntryCode, 0>> entries = collectEntryCodes(**lowered);
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
