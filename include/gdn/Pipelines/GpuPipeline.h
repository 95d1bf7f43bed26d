// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes from gdn to kernels for a GPU, level by level.
#ifndef GDN_PIPELINES_GPUPIPELINE_H
#define GDN_PIPELINES_GPUPIPELINE_H

#include "gdn/Target/TargetModel.h"

#include "mlir/Pass/PassManager.h"

#include <string>

namespace gdn {

/// Choices of the pipeline that a caller may change.
struct GpuPipelineOptions {
  /// At barriers of channels each thread arrives, not one for its warp; see
  /// convert-gdn-gpu-to-nvvm.
  bool everyThreadArrives = false;
  /// Prefill also has the variant `segment-maps`, which makes the maps of
  /// sequences and nothing else; see convert-gdn-to-tile.
  bool segmentMaps = false;
  /// Unless this is empty, the gdn_gpu programs go to the file
  /// `<lineInfo>.<target>.gpu.mlir`, and each instruction has the location of
  /// its op in there (`.loc` in PTX). Not with a cache of compilations: what is
  /// found there comes without the file.
  std::string lineInfo;
};

/// From gdn to gdn_gpu: the work of one block, for `target`.
void buildGdnToGpuPipeline(mlir::OpPassManager &passes,
                           const TargetModel &target,
                           const GpuPipelineOptions &options);

/// From gdn_gpu to the llvm and nvvm dialects.
void buildGpuProgramsToLlvmPipeline(mlir::OpPassManager &passes,
                                    const TargetModel &target,
                                    const GpuPipelineOptions &options);

/// All of it: from gdn to the llvm and nvvm dialects. Afterwards each entry is
/// an `llvm.func @<entry>` with `nvvm.kernel` and the attributes
/// `gdn_tile.stage` and `gdn_gpu.launch`.
void buildGpuPipeline(mlir::OpPassManager &passes, const TargetModel &target,
                      const GpuPipelineOptions &options);

} // namespace gdn

#endif // GDN_PIPELINES_GPUPIPELINE_H
