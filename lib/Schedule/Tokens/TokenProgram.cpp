// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Warps, turns and branches of the program, and its memory.
#include "Tokens/TokenProgram.h"

#include "Kernel/FoldStep.h"

using namespace mlir;
using namespace gdn;

TokenProgram::TokenProgram(const TokenPlan &plan, OpBuilder &b,
                           const IRMapping &scalars, gpu::RowsAttr stateRows,
                           Block *entry)
    : TokenPlan(plan), b(b), loc(scan.getLoc()), scalars(scalars),
      stateRows(stateRows), entry(entry), tokenTiles(findTokenTiles(loop)),
      begin(scalars.lookupOrDefault(loop.getLowerBound())),
      end(scalars.lookupOrDefault(loop.getUpperBound())) {}

gpu::EachWarpOp TokenProgram::enterEachWarp(Warps warps, TypeRange results) {
  auto op = gpu::EachWarpOp::create(b, loc, results, warps.first, warps.count);
  b.createBlock(&op.getBody(), {}, b.getIndexType(), loc);
  return op;
}

gpu::WarpsOp TokenProgram::enterWarp(int64_t warp, TypeRange results) {
  auto op = gpu::WarpsOp::create(b, loc, results, warp, 1, {});
  b.createBlock(&op.getBody());
  return op;
}

void TokenProgram::leave(Operation *op, ValueRange yielded) {
  b.setInsertionPointToEnd(&op->getRegion(0).front());
  gpu::YieldOp::create(b, loc, yielded);
  b.setInsertionPointAfter(op);
}

Value TokenProgram::enterTurns(Value count) {
  gpu::EachWarpOp each = enterEachWarp({0, numWarps});
  auto turns = scf::ForOp::create(b, loc, each.getBody().getArgument(0), count,
                                  index(numWarps));
  gpu::YieldOp::create(b, loc);
  b.setInsertionPointToStart(turns.getBody());
  return turns.getInductionVar();
}

void TokenProgram::leaveTurns(Value at) {
  b.setInsertionPointAfter(at.getParentBlock()->getParentOp()->getParentOp());
}

void TokenProgram::emitIf(Value condition, function_ref<void()> emitThen) {
  auto branch = scf::IfOp::create(b, loc, condition, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emitThen();
}

Value TokenProgram::emitIf(Value condition, Type type,
                           function_ref<Value()> emitThen,
                           function_ref<Value()> emitElse) {
  auto branch = scf::IfOp::create(b, loc, type, condition, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, emitThen());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, emitElse());
  return branch.getResult(0);
}

ValueRange
TokenProgram::mapRows(TypeRange types, ValueRange inputs,
                      function_ref<SmallVector<Value>(ValueRange)> emitBody) {
  auto map = gpu::MapRowsOp::create(b, loc, types, inputs);
  OpBuilder::InsertionGuard guard(b);
  gpu::YieldOp::create(b, loc, emitBody(map.openBody(b)->getArguments()));
  return map.getResults();
}

IRMapping TokenProgram::atToken(Value token, IRMapping values) {
  values.map(loop.getInductionVar(), token);
  emitTokenScalars(b, *loop.getBody(), values);
  return values;
}

Value TokenProgram::allocate(VectorType tile) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);
  return gpu::AllocOp::create(b, loc, gpu::SharedType::get(tile));
}

Value TokenProgram::allocateRows(Value tile, int64_t rows) {
  auto type = cast<VectorType>(tile.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = rows;
  return allocate(VectorType::get(shape, type.getElementType()));
}

Value TokenProgram::loadRow(Value tile, Attribute layout, Value at) {
  auto type = cast<VectorType>(tile.getType());
  auto row = VectorType::get({type.getDimSize(1)}, type.getElementType());
  return gpu::LoadSharedOp::create(b, loc, gpu::FragmentType::get(row, layout),
                                   shared[tile], at);
}

Value TokenProgram::loadLogDecay(Value tile, Value at) {
  if (cast<VectorType>(tile.getType()).getRank() == 2)
    return loadPerColumn(tile, at);
  return loadNumber(shared[tile], at);
}

Value TokenProgram::emitFold(Value state, Value count, Value keys, Value deltas,
                             Value logDecays, Value scales) {
  bool perChannel = cast<VectorType>(logDecays.getType()).getRank() == 2;
  auto key = [&](Value at) { return loadPerColumn(keys, at); };
  auto delta = [&](Value at) { return loadPerRow(deltas, at); };
  auto logDecay = [&](Value at) { return loadLogDecay(logDecays, at); };
  auto scale = [&](Value at) { return loadNumber(shared[scales], at); };
  FoldTokens tokens = {key, delta, logDecay};
  if (scales)
    tokens.scale = scale;
  return gdn::emitFold(b, loc, state, count, perChannel, tokens);
}

void TokenProgram::loadTile(FragmentEmitter &emitter, Value tile, Value row,
                            Value other) {
  emitter.set(tile,
              gpu::LoadSharedOp::create(b, loc, emitter.typeOf(tile),
                                        shared[other ? other : tile], row));
}

SmallVector<tile::LoadOp> TokenProgram::getOutputLoads() {
  SmallVector<tile::LoadOp> loads;
  if (scan.isPerChannel())
    return loads;
  for (tile::LoadOp load : getLoads(roles[ScanRole::output].tiles))
    if (tokenTiles.contains(load.getTile()) &&
        load.getTile().getType().getRank() == 2)
      loads.push_back(load);
  return loads;
}

void gdn::emitLoads(FragmentEmitter &emitter, ArrayRef<Operation *> ops) {
  for (tile::LoadOp load : getLoads(ops))
    emitter.emit(load);
}

void gdn::emitOthers(FragmentEmitter &emitter, ArrayRef<Operation *> ops) {
  for (Operation *op : ops)
    if (!isa<tile::LoadOp>(op))
      emitter.emit(op);
}
