// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// convert-gdn-to-tile: every entry function becomes the tile program of its
// kernel. See Passes.td.
#include "Maps/MapProducts.h"
#include "Program/EntryViews.h"
#include "Recurrence/BatchPlan.h"
#include "Recurrence/CommitKernel.h"
#include "Recurrence/ConvSegments.h"
#include "Recurrence/SlotMoves.h"
#include "Stages/KernelStage.h"
#include "Stages/SplitSequences.h"
#include "Stages/StagedKernel.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

namespace gdn {
#define GEN_PASS_DEF_CONVERTGDNTOTILE
#include "gdn/Conversion/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {
struct ConvertGDNToTile final
    : gdn::impl::ConvertGDNToTileBase<ConvertGDNToTile> {
  using ConvertGDNToTileBase::ConvertGDNToTileBase;

  void runOnOperation() override {
    if (tokens < 1) {
      getOperation().emitError("expects the option 'tokens' to be at least 1, "
                               "but got ")
          << tokens.getValue();
      return signalPassFailure();
    }
    if (segments != 0 && segments < 2) {
      getOperation().emitError("expects the option 'segments' to be 0 or at "
                               "least 2, but got ")
          << segments.getValue();
      return signalPassFailure();
    }
    if (chunkStages == ChunkStages::staged && precision == Precision::f32) {
      getOperation().emitError(
          "expects the option 'precision' to be mixed or mixed-io with "
          "'chunk-stages=staged', but got f32");
      return signalPassFailure();
    }
    if (!formCosts.empty() && formCosts.size() != FormCosts::count) {
      getOperation().emitError("expects the option 'form-costs' to have ")
          << FormCosts::count << " numbers, but got " << formCosts.size();
      return signalPassFailure();
    }
    policy = {};
    policy.longestFirst = longestFirst;
    for (StringRef text : variants)
      if (failed(readVariant(text)))
        return signalPassFailure();
    if (policy.variants.empty())
      policy.variants.push_back(llvm::cantFail(VariantSpec::parse("staged:")));
    if (llvm::Error error = policy.readShortChunks(shortChunks)) {
      getOperation().emitError() << llvm::toString(std::move(error));
      return signalPassFailure();
    }
    SmallVector<func::FuncOp> entries;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (func->hasAttr("gdn.entry"))
        entries.push_back(func);
    for (func::FuncOp entry : entries) {
      if (failed(convert(entry)))
        return signalPassFailure();
      ++numKernels;
    }
  }

  LogicalResult readVariant(StringRef text) {
    auto spec = VariantSpec::parse(text);
    if (!spec)
      return getOperation().emitError(
                 "expects the option 'variants' to hold variants of prefill, "
                 "but of '")
             << text << "': " << llvm::toString(spec.takeError());
    const int64_t pieces = spec->pieces;
    if (pieces != 0 &&
        (pieces % groupTokens != 0 || !llvm::isPowerOf2_64(pieces)))
      return getOperation().emitError("expects pieces of a power of two of "
                                      "tokens from ")
             << groupTokens << " on in the option 'variants', but got "
             << pieces;
    const int64_t ownChunk = spec->chunk;
    if (ownChunk != 0 && (ownChunk < 16 || !llvm::isPowerOf2_64(ownChunk)))
      return getOperation().emitError("expects chunks of a power of two of "
                                      "tokens from 16 on in the option "
                                      "'variants', but got ")
             << ownChunk;
    policy.variants.push_back(std::move(*spec));
    return success();
  }

  /// Replaces one entry by its tile function.
  LogicalResult convert(func::FuncOp entry) {
    KernelOp kernel;
    for (Operation &op : entry.getBody().front()) {
      if (auto found = dyn_cast<KernelOp>(op)) {
        if (kernel) {
          InFlightDiagnostic diag = found.emitOpError(
              "expects to be the only kernel of its entry: results passed "
              "between kernels need a workspace, which this target lacks");
          diag.attachNote(kernel.getLoc()) << "first kernel";
          return diag;
        }
        kernel = found;
        continue;
      }
      if (!isa<UnpackOp, AcceptedSlotsOp, CountedSlotsOp, TakenSlotsOp,
               func::ReturnOp>(op) &&
          !op.hasTrait<OpTrait::ConstantLike>())
        return op.emitOpError("expects to be inside a gdn.kernel; run gdn-fuse "
                              "before convert-gdn-to-tile");
    }
    if (!kernel)
      return entry.emitOpError("expects a gdn.kernel in the entry");

    Algorithm algorithm = {tokens,     chunk, chunkFrom, precision,
                           valueHeads, lanes, segments,  segmentsFrom};
    algorithm.tokenByToken = tokenByToken;
    algorithm.wholeLoads = wholeLoads;
    algorithm.chunkPieces = chunkPieces;
    if (!formCosts.empty())
      algorithm.formCosts = FormCosts::of(ArrayRef<double>(formCosts));
    EntryViews views = createEntryViews(entry, entry.getName());
    if (multipliesMaps(kernel)) {
      LogicalResult emitted =
          emitMapProducts(views, kernel, precision != Precision::f32);
      (succeeded(emitted) ? entry : views.function).erase();
      return emitted;
    }
    if (isCommitKernel(kernel) || hasSlotMoves(kernel) || plansBatch(kernel)) {
      LogicalResult emitted =
          isCommitKernel(kernel) ? emitCommitKernel(views, kernel)
          : plansBatch(kernel)   ? emitBatchPlan(views, kernel)
                                 : emitSlotMoves(views, kernel, slotPiece);
      (succeeded(emitted) ? entry : views.function).erase();
      return emitted;
    }
    if (failed(emitRecurrentKernel(views, kernel, algorithm))) {
      views.function.erase();
      return failure();
    }
    int64_t stages = 0;
    if (failed(emitConvSegments(entry, kernel, algorithm, stages)))
      return failure();
    if (segmentMaps &&
        failed(emitSequenceMaps(entry, kernel, algorithm, stages)))
      return failure();
    if (segments != 0 &&
        failed(emitSegmentedKernel(entry, kernel, algorithm, stages)))
      return failure();
    if (chunkStages == ChunkStages::staged &&
        failed(emitStagedKernel(entry, kernel, algorithm, policy, stages)))
      return failure();
    numStages += stages;
    entry.erase();
    return success();
  }

  StagedPolicy policy;
};
} // namespace
