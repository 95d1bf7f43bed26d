// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-schedule-resident-recurrence: the state of a value head in the registers
// of a block. See Passes.td.
#include "Recurrence/JoinedGates.h"
#include "Recurrence/NarrowReplay.h"
#include "Recurrence/PlaneReplay.h"
#include "Recurrence/Variants.h"

#include "gdn/Schedule/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

namespace gdn {
#define GEN_PASS_DEF_SCHEDULERESIDENTRECURRENCE
#include "gdn/Schedule/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {

/// A block of the variant "narrow": four warps of 168 registers, of which 64
/// hold a state of 128 x 128.
constexpr int64_t narrowThreads = 128;
constexpr int64_t narrowBlocks = 3;
constexpr int64_t narrowWords = 64;
constexpr llvm::StringLiteral narrowSpills =
    "spills: 18 words, behind the barrier, where nothing waits for them; at "
    "16,384 units 308 us instead of 330";

struct ScheduleResidentRecurrence final
    : gdn::impl::ScheduleResidentRecurrenceBase<ScheduleResidentRecurrence> {
  using ScheduleResidentRecurrenceBase::ScheduleResidentRecurrenceBase;

  void runOnOperation() override {
    if (failed(checkThreads(getOperation(), threads, /*least=*/160)))
      return signalPassFailure();
    SmallVector<tile::RuleOpInterface> rules;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!tile::StageFields(func).getGrid())
        continue;
      SmallVector<tile::RuleOpInterface> found;
      func.walk([&](tile::RuleOpInterface rule) { found.push_back(rule); });
      // One token and no more: a recurrence over tokens has another schedule.
      if (found.size() == 1 && !found[0]->getParentOfType<scf::ForOp>() &&
          found[0].getKey().getType().getDimSize(0) == 1)
        rules.push_back(found[0]);
    }
    for (tile::RuleOpInterface rule : rules) {
      auto func = rule->getParentOfType<func::FuncOp>();
      if (auto replay = dyn_cast<tile::DeltaReplayOp>(*rule)) {
        if (failed(scheduleReplay(func, replay)))
          return signalPassFailure();
        continue;
      }
      auto scan = cast<tile::DeltaScanOp>(*rule);
      if (narrowUnits > 0 && !tile::StageFields(func).getStageOf() &&
          failed(addNarrow(func, scan)))
        return signalPassFailure();
      FailureOr<bool> isScheduled =
          ResidentKernel(func, scan, threads).emit(minBlocks);
      if (failed(isScheduled))
        return signalPassFailure();
      numKernels += *isScheduled;
    }
  }

  LogicalResult scheduleReplay(func::FuncOp func, tile::DeltaReplayOp replay);
  LogicalResult addNarrow(func::FuncOp source, tile::DeltaScanOp scan);
};

} // namespace

/// The one rule of a program.
template <typename OpTy> static OpTy findRule(func::FuncOp func) {
  OpTy found;
  func.walk([&](OpTy op) { found = op; });
  return found;
}

