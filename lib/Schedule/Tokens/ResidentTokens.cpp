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
#include "Kernel/PendingSource.h"
#include "Kernel/ScanStep.h"
#include "Tokens/PendingTokens.h"
#include "Tokens/TokenOperands.h"
#include "Tokens/TokenSolve.h"

#include "gdn/Schedule/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace gdn {
#define GEN_PASS_DEF_SCHEDULERESIDENTTOKENS
#include "gdn/Schedule/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {

constexpr llvm::StringLiteral allowedTokenSpills =
    "spills: where a row has up to four tokens 31 words on sm_120a, five on "
    "sm_86 and sm_89 with narrow states and aligned arrays, on other chips "
    "none; on an H200 four warps of 255 registers, which spill none anywhere, "
    "take 10 to 14 % longer";

constexpr llvm::StringLiteral allowedFewSpills =
    "spills up to 24 bytes: on sm_120a where a row has up to eight tokens and "
    "arrays are aligned four words, with a bounded decay of each channel six, "
    "on other chips none; not measured there";

/// ptxas uses up the uniform registers there, and what it moves from them finds
/// no other beside states that are widened and rounded for each token. Eight
/// warps of 255 registers spill nothing and take up to a tenth longer.
constexpr llvm::StringLiteral allowedTreeSpills =
    "spills up to 36 bytes: on sm_90a with projections in the flat layout, "
    "four numbers of the block, loaded for each eight tokens, one of them for "
    "each token, which reads and writes a state; on other chips none";

/// Planes are made of the state behind its last token.
constexpr llvm::StringLiteral allowedPlaneSpills =
    "spills up to 144 bytes: of states in planes whose sequences have any "
    "number of tokens, on sm_120a up to 34 words, elsewhere 25; in chunks "
    "they would take less time; not measured";

/// A thread has 16 columns of such states, each with an address of its own.
constexpr llvm::StringLiteral allowedAcrossSpills =
    "spills up to 128 bytes: of states that lie as [dk, dv], on sm_120a "
    "addresses of columns, on other chips up to 32 bytes where tokens are "
    "pending; not measured";

/// Addresses beside a state of f32 and a row of a pending key.
constexpr llvm::StringLiteral allowedCatchUpSpills =
    "spills up to 400 bytes: where tokens are pending over several steps, on "
    "sm_80, sm_86 and sm_89 if arrays are not aligned, and where core and out "
    "are outputs; else none; not measured there";

/// The rows of several steps' tokens go into the state ahead of the scans.
constexpr llvm::StringLiteral allowedChannelCatchUpSpills =
    "spills up to 16 bytes: of states in planes with tokens of a decay per "
    "channel that are pending over several steps, on sm_80, sm_90a and "
    "sm_100a; of other states, and on other chips, none; not measured";

/// Of eight warps, a large state and inputs of f32.
constexpr llvm::StringLiteral allowedWideSpills =
    "spills up to 8 bytes: of heads of 96 x 192 with inputs of f32, on sm_90a "
    "two words, stored once and loaded once for each block of tokens, of "
    "5,000 instructions; on other chips none; not measured";

/// The program, of one block of tokens after another.
class TokenBlocks : TokenPart {
public:
  /// Allocates the tiles.
  explicit TokenBlocks(TokenProgram &p);

  /// All tokens of the sequence, one block of them after another. `start` is
  /// the state before them where the loop carries it, else null; `loaded` has
  /// what was loaded of it.
  void emit(Value start, FragmentEmitter &loaded);

private:
  void place(ScanRole role);
  Value emitBlock(Value first, Value before, FragmentEmitter &loaded);
  Value emitScans(Value state, Value first, Value count);
  void emitOutput(Value first, Value count);

  LastReaders readers;
  std::optional<PendingTokens> pending;
  std::optional<TokenSolve> solve;
};

class TokensKernel final : public ScheduledKernel {
public:
  TokensKernel(func::FuncOp source, tile::DeltaScanOp scan, scf::ForOp loop,
               int64_t threads)
      : ScheduledKernel(source, scan, loop, threads), loop(loop) {}

private:
  TokenPlan getPlan() {
    return {loop, cast<tile::DeltaScanOp>(*scan), *roles, numWarps};
  }
  void emitRootBlock(Block &block) override;
  std::optional<int64_t> getOwnLanes() override {
    return getPlan().takesTensorCores() ? std::optional<int64_t>(4)
                                        : std::nullopt;
  }
  void chooseWarps(int64_t &minBlocks) override;
  LogicalResult check() override;
  std::optional<StringRef> findAllowance(TokenPlan &plan) const;

  scf::ForOp loop;
};

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

