// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Recurrences that begin with a fold of pending tokens and leave theirs
// pending: the accepted ones of the step before go into the state in registers,
// which is stored; what this step's tokens do is stored beside it, a token per
// warp, once all blocks of the key head have read what was there.
#include "Kernel/FoldStep.h"
#include "Tokens/TokensKernel.h"

using namespace mlir;
using namespace gdn;

/// Elements of a tile of rank 1, one per lane.
static gpu::FragmentType perLane(VectorType type) {
  MLIRContext *context = type.getContext();
  auto one = gpu::RowsAttr::get(context, /*warps=*/1, /*lanes=*/1,
                                /*vector=*/1);
  return gpu::FragmentType::get(type, gpu::PerRowAttr::get(context, one));
}

/// The stores of `block` before the loop: those of what comes from the fold,
/// and windows.
void TokensKernel::findEarlyStores(Block &block) {
  for (Operation &op : block) {
    if (&op == loop)
      return;
    if (!hasStores(&op))
      continue;
    bool isState = llvm::any_of(getUsedTiles(&op), [&](Value tile) {
      auto type = cast<VectorType>(tile.getType());
      return type.getShape() ==
             cast<VectorType>(scan.getState().getType()).getShape();
    });
    (isState ? stateStores : windowStores).push_back(&op);
  }
}

static bool isPerChannel(Value logDecay) {
  return cast<VectorType>(logDecay.getType()).getRank() == 2;
}

/// Begins to copy the pending tokens to shared memory: no register waits for
/// them, so that all else that the block reads is asked for meanwhile.
void TokensKernel::beginPendingCopies() {
  FragmentEmitter outside(b, scalars);
  Value count = outside.scalar(fold.getValid());
  // Where the solve leaves what this step's tokens do, which it does behind a
  // barrier behind the fold.
  auto begin = [&](Value tile, Value later) {
    auto load = tile.getDefiningOp<tile::LoadOp>();
    SmallVector<Value> indices;
    for (Value index : load.getIndices())
      indices.push_back(outside.scalar(index));
    bool isRows = load.getTile().getType().getRank() == 2;
    Value buffer = later;
    if (!later || cast<gpu::SharedType>(later.getType()) !=
                      gpu::SharedType::get(cast<VectorType>(tile.getType())))
      buffer = allocate(tile);
    Value view = outside.scalar(load.getView());
    if (isRows)
      setAlignment(cast<func::FuncOp>(entry->getParentOp()), view, 16);
    gpu::BeginCopyOp::create(b, scan.getLoc(), view, indices, load.getDims(),
                             count, buffer, /*scattered=*/!isRows,
                             /*per_warpgroup=*/false, /*tensor_map=*/false);
    return buffer;
  };
  bool isSolved = isSolvable();
  pendingKeys =
      begin(fold.getKey(), isSolved ? shared[scan.getOutput()] : Value());
  pendingDeltas =
      begin(fold.getDeltas(), isSolved ? shared[scan.getDeltas()] : Value());
  pendingDecays = begin(fold.getLogDecay(), Value());
}

