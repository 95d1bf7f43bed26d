// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile has a row per token if it is loaded at the token, or computed row by
// row from one that has. The result of a convolution has, if the window is
// carried from token to token: then a convolution of several tokens gives the
// same rows.
#include "Tokens/TokenPlan.h"

#include "Kernel/ScheduledKernel.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace gdn;

TokenPlan::TokenPlan(scf::ForOp loop, tile::DeltaScanOp scan,
                     const ScanRoles &roles, int64_t numWarps)
    : loop(loop), scan(scan), roles(roles), numWarps(numWarps) {
  Operation *pending = getPendingOp(loop, scan);
  fold = dyn_cast_or_null<tile::DeltaFoldOp>(pending);
  catchUp = dyn_cast_or_null<tile::DeltaCatchUpOp>(pending);
  const int64_t most = tile::getMostTokens(loop).value_or(INT64_MAX);
  blockTokens = most <= 4 ? 4 : 8;
  isOneBlock = most <= blockTokens;
}

bool TokenPlan::isSolvable() {
  const RoleWork &state = roles[ScanRole::state];
  return keepsPending() && scan.getBeta() && !scan.isPerChannel() &&
         state.stores.empty() && state.tiles.empty();
}

bool TokenPlan::takesTensorCores() {
  VectorType state = scan.getState().getType();
  int64_t columns = state.getDimSize(1);
  return isSolvable() && state.getDimSize(0) % (numWarps * 16) == 0 &&
         columns % 32 == 0 && columns <= 128;
}

bool TokenPlan::scansInPlace() {
  return !keepsPending() &&
         scan.getState().getType().getNumElements() <= 128 * 128;
}

/// Whether `ops` load a tile of this shape of which an element has 16 bits.
static bool loadNarrow(ArrayRef<Operation *> ops, ArrayRef<int64_t> shape) {
  return llvm::any_of(getLoads(ops), [&](tile::LoadOp load) {
    VectorType type = load.getTile().getType();
    return type.getShape() == shape && isa<FloatType>(type.getElementType()) &&
           !type.getElementType().isF32();
  });
}

bool TokenPlan::isStateNarrow() {
  return loadNarrow(roles[ScanRole::state].before,
                    scan.getState().getType().getShape());
}

bool TokenPlan::hasPlanes() {
  return llvm::any_of(
      getLoads(roles[ScanRole::state].before), [](tile::LoadOp load) {
        return load.getTile().getType().getElementType().isInteger(8);
      });
}

bool TokenPlan::readsNarrowStates() {
  return loadNarrow(roles[ScanRole::state].tiles,
                    scan.getState().getType().getShape());
}

bool TokenPlan::hasConvs() {
  return llvm::any_of(convRoles, [&](ScanRole role) {
    return llvm::any_of(roles[role].tiles, llvm::IsaPred<tile::Conv1dOp>);
  });
}

bool TokenPlan::preparesByHistory() {
  bool allHave = isOneBlock && numWarps == 8;
  for (ScanRole role : convRoles)
    allHave &= bool(findCarriedConv(role));
  return allHave;
}

bool TokenPlan::haveNarrowInputs() {
  for (ScanRole role : convRoles)
    for (tile::LoadOp load : getLoads(getInputOps(findCarriedConv(role))))
      if (load.getTile().getType().getElementTypeBitWidth() > 16)
        return false;
  return true;
}

SmallVector<Value> TokenPlan::getTiles(ScanRole role) {
  if (role == ScanRole::gates)
    return scan.getGates();
  const Value byRole[] = {scan.getQuery(), scan.getKey(),    scan.getValue(),
                          Value(),         scan.getDeltas(), scan.getOutput()};
  return {byRole[unsigned(role)]};
}

tile::Conv1dOp TokenPlan::findCarriedConv(ScanRole role) {
  for (Operation *op : roles[role].tiles)
    if (auto conv = dyn_cast<tile::Conv1dOp>(op))
      if (auto arg = dyn_cast<BlockArgument>(conv.getWindow());
          arg && arg.getOwner() == loop.getBody() &&
          loop.getTiedLoopYieldedValue(arg)->get() == conv.getNewWindow())
        return conv;
  return nullptr;
}

