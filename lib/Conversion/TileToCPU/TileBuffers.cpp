// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Buffers by one walk in program order. Every tile gets scratch of its own
// unless a rule below shows that it can share.
#include "TileBuffers.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace gdn;

static bool isTile(Value value) { return isa<VectorType>(value.getType()); }

unsigned TileBuffers::addScratch(VectorType type) {
  Buffer buffer;
  buffer.type = type;
  buffer.offset = scratchBytes;
  int64_t bytes =
      type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
  scratchBytes += llvm::alignTo(bytes, 64);
  buffers.push_back(buffer);
  return buffers.size() - 1;
}

/// True if `op` reads its state row by row, and each before it writes it: a
/// scan of exactly one token, or what leaves the state as it is.
static bool readsRows(Operation *op) {
  auto scan = dyn_cast<tile::DeltaScanOp>(op);
  return isa<tile::PendingOpInterface>(op) ||
         (scan &&
          cast<VectorType>(scan.getKey().getType()).getDimSize(0) == 1 &&
          getConstantIntValue(scan.getValid()) == 1);
}

/// The state of such an op.
static Value stateOf(Operation *op) {
  auto scan = dyn_cast<tile::DeltaScanOp>(op);
  return scan ? scan.getState() : cast<tile::PendingOpInterface>(op).getState();
}

