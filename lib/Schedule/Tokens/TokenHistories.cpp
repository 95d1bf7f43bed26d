// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Preparation in two steps, where eight warps hold the state and a row has one
// block of tokens: two warps of each convolution read its window and inputs,
// four tokens each, into shared memory, where they are kept anyway. Behind a
// barrier each takes a token at a time from there: rows of one or two tokens,
// whose preparation is the longest part, use both warps.
#include "Tokens/TokensKernel.h"

using namespace mlir;
using namespace gdn;

/// Tokens of a warp at a time in the second step.
static constexpr int64_t preparedTokens = 1;
/// Tokens whose inputs a warp reads in the first.
static constexpr int64_t readTokens = 4;

/// The warps that have the role.
static Warps warpsOf(ScanRole role) { return {2 * int64_t(role), 2}; }

/// Whether queries, keys and values come from convolutions that keep their
/// inputs in shared memory, and there are rows and warps for it.
bool TokensKernel::ownsByHistory() {
  bool allHave = isOneBlock && numWarps == 8;
  for (ScanRole role : {ScanRole::query, ScanRole::key, ScanRole::value})
    allHave &= bool(findCarriedConv(loop, (*roles)[role].tiles));
  return allHave;
}

/// Whether the inputs of these convolutions have 16 bits in memory.
bool TokensKernel::haveNarrowInputs() {
  for (ScanRole role : {ScanRole::query, ScanRole::key, ScanRole::value})
    for (tile::LoadOp load :
         getLoads(getInputOps(findCarriedConv(loop, (*roles)[role].tiles))))
      if (load.getTile().getType().getElementTypeBitWidth() > 16)
        return false;
  return true;
}

/// What the role makes before the loop, but for the window: the weights.
SmallVector<Operation *> TokensKernel::getWeightOps(ScanRole role) {
  const RoleWork &work = (*roles)[role];
  tile::Conv1dOp conv = findCarriedConv(loop, work.tiles);
  auto window = cast<BlockArgument>(conv.getWindow());
  SetVector<Operation *> ops(work.before.begin(), work.before.end());
  for (Operation *op :
       getTilesBefore(loop, loop.getTiedLoopInit(window)->get()))
    ops.remove(op);
  return ops.takeVector();
}

/// The inputs of the sequence's tokens and the window before them, into shared
/// memory. Returns what the warps read of the weights.
SmallVector<Value> TokensKernel::emitHistory(ScanRole role, Value first,
                                             Value count) {
  Location loc = scan.getLoc();
  tile::Conv1dOp conv = findCarriedConv(loop, (*roles)[role].tiles);
  const WindowBuffer &buffer = windows[conv.getNewWindow()];
  int64_t steps = cast<VectorType>(conv.getWindow().getType()).getDimSize(0);
  SmallVector<Operation *> weightOps = getWeightOps(role);
  SmallVector<tile::LoadOp> weights = getLoads(weightOps);
  SmallVector<Type> types;
  for (tile::LoadOp load : weights)
    types.push_back(FragmentEmitter(b, scalars).typeOf(load.getTile()));
  gpu::EachWarpOp each = enterEachWarp(warpsOf(role), types);
  Value at = arith::MulIOp::create(b, loc, each.getBody().getArgument(0),
                                   index(readTokens));
  TokenGroup group = {tokenTiles, readTokens,
                      clamp(sub(count, at), readTokens)};
  FragmentEmitter emitter(b, atToken(add(first, at)));
  emitter.setTokens(&group);
  // All that comes from memory is asked for before anything waits.
  SmallVector<Operation *> inputs = getInputOps(conv);
  for (tile::LoadOp load : getLoads(inputs))
    emitter.emit(load);
  Value initial =
      loop.getTiedLoopInit(cast<BlockArgument>(conv.getWindow()))->get();
  SmallVector<Operation *> startOps = getTilesBefore(loop, initial);
  FragmentEmitter start(b, scalars);
  Value isFirst = isEqual(at, index(0));
  emitLoadsIf(start, getLoads(startOps), isFirst, true);
  FragmentEmitter held(b, scalars);
  SmallVector<Value> yielded;
  for (tile::LoadOp load : weights) {
    held.emit(load);
    yielded.push_back(held[load.getTile()]);
  }
  for (Operation *op : inputs)
    if (!isa<tile::LoadOp>(op))
      emitter.emit(op);
  for (Operation *op : startOps)
    if (!isa<tile::LoadOp>(op))
      start.emit(op);
  {
    auto branch = emitIf(isFirst);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    gpu::StoreSharedOp::create(b, loc, start[initial], buffer.tile, index(0));
  }
  gpu::StoreSharedOp::create(b, loc, emitter[conv.getInput()], buffer.tile,
                             add(at, index(steps)));
  gpu::YieldOp::create(b, loc, yielded);
  b.setInsertionPointAfter(each);
  return SmallVector<Value>(each.getResults());
}

