// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-schedule-resident-tokens: the state of a value head in the registers of a
// block while the tokens of a sequence pass. See Passes.td.
//
// The block takes eight tokens at a time, or four where a sequence has no more.
// Tiles of a token that other warps need lie in shared memory, a row per token:
//
//   operands   of the scan
//   histories  of convolutions whose window is carried: the window before the
//              block of tokens, then their inputs; the window after token j are
//              the rows from j + 1 on
//   windows    of other convolutions: those after each token
//   output     of the scan
#include "Kernel/ScanStep.h"
#include "Tokens/TokensKernel.h"

#include "gdn/Schedule/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace gdn {
#define GEN_PASS_DEF_SCHEDULERESIDENTTOKENS
#include "gdn/Schedule/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {

/// Tokens that a warp prepares at once where they share a window.
constexpr int64_t maxGroupTokens = 4;

constexpr llvm::StringLiteral allowedTokenSpills =
    "spills: where a row has up to four tokens 31 words on sm_120a, five on "
    "sm_86 and sm_89 with narrow states and aligned arrays, on other chips "
    "none; on an H200 four warps of 255 registers, which spill none anywhere, "
    "take 10 to 14 % longer";

constexpr llvm::StringLiteral allowedFewSpills =
    "spills up to 16 bytes: on sm_120a where a row has up to eight tokens and "
    "arrays are aligned, on other chips none; not measured there";

/// Warps that prepare operands: if there are enough, two for each of query, key
/// and value.
Warps getPreparing(ScanRole role, int64_t numWarps) {
  if (numWarps < 7)
    return {int64_t(role), 1};
  if (role == ScanRole::gates)
    return {6, 1};
  return {2 * int64_t(role), 2};
}

struct ScheduleResidentTokens final
    : gdn::impl::ScheduleResidentTokensBase<ScheduleResidentTokens> {
  using ScheduleResidentTokensBase::ScheduleResidentTokensBase;

  void runOnOperation() override {
    if (failed(checkThreads(getOperation(), threads, /*least=*/128)))
      return signalPassFailure();
    SmallVector<std::pair<tile::DeltaScanOp, scf::ForOp>> recurrences;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!tile::StageFields(func).getGrid())
        continue;
      SmallVector<tile::DeltaScanOp> found;
      func.walk([&](tile::DeltaScanOp scan) { found.push_back(scan); });
      if (found.size() == 1)
        if (auto loop = dyn_cast<scf::ForOp>(found[0]->getParentOp());
            loop && tile::isTokenLoop(loop))
          recurrences.push_back({found[0], loop});
    }
    for (auto [scan, loop] : recurrences) {
      auto func = scan->getParentOfType<func::FuncOp>();
      FailureOr<bool> isScheduled =
          TokensKernel(func, scan, loop, threads).emit(minBlocks);
      if (failed(isScheduled))
        return signalPassFailure();
      numKernels += *isScheduled;
    }
  }
};

} // namespace

gpu::EachWarpOp TokensKernel::enterEachWarp(Warps warps, TypeRange results) {
  Location loc = scan.getLoc();
  auto op = gpu::EachWarpOp::create(b, loc, results, warps.first, warps.count);
  b.createBlock(&op.getBody(), {}, b.getIndexType(), loc);
  return op;
}

gpu::WarpsOp TokensKernel::enterWarp(int64_t warp, TypeRange results) {
  auto op = gpu::WarpsOp::create(b, scan.getLoc(), results, warp, 1, {});
  b.createBlock(&op.getBody());
  return op;
}

Value TokensKernel::enterTurns(Value count) {
  gpu::EachWarpOp each = enterEachWarp({0, numWarps});
  auto turns = scf::ForOp::create(
      b, scan.getLoc(), each.getBody().getArgument(0), count, index(numWarps));
  gpu::YieldOp::create(b, scan.getLoc());
  b.setInsertionPointToStart(turns.getBody());
  return turns.getInductionVar();
}

void TokensKernel::leave(Operation *op) { b.setInsertionPointAfter(op); }

IRMapping TokensKernel::atToken(Value token) {
  IRMapping values = scalars;
  values.map(loop.getInductionVar(), token);
  emitTokenScalars(b, *loop.getBody(), values);
  return values;
}

//===----------------------------------------------------------------------===//
// Operands of the scans
//===----------------------------------------------------------------------===//

