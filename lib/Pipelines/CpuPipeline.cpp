// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes from gdn to code for a CPU; see CpuPipeline.h.
#include "gdn/Pipelines/CpuPipeline.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/GDN/Transforms/Passes.h"
#include "gdn/Dialect/Tile/Transforms/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace gdn;

void gdn::buildTilePipeline(OpPassManager &passes, const TargetModel &target,
                            const CpuPipelineOptions &options) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createGDNFuse());
  ConvertGDNToTileOptions algorithm;
  algorithm.tokens = options.tokens;
  algorithm.chunk = options.chunk;
  algorithm.chunkFrom = options.chunkFrom;
  algorithm.precision = options.precision;
  algorithm.chunkStages = options.chunkStages;
  algorithm.variants = options.variants;
  algorithm.lanes = target.getF32Lanes();
  algorithm.formCosts = target.getFormCosts().numbers();
  algorithm.longestFirst = true;
  algorithm.segments =
      options.segments < 0 ? target.getSequenceSegments() : options.segments;
  algorithm.segmentsFrom = options.segmentsFrom < 0
                               ? target.getSegmentedSequenceTokens()
                               : options.segmentsFrom;
  algorithm.segmentMaps = options.segmentMaps;
  passes.addPass(createConvertGDNToTile(algorithm));
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createFuseTileRows());
  passes.addPass(createCSEPass());
}

void gdn::buildCpuPipeline(OpPassManager &passes, const TargetModel &target,
                           const CpuPipelineOptions &options) {
  buildTilePipeline(passes, target, options);
  buildTileToLlvmPipeline(passes, target);
}