LogicalResult
ScheduleResidentRecurrence::scheduleReplay(func::FuncOp func,
                                           tile::DeltaReplayOp replay) {
  auto count = [&](FailureOr<bool> isScheduled) {
    if (succeeded(isScheduled))
      numKernels += *isScheduled;
    return success(succeeded(isScheduled));
  };
  const bool isWhole = !tile::StageFields(func).getStageOf();
  if (crowdedNarrowUnits > 0 && isWhole &&
      NarrowReplay::suits(replay, crowdedThreads)) {
    func::FuncOp crowded = addVariant(func, "crowded", crowdedNarrowUnits);
    NarrowReplay kernel(crowded, findRule<tile::DeltaReplayOp>(crowded),
                        crowdedThreads, crowdedNarrowBlocks);
    if (failed(count(kernel.emit(minBlocks))))
      return failure();
  }
  if (!PlaneReplay::suits(replay, threads))
    return count(ResidentReplay(func, replay, threads).emit(minBlocks));
  const bool isOne = PlaneReplay::countSeenPlanes(replay) == 1;
  auto emit = [&](func::FuncOp program, int64_t threads, int64_t blocks,
                  bool keeps) {
    PlaneReplay kernel(program, findRule<tile::DeltaReplayOp>(program), threads,
                       blocks, keeps);
    return count(kernel.emit(minBlocks));
  };
  if (crowdedUnits > 0 && isWhole &&
      PlaneReplay::suits(replay, crowdedThreads)) {
    const int64_t blocks = !isOne             ? crowdedTwoPlaneBlocks
                           : replay.getSeen() ? crowdedUpperBlocks
                                              : crowdedOnePlaneBlocks;
    if (failed(emit(addVariant(func, "crowded", crowdedUnits), crowdedThreads,
                    blocks, /*keeps=*/false)))
      return failure();
  }
  if (sparseUnits > 0 && isWhole && isOne) {
    func::FuncOp sparse = addVariant(func, "sparse", 0, sparseUnits);
    if (sparseRows > 0 && replay.getSeen())
      addUnits(sparse, sparseUnits * upperBlocks / twoPlaneBlocks + 1,
               2 * sparseUnits, sparseRows);
    if (failed(emit(sparse, threads, twoPlaneBlocks, /*keeps=*/true)))
      return failure();
  }
  const int64_t blocks = !isOne             ? twoPlaneBlocks
                         : replay.getSeen() ? upperBlocks
                                            : onePlaneBlocks;
  return emit(func, threads, blocks, /*keeps=*/!isOne);
}

/// The variant "narrow" of a program with a narrow state, which is loaded as it
/// is and has one decay for a head. What it may spill was measured of the delta
/// rule alone.
LogicalResult ScheduleResidentRecurrence::addNarrow(func::FuncOp source,
                                                    tile::DeltaScanOp scan) {
  auto state = cast<VectorType>(scan.getState().getType());
  int64_t words = state.getNumElements() * state.getElementTypeBitWidth() / 32;
  if (state.getElementType().isF32() ||
      !scan.getState().getDefiningOp<tile::LoadOp>() || scan.isPerChannel() ||
      !scan.getBeta() || words > narrowThreads * narrowWords)
    return success();
  func::FuncOp copy = addVariant(source, "narrow", narrowUnits);
  FailureOr<bool> isScheduled =
      ResidentKernel(copy, findRule<tile::DeltaScanOp>(copy), narrowThreads,
                     /*staysNarrow=*/true)
          .emit(narrowBlocks);
  if (succeeded(isScheduled) && !*isScheduled)
    copy.erase();
  else if (succeeded(isScheduled))
    ++numKernels;
  return success(succeeded(isScheduled));
}

/// Whether all that a role loads takes a register for each element.
static bool areWide(ArrayRef<tile::LoadOp> loads) {
  return llvm::all_of(loads, [](tile::LoadOp load) {
    return load.getTile().getType().getElementType().isF32();
  });
}

/// Whether a branch is that of the last block to come.
static bool isAsked(Operation *op) {
  auto branch = dyn_cast<scf::IfOp>(op);
  return branch && branch.getCondition().getDefiningOp<tile::LastInGroupOp>();
}

SetVector<Value> ResidentKernel::getKept(ScanRole role,
                                         ArrayRef<Value> operands) {
  SetVector<Value> kept;
  for (Operation *op : (*roles)[role].stores)
    if (isLate(op))
      kept.insert_range(getUsedTiles(op));
  kept.remove_if([&](Value tile) {
    return llvm::is_contained(operands, tile) ||
           tile.getDefiningOp() == scan.getOperation();
  });
  return kept;
}