/// Shared memory for what a role makes.
void TokensKernel::place(ScanRole role, ArrayRef<Value> operands) {
  auto rowsOf = [&](Value tile, int64_t count) {
    auto type = cast<VectorType>(tile.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = count;
    return allocate(VectorType::get(shape, type.getElementType()));
  };
  for (Value operand : operands)
    shared[operand] = rowsOf(operand, blockTokens);
  const RoleWork &work = (*roles)[role];
  tile::Conv1dOp carried = findCarriedConv(loop, work.tiles);
  SetVector<Value> kept = findStoredWindows(work.stores);
  if (carried && (fold || ownsByHistory())) // its inputs are kept
    kept.insert(carried.getNewWindow());
  for (Value window : kept) {
    int64_t steps = cast<VectorType>(window.getType()).getDimSize(0);
    if (carried && window == carried.getNewWindow())
      windows[window] = {rowsOf(window, steps + blockTokens), 1, 1};
    else
      windows[window] = {rowsOf(window, steps * blockTokens), 0, steps};
  }
  for (Operation *op : work.stores)
    for (Operation *last : findLastInGroup(op))
      if (!flags.contains(last)) {
        auto type = VectorType::get({1}, b.getF32Type());
        flags[last] = allocate(type);
        auto one = gpu::RowsAttr::get(b.getContext(), 1, 1, 1);
        gpu::WarpsOp warp = enterWarp(int64_t(role));
        Value no = arith::ConstantOp::create(b, scan.getLoc(),
                                             b.getF32FloatAttr(0.0f));
        Value none = gpu::FillOp::create(
            b, scan.getLoc(),
            gpu::FragmentType::get(type,
                                   gpu::PerRowAttr::get(b.getContext(), one)),
            no);
        gpu::StoreSharedOp::create(b, scan.getLoc(), none, flags[last],
                                   Value());
        gpu::YieldOp::create(b, scan.getLoc());
        b.setInsertionPointAfter(warp);
      }
}

/// What the warps of a role make for the block of `count` tokens from `first`
/// on: each of them takes groups of tokens in turn.
void TokensKernel::emitRole(ScanRole role, ArrayRef<Value> operands,
                            Value first, Value count) {
  Location loc = scan.getLoc();
  const RoleWork &work = (*roles)[role];
  tile::Conv1dOp carried = findCarriedConv(loop, work.tiles);
  bool isSingle =
      !carried && llvm::any_of(work.tiles, llvm::IsaPred<tile::Conv1dOp>);
  int64_t tokens = isSingle ? 1
                   : role == ScanRole::gates
                       ? blockTokens
                       : std::min(maxGroupTokens, blockTokens);
  Warps warps = getPreparing(role, numWarps);
  gpu::EachWarpOp each = enterEachWarp(warps);
  Value warp = each.getBody().getArgument(0);

  SetVector<Operation *> before(work.before.begin(), work.before.end());
  if (carried)
    for (Operation *op : getTilesBefore(
             loop,
             loop.getTiedLoopInit(cast<BlockArgument>(carried.getWindow()))
                 ->get()))
      before.remove(op);
  // One warp may take all tokens at once, or several take turns.
  bool isAll = tokens == blockTokens;
  Value start = arith::MulIOp::create(b, loc, warp, index(tokens));
  {
    OpBuilder::InsertionGuard guard(b);
    Value at = index(0);
    if (!isAll) {
      auto groups =
          scf::ForOp::create(b, loc, start, count, index(tokens * warps.count));
      b.setInsertionPointToStart(groups.getBody());
      at = groups.getInductionVar();
    }
    Value token = add(first, at);
    TokenGroup group = {tokenTiles, tokens, clamp(sub(count, at), tokens)};
    FragmentEmitter emitter(b, atToken(token));
    emitter.setTokens(&group);
    for (tile::LoadOp load : getLoads(work.tiles))
      emitter.emit(load);
    // What the finish reads of the tokens: nothing of it waits for the scans.
    if (role == ScanRole::gates)
      for (tile::LoadOp load : getOutputLoads())
        emitter.emit(load);
    std::unique_ptr<CarriedWindow> window;
    if (carried)
      window = emitWindowLoads(carried, token);
    // Of each group anew, behind what comes from memory: to turn the weights
    // waits for them.
    for (tile::LoadOp load : getLoads(before.getArrayRef()))
      emitter.emit(load);
    for (Operation *op : before)
      if (!isa<tile::LoadOp>(op))
        emitter.emit(op);
    for (Operation *op : work.tiles) {
      if (isa<tile::LoadOp>(op))
        continue;
      if (op == carried)
        emitCarriedWindow(emitter, carried, *window, at);
      emitter.emit(op);
    }
    for (Value operand : operands)
      gpu::StoreSharedOp::create(b, loc, emitter[operand], shared[operand],
                                 isAll ? Value() : at);
    if (role == ScanRole::gates)
      for (tile::LoadOp load : getOutputLoads())
        gpu::StoreSharedOp::create(b, loc, emitter[load.getTile()],
                                   shared[load.getTile()],
                                   isAll ? Value() : at);
    for (Value window : findStoredWindows(work.stores))
      if (const WindowBuffer &buffer = windows[window]; buffer.rowsPerToken > 1)
        gpu::StoreSharedOp::create(
            b, loc, emitter[window], buffer.tile,
            arith::MulIOp::create(b, loc, at, index(buffer.rowsPerToken)));
  }
  gpu::YieldOp::create(b, loc);
  b.setInsertionPointAfter(each);
}

void TokensKernel::emitPrepare(Value first, Value count) {
  if (ownsByHistory())
    return emitByHistory(first, count);
  emitRole(ScanRole::query, scan.getQuery(), first, count);
  emitRole(ScanRole::key, scan.getKey(), first, count);
  emitRole(ScanRole::value, scan.getValue(), first, count);
  emitRole(ScanRole::gates, scan.getGates(), first, count);
}

//===----------------------------------------------------------------------===//
// The scans and what follows them
//===----------------------------------------------------------------------===//

/// Token after token. `state` is the one before the block of tokens where the
/// loop carries it, else null; returns the one after.
Value TokensKernel::emitScans(Value state, Value first, Value count) {
  Location loc = scan.getLoc();
  MLIRContext *context = b.getContext();
  auto perColumn = gpu::PerColumnAttr::get(context, stateRows);
  auto perRow = gpu::PerRowAttr::get(context, stateRows);
  auto recurrence =
      scf::ForOp::create(b, loc, index(0), count, index(1),
                         state ? ValueRange(state) : ValueRange());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(recurrence.getBody());
  Value at = recurrence.getInductionVar();
  FragmentEmitter all(b, atToken(add(first, at)), stateRows);
  const RoleWork &work = (*roles)[ScanRole::state];
  if (state)
    all.set(scan.getState(), recurrence.getRegionIterArg(0));
  for (Operation *op : work.tiles)
    all.emit(op);

  ScanToken token;
  token.key = loadShared(scan.getKey(), perColumn, at);
  token.query = loadShared(scan.getQuery(), perColumn, at);
  token.value = loadShared(scan.getValue(), perRow, at);
  if (scan.getBeta())
    token.beta = gpu::LoadSharedElementOp::create(b, loc, b.getF32Type(),
                                                  shared[scan.getBeta()], at);
  if (cast<VectorType>(scan.getLogDecay().getType()).getRank() == 2)
    token.logDecay = loadShared(scan.getLogDecay(), perColumn, at);
  else
    token.logDecay = gpu::LoadSharedElementOp::create(
        b, loc, b.getF32Type(), shared[scan.getLogDecay()], at);
  Value deltas = scan.getDeltas();
  ScanResult next =
      emitScanStep(b, loc, all[scan.getState()], token, bool(deltas));
  all.set(scan.getNewState(), next.state);
  gpu::StoreSharedOp::create(b, loc, next.output, shared[scan.getOutput()], at);
  if (deltas)
    gpu::StoreSharedOp::create(b, loc, next.delta, shared[deltas], at);
  for (Operation *op : work.stores)
    all.emitStores(op, {});
  if (!state)
    return nullptr;
  scf::YieldOp::create(b, loc, next.state);
  return recurrence.getResult(0);
}

/// What the finish loads of each token, where the warp of the gates has room
/// for it: decays per channel leave none.
SmallVector<tile::LoadOp> TokensKernel::getOutputLoads() {
  SmallVector<tile::LoadOp> loads;
  if (cast<VectorType>(scan.getLogDecay().getType()).getRank() == 2)
    return loads;
  for (tile::LoadOp load : getLoads((*roles)[ScanRole::output].tiles))
    if (tokenTiles.contains(load.getTile()) &&
        load.getTile().getType().getRank() == 2)
      loads.push_back(load);
  return loads;
}

/// What follows the scans, a token per warp.
void TokensKernel::emitOutput(Value first, Value count) {
  const RoleWork &work = (*roles)[ScanRole::output];
  Value at = enterTurns(count);
  FragmentEmitter emitter(b, atToken(add(first, at)));
  TokenGroup group = {tokenTiles, 1, index(1)};
  emitter.setTokens(&group);
  for (tile::LoadOp load : getLoads(work.before))
    emitter.emit(load);
  SmallVector<tile::LoadOp> there = getOutputLoads();
  for (tile::LoadOp load : getLoads(work.tiles))
    if (!llvm::is_contained(there, load))
      emitter.emit(load);
  for (tile::LoadOp load : there)
    emitter.set(load.getTile(),
                gpu::LoadSharedOp::create(b, scan.getLoc(),
                                          emitter.typeOf(load.getTile()),
                                          shared[load.getTile()], at));
  emitter.set(scan.getOutput(),
              gpu::LoadSharedOp::create(b, scan.getLoc(),
                                        emitter.typeOf(scan.getOutput()),
                                        shared[scan.getOutput()], at));
  for (Operation *op : llvm::concat<Operation *const>(work.before, work.tiles))
    if (!isa<tile::LoadOp>(op))
      emitter.emit(op);
  for (Operation *op : work.stores)
    emitter.emitStores(op, {});
  leave(at.getParentBlock()->getParentOp()->getParentOp());
}

void TokensKernel::emitRootBlock(Block &block) {
  Operation *kernel = entry->getParentOp();
  gpu::KernelFields(kernel).setKeepLoops();
  if (ownsByHistory()) {
    gpu::KernelFields(kernel).setAlignedVariant();
    kernel->setAttr("gdn_gpu.allow",
                    b.getStringAttr(blockTokens == 4 ? allowedTokenSpills
                                                     : allowedFewSpills));
  }
  emitTokenScalars(b, block, scalars);
  begin = scalars.lookupOrDefault(loop.getLowerBound());
  end = scalars.lookupOrDefault(loop.getUpperBound());
  tokenTiles = findTokenTiles(loop);

  fold = getFold(loop, scan);
  findEarlyStores(block);

  // The state is asked for before the wait for the launch ahead; what is done
  // to it waits until it has come.
  const RoleWork &state = (*roles)[ScanRole::state];
  bool isCarried = isa<BlockArgument>(scan.getState());
  FragmentEmitter all(b, scalars, stateRows);
  for (tile::LoadOp load : getLoads(state.before))
    all.emit(load);
  emitAwait();
  place(ScanRole::query, scan.getQuery());
  place(ScanRole::key, scan.getKey());
  place(ScanRole::value, scan.getValue());
  place(ScanRole::gates, scan.getGates());
  place(ScanRole::output, scan.getOutput());
  for (tile::LoadOp load : getOutputLoads()) {
    auto type = load.getTile().getType();
    shared[load.getTile()] = allocate(VectorType::get(
        {blockTokens, type.getDimSize(1)}, type.getElementType()));
  }
  if (fold)
    place(ScanRole::state, scan.getDeltas());
  if (fold)
    beginPendingCopies();
  bool solves = isSolvable();
  if (solves)
    placeSolve();
  for (Operation *op : state.before)
    if (!isa<tile::LoadOp>(op) && !(fold && fold->isBeforeInBlock(op)))
      all.emit(op);

  SmallVector<Value> start;
  if (fold)
    start.push_back(all[fold.getState()]);
  else if (isCarried)
    start.push_back(
        all[loop.getTiedLoopInit(cast<BlockArgument>(scan.getState()))->get()]);
  if (!isOneBlock)
    return emitBlocks(start);
  emitBlock(begin, start.empty() ? Value() : start[0]);
}

/// Blocks of tokens one after another; `start` is the state before them where
/// the loop carries it.
void TokensKernel::emitBlocks(ValueRange start) {
  Location loc = scan.getLoc();
  auto blocks =
      scf::ForOp::create(b, loc, begin, end, index(blockTokens), start);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(blocks.getBody());
  Value next = emitBlock(blocks.getInductionVar(),
                         start.empty() ? Value() : blocks.getRegionIterArg(0));
  if (!start.empty())
    scf::YieldOp::create(b, loc, next);
}

/// The tokens from `first` on, as many as a block has; returns the state behind
/// them where the loop carries it and there may be more.
Value TokensKernel::emitBlock(Value first, Value before) {
  Location loc = scan.getLoc();
  bool solves = isSolvable();
  Value count = clamp(sub(end, first), blockTokens);
  emitPrepare(first, count);
  if (fold) // once would be enough; later there is nothing to wait for
    gpu::AwaitCopiesOp::create(b, loc);
  gpu::BarrierOp::create(b, loc);
  const bool asksEarly = solves || storesWindowsLast();
  if (asksEarly) // beside decays per channel an answer finds no register
    emitTickets(first);
  if (solves)
    emitPairs(count);
  if (fold)
    before = emitFold(before, first);
  Value next;
  if (solves) {
    emitProducts(before, first, count);
    gpu::BarrierOp::create(b, loc);
    emitSolve(count);
  } else {
    next = emitScans(before, first, count);
  }
  if (fold || asksEarly)
    emitIsLast(first);
  else
    emitWindowStores(first, count, /*firstWarp=*/0);
  gpu::BarrierOp::create(b, loc);
  if (solves && !isOneBlock)
    next = emitCarried(before, add(first, index(blockTokens)), count);
  emitOutput(first, count);
  if (storesWindowsLast()) { // by warps that have few tokens' outputs
    IRMapping outside = std::exchange(scalars, withFlags());
    emitWindowStores(first, count, numWarps - 3);
    scalars = outside;
  }
  if (fold) {
    emitKept(first, count);
    if (!isOneBlock)
      gpu::BarrierOp::create(b, loc);
  }
  return next;
}
