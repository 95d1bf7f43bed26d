// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes from gdn to code for a CPU, level by level.
#ifndef GDN_PIPELINES_CPUPIPELINE_H
#define GDN_PIPELINES_CPUPIPELINE_H

#include "gdn/Conversion/Precision.h"
#include "gdn/Target/TargetModel.h"

#include "mlir/Pass/PassManager.h"

namespace gdn {

/// Choices of the pipeline that a caller may change.
struct CpuPipelineOptions {
  /// Tokens per block of the token loop of an entry with sequence bounds.
  int64_t tokens = 16;
  /// Tokens per chunk of the chunk form.
  int64_t chunk = 64;
  /// Chunks go on while so many tokens are left of a sequence; negative: no
  /// chunks; 0: the rule of the target decides, by the dimensions of the heads.
  int64_t chunkFrom = 0;
  /// Of the operands of the chunk form's products.
  Precision precision = Precision::f32;
  /// Whether prefills also have a variant in two stages, which devices take
  /// once they have a workspace; not for Precision::f32.
  ChunkStages chunkStages = ChunkStages::onePass;
  /// Its variants, texts of the option `variants` of convert-gdn-to-tile; none:
  /// "staged:".
  llvm::SmallVector<std::string> variants = {};
  /// Segments of a sequence in the variant that works on them at the same time;
  /// 0: no such variant; negative: the rule of the target.
  int64_t segments = -1;
  /// Mean tokens of a sequence from which that variant is taken; negative: the
  /// rule of the target.
  int64_t segmentsFrom = -1;
  /// Prefill also has the variant `segment-maps`, which makes the maps of
  /// sequences and nothing else; see convert-gdn-to-tile.
  bool segmentMaps = false;
};

/// From gdn to gdn_tile: fusion, then the algorithm of each kernel, which
/// `target` has a say in.
void buildTilePipeline(mlir::OpPassManager &passes, const TargetModel &target,
                       const CpuPipelineOptions &options);

/// From gdn_tile to the llvm dialect for `target`. Afterwards each entry is an
/// `llvm.func @<entry>(ptr words, i64 begin, i64 end, ptr scratch)` with the
/// attribute `gdn_tile.stage`, which has the grid and the bytes of scratch.
void buildTileToLlvmPipeline(mlir::OpPassManager &passes,
                             const TargetModel &target);

/// All of it: from gdn to the llvm dialect.
void buildCpuPipeline(mlir::OpPassManager &passes, const TargetModel &target,
                      const CpuPipelineOptions &options);

} // namespace gdn

#endif // GDN_PIPELINES_CPUPIPELINE_H