/// Eight warps of 128 registers hide more of the memory's latency than four of
/// 255, where these are enough: tensor cores take the state as it lies,
/// sequences have one block of tokens, so that no loop keeps anything beside
/// it, and inputs on their way are narrow.
void TokensKernel::chooseWarps(int64_t &minBlocks) {
  int64_t given = std::exchange(numWarps, 8);
  TokenPlan plan = getPlan();
  if (given > 8 || !(plan.takesTensorCores() || plan.scansInPlace()) ||
      !plan.preparesByHistory() || !plan.haveNarrowInputs())
    numWarps = given;
  // Of any number of tokens a row of the decays beside those of keys and
  // queries, or a larger state. Beside windows of convolutions, or with a large
  // state, eight warps of 255 registers.
  const bool isLarge = scan.getState().getType().getNumElements() > 128 * 128;
  if (!plan.isOneBlock && given <= 8 && (scan.isPerChannel() || isLarge)) {
    numWarps = 8;
    if (isLarge || plan.hasConvs())
      minBlocks = 1;
  }
}

/// The state without tokens of several steps is not carried on.
LogicalResult TokensKernel::check() {
  TokenPlan plan = getPlan();
  if (!plan.catchUp)
    return success();
  if (failed(checkPendingSources(plan.catchUp)))
    return failure();
  if (plan.isOneBlock && (plan.isSolvable() || scan.isPerChannel()))
    return success();
  return scan.emitOpError("expects sequences of at most ")
         << plan.blockTokens
         << " tokens where tokens are pending over several steps";
}

/// The spills that the kernel may have; see `gdn_gpu.allow`.
std::optional<StringRef> TokensKernel::findAllowance(TokenPlan &plan) const {
  if (isAcross && !(plan.preparesByHistory() && plan.blockTokens == 4))
    return allowedAcrossSpills;
  if (plan.catchUp)
    return plan.scan.isPerChannel() ? allowedChannelCatchUpSpills
                                    : allowedCatchUpSpills;
  if (plan.hasPlanes())
    return allowedPlaneSpills;
  if (plan.preparesByHistory())
    return plan.blockTokens == 4 ? allowedTokenSpills : allowedFewSpills;
  if (plan.numWarps != 4)
    return plan.numWarps > 4 ? std::optional<StringRef>(allowedWideSpills)
                             : std::nullopt;
  if (plan.readsNarrowStates())
    return allowedTreeSpills;
  return std::nullopt;
}

void TokensKernel::emitRootBlock(Block &block) {
  TokenPlan plan = getPlan();
  Operation *kernel = entry->getParentOp();
  gpu::KernelFields(kernel).setKeepLoops();
  if (plan.preparesByHistory())
    gpu::KernelFields(kernel).setAlignedVariant();
  if (std::optional<StringRef> allowance = findAllowance(plan))
    kernel->setAttr("gdn_gpu.allow", b.getStringAttr(*allowance));
  emitTokenScalars(b, block, scalars);

  // The state is asked for before the wait for the launch ahead; what is done
  // to it waits until it has come.
  const RoleWork &state = (*roles)[ScanRole::state];
  FragmentEmitter all(b, scalars, stateRows);
  emitLoads(all, state.before);
  emitAwait();
  TokenProgram program(plan, b, scalars, stateRows, entry);
  TokenBlocks blocks(program);
  tile::DeltaFoldOp fold = plan.fold;
  // A state without its last tokens is made of what has come where it is used.
  for (Operation *op : state.before)
    if (!isa<tile::LoadOp>(op) && !plan.catchUp &&
        !(fold && fold->isBeforeInBlock(op)))
      all.emit(op);

  Value start;
  if (fold)
    start = all[fold.getState()];
  else if (!plan.catchUp && isa<BlockArgument>(scan.getState()))
    start = all[plan.getInit(scan.getState())];
  blocks.emit(start, all);
}

TokenBlocks::TokenBlocks(TokenProgram &p) : TokenPart(p), readers(p) {
  for (ScanRole role : {ScanRole::query, ScanRole::key, ScanRole::value,
                        ScanRole::gates, ScanRole::output})
    place(role);
  for (tile::LoadOp load : p.getOutputLoads())
    p.shared[load.getTile()] = p.allocateRows(load.getTile(), p.blockTokens);
  if (!p.keepsPending())
    return;
  place(ScanRole::state);
  pending.emplace(p, readers);
  if (p.isSolvable())
    solve.emplace(p);
}

/// Shared memory for what a role makes.
void TokenBlocks::place(ScanRole role) {
  for (Value tile : p.getTiles(role))
    p.shared[tile] = p.allocateRows(tile, p.blockTokens);
  placeWindows(p, role);
  readers.place(p.roles[role].stores, int64_t(role));
}