/// Operands of the scan, made by the warp of their role, in shared memory.
/// What only this block stores is stored at once; what the last reader stores
/// waits in shared memory until the scan is done: to find the last one takes a
/// turn around the memory, for which a role asks as soon as it has read.
void ResidentKernel::emitOperands(ScanRole role, ArrayRef<Value> operands) {
  Location loc = scan.getLoc();
  for (Value operand : operands)
    shared[operand] = allocate(operand);
  const RoleWork &work = (*roles)[role];
  const bool hasGates = role == ScanRole::value && asksForGates();
  SetVector<Value> kept = getKept(role, operands);
  for (Value tile : kept)
    shared[tile] = allocate(tile);
  SmallVector<Operation *> asked;
  for (Operation *op : work.stores)
    if (isAsked(op) && asksEarly(op))
      asked.push_back(op);
  gpu::WarpsOp warps =
      enterWarps(role, SmallVector<Type>(asked.size(), b.getI32Type()));
  FragmentEmitter warp(b, scalars);
  SmallVector<tile::LoadOp> loads = getLoads(work.tiles);
  // ptxas counts loads whose values another block of code uses together with
  // those of the state, and whoever uses one would wait for all. With three
  // blocks beside each other the operands are worth the way around. For wide
  // ones there are no registers beside the state.
  if ((staysNarrow || areWide(loads)) && role != ScanRole::gates)
    for (tile::LoadOp load : loads)
      if (!getBegun(load, role))
        emitBegin(warp, load, role);
  // What has begun comes last: to take it is to wait for it.
  auto firstBegun =
      std::stable_partition(loads.begin(), loads.end(), [&](tile::LoadOp load) {
        return !getBegun(load, role);
      });
  for (tile::LoadOp load : llvm::make_range(loads.begin(), firstBegun))
    warp.emit(load);
  HeadNumbers numbers;
  if (hasGates)
    numbers = emitGateLoads(b, (*roles)[ScanRole::gates], warp);
  for (tile::LoadOp load : llvm::make_range(firstBegun, loads.end())) {
    warp.setBegun(load.getTile(), getBegun(load, role));
    warp.emit(load);
  }
  SmallVector<Value> yielded;
  for (Operation *op : asked)
    yielded.push_back(warp.emitTicket(op, work.tiles));
  for (Operation *op : work.tiles)
    if (!isa<tile::LoadOp>(op))
      warp.emit(op);
  for (Value operand : operands)
    gpu::StoreSharedOp::create(b, loc, warp[operand], shared[operand], Value());
  emitFactors(role, warp);
  for (Value tile : kept)
    gpu::StoreSharedOp::create(b, loc, warp[tile], shared[tile], Value());
  for (Operation *op : work.stores)
    if (!isLate(op))
      warp.emitStores(op, {});
  if (hasGates) {
    emitGates(b, loc, (*roles)[ScanRole::gates], numbers, warp);
    shareGates(warp);
  }
  gpu::YieldOp::create(b, loc, yielded);
  b.setInsertionPointAfter(warps);
  for (auto [op, ticket] : llvm::zip(asked, warps.getResults()))
    tickets[op] = ticket;
}

/// Gates that the warp of the value has made.
void ResidentKernel::shareGates(FragmentEmitter &warp) {
  SetVector<Value> stored;
  stored.insert_range(scan.getGates());
  stored.insert_range(getKept(ScanRole::gates, scan.getGates()));
  for (Value tile : stored) {
    shared[tile] = allocate(tile);
    gpu::StoreSharedOp::create(b, scan.getLoc(), warp[tile], shared[tile],
                               Value());
  }
  for (Operation *op : (*roles)[ScanRole::gates].stores)
    if (!isLate(op))
      warp.emitStores(op, {});
}

/// The stores of operands' roles that wait for other blocks or for a condition.
void ResidentKernel::emitLateStores() {
  for (ScanRole role :
       {ScanRole::query, ScanRole::key, ScanRole::value, ScanRole::gates}) {
    if (llvm::none_of((*roles)[role].stores,
                      [&](Operation *op) { return isLate(op); }))
      continue;
    gpu::WarpsOp warps = enterWarps(role);
    FragmentEmitter warp(b, scalars);
    for (Operation *op : (*roles)[role].stores) {
      if (!isLate(op))
        continue;
      for (Value tile : getUsedTiles(op))
        warp.set(tile,
                 gpu::LoadSharedOp::create(b, scan.getLoc(), warp.typeOf(tile),
                                           shared[tile], Value()));
      if (Value ticket = tickets.lookup(op))
        warp.setTicket(op, ticket);
      warp.emitStores(op, {});
    }
    gpu::YieldOp::create(b, scan.getLoc());
    b.setInsertionPointAfter(warps);
  }
}

/// Begins the load of what a role reads, if it can be begun.
void ResidentKernel::emitBegin(FragmentEmitter &warp, tile::LoadOp load,
                               ScanRole role) {
  if (!warp.mayBegin(load))
    return;
  auto type = cast<VectorType>(load.getTile().getType());
  Value buffer =
      allocate(VectorType::get({type.getNumElements()}, type.getElementType()));
  warp.emitBegin(load, buffer);
  begun[{load.getTile(), unsigned(role)}] = buffer;
}

