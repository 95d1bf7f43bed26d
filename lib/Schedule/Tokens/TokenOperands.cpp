// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each warp of a role takes groups of tokens in turn. Where eight warps hold
// the state and a sequence has one block of tokens, queries, keys and values
// are made in two steps: two warps of each convolution read its window and
// inputs, four tokens each, into shared memory, where they are kept anyway.
// Behind a barrier each takes a token at a time from there: sequences of one or
// two tokens, whose preparation is the longest part, use both warps. Decays per
// channel take as long as a convolution, so each warp of the block makes those
// of another token.
#include "Tokens/TokenOperands.h"

#include "Tokens/TokenWindows.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace gdn;

/// Tokens that a warp prepares at once where they share a window, or whose
/// inputs it reads in the first of two steps.
static constexpr int64_t maxGroupTokens = 4;

/// Warps that prepare operands: if there are enough, two for each of query, key
/// and value.
static Warps getPreparing(ScanRole role, int64_t numWarps) {
  if (numWarps < 7)
    return {int64_t(role), 1};
  if (role == ScanRole::gates)
    return {6, 1};
  return {2 * int64_t(role), 2};
}

/// Emits loads where `condition` is `expected`; zeros elsewhere.
static void emitLoadsIf(TokenProgram &p, FragmentEmitter &emitter,
                        ArrayRef<tile::LoadOp> loads, Value condition,
                        bool expected) {
  OpBuilder &b = p.b;
  SmallVector<Type> types;
  for (tile::LoadOp load : loads)
    types.push_back(emitter.typeOf(load.getTile()));
  auto branch =
      scf::IfOp::create(b, p.loc, types, condition, /*withElse=*/true);
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
      Value zero = arith::ConstantOp::create(b, p.loc, b.getZeroAttr(element));
      yielded.push_back(gpu::FillOp::create(b, p.loc, type, zero));
    }
    scf::YieldOp::create(b, p.loc, yielded);
  }
  for (auto [i, fragment] : llvm::enumerate(branch.getResults()))
    emitter.set(tile::LoadOp(loads[i]).getTile(), fragment);
}

namespace {
/// The window before a group of tokens: what the loop begins with, or the
/// inputs before the group. One of them is asked for, the other is zeros.
class CarriedWindow {
public:
  /// Asks for the window of `conv` before `token`.
  CarriedWindow(TokenProgram &p, tile::Conv1dOp conv, Value token)
      : p(p), conv(conv), steps(conv.getWindow().getType().getDimSize(0)),
        isStart(p.isEqual(token, p.begin)),
        initial(p.getInit(conv.getWindow())),
        startOps(getTilesBefore(p.loop, initial)),
        inputOps(p.getInputOps(conv)),
        inputGroup{p.tokenTiles, steps, p.index(steps)}, start(p.b, p.scalars),
        inputs(p.b, p.atToken(p.sub(token, p.index(steps)))) {
    inputs.setRowGroup(&inputGroup);
    emitLoadsIf(p, start, getLoads(startOps), isStart, true);
    emitLoadsIf(p, inputs, getLoads(inputOps), isStart, false);
  }
  /// The window, of what has come.
  Value emit();

private:
  TokenProgram &p;
  tile::Conv1dOp conv;
  int64_t steps;
  Value isStart, initial;
  SmallVector<Operation *> startOps, inputOps;
  RowGroup inputGroup;
  FragmentEmitter start, inputs;
};
} // namespace

Value CarriedWindow::emit() {
  emitOthers(start, startOps);
  emitOthers(inputs, inputOps);
  Value before = start[initial];
  auto choose = [&](ValueRange args) -> SmallVector<Value> {
    return {arith::SelectOp::create(p.b, p.loc, isStart, args[1], args[2])};
  };
  return p.mapRows(before.getType(), {before, inputs[conv.getInput()]},
                   choose)[0];
}

/// What a role makes of tiles ahead of the scan: what it keeps of the scan's
/// deltas comes behind it.
static SmallVector<Operation *> getTilesAhead(TokenProgram &p, ScanRole role) {
  DenseSet<Operation *> behind =
      getFollowers(p.scan->getResults(), p.loop.getBody());
  SmallVector<Operation *> tiles(p.roles[role].tiles);
  llvm::erase_if(tiles, [&](Operation *op) { return behind.contains(op); });
  return tiles;
}

/// Whether the warps of the block share the decays of tokens among them.
static bool isShared(TokenProgram &p, Value operand) {
  return operand == p.scan.getLogDecay() && p.sharesDecays();
}

/// What all warps make for a role is not for its own.
static SmallVector<Operation *> getOwnTiles(TokenProgram &p, ScanRole role) {
  SmallVector<Operation *> tiles = getTilesAhead(p, role);
  if (role != ScanRole::gates || !p.sharesDecays())
    return tiles;
  DenseSet<Operation *> own;
  for (Value operand : p.getTiles(role))
    if (!isShared(p, operand))
      own.insert_range(p.getOpsOf(operand));
  llvm::erase_if(tiles, [&](Operation *op) { return !own.contains(op); });
  return tiles;
}

