// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-schedule-slot-moves: tiles that are stored as they are loaded, and states
// that take pending tokens in, or come from planes and go to planes, on the
// way. See Passes.td.
#include "Kernel/PendingSource.h"
#include "Moves/StateMove.h"

#include "gdn/Schedule/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/MathExtras.h"

namespace gdn {
#define GEN_PASS_DEF_SCHEDULESLOTMOVES
#include "gdn/Schedule/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {

/// Bytes that a lane moves at once.
constexpr int64_t laneBytes = 16;

/// Bytes that a lane of a copy moves, at least: two accesses, since it computes
/// as much for the addresses of one.
constexpr int64_t copiedBytes = 2 * laneBytes;

/// Lanes to a row of a fold whose rows lie side by side in memory.
constexpr int64_t foldLanes = 8;

/// ptxas takes as few registers as it likes for a kernel that asks for none.
/// What was measured, on sm_90a, spills nothing.
constexpr StringLiteral allowedMoveSpills =
    "spills up to 16 bytes: addresses, on sm_100a, sm_103a and sm_120a with "
    "heads other than 128 or io f32; not measured";

constexpr StringLiteral allowedNarrowSpills =
    "spills up to 128 bytes: addresses where pending tokens are f16 and states "
    "in planes, on sm_120a; on other chips none; not measured there";

class SlotMovesKernel {
public:
  SlotMovesKernel(func::FuncOp source, int64_t threads)
      : source(source), numWarps(threads / gpu::warpThreads),
        b(source.getContext()) {}

  void emit();

private:
  void emitBlock(Block &block);
  void emitMove(tile::StoreOp store);
  void emitState(StateMove move);
  void align(Value view, VectorType tile);
  gpu::RowsAttr getLayout(VectorType tile);

  func::FuncOp source, kernel;
  SmallVector<StateMove> states;
  int64_t numWarps;
  OpBuilder b;
  IRMapping scalars;
};

/// Whether a row of the tile is one of memory, as dimensions say or strides.
bool isInOrder(tile::StoreOp store) {
  ArrayRef<int64_t> dims = store.getDims();
  auto [strides, offset] =
      cast<MemRefType>(store.getView().getType()).getStridesAndOffset();
  return llvm::is_sorted(dims) || strides[dims.back()] == 1;
}

/// Warps of a block that moves rows of 16 bytes or more in the order of memory,
/// with no work on the way: a power of two, so that they share the rows evenly.
int64_t countCopyWarps(func::FuncOp func, int64_t most) {
  int64_t bytes = 0;
  func.walk([&](tile::StoreOp store) {
    VectorType tile = store.getTile().getType();
    const int64_t rowBytes =
        tile.getShape().back() * tile.getElementTypeBitWidth() / 8;
    if (isInOrder(store) && rowBytes % laneBytes == 0)
      bytes = std::max(bytes, tile.getDimSize(0) * rowBytes);
  });
  if (bytes == 0)
    return most;
  const int64_t warps = bytes / (gpu::warpThreads * copiedBytes);
  return std::min<int64_t>(
      most, llvm::bit_floor<uint64_t>(std::max<int64_t>(warps, 1)));
}

/// The moves of `func` with work on the way; none if a fold or a map of rows is
/// part of no move.
std::optional<SmallVector<StateMove>> findMoves(func::FuncOp func) {
  SmallVector<StateMove> moves;
  auto take = [&](std::optional<StateMove> move) {
    if (move)
      moves.push_back(*move);
    return move ? WalkResult::advance() : WalkResult::interrupt();
  };
  WalkResult folds = func.walk(
      [&](tile::DeltaFoldOp fold) { return take(findFoldMove(fold)); });
  if (folds.wasInterrupted())
    return std::nullopt;
  WalkResult maps = func.walk([&](tile::MapRowsOp map) {
    return llvm::any_of(moves,
                        [&](StateMove &move) { return move.contains(map); })
               ? WalkResult::advance()
               : take(findFormatMove(map));
  });
  if (maps.wasInterrupted())
    return std::nullopt;
  return moves;
}

struct ScheduleSlotMoves final
    : gdn::impl::ScheduleSlotMovesBase<ScheduleSlotMoves> {
  using ScheduleSlotMovesBase::ScheduleSlotMovesBase;

  void runOnOperation() override {
    if (failed(checkThreads(getOperation(), threads, /*least=*/32)))
      return signalPassFailure();
    for (auto func :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (!tile::StageFields(func).getGrid() || !movesOnly(func))
        continue;
      SlotMovesKernel(func, threads).emit();
      ++numKernels;
    }
  }

  /// True if each tile of the program is stored by the op behind the one that
  /// makes it, or is part of a state's move.
  static bool movesOnly(func::FuncOp func) {
    std::optional<SmallVector<StateMove>> states = findMoves(func);
    if (!states)
      return false;
    bool moves = !states->empty();
    // A cast takes no tiles in its body: those ops are skipped with it.
    WalkResult walk = func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (llvm::any_of(*states,
                       [&](StateMove &move) { return move.contains(op); }))
        return WalkResult::skip();
      if (isa<tile::LoadOp, tile::FillOp>(op)) {
        auto store = dyn_cast_or_null<tile::StoreOp>(op->getNextNode());
        bool isStored = store && op->hasOneUse() &&
                        store.getTile() == op->getResult(0) &&
                        store.getTile().getType().getRank() == 2;
        moves |= isStored;
        return isStored ? WalkResult::advance() : WalkResult::interrupt();
      }
      bool isKnown = isa<tile::StoreOp, tile::BlockIdOp>(op) ||
                     !isa<tile::TileDialect>(op->getDialect());
      return isKnown ? WalkResult::advance() : WalkResult::interrupt();
    });
    return moves && !walk.wasInterrupted();
  }
};

} // namespace