/// Asks for the windows, which the launch ahead does not write and no cache
/// holds, before the state: behind it they would come last of all.
void ResidentKernel::emitWindows() {
  DenseSet<Value> written;
  source.walk([&](tile::StoreOp store) { written.insert(store.getView()); });
  for (ScanRole role : {ScanRole::query, ScanRole::key, ScanRole::value}) {
    SmallVector<tile::LoadOp> loads = getLoads((*roles)[role].tiles);
    llvm::erase_if(loads, [&](tile::LoadOp load) {
      return !written.contains(load.getView());
    });
    if (loads.empty())
      continue;
    gpu::WarpsOp warps = enterWarps(role);
    FragmentEmitter warp(b, scalars);
    for (tile::LoadOp load : loads)
      emitBegin(warp, load, role);
    gpu::YieldOp::create(b, scan.getLoc());
    b.setInsertionPointAfter(warps);
  }
}

/// What the last warp reads besides the scan's output, asked for while the
/// state is on its way.
void ResidentKernel::emitOutputLoads() {
  SmallVector<tile::LoadOp> loads = getLoads((*roles)[ScanRole::output].tiles);
  if (loads.empty())
    return;
  // Wide ones wait in shared memory: beside the state there is no register for
  // them.
  if (!staysNarrow && areWide(loads)) {
    gpu::WarpsOp warps = enterWarps(ScanRole::output);
    FragmentEmitter warp(b, scalars);
    for (tile::LoadOp load : loads)
      emitBegin(warp, load, ScanRole::output);
    gpu::YieldOp::create(b, scan.getLoc());
    b.setInsertionPointAfter(warps);
    llvm::erase_if(loads, [&](tile::LoadOp load) {
      return bool(getBegun(load, ScanRole::output));
    });
  }
  SmallVector<Type> types;
  for (tile::LoadOp load : loads)
    types.push_back(FragmentEmitter(b, scalars).typeOf(load.getTile()));
  gpu::WarpsOp warps = enterWarps(ScanRole::output, types);
  FragmentEmitter warp(b, scalars);
  SmallVector<Value> yielded;
  for (tile::LoadOp load : loads) {
    warp.emit(load);
    yielded.push_back(warp[load.getTile()]);
  }
  gpu::YieldOp::create(b, scan.getLoc(), yielded);
  b.setInsertionPointAfter(warps);
  for (auto [load, fragment] : llvm::zip(loads, warps.getResults()))
    held[load.getTile()] = fragment;
}

/// What the scan takes of the token; in passes, without the value.
ScanToken ResidentKernel::fetchToken() {
  Location loc = scan.getLoc();
  auto perColumn = gpu::PerColumnAttr::get(b.getContext(), stateRows);
  ScanToken token;
  token.key = loadShared(scan.getKey(), perColumn, zero);
  token.query = loadShared(scan.getQuery(), perColumn, zero);
  if (numPasses == 1)
    token.value = loadShared(
        scan.getValue(), gpu::PerRowAttr::get(b.getContext(), stateRows), zero);
  if (scan.getBeta())
    token.beta = gpu::LoadSharedElementOp::create(b, loc, b.getF32Type(),
                                                  shared[scan.getBeta()], zero);
  if (cast<VectorType>(scan.getLogDecay().getType()).getRank() == 2)
    token.logDecay = loadShared(scan.getLogDecay(), perColumn, zero);
  else
    token.logDecay = gpu::LoadSharedElementOp::create(
        b, loc, b.getF32Type(), shared[scan.getLogDecay()], zero);
  return token;
}

/// The scan of the token.
void ResidentKernel::emitScan(FragmentEmitter &all) {
  Location loc = scan.getLoc();
  ScanToken token = fetchToken();
  Value state = all[scan.getState()];
  ScanResult next =
      emitScanStep(b, loc, state, token, /*withDelta=*/staysNarrow,
                   /*withState=*/!staysNarrow);
  gpu::StoreSharedOp::create(b, loc, next.output, shared[scan.getOutput()],
                             zero);
  if (staysNarrow) {
    // The last warp waits behind its own stores, the others for nothing.
    gpu::ArriveOp::create(b, loc, numWarps - 1);
    // Before the sums they would find no registers; behind the update the block
    // would wait for them with nothing left to do.
    emitOutputLoads();
    next.state = emitScanUpdate(b, loc, state, token, next.delta);
  }
  all.set(scan.getNewState(), next.state);
}