/// The decays of a token in each warp: as factors of the state, or their
/// logarithms.
static void emitDecays(TokenProgram &p, Value first, Value count) {
  OpBuilder &b = p.b;
  Value decay = p.scan.getLogDecay();
  Value at = p.enterTurns(count);
  RowGroup group = {p.tokenTiles, 1, p.index(1)};
  FragmentEmitter emitter(b, p.atToken(p.add(first, at)));
  emitter.setRowGroup(&group);
  SmallVector<Operation *> before = p.getWeightOps(ScanRole::gates);
  SmallVector<Operation *> tiles = p.getOpsOf(decay);
  emitLoads(emitter, before);
  emitLoads(emitter, tiles);
  emitOthers(emitter, before);
  emitOthers(emitter, tiles);
  Value row = emitter[decay];
  if (p.makesFactors())
    row = p.mapRows(row.getType(), row,
                    [&](ValueRange args) -> SmallVector<Value> {
                      return {math::ExpOp::create(b, p.loc, args[1])};
                    })[0];
  gpu::StoreSharedOp::create(b, p.loc, row, p.shared[decay], at);
  p.leaveTurns(at);
}

/// What the warps of a role make.
static void emitRole(TokenProgram &p, ScanRole role, Value first, Value count) {
  OpBuilder &b = p.b;
  const RoleWork &work = p.roles[role];
  tile::Conv1dOp carried = p.findCarriedConv(role);
  bool isSingle =
      !carried && llvm::any_of(work.tiles, llvm::IsaPred<tile::Conv1dOp>);
  int64_t tokens = isSingle ? 1
                   : role == ScanRole::gates
                       ? p.blockTokens
                       : std::min(maxGroupTokens, p.blockTokens);
  Warps warps = getPreparing(role, p.numWarps);
  gpu::EachWarpOp each = p.enterEachWarp(warps);
  Value warp = each.getBody().getArgument(0);

  // One warp may take all tokens at once, or several take turns.
  bool isAll = tokens == p.blockTokens;
  Value start = p.mul(warp, tokens);
  Value at = p.index(0);
  if (!isAll) {
    auto groups = scf::ForOp::create(b, p.loc, start, count,
                                     p.index(tokens * warps.count));
    b.setInsertionPointToStart(groups.getBody());
    at = groups.getInductionVar();
  }
  Value token = p.add(first, at);
  RowGroup group = p.group(tokens, count, at);
  FragmentEmitter emitter(b, p.atToken(token));
  emitter.setRowGroup(&group);
  const SmallVector<Operation *> own = getOwnTiles(p, role);
  emitLoads(emitter, own);
  // What the finish reads of the tokens: nothing of it waits for the scans.
  SmallVector<tile::LoadOp> outputLoads;
  if (role == ScanRole::gates)
    outputLoads = p.getOutputLoads();
  for (tile::LoadOp load : outputLoads)
    emitter.emit(load);
  std::optional<CarriedWindow> window;
  if (carried)
    window.emplace(p, carried, token);
  // Of each group anew, behind what comes from memory: to turn the weights
  // waits for them.
  SmallVector<Operation *> weights = p.getWeightOps(role);
  emitLoads(emitter, weights);
  emitOthers(emitter, weights);
  for (Operation *op : own) {
    if (isa<tile::LoadOp>(op))
      continue;
    if (op == carried) {
      Value before = window->emit();
      emitter.set(carried.getWindow(), before);
      if (p.shared.lookup(carried.getNewWindow()))
        storeHistory(p, carried, before, emitter[carried.getInput()], at,
                     p.isEqual(at, p.index(0)));
    }
    emitter.emit(op);
  }
  auto store = [&](Value tile) {
    gpu::StoreSharedOp::create(b, p.loc, emitter[tile], p.shared[tile],
                               isAll ? Value() : at);
  };
  for (Value operand : p.getTiles(role))
    if (!isShared(p, operand))
      store(operand);
  for (tile::LoadOp load : outputLoads)
    store(load.getTile());
  storeWindows(p, role, emitter, at);
  p.leave(each);
}

/// Puts the weights of a role into shared memory, by a warp that reads no
/// inputs: beside decays per channel there is no register that would hold them
/// until the second step.
static void shareWeights(TokenProgram &p, ScanRole role) {
  const int64_t warp = p.numWarps - (role == ScanRole::value ? 2 : 1);
  for (tile::LoadOp load : getLoads(p.getWeightOps(role))) {
    Value buffer = p.allocate(load.getTile().getType());
    p.shared[load.getTile()] = buffer;
    gpu::WarpsOp warps = p.enterWarp(warp);
    FragmentEmitter emitter(p.b, p.scalars);
    emitter.emit(load);
    gpu::StoreSharedOp::create(p.b, p.loc, emitter[load.getTile()], buffer,
                               Value());
    p.leave(warps);
  }
}

