// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles for each target and orders the codes; see CompileImage.h.
#include "gdn/Pipelines/CompileImage.h"

using namespace mlir;
using namespace gdn;

FailureOr<std::vector<uint8_t>> gdn::compileImage(ModuleOp source,
                                                  ArrayRef<TargetModel> targets,
                                                  const CompileOptions &options,
                                                  ConfigurePasses configure) {
  SmallVector<const TargetModel *> ordered;
  for (const TargetModel &target : targets)
    ordered.insert(llvm::find_if(ordered,
                                 [&](const TargetModel *other) {
                                   return other->getRank() < target.getRank();
                                 }),
                   &target);
  SmallVector<TargetCode, 0> all;
  for (const TargetModel *target : ordered) {
    switch (target->getKind()) {
    case TargetKind::cpu: {
      FailureOr<TargetCode> code = compileForCpu(source, *target, options.cpu,
                                                 configure, options.gpu.cache);
      if (failed(code))
        return failure();
      all.push_back(std::move(*code));
      break;
    }
    case TargetKind::nvptx: {
      FailureOr<SmallVector<TargetCode, 0>> made =
          makeGpuTargetCodes(source, *target, options.gpu, configure);
      if (failed(made))
        return failure();
      llvm::move(*made, std::back_inserter(all));
      break;
    }
    }
  }
  // CPUs and GPUs do not take each other's code; among GPUs, what needs no
  // assembly when it is loaded comes first.
  SmallVector<TargetCode, 0> codes;
  for (CodeFormat format :
       {CodeFormat::sharedObject, CodeFormat::cubin, CodeFormat::ptx})
    for (TargetCode &code : all)
      if (code.format == format)
        codes.push_back(std::move(code));
  return buildImage(source, codes);
}
