// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Windows of convolutions that a recurrence carries from token to token: what
// stands before the tokens that a warp prepares at once; and stores of those
// after each token.
#include "Tokens/TokensKernel.h"

using namespace mlir;
using namespace gdn;

SmallVector<Operation *> TokensKernel::getInputOps(tile::Conv1dOp conv) {
  SetVector<Operation *> ops;
  SmallVector<Value> next = {conv.getInput()};
  while (!next.empty())
    if (Operation *op = next.pop_back_val().getDefiningOp();
        op && op->getBlock() == loop.getBody() && ops.insert(op))
      llvm::append_range(next, getUsedTiles(op));
  return llvm::to_vector(llvm::reverse(ops));
}

/// Asks for the window before `token`.
std::unique_ptr<CarriedWindow>
TokensKernel::emitWindowLoads(tile::Conv1dOp conv, Value token) {
  Value initial =
      loop.getTiedLoopInit(cast<BlockArgument>(conv.getWindow()))->get();
  int64_t steps = cast<VectorType>(conv.getWindow().getType()).getDimSize(0);
  Value isStart = isEqual(token, begin);
  SmallVector<Operation *> startOps = getTilesBefore(loop, initial);
  std::unique_ptr<CarriedWindow> window(new CarriedWindow{
      startOps, getInputOps(conv), TokenGroup{tokenTiles, steps, index(steps)},
      FragmentEmitter(b, scalars),
      FragmentEmitter(b, atToken(sub(token, index(steps)))), isStart, initial});
  window->inputs.setTokens(&window->inputGroup);
  emitLoadsIf(window->start, getLoads(window->startOps), isStart, true);
  emitLoadsIf(window->inputs, getLoads(window->inputOps), isStart, false);
  return window;
}

/// Loads where `condition` is `expected`; zeros elsewhere.
void TokensKernel::emitLoadsIf(FragmentEmitter &emitter,
                               ArrayRef<tile::LoadOp> loads, Value condition,
                               bool expected) {
  Location loc = scan.getLoc();
  SmallVector<Type> types;
  for (tile::LoadOp load : loads)
    types.push_back(emitter.typeOf(load.getTile()));
  scf::IfOp branch = emitIf(condition, types);
  OpBuilder::InsertionGuard guard(b);
  for (bool side : {true, false}) {
    b.setInsertionPointToStart(side ? branch.thenBlock() : branch.elseBlock());
    SmallVector<Value> yielded;
    for (auto [i, type] : llvm::enumerate(types)) {
      tile::LoadOp load = loads[i];
      if (side == expected) {
        emitter.emit(load);
        yielded.push_back(emitter[load.getTile()]);
        continue;
      }
      Type element = cast<gpu::FragmentType>(type).getElementType();
      Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
      yielded.push_back(gpu::FillOp::create(b, loc, type, zero));
    }
    scf::YieldOp::create(b, loc, yielded);
  }
  for (auto [i, fragment] : llvm::enumerate(branch.getResults()))
    emitter.set(tile::LoadOp(loads[i]).getTile(), fragment);
}

/// The window before `token`, the token number `at` of its block.
void TokensKernel::emitCarriedWindow(FragmentEmitter &warp, tile::Conv1dOp conv,
                                     CarriedWindow &loaded, Value at) {
  Location loc = scan.getLoc();
  int64_t steps = cast<VectorType>(conv.getWindow().getType()).getDimSize(0);
  for (Operation *op : loaded.startOps)
    if (!isa<tile::LoadOp>(op))
      loaded.start.emit(op);
  for (Operation *op : loaded.inputOps)
    if (!isa<tile::LoadOp>(op))
      loaded.inputs.emit(op);
  Value start = loaded.start[loaded.initial];
  Value inputs = loaded.inputs[conv.getInput()];
  Value before;
  {
    auto type = cast<gpu::FragmentType>(start.getType());
    auto map = gpu::MapRowsOp::create(b, loc, type, ValueRange{start, inputs});
    OpBuilder::InsertionGuard guard(b);
    Block *body = map.openBody(b);
    gpu::YieldOp::create(b, loc,
                         arith::SelectOp::create(b, loc, loaded.isStart,
                                                 body->getArgument(1),
                                                 body->getArgument(2))
                             .getResult());
    before = map.getResult(0);
  }
  warp.set(conv.getWindow(), before);
  auto kept = windows.find(conv.getNewWindow());
  if (kept == windows.end())
    return;
  // The oldest token of the block.
  auto branch = emitIf(isEqual(at, index(0)));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    gpu::StoreSharedOp::create(b, loc, before, kept->second.tile, index(0));
  }
  gpu::StoreSharedOp::create(b, loc, warp[conv.getInput()], kept->second.tile,
                             add(at, index(steps)));
}