/// The state that the scans of the tokens from `first` on begin with: ahead of
/// the sequence's first, pending tokens are folded in and the state is stored.
Value TokensKernel::emitFold(Value state, Value first) {
  Location loc = scan.getLoc();
  MLIRContext *context = b.getContext();
  auto branch = emitIf(isEqual(first, begin), state.getType());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, state);
  b.setInsertionPointToStart(branch.thenBlock());
  FragmentEmitter all(b, scalars, stateRows);
  auto rowOf = [&](Value tile, Attribute layout) {
    auto type = cast<VectorType>(tile.getType());
    return gpu::FragmentType::get(
        VectorType::get({type.getDimSize(1)}, type.getElementType()), layout);
  };
  auto perColumn = gpu::PerColumnAttr::get(context, stateRows);
  bool perChannel = isPerChannel(fold.getLogDecay());
  auto key = [&](Value at) -> Value {
    return gpu::LoadSharedOp::create(b, loc, rowOf(fold.getKey(), perColumn),
                                     pendingKeys, at);
  };
  auto delta = [&](Value at) -> Value {
    return gpu::LoadSharedOp::create(
        b, loc,
        rowOf(fold.getDeltas(), gpu::PerRowAttr::get(context, stateRows)),
        pendingDeltas, at);
  };
  auto logDecay = [&](Value at) -> Value {
    if (perChannel)
      return gpu::LoadSharedOp::create(
          b, loc, rowOf(fold.getLogDecay(), perColumn), pendingDecays, at);
    return fetchNumber(pendingDecays, at);
  };
  all.set(fold.getNewState(),
          gdn::emitFold(b, loc, state, all.scalar(fold.getValid()), perChannel,
                        {key, delta, logDecay}));
  for (Operation *op : (*roles)[ScanRole::state].before)
    if (fold->isBeforeInBlock(op))
      all.emit(op);
  for (Operation *op : stateStores)
    emitStoresOf(all, op);
  Value initial =
      loop.getTiedLoopInit(cast<BlockArgument>(scan.getState()))->get();
  scf::YieldOp::create(b, loc, all[initial]);
  return branch.getResult(0);
}

/// Asks, with the first block of tokens, whether this block of threads is the
/// last to have read what it overwrites: all threads have, a barrier stands
/// behind that. The way to the counter and back is long.
void TokensKernel::emitTickets(Value first) {
  Location loc = scan.getLoc();
  for (auto [op, flag] : flags) {
    auto last = cast<tile::LastInGroupOp>(op);
    gpu::WarpsOp warps = enterWarp(0, b.getI32Type());
    FragmentEmitter warp(b, scalars);
    auto branch = emitIf(isEqual(first, begin), b.getI32Type());
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      Value ticket = gpu::TakeTicketOp::create(
          b, loc, b.getI32Type(), warp.scalar(last.getGroup()),
          warp.scalar(last.getCount()), ValueRange());
      scf::YieldOp::create(b, loc, ticket);
      b.setInsertionPointToStart(branch.elseBlock());
      Value none =
          arith::ConstantIntOp::create(b, loc, b.getI32Type(), int64_t(0));
      scf::YieldOp::create(b, loc, none);
    }
    gpu::YieldOp::create(b, loc, branch.getResult(0));
    b.setInsertionPointAfter(warps);
    tickets[op] = warps.getResult(0);
  }
}

/// Leaves the answers to emitTickets for all warps, or asks now.
void TokensKernel::emitIsLast(Value first) {
  Location loc = scan.getLoc();
  if (flags.empty())
    return;
  gpu::WarpsOp warps = enterWarp(0);
  auto branch = emitIf(isEqual(first, begin));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    FragmentEmitter warp(b, scalars);
    for (auto [op, flag] : flags) {
      auto last = cast<tile::LastInGroupOp>(op);
      Value count = warp.scalar(last.getCount());
      Value isLast;
      if (Value ticket = tickets.lookup(op))
        isLast = gpu::IsLastOp::create(b, loc, b.getI1Type(), ticket, count);
      else
        isLast = gpu::LastReaderOp::create(b, loc, b.getI1Type(),
                                           warp.scalar(last.getGroup()), count,
                                           ValueRange());
      Value number = arith::UIToFPOp::create(b, loc, b.getF32Type(), isLast);
      Value answer = gpu::FillOp::create(
          b, loc, perLane(VectorType::get({1}, b.getF32Type())), number);
      gpu::StoreSharedOp::create(b, loc, answer, flag, Value());
    }
  }
  gpu::YieldOp::create(b, loc);
  b.setInsertionPointAfter(warps);
}

