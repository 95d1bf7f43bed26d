// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of a state do not depend on each other, and no sum runs over one: each
// thread keeps its elements in registers and reads what it needs of the keys,
// deltas and decays of a token from memory.
#include "Moves/StateMove.h"
#include "Kernel/FoldStep.h"
#include "Kernel/PendingSource.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

bool StateMove::contains(Operation *op) {
  if (op == widen || op == fold || op == narrow ||
      llvm::is_contained(loads, op) || llvm::is_contained(stores, op))
    return true;
  if (!fold)
    return false;
  return llvm::any_of(
      ValueRange{fold.getKey(), fold.getDeltas(), fold.getLogDecay()},
      [&](Value tile) {
        PendingSource source = findPendingSource(tile);
        return tile.getDefiningOp() == op || source.load.getOperation() == op ||
               source.scales.getOperation() == op;
      });
}

VectorType StateMove::stateType() {
  if (fold)
    return cast<VectorType>(fold.getState().getType());
  VectorType state;
  auto take = [&](ValueRange tiles) {
    for (Value tile : tiles)
      if (auto type = cast<VectorType>(tile.getType());
          type.getRank() == 2 && type.getElementType().isF32())
        state = type;
  };
  take(narrow.getInputs());
  take(narrow.getResults());
  return state;
}

std::optional<StateMove> gdn::findFormatMove(tile::MapRowsOp map) {
  StateMove move;
  move.narrow = map;
  for (Value tile : map.getInputs()) {
    auto load = tile.getDefiningOp<tile::LoadOp>();
    if (!load || load.getRows() || !tile.hasOneUse() ||
        load->getBlock() != map->getBlock())
      return std::nullopt;
    move.loads.push_back(load);
  }
  for (Value tile : map.getResults()) {
    auto store = tile.hasOneUse() ? dyn_cast<tile::StoreOp>(*tile.user_begin())
                                  : tile::StoreOp();
    if (!store || store.getRows() || store->getBlock() != map->getBlock())
      return std::nullopt;
    move.stores.push_back(store);
  }
  auto isPlane = [](auto op) {
    VectorType type = op.getTile().getType();
    return type.getRank() == 2 && type.getElementType().isInteger(8);
  };
  if (move.loads.empty() || !move.stateType() ||
      llvm::any_of(move.loads, isPlane) == llvm::any_of(move.stores, isPlane))
    return std::nullopt;
  return move;
}

std::optional<StateMove> gdn::findFoldMove(tile::DeltaFoldOp fold) {
  StateMove move;
  move.fold = fold;
  for (Value tile : {fold.getKey(), fold.getDeltas(), fold.getLogDecay()})
    if (!findPendingSource(tile) || !tile.hasOneUse())
      return std::nullopt;

  SmallVector<Value> loaded = {fold.getState()};
  move.widen = fold.getState().getDefiningOp<tile::MapRowsOp>();
  if (move.widen) {
    if (move.widen->getNumResults() != 1 || !fold.getState().hasOneUse())
      return std::nullopt;
    loaded = llvm::to_vector(move.widen.getInputs());
  }
  for (Value tile : loaded) {
    auto load = tile.getDefiningOp<tile::LoadOp>();
    if (!load || load.getRows() || !tile.hasOneUse())
      return std::nullopt;
    move.loads.push_back(load);
  }

  Value made = fold.getNewState();
  if (!made.hasOneUse())
    return std::nullopt;
  SmallVector<Value> stored = {made};
  move.narrow = dyn_cast<tile::MapRowsOp>(*made.user_begin());
  if (move.narrow) {
    if (move.narrow.getInputs().size() != 1)
      return std::nullopt;
    stored = llvm::to_vector_of<Value>(move.narrow.getResults());
  }
  for (Value tile : stored) {
    if (!tile.hasOneUse())
      return std::nullopt;
    auto store = dyn_cast<tile::StoreOp>(*tile.user_begin());
    if (!store || store.getRows() ||
        store->getBlock() != move.loads.front()->getBlock())
      return std::nullopt;
    move.stores.push_back(store);
  }
  return move;
}