/// The inputs of the sequence's tokens and the window before them, into shared
/// memory. Returns what the warps read of the weights, which they may hold.
static SmallVector<Value> emitHistory(TokenProgram &p, ScanRole role,
                                      Value first, Value count) {
  OpBuilder &b = p.b;
  tile::Conv1dOp conv = p.findCarriedConv(role);
  SmallVector<tile::LoadOp> weights;
  if (!p.sharesDecays())
    weights = getLoads(p.getWeightOps(role));
  SmallVector<Type> types;
  for (tile::LoadOp load : weights)
    types.push_back(FragmentEmitter(b, p.scalars).typeOf(load.getTile()));
  gpu::EachWarpOp each = p.enterEachWarp(getPreparing(role, p.numWarps), types);
  Value at = p.mul(each.getBody().getArgument(0), maxGroupTokens);
  RowGroup group = p.group(maxGroupTokens, count, at);
  FragmentEmitter emitter(b, p.atToken(p.add(first, at)));
  emitter.setRowGroup(&group);
  // All that comes from memory is asked for before anything waits.
  SmallVector<Operation *> inputs = p.getInputOps(conv);
  emitLoads(emitter, inputs);
  Value initial = p.getInit(conv.getWindow());
  SmallVector<Operation *> startOps = getTilesBefore(p.loop, initial);
  FragmentEmitter start(b, p.scalars);
  Value isFirst = p.isEqual(at, p.index(0));
  emitLoadsIf(p, start, getLoads(startOps), isFirst, true);
  FragmentEmitter held(b, p.scalars);
  SmallVector<Value> yielded;
  for (tile::LoadOp load : weights) {
    held.emit(load);
    yielded.push_back(held[load.getTile()]);
  }
  emitOthers(emitter, inputs);
  emitOthers(start, startOps);
  storeHistory(p, conv, start[initial], emitter[conv.getInput()], at, isFirst);
  p.leave(each, yielded);
  return SmallVector<Value>(each.getResults());
}

/// The operand of the scan of the sequence's tokens, from what emitHistory
/// left.
static void emitFromHistory(TokenProgram &p, ScanRole role, ValueRange held,
                            Value first, Value count) {
  OpBuilder &b = p.b;
  tile::Conv1dOp conv = p.findCarriedConv(role);
  SmallVector<Operation *> weightOps = p.getWeightOps(role);
  Warps warps = getPreparing(role, p.numWarps);
  gpu::EachWarpOp each = p.enterEachWarp(warps);
  FragmentEmitter reader(b, p.scalars);
  for (auto [i, load] : llvm::enumerate(getLoads(weightOps)))
    if (p.sharesDecays())
      p.loadTile(reader, load.getTile(), Value());
    else
      reader.set(load.getTile(), held[i]);
  Value start = p.mul(each.getBody().getArgument(0), 1);
  auto groups =
      scf::ForOp::create(b, p.loc, start, count, p.index(warps.count));
  b.setInsertionPointToStart(groups.getBody());
  Value at = groups.getInductionVar();
  RowGroup group = p.group(1, count, at);
  FragmentEmitter emitter(b, p.atToken(p.add(first, at)));
  emitter.setRowGroup(&group);
  for (tile::LoadOp load : getLoads(weightOps))
    emitter.set(load.getTile(), reader[load.getTile()]);
  emitOthers(emitter, weightOps);
  p.loadTile(emitter, conv.getWindow(), at, conv.getNewWindow());
  loadInputs(p, emitter, conv, at);
  SmallVector<Operation *> inputs = p.getInputOps(conv);
  for (Operation *op : getTilesAhead(p, role))
    if (!isa<tile::LoadOp>(op) && !llvm::is_contained(inputs, op))
      emitter.emit(op);
  for (Value operand : p.getTiles(role))
    gpu::StoreSharedOp::create(b, p.loc, emitter[operand], p.shared[operand],
                               at);
  p.leave(each);
}

void gdn::emitOperands(TokenProgram &p, Value first, Value count,
                       function_ref<void()> emitMeanwhile) {
  auto meet = [&] {
    if (emitMeanwhile)
      gpu::AwaitCopiesOp::create(p.b, p.loc);
    gpu::BarrierOp::create(p.b, p.loc);
    if (emitMeanwhile)
      emitMeanwhile();
  };
  if (!p.preparesByHistory()) {
    if (emitMeanwhile)
      meet();
    if (p.sharesDecays())
      emitDecays(p, first, count);
    for (ScanRole role : convRoles)
      emitRole(p, role, first, count);
    return emitRole(p, ScanRole::gates, first, count);
  }
  SmallVector<SmallVector<Value>> weights;
  for (ScanRole role : convRoles)
    weights.push_back(emitHistory(p, role, first, count));
  emitRole(p, ScanRole::gates, first, count);
  if (p.sharesDecays()) {
    emitDecays(p, first, count);
    for (ScanRole role : convRoles)
      shareWeights(p, role);
  }
  meet();
  for (auto [role, held] : llvm::zip(convRoles, weights))
    emitFromHistory(p, role, held, first, count);
}