/// The values of the program with the answers that emitIsLast left.
IRMapping TokensKernel::withFlags() {
  Location loc = scan.getLoc();
  IRMapping values = scalars;
  for (auto [op, flag] : flags) {
    Value answer = gpu::LoadSharedElementOp::create(b, loc, b.getF32Type(),
                                                    flag, index(0));
    Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
    values.map(
        op->getResult(0),
        arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ONE, answer, zero)
            .getResult());
  }
  return values;
}

/// The stores of `op`, and casts of tiles that are there.
void TokensKernel::emitStoresOf(FragmentEmitter &emitter, Operation *op) {
  for (Value tile : getUsedTiles(op))
    if (!emitter[tile])
      emitter.emit(tile.getDefiningOp());
  emitter.emitStores(op, {});
}

/// What the tokens leave, each by a warp, and the windows before the first.
void TokensKernel::emitKept(Value first, Value count) {
  Location loc = scan.getLoc();
  constexpr ScanRole sources[] = {ScanRole::query, ScanRole::key,
                                  ScanRole::value};
  SmallVector<tile::Conv1dOp> convs;
  for (ScanRole role : sources)
    if (tile::Conv1dOp conv = findCarriedConv(loop, (*roles)[role].tiles))
      convs.push_back(conv);
  auto fetchRows = [&](FragmentEmitter &emitter, Value tile, Value buffer,
                       Value row) {
    emitter.set(tile, gpu::LoadSharedOp::create(b, loc, emitter.typeOf(tile),
                                                buffer, row));
  };
  IRMapping outside = scalars;
  Value at = enterTurns(count);
  {
    scalars = withFlags();
    TokenGroup group = {tokenTiles, 1, index(1)};
    FragmentEmitter emitter(b, atToken(add(first, at)));
    emitter.setTokens(&group);
    for (tile::Conv1dOp conv : convs) {
      const WindowBuffer &buffer = windows[conv.getNewWindow()];
      int64_t steps = conv.getNewWindow().getType().getDimSize(0);
      fetchRows(emitter, conv.getInput(), buffer.tile, add(at, index(steps)));
    }
    SmallVector<Value> kept = {scan.getKey(), scan.getDeltas()};
    SmallVector<ScanRole> keepers(std::begin(sources), std::end(sources));
    if (isPerChannel(scan.getLogDecay())) {
      kept.push_back(scan.getLogDecay());
      keepers.push_back(ScanRole::gates);
    }
    for (Value tile : kept)
      fetchRows(emitter, tile, shared[tile], at);
    for (ScanRole role : keepers)
      for (Operation *op : (*roles)[role].stores)
        emitStoresOf(emitter, op);
    scalars = outside;
  }
  leave(at.getParentBlock()->getParentOp()->getParentOp());

  if (!isPerChannel(scan.getLogDecay())) {
    gpu::EachWarpOp each = enterEachWarp({numWarps - 2, 1});
    TokenGroup group = {tokenTiles, blockTokens, count};
    FragmentEmitter emitter(b, atToken(first));
    emitter.setTokens(&group);
    fetchRows(emitter, scan.getLogDecay(), shared[scan.getLogDecay()], Value());
    for (Operation *op : (*roles)[ScanRole::gates].stores)
      emitStoresOf(emitter, op);
    gpu::YieldOp::create(b, loc);
    b.setInsertionPointAfter(each);
  }

  gpu::WarpsOp warps = enterWarp(numWarps - 1);
  auto branch = emitIf(isEqual(first, begin));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    FragmentEmitter emitter(b, withFlags());
    for (tile::Conv1dOp conv : convs)
      fetchRows(
          emitter,
          loop.getTiedLoopInit(cast<BlockArgument>(conv.getWindow()))->get(),
          windows[conv.getNewWindow()].tile, index(0));
    for (Operation *op : windowStores)
      emitStoresOf(emitter, op);
  }
  gpu::YieldOp::create(b, loc);
  b.setInsertionPointAfter(warps);
}
