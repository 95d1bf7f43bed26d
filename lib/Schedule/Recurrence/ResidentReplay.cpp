// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decode with states that are written every W tokens, the state in registers.
// While it comes, all warps copy the pending tokens to shared memory and those
// of the roles prepare the token. Behind the first barrier all warps put the
// pending tokens into the state if it is time for that, share out the factors
// of the others, and multiply the state with key and query. Behind the second
// one the last warp sums up.
#include "Recurrence/ResidentReplay.h"

#include "Kernel/PendingSource.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// A state that does not fit into half of the registers gets all of them.
void ResidentReplay::chooseWarps(int64_t &minBlocks) {
  if (scan.getState().getType().getNumElements() > 128 * 128)
    minBlocks = 1;
}

/// Whether `op` stores to the pools that pending tokens come from.
bool ResidentReplay::storesPending(Operation *op) const {
  SmallPtrSet<Value, 4> views;
  for (tile::LoadOp load : getPendingLoads(replay))
    views.insert(load.getView());
  return op
      ->walk([&](tile::StoreOp store) {
        return views.contains(store.getView()) ? WalkResult::interrupt()
                                               : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The pending tokens are loaded as they are, and the state is stored if it
/// receives them.
LogicalResult ResidentReplay::check() {
  if (failed(checkPendingSources(replay)))
    return failure();
  for (Operation *op : (*roles)[ScanRole::state].stores) {
    auto branch = dyn_cast<scf::IfOp>(op);
    if (!branch || branch.getCondition() != replay.getCommit())
      return scan.emitOpError(
          "expects stores of the state where it receives pending tokens");
  }
  return success();
}

/// The count is what one of the key head's blocks writes. What floating point
/// follows from it is computed where it is used, like all of that.
void ResidentReplay::findCount(Block &block) {
  Value counts;
  source.walk([&](memref::StoreOp store) { counts = store.getMemRef(); });
  for (Operation &op : block.without_terminator()) {
    auto load = dyn_cast<memref::LoadOp>(op);
    bool isCount = load && load.getMemRef() == counts;
    if (isCount)
      countLoad = load;
    if (isCount || llvm::any_of(op.getOperands(), [&](Value operand) {
          return counted.contains(operand.getDefiningOp());
        }))
      if (op.getNumRegions() == 0 && !isKnown(op) &&
          llvm::all_of(op.getResultTypes(),
                       llvm::IsaPred<IndexType, IntegerType>))
        counted.insert(&op);
  }
}

void ResidentReplay::beginCopies() {
  PendingSource deltaSource = findPendingSource(replay.getPendingDeltas());
  SmallVector<std::pair<tile::LoadOp, Value>> copies;
  auto add = [&](tile::LoadOp load) {
    copies.push_back({load, allocate(getPendingRoom(load.getTile()))});
    return copies.back().second;
  };
  pending.keys = add(findPendingSource(replay.getPendingKey()).load);
  pending.deltas = add(deltaSource.load);
  if (!weighsEarly()) {
    decays = add(findPendingSource(replay.getPendingDecay()).load);
    if (deltaSource.scales)
      scales = add(deltaSource.scales);
  }
  auto begin = [&] {
    FragmentEmitter outside(b, scalars);
    for (auto [load, buffer] : copies)
      beginPendingCopy(b, load, outside, buffer);
  };
  if (counted.empty())
    return begin();

  // Warps that make no operand wait for the count and copy the tokens; others
  // would wait for it ahead of what they ask for. They get it with the tokens.
  Location loc = scan.getLoc();
  constexpr int64_t countRoom = 4; // 16 bytes
  countBuffer = allocate(VectorType::get({countRoom}, b.getI32Type()));
  gpu::BeginCopyOp::create(
      b, loc, lookup(countLoad.getMemRef()),
      llvm::map_to_vector(countLoad.getIndices(),
                          [&](Value index) { return lookup(index); }),
      /*dims=*/ArrayRef<int64_t>{int64_t(countLoad.getIndices().size()) - 1},
      /*rows=*/arith::ConstantIndexOp::create(b, loc, 1), countBuffer,
      /*scattered=*/true, /*per_warpgroup=*/false, /*tensor_map=*/false);
  const int64_t first = int64_t(ScanRole::value) + 1;
  SmallVector<Type> results(weighsEarly(), b.getI32Type());
  auto warps =
      gpu::WarpsOp::create(b, loc, results, first, numWarps - first, {});
  b.createBlock(&warps.getBody());
  IRMapping around = scalars;
  for (Operation *op : counted)
    copyScalar(b, op, scalars);
  begin();
  SmallVector<Value> yielded;
  if (weighsEarly())
    yielded.push_back(arith::IndexCastOp::create(
        b, loc, b.getI32Type(), lookup(deltaSource.load.getRows())));
  gpu::YieldOp::create(b, loc, yielded);
  scalars = around;
  b.setInsertionPointAfter(warps);
  if (weighsEarly())
    copied = warps.getResult(0);
}

/// Behind the barrier that the tokens come at.
void ResidentReplay::takeCount(FragmentEmitter &all) {
  Location loc = scan.getLoc();
  if (!counted.empty())
    scalars.map(countLoad.getResult(),
                gpu::LoadSharedElementOp::create(b, loc, b.getI32Type(),
                                                 countBuffer, zero));
  for (Operation *op : counted) {
    if (op != countLoad)
      copyScalar(b, op, scalars);
    for (Value result : op->getResults())
      all.mapScalar(result, lookup(result));
  }
  pending.count = lookup(replay.getCount());
  pending.commits =
      sumsAheadOfFold()
          ? arith::ConstantOp::create(b, loc, b.getBoolAttr(false)).getResult()
          : lookup(replay.getCommit());
}

/// Who is the last to have read pending tokens of the key head is asked behind
/// the barrier that they have come at.
void ResidentReplay::emitTickets() {
  for (ScanRole role : {ScanRole::query, ScanRole::key, ScanRole::value})
    for (Operation *op : (*roles)[role].stores) {
      auto branch = dyn_cast<scf::IfOp>(op);
      if (!branch ||
          !branch.getCondition().getDefiningOp<tile::LastInGroupOp>() ||
          asksEarly(op))
        continue;
      gpu::WarpsOp warps = enterWarps(role, b.getI32Type());
      FragmentEmitter warp(b, scalars);
      gpu::YieldOp::create(b, scan.getLoc(), warp.emitTicket(op, {}));
      b.setInsertionPointAfter(warps);
      tickets[op] = warps.getResult(0);
    }
}

/// What remains of pending tokens and of the state, in a warp that knows how
/// many there are.
void ResidentReplay::emitEarlyWeights() {
  Location loc = scan.getLoc();
  const int64_t most = getPendingRoom(replay.getPendingKey()).getDimSize(0);
  gpu::WarpsOp warps = enterWarps(ScanRole::output);
  FragmentEmitter outside(b, scalars);
  Value rows;
  if (copied)
    rows = arith::IndexCastOp::create(b, loc, b.getIndexType(), copied);
  else
    rows = outside.scalar(
        findPendingSource(replay.getPendingKey()).load.getRows());
  auto loadNumbers = [&](tile::LoadOp load) -> Value {
    Value view = outside.scalar(load.getView());
    SmallVector<Value> indices = llvm::map_to_vector(
        load.getIndices(), [&](Value index) { return outside.scalar(index); });
    return gpu::LoadOp::create(b, loc, getReplayNumbers(b.getContext(), most),
                               view, indices, load.getDims(), rows,
                               getAlignment(view));
  };
  Value logDecays =
      loadNumbers(findPendingSource(replay.getPendingDecay()).load);
  tile::LoadOp scaled = findPendingSource(replay.getPendingDeltas()).scales;
  Value factors = scaled ? loadNumbers(scaled) : Value();
  SmallVector<Value> numbers;
  for (int64_t j = 0; j < most; ++j)
    numbers.push_back(gpu::ExtractOp::create(b, loc, b.getF32Type(), logDecays,
                                             /*index=*/j));
  auto share = [&](Value fragment) {
    auto type = cast<gpu::FragmentType>(fragment.getType());
    Value buffer = allocate(cast<VectorType>(type.getTile()));
    gpu::StoreSharedOp::create(b, loc, fragment, buffer, Value());
    return buffer;
  };
  pending.weights = share(emitReplayWeights(b, loc, numbers, factors));
  kept = share(gpu::FillOp::create(b, loc, getReplayNumbers(b.getContext(), 1),
                                   emitReplayKept(b, loc, numbers)));
  gpu::YieldOp::create(b, loc);
  b.setInsertionPointAfter(warps);
}

/// What remains of pending tokens, which one warp computes unless it has done
/// so before, and of the state.
void ResidentReplay::emitWeights() {
  if (scan.isPerChannel())
    return emitChannels();
  Location loc = scan.getLoc();
  if (weighsEarly()) {
    pending.kept = getNumber(kept);
    decay = math::ExpOp::create(b, loc, getNumber(shared[scan.getLogDecay()]));
    return;
  }
  int64_t most = getPendingRoom(replay.getPendingKey()).getDimSize(0);
  pending.weights = allocate(VectorType::get({most}, b.getF32Type()));
  gpu::WarpsOp warps = enterWarps(ScanRole::output);
  gpu::StoreSharedOp::create(b, loc,
                             emitReplayWeights(b, loc, decays, most, scales),
                             pending.weights, Value());
  gpu::YieldOp::create(b, loc);
  b.setInsertionPointAfter(warps);
  pending.kept = emitReplayKept(b, loc, decays, most);
  decay = math::ExpOp::create(b, loc, getNumber(shared[scan.getLogDecay()]));
}

/// The same with a decay per channel: the keys of pending tokens with what is
/// left of them, and the token's key and query with what is left of the state.
void ResidentReplay::emitChannels() {
  Location loc = scan.getLoc();
  auto floats = [&](ArrayRef<int64_t> shape) {
    return allocate(VectorType::get(shape, b.getF32Type()));
  };
  ArrayRef<int64_t> shape =
      cast<gpu::SharedType>(pending.keys.getType()).getShape();
  auto rowOf = [&] { return floats({1, shape.back()}); };
  Value keys = floats(shape);
  pending.keptRow = rowOf();
  tokenRows = {rowOf(), rowOf(), rowOf(), rowOf()};
  gpu::WarpsOp warps = enterWarps(ScanRole::output);
  emitReplayChannels(b, loc, pending, decays, keys, shared[scan.getLogDecay()],
                     shared[scan.getKey()], shared[scan.getQuery()], tokenRows);
  gpu::YieldOp::create(b, loc);
  b.setInsertionPointAfter(warps);
  pending.keys = keys;
  pending.weights = scales;
}

/// A row of the token in shared memory, as columns of `rows`.
Value ResidentReplay::loadColumns(Value own, Value withDecay,
                                  gpu::RowsAttr rows) {
  Value buffer = withDecay ? withDecay : own;
  auto type = cast<gpu::SharedType>(buffer.getType());
  return gpu::LoadSharedOp::create(
      b, scan.getLoc(),
      gpu::FragmentType::get(
          VectorType::get({type.getShape().back()}, type.getElementType()),
          gpu::PerColumnAttr::get(b.getContext(), rows)),
      buffer, zero);
}

/// The state with the pending tokens, which its slot gets.
Value ResidentReplay::emitFolded(FragmentEmitter &all) {
  Location loc = scan.getLoc();
  auto rows = VectorType::get(
      {scan.getState().getType().getDimSize(0)},
      cast<gpu::SharedType>(pending.deltas.getType()).getElementType());
  auto perRow = gpu::FragmentType::get(
      rows, gpu::PerRowAttr::get(b.getContext(), stateRows));
  auto delta = [&](Value at) -> Value {
    return gpu::LoadSharedOp::create(b, loc, perRow, pending.deltas, at);
  };
  // Also where the token's products are those of the state without them.
  ReplayPending received = pending;
  received.commits = lookup(replay.getCommit());
  return emitReplayFold(b, loc, all[scan.getState()], received, delta,
                        [&](Value state) {
                          all.set(scan.getNewState(), state);
                          for (Operation *op : (*roles)[ScanRole::state].stores)
                            all.emitBranch(cast<scf::IfOp>(op));
                        });
}

/// Rows of pending keys to warps, as many lanes to each as there are for it in
/// a block of so many threads: in others sums are the same.
static constexpr int64_t pairThreads = 256;

gpu::RowsAttr ResidentReplay::getPairRows() {
  int64_t most = getPendingRoom(replay.getPendingKey()).getDimSize(0);
  int64_t columns = replay.getKey().getType().getDimSize(1);
  int64_t vector = 4, lanes = gpu::warpThreads;
  while (columns % vector != 0)
    vector /= 2;
  while (lanes > 1 &&
         (columns % (lanes * vector) != 0 || pairThreads / lanes < most))
    lanes /= 2;
  return gpu::RowsAttr::get(b.getContext(), numWarps, lanes, vector);
}

void ResidentReplay::emitPairs() {
  Location loc = scan.getLoc();
  gpu::RowsAttr rows = getPairRows();
  auto pairs = emitReplayPairs(
      b, loc, pending, rows,
      loadColumns(shared[scan.getKey()], tokenRows.pairKey, rows),
      loadColumns(shared[scan.getQuery()], tokenRows.pairQuery, rows), decay);
  auto store = [&](Value fragment) {
    int64_t size =
        cast<gpu::FragmentType>(fragment.getType()).getShape().back();
    Value buffer = allocate(VectorType::get({size}, b.getF32Type()));
    gpu::StoreSharedOp::create(b, loc, fragment, buffer, Value());
    return buffer;
  };
  keyPairs = store(pairs.first);
  queryPairs = store(pairs.second);
}

/// The products of the state with key and query.
void ResidentReplay::emitProducts(Value state) {
  Location loc = scan.getLoc();
  auto [known, seen] = emitStateProducts(
      b, loc, state,
      loadColumns(shared[scan.getKey()], tokenRows.key, stateRows),
      loadColumns(shared[scan.getQuery()], tokenRows.query, stateRows));
  products = allocate(VectorType::get(
      {2, scan.getState().getType().getDimSize(0)}, b.getF32Type()));
  gpu::StoreSharedOp::create(b, loc, known, products, zero);
  gpu::StoreSharedOp::create(b, loc, seen, products,
                             arith::ConstantIndexOp::create(b, loc, 1));
}

/// The sums over pending tokens, by as many warps as have an element for each
/// lane, while the last warp makes the product of key and query: where a block
/// has its multiprocessor to itself, one warp would have all others wait. Where
/// others are beside it, that is cheaper.
void ResidentReplay::emitSums() {
  Location loc = scan.getLoc();
  const int64_t size = scan.getState().getType().getDimSize(0);
  const int64_t warps = size / gpu::warpThreads;
  if (copiesInFewWarps() || scan.isPerChannel() ||
      size % gpu::warpThreads != 0 || warps > numWarps)
    return;
  auto group = gpu::WarpsOp::create(b, loc, TypeRange(), 0, warps, {});
  b.createBlock(&group.getBody());
  auto type = VectorType::get({warps, gpu::warpThreads}, b.getF32Type());
  ReplayTerms terms = getTerms();
  known = allocate(type);
  seen = allocate(type);
  emitReplaySums(b, loc, pending, terms, known, seen);
  gpu::YieldOp::create(b, loc);
  b.setInsertionPointAfter(group);
  auto last = enterWarps(ScanRole::output, b.getF32Type());
  gpu::YieldOp::create(b, loc, emitReplayMeets(b, loc, getTerms()));
  b.setInsertionPointAfter(last);
  meets = last.getResult(0);
  if (!worksBehindSums())
    return (void)gpu::BarrierOp::create(b, loc);
  gpu::ArriveOp::create(b, loc, numWarps - 1);
}

ReplayTerms ResidentReplay::getTerms() {
  ReplayTerms terms;
  terms.products = products;
  terms.key = shared[scan.getKey()];
  terms.query = shared[scan.getQuery()];
  terms.value = shared[scan.getValue()];
  terms.decay = decay;
  terms.beta = getNumber(shared[scan.getBeta()]);
  terms.keyPairs = keyPairs;
  terms.queryPairs = queryPairs;
  terms.known = known;
  terms.seen = seen;
  terms.meets = meets;
  return terms;
}

void ResidentReplay::emitOutputOf(FragmentEmitter &warp) {
  ReplayTerms terms = getTerms();
  auto [delta, output] = emitReplayOutput(b, scan.getLoc(), pending, terms);
  warp.set(scan.getDeltas(), delta);
  warp.set(scan.getOutput(), output);
}

void ResidentReplay::emitState(FragmentEmitter &all) {
  // What is made of planes would wait for them above.
  for (Operation *op : (*roles)[ScanRole::state].tiles)
    if (!isa<tile::LoadOp>(op))
      all.emit(op);
  if (Value seen = replay.getSeen()) {
    emitProducts(all[seen]);
    emitFolded(all);
    return;
  }
  emitProducts(emitFolded(all));
}

void ResidentReplay::emitRootBlock(Block &block) {
  if (copiesInFewWarps())
    findCount(block);
  emitScalars(block, counted);
  setVariants();
  // One row of planes at a time takes registers for one.
  if (!scan.getState().getDefiningOp<tile::LoadOp>() && keepsLoops())
    gpu::KernelFields(entry->getParentOp()).setKeepLoops();
  zero = arith::ConstantIndexOp::create(b, scan.getLoc(), 0);
  FragmentEmitter all(b, scalars, stateRows);
  emitWindows();
  // Who waits for the count asks for its part of the state behind that: the
  // count would come behind it, and the tokens later.
  if (copiesInFewWarps())
    beginCopies();
  emitStateLoads(all);
  if (!copiesInFewWarps()) {
    beginCopies();
    if (weighsEarly())
      emitEarlyWeights();
  }
  emitAwait();
  emitOutputLoads();
  emitOperands(ScanRole::query, scan.getQuery());
  emitOperands(ScanRole::key, scan.getKey());
  emitOperands(ScanRole::value, scan.getValue());
  if (!asksForGates())
    emitOperands(ScanRole::gates, scan.getGates());
  if (copiesInFewWarps() && weighsEarly())
    emitEarlyWeights();
  gpu::AwaitCopiesOp::create(b, scan.getLoc());
  gpu::BarrierOp::create(b, scan.getLoc());
  takeCount(all);
  if (!asksLate())
    emitTickets();
  emitWeights();
  if (!weighsEarly())
    gpu::BarrierOp::create(b, scan.getLoc());
  emitPairs();
  emitState(all);
  if (asksLate())
    emitTickets();
  gpu::BarrierOp::create(b, scan.getLoc());
  emitSums();
  emitOutput();
  emitLateStores();
  if (worksBehindSums())
    emitBehindSums();
}