/// Whether this block of threads is the last to have read what it overwrites.
/// It is asked once, with the first block of tokens, and remembered.
Value TokensKernel::emitIsLast(tile::LastInGroupOp last, ScanRole role,
                               Value window, Value first) {
  Location loc = scan.getLoc();
  Type i1 = b.getI1Type();
  auto branch = emitIf(isEqual(first, begin), i1);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  FragmentEmitter warp(b, scalars);
  auto oldest = gpu::LoadSharedOp::create(b, loc, warp.typeOf(window),
                                          windows[window].tile, index(0));
  Value isLast = gpu::LastReaderOp::create(
      b, loc, i1, warp.scalar(last.getGroup()), warp.scalar(last.getCount()),
      ValueRange{oldest});
  auto one = gpu::RowsAttr::get(b.getContext(), 1, 1, 1);
  auto type = VectorType::get({1}, b.getF32Type());
  Value number = arith::UIToFPOp::create(b, loc, b.getF32Type(), isLast);
  Value flag = gpu::FillOp::create(
      b, loc,
      gpu::FragmentType::get(type, gpu::PerRowAttr::get(b.getContext(), one)),
      number);
  gpu::StoreSharedOp::create(b, loc, flag, flags[last], Value());
  scf::YieldOp::create(b, loc, isLast);
  b.setInsertionPointToStart(branch.elseBlock());
  Value kept = gpu::LoadSharedElementOp::create(b, loc, b.getF32Type(),
                                                flags[last], index(0));
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  Value wasLast =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ONE, kept, zero);
  scf::YieldOp::create(b, loc, wasLast);
  return branch.getResult(0);
}

/// Whether windows are stored behind the outputs, which then wait neither for
/// them nor for the answer of the counter: a block of eight warps asks it
/// early, and no other block of tokens follows.
bool TokensKernel::storesWindowsLast() { return ownsByHistory() && !fold; }

/// The windows after each token, by one warp for each role.
void TokensKernel::emitWindowStores(Value first, Value count,
                                    int64_t firstWarp) {
  for (ScanRole role : {ScanRole::query, ScanRole::key, ScanRole::value})
    emitWindowStores(role, first, count, firstWarp + int64_t(role));
}

void TokensKernel::emitWindowStores(ScanRole role, Value first, Value count,
                                    int64_t warp) {
  const RoleWork &work = (*roles)[role];
  SetVector<Value> stored = findStoredWindows(work.stores);
  if (work.stores.empty())
    return;
  Location loc = scan.getLoc();
  gpu::WarpsOp warps = enterWarp(warp);
  IRMapping outside = scalars;
  for (Operation *op : work.stores)
    for (Operation *last : findLastInGroup(op))
      if (!scalars.contains(last->getResult(0)))
        scalars.map(last->getResult(0),
                    emitIsLast(cast<tile::LastInGroupOp>(last), role,
                               stored.front(), first));
  auto recurrence = scf::ForOp::create(b, loc, index(0), count, index(1));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(recurrence.getBody());
    Value at = recurrence.getInductionVar();
    FragmentEmitter emitter(b, atToken(add(first, at)));
    for (Value window : stored) {
      const WindowBuffer &buffer = windows[window];
      Value row = arith::MulIOp::create(b, loc, at, index(buffer.rowsPerToken));
      row = add(row, index(buffer.firstRow));
      emitter.set(window,
                  gpu::LoadSharedOp::create(b, loc, emitter.typeOf(window),
                                            buffer.tile, row));
    }
    for (Operation *op : work.stores)
      emitter.emitStores(op, {});
  }
  scalars = outside;
  gpu::YieldOp::create(b, loc);
  b.setInsertionPointAfter(warps);
}