SmallVector<Operation *> TokenPlan::getOpsOf(Value tile) {
  SetVector<Operation *> ops;
  SmallVector<Value> next = {tile};
  while (!next.empty())
    if (Operation *op = next.pop_back_val().getDefiningOp();
        op && op->getBlock() == loop.getBody() && ops.insert(op))
      llvm::append_range(next, getUsedTiles(op));
  SmallVector<Operation *> sorted = ops.takeVector();
  llvm::sort(sorted, inProgramOrder);
  return sorted;
}

SmallVector<Operation *> TokenPlan::getWeightOps(ScanRole role) {
  const RoleWork &work = roles[role];
  SetVector<Operation *> ops(work.before.begin(), work.before.end());
  if (tile::Conv1dOp conv = findCarriedConv(role))
    for (Operation *op : getTilesBefore(loop, getInit(conv.getWindow())))
      ops.remove(op);
  return ops.takeVector();
}

DenseSet<Value> gdn::findTokenTiles(scf::ForOp loop) {
  DenseSet<Value> tiles;
  loop.getBody()->walk<WalkOrder::PreOrder>([&](Operation *inner) {
    Operation &op = *inner;
    if (auto load = dyn_cast<tile::LoadOp>(op)) {
      if (load.getIndices()[load.getDims()[0]] == loop.getInductionVar())
        tiles.insert(load.getTile());
    } else if (auto map = dyn_cast<tile::MapRowsOp>(op)) {
      if (llvm::any_of(map.getInputs(),
                       [&](Value input) { return tiles.contains(input); }))
        tiles.insert_range(map.getResults());
    } else if (auto conv = dyn_cast<tile::Conv1dOp>(op)) {
      if (tiles.contains(conv.getInput()))
        tiles.insert(conv.getResult());
    } else if (auto scan = dyn_cast<tile::DeltaScanOp>(op)) {
      tiles.insert(scan.getOutput());
      if (scan.getDeltas())
        tiles.insert(scan.getDeltas());
    }
  });
  return tiles;
}

SetVector<Value> gdn::findStoredWindows(ArrayRef<Operation *> stores) {
  SetVector<Value> windows;
  for (Operation *op : stores)
    for (Value tile : getUsedTiles(op))
      if (auto conv = tile.getDefiningOp<tile::Conv1dOp>();
          conv && tile == conv.getNewWindow())
        windows.insert(tile);
  return windows;
}

/// True if all that `op` uses from outside of itself is in `scalars` or a
/// constant.
static bool isKnown(Operation &op, const IRMapping &scalars) {
  bool known = true;
  op.walk([&](Operation *inner) {
    if (isa<tile::TileDialect>(inner->getDialect()))
      known = false;
    for (Value operand : inner->getOperands())
      known &= scalars.contains(operand) ||
               op.isProperAncestor(operand.getParentBlock()->getParentOp()) ||
               operand.getParentBlock()->getParentOp() == &op;
  });
  return known;
}

void gdn::emitTokenScalars(OpBuilder &b, Block &block, IRMapping &scalars) {
  for (Operation &op : block.without_terminator())
    if (!isa<tile::TileDialect>(op.getDialect()) &&
        llvm::none_of(op.getResultTypes(), llvm::IsaPred<FloatType>) &&
        op.getNumResults() > 0 && isKnown(op, scalars))
      b.clone(op, scalars);
}

bool gdn::hasStores(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isa<tile::StoreOp, memref::StoreOp>(inner)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

SetVector<Operation *> gdn::findLastInGroup(Operation *branch) {
  SetVector<Operation *> found;
  SmallVector<Value> next(branch->getOperands());
  DenseSet<Operation *> seen;
  while (!next.empty()) {
    Operation *op = next.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (isa<tile::LastInGroupOp>(op))
      found.insert(op);
    else
      llvm::append_range(next, op->getOperands());
  }
  return found;
}
