// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of a state do not depend on each other, and no sum runs over one: each
// thread keeps its elements in registers and reads what it needs of the keys,
// deltas and decays of a token from memory.
#include "Moves/FoldMove.h"
#include "Kernel/FoldStep.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// Elements of a state that a thread holds at once, in f32.
static constexpr int64_t maxLocalElements = 64;

/// `map` if it only turns the elements of one tile into those of another type.
static bool isCast(tile::MapRowsOp map) {
  if (map.getInputs().size() != 1 || map.getResults().size() != 1)
    return false;
  Block &body = map.getBody().front();
  auto ops = body.without_terminator();
  return llvm::hasSingleElement(ops) &&
         isa<arith::ExtFOp, arith::TruncFOp>(*ops.begin());
}

bool FoldMove::contains(Operation *op) {
  if (op == load || op == widen || op == fold || op == narrow || op == store)
    return true;
  return llvm::any_of(
      ValueRange{fold.getKey(), fold.getDeltas(), fold.getLogDecay()},
      [&](Value tile) { return tile.getDefiningOp() == op; });
}

std::optional<FoldMove> gdn::findFoldMove(tile::DeltaFoldOp fold) {
  FoldMove move;
  move.fold = fold;
  for (Value tile : {fold.getKey(), fold.getDeltas(), fold.getLogDecay()})
    if (!tile.getDefiningOp<tile::LoadOp>() || !tile.hasOneUse())
      return std::nullopt;
  Value state = fold.getState(), stored = fold.getNewState();
  move.widen = state.getDefiningOp<tile::MapRowsOp>();
  if (move.widen && isCast(move.widen) && state.hasOneUse())
    state = move.widen.getInputs().front();
  move.load = state.getDefiningOp<tile::LoadOp>();
  if (!move.load || move.load.getRows() || !state.hasOneUse() ||
      !stored.hasOneUse())
    return std::nullopt;
  move.narrow = dyn_cast<tile::MapRowsOp>(*stored.user_begin());
  if (move.narrow && isCast(move.narrow))
    stored = move.narrow.getResults().front();
  if (!stored.hasOneUse())
    return std::nullopt;
  move.store = dyn_cast<tile::StoreOp>(*stored.user_begin());
  if (!move.store || move.store.getRows() ||
      move.store->getBlock() != move.load->getBlock())
    return std::nullopt;
  return move;
}

namespace {
/// One pass, over the rows from `firstRow` on.
class RowsPass {
public:
  RowsPass(OpBuilder &b, FoldMove move, const IRMapping &scalars,
           gpu::RowsAttr layout, int64_t numRows, Value firstRow)
      : b(b), move(move), emitter(b, scalars, layout), layout(layout),
        numRows(numRows), firstRow(firstRow), loc(move.fold.getLoc()) {}
  void emit();

private:
  Value loadState();
  Value emitFolded(Value state);
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  SmallVector<Value> mapped(ValueRange indices) {
    return llvm::map_to_vector(
        indices, [&](Value index) { return emitter.scalar(index); });
  }
  /// Row `token` of a tile of pending tokens, from its column `first` on.
  Value loadRow(Value tile, Value token, int64_t size, Attribute layout,
                Value first);

  OpBuilder &b;
  FoldMove move;
  FragmentEmitter emitter;
  gpu::RowsAttr layout;
  int64_t numRows;
  Value firstRow; // null for all rows
  Location loc;
};
} // namespace

Value RowsPass::loadState() {
  tile::LoadOp load = move.load;
  VectorType type = load.getTile().getType();
  SmallVector<Value> indices = mapped(load.getIndices());
  if (firstRow) {
    Value &row = indices[load.getDims()[0]];
    row = add(row, firstRow);
  }
  Value view = emitter.scalar(load.getView());
  auto part =
      VectorType::get({numRows, type.getDimSize(1)}, type.getElementType());
  return gpu::LoadOp::create(b, loc, gpu::FragmentType::get(part, layout), view,
                             indices, load.getDims(), /*rows=*/Value(),
                             getAlignment(view));
}