/// The operand of the scan of the sequence's tokens, from what emitHistory
/// left.
void TokensKernel::emitFromHistory(ScanRole role, Value operand,
                                   ValueRange weights, Value first,
                                   Value count) {
  Location loc = scan.getLoc();
  const RoleWork &work = (*roles)[role];
  tile::Conv1dOp conv = findCarriedConv(loop, work.tiles);
  int64_t steps = cast<VectorType>(conv.getWindow().getType()).getDimSize(0);
  Value history = windows[conv.getNewWindow()].tile;
  SmallVector<Operation *> weightOps = getWeightOps(role);
  Warps warps = warpsOf(role);
  gpu::EachWarpOp each = enterEachWarp(warps);
  Value start = arith::MulIOp::create(b, loc, each.getBody().getArgument(0),
                                      index(preparedTokens));
  {
    OpBuilder::InsertionGuard guard(b);
    auto groups = scf::ForOp::create(b, loc, start, count,
                                     index(warps.count * preparedTokens));
    b.setInsertionPointToStart(groups.getBody());
    Value at = groups.getInductionVar();
    TokenGroup group = {tokenTiles, preparedTokens,
                        clamp(sub(count, at), preparedTokens)};
    FragmentEmitter emitter(b, atToken(add(first, at)));
    emitter.setTokens(&group);
    for (auto [load, fragment] : llvm::zip_equal(getLoads(weightOps), weights))
      emitter.set(tile::LoadOp(load).getTile(), fragment);
    for (Operation *op : weightOps)
      if (!isa<tile::LoadOp>(op))
        emitter.emit(op);
    auto fetchRows = [&](Value tile, Value row) {
      emitter.set(tile, gpu::LoadSharedOp::create(b, loc, emitter.typeOf(tile),
                                                  history, row));
    };
    fetchRows(conv.getWindow(), at);
    fetchRows(conv.getInput(), add(at, index(steps)));
    SmallVector<Operation *> inputs = getInputOps(conv);
    for (Operation *op : work.tiles)
      if (!isa<tile::LoadOp>(op) && !llvm::is_contained(inputs, op))
        emitter.emit(op);
    gpu::StoreSharedOp::create(b, loc, emitter[operand], shared[operand], at);
  }
  gpu::YieldOp::create(b, loc);
  b.setInsertionPointAfter(each);
}

void TokensKernel::emitByHistory(Value first, Value count) {
  std::pair<ScanRole, Value> made[] = {{ScanRole::query, scan.getQuery()},
                                       {ScanRole::key, scan.getKey()},
                                       {ScanRole::value, scan.getValue()}};
  SmallVector<SmallVector<Value>> weights;
  for (auto [role, operand] : made)
    weights.push_back(emitHistory(role, first, count));
  emitRole(ScanRole::gates, scan.getGates(), first, count);
  gpu::BarrierOp::create(b, scan.getLoc());
  for (auto [i, of] : llvm::enumerate(made))
    emitFromHistory(of.first, of.second, weights[i], first, count);
}