/// True if the tile's rows are contiguous rows of the view.
template <typename OpTy> static bool hasRowsOfView(OpTy op) {
  auto view = cast<MemRefType>(op.getView().getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  ArrayRef<int64_t> dims = op.getDims();
  return dims.size() == 2 && dims[0] == view.getRank() - 2 &&
         dims[1] == view.getRank() - 1 &&
         view.getDimSize(dims[1]) == op.getTile().getType().getDimSize(1) &&
         succeeded(view.getStridesAndOffset(strides, offset)) &&
         strides.back() == 1;
}

/// The same, and all of them are there.
template <typename OpTy> static bool isWholeRows(OpTy op) {
  return !op.getRows() && hasRowsOfView(op);
}

/// True if `op` reads `tile` where it is: the rows of a state, in order, or the
/// pending tokens that are there.
static bool canReadInPlace(Operation *op, tile::LoadOp load) {
  auto pending = dyn_cast<tile::PendingOpInterface>(op);
  if (pending && load.getRows() == pending.getCount() &&
      (load.getTile() == pending.getPendingKey() ||
       load.getTile() == pending.getPendingDeltas()))
    return hasRowsOfView(load);
  return readsRows(op) && stateOf(op) == load.getTile() && isWholeRows(load);
}

/// What a view is cut from: an argument of the function, if all is well.
static Value rootOf(Value view) {
  while (Operation *op = view.getDefiningOp()) {
    if (!isa<memref::ReinterpretCastOp, memref::CastOp, memref::SubViewOp,
             memref::ExtractStridedMetadataOp>(op))
      break;
    view = op->getOperand(0);
  }
  return view;
}

/// Views of different arguments do not overlap where one of them is written:
/// binding checks that. Nothing is known of other views.
static bool mayOverlap(Value a, Value b) {
  auto isArgument = [](Value root) {
    auto arg = dyn_cast<BlockArgument>(root);
    return arg && isa<func::FuncOp>(arg.getOwner()->getParentOp());
  };
  Value first = rootOf(a), second = rootOf(b);
  return first == second || !isArgument(first) || !isArgument(second);
}

/// True if an op strictly between `from` and `to` in one block may have one of
/// `Effects` on the memory of `view`.
template <typename... Effects>
static bool touchesMemory(Operation *from, Operation *to, Value view) {
  for (Operation *op = from->getNextNode(); op && op != to;
       op = op->getNextNode()) {
    if (isMemoryEffectFree(op))
      continue;
    auto interface = dyn_cast<MemoryEffectOpInterface>(op);
    if (!interface)
      return true;
    SmallVector<MemoryEffects::EffectInstance> effects;
    interface.getEffects(effects);
    for (const MemoryEffects::EffectInstance &effect : effects)
      if (isa<Effects...>(effect.getEffect()) &&
          (!effect.getValue() || mayOverlap(effect.getValue(), view)))
        return true;
  }
  return false;
}

/// True if the indices of `load` and `store` in `dims` are known to be the
/// same.
static bool haveSameIndices(tile::LoadOp load, tile::StoreOp store,
                            ArrayRef<int64_t> dims) {
  return llvm::all_of(dims, [&](int64_t dim) {
    Value from = load.getIndices()[dim], to = store.getIndices()[dim];
    return from == to || (getConstantIntValue(from) &&
                          getConstantIntValue(from) == getConstantIntValue(to));
  });
}

/// True if rows that `store` writes are rows that `load` has read before, or
/// rows that it never reads: the matrices are the same or apart.
static bool canUpdateRows(tile::LoadOp load, tile::StoreOp store) {
  if (!mayOverlap(load.getView(), store.getView()))
    return true;
  return load.getView() == store.getView() &&
         haveSameIndices(load, store, load.getDims());
}

/// True if `store` writes the tile that `load` reads.
static bool isSameTile(tile::LoadOp load, tile::StoreOp store) {
  auto all = llvm::to_vector(
      llvm::seq<int64_t>(0, static_cast<int64_t>(load.getIndices().size())));
  return load.getView() == store.getView() &&
         load.getDims() == store.getDims() && haveSameIndices(load, store, all);
}

/// A load whose only use reads it row by row, with no write in between, stays
/// where it is.
void TileBuffers::assignLoad(tile::LoadOp load) {
  Value tile = load.getTile();
  Operation *user = tile.hasOneUse() ? *tile.user_begin() : nullptr;
  if (user && canReadInPlace(user, load) &&
      user->getBlock() == load->getBlock() &&
      !touchesMemory<MemoryEffects::Write>(load, user, load.getView())) {
    Buffer buffer;
    buffer.kind = Buffer::LoadedView;
    buffer.type = load.getTile().getType();
    buffer.access = load;
    buffers.push_back(buffer);
    of[tile] = buffers.size() - 1;
    ++numInPlace;
    return;
  }
  of[tile] = addScratch(load.getTile().getType());
}

/// The new state `next` of `op` goes straight to the view that stores it, if
/// the store may happen as early as the op. What puts pending tokens into a
/// state writes the tile that it reads, which a branch stores that is taken if
/// it commits.
bool TileBuffers::assignInPlace(Operation *op, Value next) {
  const Buffer &from = buffers[of[stateOf(op)]];
  auto store = next.hasOneUse() ? dyn_cast<tile::StoreOp>(*next.user_begin())
                                : tile::StoreOp();
  Operation *place = store;
  auto pending = dyn_cast<tile::PendingOpInterface>(op);
  if (auto branch = store && pending ? dyn_cast<scf::IfOp>(store->getParentOp())
                                     : scf::IfOp();
      branch && branch.getCondition() == pending.getCommit() &&
      store->getBlock() == branch.thenBlock() &&
      store == &branch.thenBlock()->front() &&
      from.kind == Buffer::LoadedView &&
      isSameTile(cast<tile::LoadOp>(from.access), store))
    place = branch;
  else if (pending)
    return false;
  if (from.kind != Buffer::LoadedView || !store ||
      place->getBlock() != op->getBlock() || !isWholeRows(store) ||
      !canUpdateRows(cast<tile::LoadOp>(from.access), store) ||
      touchesMemory<MemoryEffects::Read, MemoryEffects::Write>(op, place,
                                                               store.getView()))
    return false;
  auto isLate = [&](Value operand) {
    Operation *def = operand.getDefiningOp();
    return def && def->getBlock() == op->getBlock() &&
           !def->isBeforeInBlock(op);
  };
  if (isLate(store.getView()) || llvm::any_of(store.getIndices(), isLate))
    return false;
  Buffer buffer;
  buffer.kind = Buffer::StoredView;
  buffer.type = cast<VectorType>(next.getType());
  buffer.access = store;
  buffers.push_back(buffer);
  of[next] = buffers.size() - 1;
  ++numInPlace;
  return true;
}

void TileBuffers::assignScan(tile::DeltaScanOp scan) {
  of[scan.getOutput()] = addScratch(scan.getOutput().getType());
  if (Value deltas = scan.getDeltas())
    of[deltas] = addScratch(cast<VectorType>(deltas.getType()));
  assignState(scan, scan.getNewState(), scan.getState());
}

void TileBuffers::assignReplay(tile::DeltaReplayOp replay) {
  of[replay.getOutput()] = addScratch(replay.getOutput().getType());
  of[replay.getDeltas()] = addScratch(replay.getDeltas().getType());
  assignState(replay, replay.getNewState(), replay.getState());
}

void TileBuffers::assignState(Operation *op, Value next, Value state) {
  if (!assignInPlace(op, next) && !takeOver(next, state))
    of[next] = addScratch(cast<VectorType>(next.getType()));
}

/// Each result takes the place of an input that no other result has taken.
void TileBuffers::assignMap(tile::MapRowsOp map) {
  llvm::SmallDenseSet<unsigned> taken;
  for (Value result : map.getResults()) {
    bool found = llvm::any_of(map.getInputs(), [&](Value input) {
      return !taken.contains(of[input]) && takeOver(result, input);
    });
    if (!found)
      of[result] = addScratch(cast<VectorType>(result.getType()));
    taken.insert(of[result]);
  }
}

/// True if `op` is the last to use `value` and uses it once, as an operand: not
/// from its body. A value from outside a loop is read again by the next
/// iteration, so it has to be of the same block.
static bool isLastUse(Value value, Operation *op) {
  Block *block = value.getParentBlock();
  if (op->getBlock() != block || llvm::count(op->getOperands(), value) != 1)
    return false;
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (user == op)
      return true;
    Operation *other = block->findAncestorOpInBlock(*user);
    return other && other != op && other->isBeforeInBlock(op);
  });
}

