// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-schedule-token-groups: a warp for each group of tokens, or for each block
// of a program without a rule. See Passes.td.
#include "Tokens/TokenGroupsKernel.h"

#include "gdn/Schedule/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

namespace gdn {
#define GEN_PASS_DEF_SCHEDULETOKENGROUPS
#include "gdn/Schedule/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {

/// Warps of a block at most.
constexpr int64_t maxWarps = 16;
/// Warps of a block up to which they have pieces of many tokens.
constexpr int64_t longPieceWarps = 2;
/// Warps of a multiprocessor that registers allow where blocks have chunks: a
/// warp holds no tokens beside those it works on.
constexpr int64_t chunkWarps = 40;
/// Elements of a tile that a lane holds at most.
constexpr int64_t maxLaneElements = 64;
/// Bits of a loaded tile in a lane up to which `warps` warps can hold it.
constexpr int64_t narrowLaneBits = 256;

/// Elements of a tile that a lane holds.
int64_t countLaneElements(VectorType tile) {
  int64_t rows = tile.getRank() == 2 ? tile.getDimSize(0) : 1;
  return rows * llvm::divideCeil(tile.getShape().back(), gpu::warpThreads);
}

struct ScheduleTokenGroups final
    : gdn::impl::ScheduleTokenGroupsBase<ScheduleTokenGroups> {
  using ScheduleTokenGroupsBase::ScheduleTokenGroupsBase;

  void runOnOperation() override {
    for (auto func :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      const bool hasPieces = takesPieces(func);
      if (!hasPieces && !isWithoutRule(func))
        continue;
      const int64_t numWarps =
          hasPieces ? tile::StageFields(func).getTokenPieces() : 1;
      // Wide tiles need the registers of twice as many warps. So do short
      // pieces, which have a loop of few turns that is unrolled; they are for
      // few tokens, which do not fill a multiprocessor.
      int64_t share = isWide(func) ? 2 : 1;
      if (numWarps > longPieceWarps && !hasChunk(func))
        share *= 2;
      TokenGroupsKernel(func, numWarps, hasPieces)
          .emit(std::max<int64_t>(
              1, (hasChunk(func) ? chunkWarps : warps.getValue()) / share /
                     numWarps));
      ++numKernels;
    }
  }

  /// Whether a block can have a warp for each piece of tokens.
  static bool takesPieces(func::FuncOp func) {
    const int64_t pieces = tile::StageFields(func).getTokenPieces();
    return pieces != 0 && pieces <= maxWarps && isKnown(func);
  }

  /// Whether the function is a program that computes, of a kernel without a
  /// rule: a convolution, a norm, gates.
  static bool isWithoutRule(func::FuncOp func) {
    tile::StageFields stage(func);
    if (!stage.getGrid() || stage.getTokenPieces() != 0 ||
        gpu::KernelFields(func))
      return false;
    bool computes = false;
    func.walk([&](Operation *op) {
      computes |= isa<tile::MapRowsOp, tile::Conv1dOp>(op);
    });
    return computes && isKnown(func);
  }

  static bool isKnown(func::FuncOp func) {
    WalkResult walk = func.walk([&](Operation *op) {
      return isKnown(op) ? WalkResult::advance() : WalkResult::interrupt();
    });
    return !walk.wasInterrupted();
  }

  /// True if a lane has more bits of a loaded tile than `narrowLaneBits`.
  static bool isWide(func::FuncOp func) {
    bool wide = false;
    func.walk([&](Operation *op) {
      auto load = dyn_cast<tile::LoadOp>(op);
      if ((!load || isChunk(load)) && !isa<tile::ExtractRowsOp>(op))
        return;
      auto tile = cast<VectorType>(op->getResult(0).getType());
      wide |= countLaneElements(tile) * tile.getElementTypeBitWidth() >
              narrowLaneBits;
    });
    return wide;
  }

  static bool isKnown(Operation *op) {
    if (op->getParentOfType<tile::MapRowsOp>() ||
        op->hasTrait<OpTrait::ConstantLike>())
      return true;
    // A bias is a row that lies in memory as the convolution takes it.
    if (auto conv = dyn_cast<tile::Conv1dOp>(op);
        conv && conv.getBias() && !conv.getBias().getDefiningOp<tile::LoadOp>())
      return false;
    if (auto load = dyn_cast<tile::LoadOp>(op);
        load && isChunk(load) &&
        tile::StageFields(op->getParentOfType<func::FuncOp>()).getTokenPieces())
      return true;
    if (auto extract = dyn_cast<tile::ExtractRowsOp>(op);
        extract && !extract.getTile().getDefiningOp<tile::LoadOp>())
      return false;
    auto fits = [](Type type) {
      auto tile = dyn_cast<VectorType>(type);
      return !tile || countLaneElements(tile) <= maxLaneElements;
    };
    if (!llvm::all_of(op->getResultTypes(), fits))
      return false;
    if (isa<scf::ForOp>(op))
      return true;
    if (!isa<tile::TileDialect>(op->getDialect()))
      return llvm::none_of(op->getResultTypes(), llvm::IsaPred<VectorType>);
    if (auto last = dyn_cast<tile::LastInGroupOp>(op))
      return llvm::all_of(last->getUsers(), llvm::IsaPred<scf::IfOp>);
    return isa<tile::BlockIdOp, tile::LoadOp, tile::StoreOp, tile::FillOp,
               tile::MapRowsOp, tile::Conv1dOp, tile::AwaitSignalsOp,
               tile::ExtractRowsOp>(op);
  }
};

} // namespace