void ResidentKernel::emitOutputOf(FragmentEmitter &warp) {
  warp.set(scan.getOutput(),
           gpu::LoadSharedOp::create(b, scan.getLoc(),
                                     warp.typeOf(scan.getOutput()),
                                     shared[scan.getOutput()], Value()));
}

/// What follows the scan, in the last warp.
void ResidentKernel::emitOutput() {
  gpu::WarpsOp warps = enterWarps(ScanRole::output);
  if (awaitsArrivals())
    gpu::AwaitArrivalsOp::create(b, scan.getLoc());
  FragmentEmitter warp(b, scalars);
  for (auto [tile, fragment] : held)
    warp.set(tile, fragment);
  emitOutputOf(warp);
  const RoleWork &work = (*roles)[ScanRole::output];
  for (tile::LoadOp load : getLoads(work.tiles))
    if (Value buffer = getBegun(load, ScanRole::output)) {
      warp.setBegun(load.getTile(), buffer);
      warp.emit(load);
    }
  for (Operation *op : work.tiles)
    if (!isa<tile::LoadOp>(op))
      warp.emit(op);
  for (Operation *op : work.stores)
    warp.emitStores(op, {});
  gpu::YieldOp::create(b, scan.getLoc());
  b.setInsertionPointAfter(warps);
}

/// With one way to each array ptxas widens a narrow state ahead of the first
/// barrier: 2 to 13 % slower. Decays per channel were not measured. Where rows
/// lie side by side it is the stride from column to column that has to be
/// known: with an address for each column, registers allow one block.
bool ResidentKernel::suitsAligned() {
  if (stateRows.getTall())
    return !staysNarrow;
  return !widensState() &&
         cast<VectorType>(scan.getLogDecay().getType()).getRank() == 1;
}

void ResidentKernel::setVariants() {
  // Where parameters that few layers ask for leave no room for two blocks, one
  // is right, too.
  if (!staysNarrow)
    entry->getParentOp()->setAttr("gdn_gpu.fewer_blocks", b.getUnitAttr());
  // Several passes were not measured.
  if (numPasses == 1 && suitsAligned())
    gpu::KernelFields(entry->getParentOp()).setAlignedVariant();
}

void ResidentKernel::emitRootBlock(Block &block) {
  emitScalars(block);
  if (staysNarrow) {
    gpu::KernelFields(entry->getParentOp()).setRowsApart();
    entry->getParentOp()->setAttr("gdn_gpu.allow",
                                  b.getStringAttr(narrowSpills));
  }
  setVariants();
  zero = arith::ConstantIndexOp::create(b, scan.getLoc(), 0);
  const bool isNarrow = isStateNarrow();

  FragmentEmitter all(b, scalars, stateRows);
  const RoleWork &state = (*roles)[ScanRole::state];
  emitWindows();
  if (numPasses == 1)
    for (Operation *op : state.tiles)
      all.emit(op);
  emitAwait();
  if (!staysNarrow)
    emitOutputLoads();
  emitOperands(ScanRole::query, scan.getQuery());
  emitOperands(ScanRole::key, scan.getKey());
  emitOperands(ScanRole::value, scan.getValue());
  if (!asksForGates())
    emitOperands(ScanRole::gates, scan.getGates());
  gpu::BarrierOp::create(b, scan.getLoc());
  shared[scan.getOutput()] = allocate(scan.getOutput());
  if (numPasses > 1) {
    emitPasses();
  } else {
    emitScan(all);
    for (Operation *op : state.stores)
      all.emitStores(op, {});
  }
  if (!staysNarrow)
    gpu::BarrierOp::create(b, scan.getLoc());
  // Different warps, so the order is that of the code alone. With a narrow
  // state behind it ptxas widens that before the first barrier, where all warps
  // would wait for it.
  if (isNarrow && !staysNarrow)
    emitLateStores();
  emitOutput();
  if (!isNarrow || staysNarrow)
    emitLateStores();
}