namespace {
/// One pass, over the rows from `firstRow` on.
class RowsPass {
public:
  RowsPass(OpBuilder &b, StateMove move, const IRMapping &scalars,
           gpu::RowsAttr layout, int64_t numRows, Value firstRow)
      : b(b), move(move), emitter(b, scalars, layout), layout(layout),
        numRows(numRows), firstRow(firstRow), loc(move.loads.front().getLoc()) {
    rowsOfPass.count = numRows;
    for (tile::LoadOp load : move.loads)
      rowsOfPass.tiles.insert(load.getTile());
    for (tile::StoreOp store : move.stores)
      rowsOfPass.tiles.insert(store.getTile());
    if (move.fold)
      rowsOfPass.tiles.insert(move.fold.getState());
    emitter.setRowGroup(&rowsOfPass);
  }
  void emit();

private:
  void emitLoad(tile::LoadOp load);
  void emitStore(tile::StoreOp store);
  /// The indices of a row of the state that is row `firstRow` of the pass.
  SmallVector<Value> inPass(ValueRange indices, ArrayRef<int64_t> dims);
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
  StateMove move;
  RowGroup rowsOfPass;
  FragmentEmitter emitter;
  gpu::RowsAttr layout;
  int64_t numRows;
  Value firstRow; // null for all rows
  Location loc;
};
} // namespace

SmallVector<Value> RowsPass::inPass(ValueRange indices,
                                    ArrayRef<int64_t> dims) {
  SmallVector<Value> at = mapped(indices);
  if (firstRow) {
    Value &row = at[dims[0]];
    row = add(row, firstRow);
  }
  return at;
}

void RowsPass::emitLoad(tile::LoadOp load) {
  SmallVector<Value> indices = inPass(load.getIndices(), load.getDims());
  Value view = emitter.scalar(load.getView());
  emitter.set(load.getTile(),
              gpu::LoadOp::create(b, loc, emitter.typeOf(load.getTile()), view,
                                  indices, load.getDims(), /*rows=*/Value(),
                                  getAlignment(view)));
}

void RowsPass::emitStore(tile::StoreOp store) {
  SmallVector<Value> indices = inPass(store.getIndices(), store.getDims());
  Value view = emitter.scalar(store.getView());
  gpu::StoreOp::create(b, loc, emitter[store.getTile()], view, indices,
                       store.getDims(), /*rows=*/Value(), getAlignment(view));
}

Value RowsPass::loadRow(Value tile, Value token, int64_t size, Attribute layout,
                        Value first) {
  tile::LoadOp load = findPendingSource(tile).load;
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
  auto loadNumber = [&](tile::LoadOp load, Value token) -> Value {
    SmallVector<Value> indices = mapped(load.getIndices());
    Value &at = indices[load.getDims()[0]];
    at = add(at, token);
    return memref::LoadOp::create(b, loc, emitter.scalar(load.getView()),
                                  indices);
  };
  auto logDecay = [&](Value token) -> Value {
    if (perChannel)
      return loadRow(fold.getLogDecay(), token, columns, perColumn, Value());
    return loadNumber(findPendingSource(fold.getLogDecay()).load, token);
  };
  tile::LoadOp scales = findPendingSource(fold.getDeltas()).scales;
  auto scale = [&](Value token) { return loadNumber(scales, token); };
  FoldTokens tokens = {key, delta, logDecay};
  if (scales)
    tokens.scale = scale;
  return emitFold(b, loc, state, emitter.scalar(fold.getValid()), perChannel,
                  tokens);
}

void RowsPass::emit() {
  for (tile::LoadOp load : move.loads)
    emitLoad(load);
  if (move.widen)
    emitter.emit(move.widen);
  if (move.fold)
    emitter.set(move.fold.getNewState(),
                emitFolded(emitter[move.fold.getState()]));
  if (move.narrow)
    emitter.emit(move.narrow);
  // Lanes of a row have all read its scale when one of them writes it.
  if (move.fold && move.stores.size() > 1)
    gpu::BarrierOp::create(b, loc);
  for (tile::StoreOp store : move.stores)
    emitStore(store);
}

void gdn::emitStateMove(OpBuilder &b, StateMove move, const IRMapping &scalars,
                        gpu::RowsAttr layout) {
  Location loc = move.loads.front().getLoc();
  VectorType type = move.stateType();
  int64_t rows = type.getDimSize(0), numPasses = 1;
  auto fits = [&](int64_t passes) {
    auto part = VectorType::get({rows / passes, type.getDimSize(1)},
                                type.getElementType());
    return rows % passes == 0 &&
           gpu::FragmentType::get(part, layout).getLocalSize() <=
               mostLocalElements;
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