bool TileBuffers::takeOver(Value result, Value operand) {
  if (operand.getType() != result.getType() ||
      buffers[of[operand]].kind != Buffer::Scratch ||
      !isLastUse(operand, result.getDefiningOp()))
    return false;
  of[result] = of[operand];
  ++numInPlace;
  return true;
}

/// Gives a tile that only the end of its loop's body uses the buffer that the
/// loop carries it in, where the body has done with the tile it got there.
bool TileBuffers::moveToCarried(Value result) {
  auto loop = dyn_cast<scf::ForOp>(result.getDefiningOp()->getParentOp());
  if (!loop || !result.hasOneUse())
    return false;
  OpOperand &use = *result.use_begin();
  if (use.getOwner() != loop.getBody()->getTerminator())
    return false;
  Value arg = loop.getRegionIterArg(use.getOperandNumber());
  unsigned buffer = of[arg];
  auto isDone = [&](Operation *user) {
    Operation *other = loop.getBody()->findAncestorOpInBlock(*user);
    return other && other->isBeforeInBlock(result.getDefiningOp());
  };
  if (!llvm::all_of(arg.getUsers(), isDone) ||
      llvm::any_of(of, [&](auto &known) {
        return known.second == buffer && known.first != arg &&
               loop->isAncestor(known.first.getParentBlock()->getParentOp());
      }))
    return false;
  of[result] = buffer;
  ++numInPlace;
  return true;
}

void TileBuffers::assignLoop(scf::ForOp loop) {
  for (auto [init, arg, result] : llvm::zip(
           loop.getInitArgs(), loop.getRegionIterArgs(), loop.getResults())) {
    if (!isTile(init))
      continue;
    bool owned = init.hasOneUse() &&
                 buffers[of[init]].kind == Buffer::Scratch &&
                 init.getParentBlock() == loop->getBlock();
    of[arg] = owned ? of[init] : addScratch(cast<VectorType>(init.getType()));
    of[result] = of[arg];
    numInPlace += owned;
  }
}

TileBuffers TileBuffers::assign(func::FuncOp function) {
  TileBuffers buffers;
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto map = dyn_cast<tile::MapRowsOp>(op)) {
      buffers.assignMap(map);
      return WalkResult::skip(); // the body works on rows, not tiles
    }
    if (auto load = dyn_cast<tile::LoadOp>(op)) {
      buffers.assignLoad(load);
    } else if (auto fill = dyn_cast<tile::FillOp>(op)) {
      buffers.of[fill.getTile()] = buffers.addScratch(fill.getTile().getType());
    } else if (auto conv = dyn_cast<tile::Conv1dOp>(op)) {
      buffers.of[conv.getResult()] =
          buffers.addScratch(conv.getResult().getType());
      if (!buffers.takeOver(conv.getNewWindow(), conv.getWindow()))
        buffers.of[conv.getNewWindow()] =
            buffers.addScratch(conv.getNewWindow().getType());
    } else if (auto scan = dyn_cast<tile::DeltaScanOp>(op)) {
      buffers.assignScan(scan);
    } else if (auto replay = dyn_cast<tile::DeltaReplayOp>(op)) {
      buffers.assignReplay(replay);
    } else if (auto catchUp = dyn_cast<tile::DeltaCatchUpOp>(op)) {
      buffers.of[catchUp.getWhole()] =
          buffers.addScratch(catchUp.getWhole().getType());
      buffers.assignState(catchUp, catchUp.getNewState(), catchUp.getState());
    } else if (auto fold = dyn_cast<tile::DeltaFoldOp>(op)) {
      if (!buffers.takeOver(fold.getNewState(), fold.getState()))
        buffers.of[fold.getNewState()] =
            buffers.addScratch(fold.getNewState().getType());
    } else if (auto matmul = dyn_cast<tile::MatmulOp>(op)) {
      if (!matmul.getAcc() ||
          !buffers.takeOver(matmul.getResult(), matmul.getAcc()))
        buffers.of[matmul.getResult()] =
            buffers.addScratch(matmul.getResult().getType());
    } else if (isa<tile::TransposeOp, tile::TriInverseOp, tile::PrefixSumOp,
                   tile::SuffixSumOp, tile::ExtractRowOp, tile::DecayMatrixOp,
                   tile::DecayScoresOp, tile::DecayOperandsOp>(op)) {
      for (Value result : op->getResults())
        if (!buffers.moveToCarried(result))
          buffers.of[result] =
              buffers.addScratch(cast<VectorType>(result.getType()));
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      buffers.assignLoop(loop);
    }
    return WalkResult::advance();
  });
  return buffers;
}