Value RowsPass::loadRow(Value tile, Value token, int64_t size, Attribute layout,
                        Value first) {
  auto load = tile.getDefiningOp<tile::LoadOp>();
  SmallVector<Value> indices = mapped(load.getIndices());
  Value &at = indices[load.getDims()[0]];
  at = add(at, token);
  if (first) {
    Value &column = indices[load.getDims()[1]];
    column = add(column, first);
  }
  auto type =
      VectorType::get({size}, load.getTile().getType().getElementType());
  return gpu::LoadOp::create(b, loc, gpu::FragmentType::get(type, layout),
                             emitter.scalar(load.getView()), indices,
                             load.getDims().take_back(), /*rows=*/Value(),
                             /*aligned=*/0);
}

Value RowsPass::emitFolded(Value state) {
  MLIRContext *context = b.getContext();
  tile::DeltaFoldOp fold = move.fold;
  int64_t columns = cast<VectorType>(fold.getState().getType()).getDimSize(1);
  auto perColumn = gpu::PerColumnAttr::get(context, layout);
  auto perRow = gpu::PerRowAttr::get(context, layout);
  bool perChannel =
      cast<VectorType>(fold.getLogDecay().getType()).getRank() == 2;
  auto key = [&](Value token) {
    return loadRow(fold.getKey(), token, columns, perColumn, Value());
  };
  auto delta = [&](Value token) {
    return loadRow(fold.getDeltas(), token, numRows, perRow, firstRow);
  };
  auto logDecay = [&](Value token) -> Value {
    if (perChannel)
      return loadRow(fold.getLogDecay(), token, columns, perColumn, Value());
    auto load = fold.getLogDecay().getDefiningOp<tile::LoadOp>();
    SmallVector<Value> indices = mapped(load.getIndices());
    Value &at = indices[load.getDims()[0]];
    at = add(at, token);
    return memref::LoadOp::create(b, loc, emitter.scalar(load.getView()),
                                  indices);
  };
  return emitFold(b, loc, state, emitter.scalar(fold.getValid()), perChannel,
                  {key, delta, logDecay});
}

void RowsPass::emit() {
  Value state = emitFolded(castRows(b, loc, loadState(), b.getF32Type()));
  tile::StoreOp store = move.store;
  SmallVector<Value> indices = mapped(store.getIndices());
  if (firstRow) {
    Value &row = indices[store.getDims()[0]];
    row = add(row, firstRow);
  }
  Value view = emitter.scalar(store.getView());
  Value stored =
      castRows(b, loc, state, store.getTile().getType().getElementType());
  gpu::StoreOp::create(b, loc, stored, view, indices, store.getDims(),
                       /*rows=*/Value(), getAlignment(view));
}

void gdn::emitFoldMove(OpBuilder &b, FoldMove move, const IRMapping &scalars,
                       gpu::RowsAttr layout) {
  Location loc = move.fold.getLoc();
  auto type = cast<VectorType>(move.fold.getState().getType());
  int64_t rows = type.getDimSize(0), numPasses = 1;
  auto fits = [&](int64_t passes) {
    auto part = VectorType::get({rows / passes, type.getDimSize(1)},
                                type.getElementType());
    return rows % passes == 0 &&
           gpu::FragmentType::get(part, layout).getLocalSize() <=
               maxLocalElements;
  };
  while (numPasses < rows && !fits(numPasses))
    ++numPasses;
  if (numPasses == 1)
    return RowsPass(b, move, scalars, layout, rows, Value()).emit();
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto loop = scf::ForOp::create(b, loc, index(0), index(rows),
                                 index(rows / numPasses));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  RowsPass(b, move, scalars, layout, rows / numPasses, loop.getInductionVar())
      .emit();
}
