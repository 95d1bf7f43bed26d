// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile has a row per token if it is loaded at the token, or computed row by
// row from one that has. The result of a convolution has, if the window is
// carried from token to token: then a convolution of several tokens gives the
// same rows.
#include "Tokens/TokenRoles.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace gdn;

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

tile::Conv1dOp gdn::findCarriedConv(scf::ForOp loop,
                                    ArrayRef<Operation *> ops) {
  for (Operation *op : ops)
    if (auto conv = dyn_cast<tile::Conv1dOp>(op))
      if (auto arg = dyn_cast<BlockArgument>(conv.getWindow());
          arg && arg.getOwner() == loop.getBody() &&
          loop.getTiedLoopYieldedValue(arg)->get() == conv.getNewWindow())
        return conv;
  return nullptr;
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
  return op->walk([](tile::StoreOp) { return WalkResult::interrupt(); })
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
