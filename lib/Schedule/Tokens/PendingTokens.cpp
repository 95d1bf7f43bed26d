// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies of pending tokens, their fold into the state, and stores of new ones.
#include "Tokens/PendingTokens.h"

#include "Kernel/FoldStep.h"
#include "Kernel/PendingSource.h"
#include "Kernel/ReplayStep.h"

using namespace mlir;
using namespace gdn;

PendingTokens::PendingTokens(TokenProgram &p, LastReaders &readers)
    : TokenPart(p), readers(readers) {
  ArrayRef<int64_t> shape = scan.getState().getType().getShape();
  for (Operation &op : *p.loop->getBlock()) {
    if (&op == p.loop)
      break;
    if (!hasStores(&op))
      continue;
    bool isState = llvm::any_of(getUsedTiles(&op), [&](Value tile) {
      return cast<VectorType>(tile.getType()).getShape() == shape;
    });
    (isState ? stateStores : windowStores).push_back(&op);
  }
  beginCopies();
}

void PendingTokens::beginCopies() {
  FragmentEmitter outside(b, p.scalars);
  // Where the solve leaves what this step's tokens do, which it does behind a
  // barrier behind the fold.
  auto begin = [&](Value tile, Value solved) {
    auto load = tile.getDefiningOp<tile::LoadOp>();
    VectorType type = getPendingRoom(load.getTile());
    Value buffer = solved ? p.shared[solved] : Value();
    if (!buffer || buffer.getType() != gpu::SharedType::get(type))
      buffer = p.allocate(type);
    beginPendingCopy(b, load, outside, buffer);
    p.shared[tile] = buffer;
  };
  if (p.catchUp) {
    for (tile::LoadOp load : getPendingLoads(p.catchUp))
      begin(load.getTile(), Value());
    return;
  }
  bool isSolved = p.isSolvable();
  begin(p.fold.getKey(), isSolved ? scan.getOutput() : Value());
  begin(p.fold.getDeltas(), isSolved ? scan.getDeltas() : Value());
  begin(p.fold.getLogDecay(), Value());
}

/// The stores of `op`, and casts of tiles that are there.
static void emitStoresOf(FragmentEmitter &emitter, Operation *op) {
  for (Value tile : getUsedTiles(op))
    if (!emitter[tile])
      emitter.emit(tile.getDefiningOp());
  emitter.emitStores(op, {});
}

Value PendingTokens::emitFold(Value state, Value first) {
  tile::DeltaFoldOp fold = p.fold;
  auto emit = [&] {
    FragmentEmitter all(b, p.scalars, p.stateRows);
    all.set(fold.getNewState(),
            p.emitFold(state, all.scalar(fold.getValid()), fold.getKey(),
                       fold.getDeltas(), fold.getLogDecay()));
    for (Operation *op : p.roles[ScanRole::state].before)
      if (fold->isBeforeInBlock(op))
        all.emit(op);
    for (Operation *op : stateStores)
      emitStoresOf(all, op);
    return all[p.getInit(scan.getState())];
  };
  return p.emitIf(p.isEqual(first, p.begin), state.getType(), emit,
                  [&] { return state; });
}

Value PendingTokens::emitCatchUp(FragmentEmitter &all) {
  tile::DeltaCatchUpOp catchUp = p.catchUp;
  emitOthers(all, p.roles[ScanRole::state].before);
  Value state = all[catchUp.getState()];
  Value wide = castRows(b, loc, state, b.getF32Type());
  auto emitWhole = [&] {
    PendingSource keys = findPendingSource(catchUp.getPendingKey()),
                  deltas = findPendingSource(catchUp.getPendingDeltas());
    return p.emitFold(wide, all.scalar(catchUp.getCount()), keys.load.getTile(),
                      deltas.load.getTile(), catchUp.getPendingDecay(),
                      deltas.scales ? Value(deltas.scales.getTile()) : Value());
  };
  // Scans begin with all tokens; a solve adds those that the state lacks.
  if (!p.isSolvable())
    wide = emitWhole();
  auto emit = [&] {
    Value stored =
        castRows(b, loc, p.isSolvable() ? emitWhole() : wide,
                 cast<gpu::FragmentType>(state.getType()).getElementType());
    all.set(catchUp.getNewState(), stored);
    for (Operation *op : stateStores)
      all.emitBranch(cast<scf::IfOp>(op));
    return castRows(b, loc, stored, b.getF32Type());
  };
  return p.emitIf(all.scalar(catchUp.getCommit()), wide.getType(), emit,
                  [&] { return wide; });
}

void PendingTokens::emitKept(Value first, Value count) {
  const bool perChannel = scan.isPerChannel();
  SmallVector<tile::Conv1dOp> convs;
  for (ScanRole role : convRoles)
    if (tile::Conv1dOp conv = p.findCarriedConv(role))
      convs.push_back(conv);
  Value at = p.enterTurns(count);
  {
    IRMapping values = readers.withAnswers();
    RowGroup group = {p.tokenTiles, 1, p.index(1)};
    FragmentEmitter emitter(b, p.atToken(p.add(first, at), values));
    emitter.setRowGroup(&group);
    for (tile::Conv1dOp conv : convs)
      loadInputs(p, emitter, conv, at);
    SmallVector<Value> kept = {scan.getKey(), scan.getDeltas()};
    SmallVector<ScanRole> keepers(std::begin(convRoles), std::end(convRoles));
    if (perChannel) {
      kept.push_back(scan.getLogDecay());
      keepers.push_back(ScanRole::gates);
    }
    for (Value tile : kept)
      p.loadTile(emitter, tile, at);
    for (ScanRole role : keepers)
      for (Operation *op : p.roles[role].stores)
        emitStoresOf(emitter, op);
  }
  p.leaveTurns(at);

  if (!perChannel) {
    gpu::EachWarpOp each = p.enterEachWarp({p.numWarps - 2, 1});
    RowGroup group = {p.tokenTiles, p.blockTokens, count};
    FragmentEmitter emitter(b, p.atToken(first));
    emitter.setRowGroup(&group);
    p.loadTile(emitter, scan.getLogDecay(), Value());
    for (Operation *op : p.roles[ScanRole::gates].stores)
      emitStoresOf(emitter, op);
    p.leave(each);
  }

  gpu::WarpsOp warps = p.enterWarp(p.numWarps - 1);
  p.emitIf(p.isEqual(first, p.begin), [&] {
    FragmentEmitter emitter(b, readers.withAnswers());
    for (tile::Conv1dOp conv : convs)
      p.loadTile(emitter, p.getInit(conv.getWindow()), p.index(0),
                 conv.getNewWindow());
    for (Operation *op : windowStores)
      emitStoresOf(emitter, op);
  });
  p.leave(warps);
}