/// Token after token. `state` is the one before the block of tokens where the
/// loop carries it, else null; returns the one after.
Value TokenBlocks::emitScans(Value state, Value first, Value count) {
  auto recurrence =
      scf::ForOp::create(b, loc, p.index(0), count, p.index(1),
                         state ? ValueRange(state) : ValueRange());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(recurrence.getBody());
  Value at = recurrence.getInductionVar();
  FragmentEmitter all(b, p.atToken(p.add(first, at)), p.stateRows);
  const RoleWork &work = p.roles[ScanRole::state];
  if (state)
    all.set(scan.getState(), recurrence.getRegionIterArg(0));
  for (Operation *op : work.tiles)
    all.emit(op);

  ScanToken token;
  token.key = p.loadPerColumn(scan.getKey(), at);
  token.query = p.loadPerColumn(scan.getQuery(), at);
  token.value = p.loadPerRow(scan.getValue(), at);
  if (scan.getBeta())
    token.beta = p.loadNumber(p.shared[scan.getBeta()], at);
  Value decay = p.loadLogDecay(scan.getLogDecay(), at);
  (p.makesFactors() ? token.decay : token.logDecay) = decay;
  Value deltas = scan.getDeltas();
  ScanResult next =
      emitScanStep(b, loc, all[scan.getState()], token, bool(deltas));
  all.set(scan.getNewState(), next.state);
  gpu::StoreSharedOp::create(b, loc, next.output, p.shared[scan.getOutput()],
                             at);
  if (deltas)
    gpu::StoreSharedOp::create(b, loc, next.delta, p.shared[deltas], at);
  for (Operation *op : work.stores)
    all.emitStores(op, {});
  if (!state)
    return nullptr;
  scf::YieldOp::create(b, loc, next.state);
  return recurrence.getResult(0);
}

/// What follows the scans, a token per warp.
void TokenBlocks::emitOutput(Value first, Value count) {
  const RoleWork &work = p.roles[ScanRole::output];
  Value at = p.enterTurns(count);
  FragmentEmitter emitter(b, p.atToken(p.add(first, at)));
  RowGroup group = {p.tokenTiles, 1, p.index(1)};
  emitter.setRowGroup(&group);
  emitLoads(emitter, work.before);
  SmallVector<tile::LoadOp> there = p.getOutputLoads();
  for (tile::LoadOp load : getLoads(work.tiles))
    if (!llvm::is_contained(there, load))
      emitter.emit(load);
  for (tile::LoadOp load : there)
    p.loadTile(emitter, load.getTile(), at);
  p.loadTile(emitter, scan.getOutput(), at);
  emitOthers(emitter, work.before);
  emitOthers(emitter, work.tiles);
  for (Operation *op : work.stores)
    emitter.emitStores(op, {});
  p.leaveTurns(at);
}

void TokenBlocks::emit(Value start, FragmentEmitter &loaded) {
  if (p.isOneBlock) {
    emitBlock(p.begin, start, loaded);
    return;
  }
  auto blocks =
      scf::ForOp::create(b, loc, p.begin, p.end, p.index(p.blockTokens),
                         start ? ValueRange(start) : ValueRange());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(blocks.getBody());
  Value next = emitBlock(blocks.getInductionVar(),
                         start ? blocks.getRegionIterArg(0) : Value(), loaded);
  if (start)
    scf::YieldOp::create(b, loc, next);
}

/// The tokens from `first` on, as many as a block has; returns the state behind
/// them where the loop carries it and there may be more.
Value TokenBlocks::emitBlock(Value first, Value before,
                             FragmentEmitter &loaded) {
  Value count = p.clamp(p.sub(p.end, first), p.blockTokens);
  const bool hasPairs = p.catchUp && solve; // of pending tokens, which wait
  if (hasPairs)
    emitOperands(p, first, count, [&] { solve->emitPendingWeights(); });
  else
    emitOperands(p, first, count);
  if (pending &&
      !hasPairs) // once would be enough; later there is nothing to wait for
    gpu::AwaitCopiesOp::create(b, loc);
  gpu::BarrierOp::create(b, loc);
  const bool asksEarly = solve || p.storesWindowsLast();
  if (asksEarly) // beside pending ones of channels there is no register for it
    readers.emitTickets(first);
  if (solve)
    solve->emitPairs(count);
  if (p.catchUp)
    before = pending->emitCatchUp(loaded);
  else if (pending)
    before = pending->emitFold(before, first);
  Value next;
  if (solve) {
    solve->emitProducts(before, first, count);
    gpu::BarrierOp::create(b, loc);
    solve->emitSolve(count);
  } else {
    next = emitScans(before, first, count);
  }
  if (pending || asksEarly)
    readers.emitAnswers(first);
  else
    emitWindowStores(p, readers, first, count, /*firstWarp=*/0, p.scalars);
  gpu::BarrierOp::create(b, loc);
  if (solve && !p.isOneBlock)
    next =
        solve->emitCarried(before, p.add(first, p.index(p.blockTokens)), count);
  emitOutput(first, count);
  if (p.storesWindowsLast()) // by warps that have few tokens' outputs
    emitWindowStores(p, readers, first, count, p.numWarps - 3,
                     readers.withAnswers());
  if (pending) {
    pending->emitKept(first, count);
    if (!p.isOneBlock)
      gpu::BarrierOp::create(b, loc);
  }
  return next;
}
