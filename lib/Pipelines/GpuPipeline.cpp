// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes from gdn to kernels for a GPU; see GpuPipeline.h.
#include "gdn/Pipelines/GpuPipeline.h"

#include "DecodePolicy.h"
#include "PrefillPolicy.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/GDN/Transforms/Passes.h"
#include "gdn/Dialect/GPU/Transforms/Passes.h"
#include "gdn/Dialect/Tile/Transforms/Passes.h"
#include "gdn/Schedule/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace gdn;

void gdn::buildGdnToGpuPipeline(OpPassManager &passes,
                                const TargetModel &target,
                                const GpuPipelineOptions &options) {
  passes.addPass(createCanonicalizerPass());
  // Blocks in roles have a way from the convolution to the rule, and from that
  // to the norm.
  GDNFuseOptions kernels;
  kernels.normWithRule = kernels.convWithRule = target.hasWgmma();
  passes.addPass(createGDNFuse(kernels));
  ConvertGDNToTileOptions algorithm;
  algorithm.valueHeads = true;
  // What tensor cores take: prefill in chunks, keys and states as they lie in
  // memory.
  algorithm.precision = Precision::mixedIo;
  algorithm.chunkStages = ChunkStages::staged;
  // What they do not take: token by token, with the state in registers.
  algorithm.tokenByToken = true;
  algorithm.variants = getPrefillPolicy(target, options.segmentMaps);
  algorithm.shortChunks = getShortChunks().str();
  algorithm.longestFirst = takesLongestFirst(target);
  ConvPolicy conv = getConvPolicy();
  algorithm.segments = conv.segments;
  algorithm.segmentsFrom = conv.segmentsFrom;
  DecodePolicy decode = DecodePolicy::get(target);
  algorithm.slotPiece = decode.slotPiece;
  PassPolicy pass = getPassPolicy(target);
  algorithm.wholeLoads = pass.wholeLoads;
  algorithm.chunkPieces = pass.chunkPieces;
  passes.addPass(createConvertGDNToTile(algorithm));
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createFuseTileRows());
  passes.addPass(createCSEPass());
  if (decode.persistent)
    passes.addPass(createSchedulePersistentRecurrence(*decode.persistent));
  passes.addPass(createScheduleResidentRecurrence(decode.resident));
  passes.addPass(createScheduleResidentTokens());
  // Blocks of four warps: three where a product of warpgroups leaves registers
  // for them, else two.
  ScheduleTileProductsOptions products;
  products.warps = target.hasWgmma() ? 12 : 8;
  products.warpgroups = target.hasWgmma();
  products.sharedBytes = target.getSharedBytesPerBlock();
  products.blocksAhead = target.getBlocksAhead();
  passes.addPass(createScheduleTileProducts(products));
  passes.addPass(createScheduleTokenGroups());
  if (target.hasWgmma())
    passes.addPass(createUseWarpgroups());
  passes.addPass(createScheduleSlotMoves(decode.moves));
  passes.addPass(createScheduleScalars());
  passes.addPass(createDropUnscheduled());
  passes.addPass(createAddAlignedVariants());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createPlaceBarriers());
  if (target.hasWgmma())
    passes.addPass(createOverlapProducts());
  // Measured on such chips alone.
  if (target.hasWgmma())
    passes.addPass(createAwaitStages());
  passes.addPass(createCheckGPU());
}

void gdn::buildGpuPipeline(OpPassManager &passes, const TargetModel &target,
                           const GpuPipelineOptions &options) {
  buildGdnToGpuPipeline(passes, target, options);
  buildGpuProgramsToLlvmPipeline(passes, target, options);
}