/// Rows to warps, 16 bytes to a lane, as many lanes to a row as it has such
/// pieces for.
gpu::RowsAttr SlotMovesKernel::getLayout(VectorType tile) {
  int64_t bytes = tile.getElementTypeBitWidth() / 8;
  int64_t columns = tile.getDimSize(1), vector = laneBytes / bytes;
  while (columns % vector != 0)
    vector /= 2;
  int64_t lanes = gpu::warpThreads;
  while (lanes > 1 && columns % (lanes * vector) != 0)
    lanes /= 2;
  return gpu::RowsAttr::get(b.getContext(), numWarps, lanes, vector);
}

/// Rows that are whole multiples of 16 bytes are moved that way only.
void SlotMovesKernel::align(Value view, VectorType tile) {
  int64_t rowBytes = tile.getDimSize(1) * tile.getElementTypeBitWidth() / 8;
  setAlignment(kernel, view, std::min(laneBytes, rowBytes & -rowBytes));
}

/// A state with work on the way, when all of it is to be stored.
void SlotMovesKernel::emitState(StateMove move) {
  auto alignRows = [&](auto op) {
    if (VectorType tile = op.getTile().getType(); tile.getRank() == 2)
      align(op.getView(), tile);
  };
  llvm::for_each(move.loads, alignRows);
  llvm::for_each(move.stores, alignRows);
  // Numbers and bytes of planes are in registers at once; and ptxas has too few
  // registers by itself for a state that is taken in passes.
  const bool hasPasses = move.stateType().getNumElements() >
                         mostLocalElements * numWarps * gpu::warpThreads;
  if (move.fold && (move.stores.size() > 1 || hasPasses))
    gpu::KernelFields(kernel).setMinBlocks(2);
  tile::StoreOp store = move.stores.front();
  gpu::RowsAttr layout =
      getLayout(move.fold ? store.getTile().getType() : move.stateType());
  if (liesAcross(store.getView(), store.getDims()))
    layout = gpu::RowsAttr::get(b.getContext(), numWarps, foldLanes,
                                layout.getVector(), /*cyclic=*/false,
                                /*tall=*/true, /*crossed=*/false);
  emitStateMove(b, move, scalars, layout);
}

/// A store with the op that makes its tile. Rows in the order of memory are
/// dealt to all warps; of what lies across memory there is little.
void SlotMovesKernel::emitMove(tile::StoreOp store) {
  Location loc = store.getLoc();
  Operation *from = store.getTile().getDefiningOp();
  VectorType tile = store.getTile().getType();
  for (StateMove &move : states)
    if (llvm::is_contained(move.stores, store))
      return store == move.stores.back() ? emitState(move) : void();
  if (!isInOrder(store)) {
    auto warps = gpu::WarpsOp::create(b, loc, TypeRange(), numWarps - 1, 1, {});
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&warps.getBody());
    FragmentEmitter warp(b, scalars);
    warp.emit(from);
    // Lanes without elements of their own have those of others, and a slot may
    // be moved to itself.
    if (isa<tile::LoadOp>(from) && hasIdleLanes(warp[store.getTile()]))
      gpu::WarpBarrierOp::create(b, loc);
    warp.emitStores(store, {});
    gpu::YieldOp::create(b, loc);
    return;
  }
  if (auto load = dyn_cast<tile::LoadOp>(from))
    align(load.getView(), tile);
  align(store.getView(), tile);
  FragmentEmitter all(b, scalars, getLayout(tile));
  all.emit(from);
  all.emitStores(store, {});
}

void SlotMovesKernel::emitBlock(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (auto id = dyn_cast<tile::BlockIdOp>(op)) {
      copyBlockId(b, id, scalars);
    } else if (auto store = dyn_cast<tile::StoreOp>(op)) {
      emitMove(store);
    } else if (isa<tile::TileDialect>(op.getDialect())) {
      continue; // with its store
    } else if (op.getNumRegions() == 0) {
      // All threads have read what one of them writes.
      if (isa<memref::StoreOp>(op))
        gpu::BarrierOp::create(b, op.getLoc());
      copyScalar(b, &op, scalars);
    } else {
      copyWithRegions(b, &op, scalars,
                      [&](Block &from, Block &) { emitBlock(from); });
    }
  }
}

void SlotMovesKernel::emit() {
  states = *findMoves(source);
  if (states.empty())
    numWarps = countCopyWarps(source, numWarps);
  kernel = createKernel(b, source, scalars);
  gpu::KernelFields(kernel).setThreads(numWarps * gpu::warpThreads);
  const bool isNarrow = llvm::any_of(states, [](const StateMove &move) {
    tile::DeltaFoldOp fold = move.fold;
    return fold && findPendingSource(fold.getDeltas()).scales;
  });
  kernel->setAttr(
      "gdn_gpu.allow",
      b.getStringAttr(isNarrow ? allowedNarrowSpills : allowedMoveSpills));
  emitBlock(source.front());
  func::ReturnOp::create(b, source.getLoc());
  source.erase();
}
