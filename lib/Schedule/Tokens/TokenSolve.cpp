// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block of tokens at once, where the state after each of them is not asked
// for. With the state M before the block, one decay g per token and
// R(t, s) = exp(g[s+1] + .. + g[t]):
//
//   products   a_t = M k_t, b_t = M q_t: the state is read and not written
//   pairs      R(t, s) (k_s . k_t), R(t, s) (k_s . q_t) for s <= t
//   solve      d_t = beta_t (v_t - R(t, -1) a_t - sum_{s < t} R(t, s) (k_s .
//   k_t) d_s)
//              o_t = R(t, -1) b_t + sum_{s <= t} R(t, s) (k_s . q_t) d_s
//
// Rows of the state do not depend on each other, so a thread solves for a row.
//
// Where the state lacks the pending tokens j of several steps, M is the state
// without them: with the decays w behind it and w_j behind each of them, up to
// the first token,
//
//   pairs      w_j R(t, -1) (k_j . k_t), w_j R(t, -1) (k_j . q_t)
//   solve      w R(t, -1) in place of R(t, -1), and these pairs times d_j
//
// What a token gives depends on those before it alone: tokens behind it, or
// another length of the sequence, change no bit. Where rows allow it, tensor
// cores make the products, all tokens at once.
#include "Tokens/TokenSolve.h"

#include "Kernel/FoldStep.h"
#include "Kernel/PendingSource.h"
#include "Kernel/ReplayStep.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace gdn;

TokenSolve::TokenSolve(TokenProgram &p)
    : TokenPart(p), blockTokens(p.blockTokens) {
  auto place = [&](int64_t columns) {
    return p.allocate(VectorType::get({blockTokens, columns}, b.getF32Type()));
  };
  int64_t rows = scan.getState().getType().getDimSize(0);
  knownBuffer = place(rows);
  seenBuffer = place(rows);
  keyPairs = place(blockTokens);
  queryPairs = place(blockTokens);
  if (p.catchUp) {
    int64_t most = getPendingRoom(p.catchUp.getPendingKey()).getDimSize(0);
    pendingKeyPairs = place(most);
    pendingQueryPairs = place(most);
    pendingWeights = p.allocate(VectorType::get({most}, b.getF32Type()));
  }
}

static Value emitDot(OpBuilder &b, Location loc, Value x, Value y) {
  return vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD,
                                     arith::MulFOp::create(b, loc, x, y),
                                     arith::FastMathFlags::reassoc);
}

void TokenSolve::emitPairs(Value count) {
  MLIRContext *context = b.getContext();
  int64_t columns = scan.getKey().getType().getDimSize(1);
  int64_t vector = 4, lanes = 8;
  while (columns % vector != 0)
    vector /= 2;
  while (lanes > 1 && columns % (lanes * vector) != 0)
    lanes /= 2;
  auto rows = gpu::RowsAttr::get(context, /*warps=*/1, lanes, vector);
  auto perColumn = gpu::PerColumnAttr::get(context, rows);
  auto pairs =
      gpu::FragmentType::get(VectorType::get({blockTokens}, b.getF32Type()),
                             gpu::PerRowAttr::get(context, rows));
  auto keys = gpu::FragmentType::get(
      VectorType::get({blockTokens, columns}, b.getF32Type()), rows);

  Value at = p.enterTurns(count);
  Value all =
      gpu::LoadSharedOp::create(b, loc, keys, p.shared[scan.getKey()], Value());
  Value key = p.loadRow(scan.getKey(), perColumn, at);
  Value query = p.loadRow(scan.getQuery(), perColumn, at);
  SmallVector<Value> decays, numbers;
  for (int64_t u = 0; u < blockTokens; ++u) {
    numbers.push_back(p.index(u));
    decays.push_back(
        p.loadNumber(p.shared[scan.getLogDecay()], numbers.back()));
  }
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  auto emitRow = [&](ValueRange args) {
    // Sums of the decays between the two, and of no others: the difference of
    // two running sums would be worse where some decay is strong.
    Value sum;
    for (int64_t u = 1; u < blockTokens; ++u) {
      using P = arith::CmpIPredicate;
      Value isAfter =
          arith::CmpIOp::create(b, loc, P::ult, args[0], numbers[u]);
      Value isUpTo = arith::CmpIOp::create(b, loc, P::ule, numbers[u], at);
      Value counts = arith::AndIOp::create(b, loc, isAfter, isUpTo);
      Value part = arith::SelectOp::create(b, loc, counts, decays[u], zero);
      sum = sum ? Value(arith::AddFOp::create(b, loc, sum, part)) : part;
    }
    Value factor = math::ExpOp::create(b, loc, sum);
    SmallVector<Value> yielded;
    for (unsigned i : {2, 3}) {
      Value dot = emitDot(b, loc, args[1], args[i]);
      yielded.push_back(arith::MulFOp::create(b, loc, factor, dot));
    }
    return yielded;
  };
  ValueRange made = p.mapRows({pairs, pairs}, {all, key, query}, emitRow);
  gpu::StoreSharedOp::create(b, loc, made[0], keyPairs, at);
  gpu::StoreSharedOp::create(b, loc, made[1], queryPairs, at);
  if (p.catchUp)
    emitPendingPairs(at, rows, key, query, decays);
  p.leaveTurns(at);
}

/// Pending tokens that a turn of a loop takes; those behind the last one are
/// zero.
static constexpr int64_t turnTokens = 4;

Value TokenSolve::countPending() {
  FragmentEmitter outside(b, p.scalars);
  return arith::SelectOp::create(b, loc, outside.scalar(p.catchUp.getCommit()),
                                 p.index(0),
                                 outside.scalar(p.catchUp.getCount()));
}

/// A buffer with `columns` elements in each row.
static Value reshape(OpBuilder &b, Location loc, Value buffer,
                     int64_t columns) {
  auto type = cast<gpu::SharedType>(buffer.getType());
  int64_t size = ShapedType::getNumElements(type.getShape());
  auto rows = VectorType::get({size / columns, columns}, type.getElementType());
  return gpu::ReshapeOp::create(b, loc, gpu::SharedType::get(rows), buffer);
}

void TokenSolve::emitPendingWeights() {
  tile::DeltaCatchUpOp catchUp = p.catchUp;
  PendingSource deltas = findPendingSource(catchUp.getPendingDeltas());
  gpu::WarpsOp warps = p.enterWarp(p.numWarps - 1);
  Value weights = emitReplayWeights(
      b, loc, p.shared[catchUp.getPendingDecay()],
      getPendingRoom(catchUp.getPendingKey()).getDimSize(0),
      deltas.scales ? p.shared[deltas.scales.getTile()] : Value());
  gpu::StoreSharedOp::create(b, loc, weights, pendingWeights, Value());
  p.leave(warps);
}

void TokenSolve::emitPendingPairs(Value at, gpu::RowsAttr rows, Value key,
                                  Value query, ArrayRef<Value> decays) {
  TypedValue<VectorType> keys =
      findPendingSource(p.catchUp.getPendingKey()).load.getTile();
  VectorType type = keys.getType();
  const int64_t most = getPendingRoom(keys).getDimSize(0);
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f)), sum;
  using P = arith::CmpIPredicate;
  for (auto [u, decay] : llvm::enumerate(decays)) {
    Value isUpTo = arith::CmpIOp::create(b, loc, P::ule, p.index(u), at);
    Value part = arith::SelectOp::create(b, loc, isUpTo, decay, zero);
    sum = sum ? Value(arith::AddFOp::create(b, loc, sum, part)) : part;
  }
  Value factor = math::ExpOp::create(b, loc, sum);
  // A few rows at a time: beside the state a thread has registers for no more.
  auto part = gpu::FragmentType::get(
      VectorType::get({turnTokens, type.getDimSize(1)}, type.getElementType()),
      rows);
  auto pairs =
      gpu::FragmentType::get(VectorType::get({turnTokens}, b.getF32Type()),
                             gpu::PerRowAttr::get(b.getContext(), rows));
  auto loop = scf::ForOp::create(b, loc, p.index(0), countPending(),
                                 p.index(turnTokens));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value first = loop.getInductionVar();
  Value some = gpu::LoadSharedOp::create(b, loc, part, p.shared[keys], first);
  auto emitRow = [&](ValueRange args) {
    Value weight = arith::MulFOp::create(b, loc, factor, args[4]);
    SmallVector<Value> yielded;
    Value known = emitWide(b, loc, args[1]);
    for (unsigned i : {2, 3}) {
      Value dot = emitDot(b, loc, known, args[i]);
      yielded.push_back(arith::MulFOp::create(b, loc, weight, dot));
    }
    return yielded;
  };
  Value turn = arith::DivUIOp::create(b, loc, first, p.index(turnTokens));
  Value place = p.add(p.mul(at, most / turnTokens), turn);
  Value weights = gpu::LoadSharedOp::create(
      b, loc, pairs, reshape(b, loc, pendingWeights, turnTokens), turn);
  ValueRange made =
      p.mapRows({pairs, pairs}, {some, key, query, weights}, emitRow);
  gpu::StoreSharedOp::create(
      b, loc, made[0], reshape(b, loc, pendingKeyPairs, turnTokens), place);
  gpu::StoreSharedOp::create(
      b, loc, made[1], reshape(b, loc, pendingQueryPairs, turnTokens), place);
}

void TokenSolve::emitPendingTerms(gpu::FragmentType type) {
  Value deltas = findPendingSource(p.catchUp.getPendingDeltas()).load.getTile();
  Value logDecays = p.catchUp.getPendingDecay();
  auto row = gpu::FragmentType::get(
      VectorType::get(type.getShape(), getElementTypeOrSelf(deltas.getType())),
      type.getLayout());
  const int64_t most = getPendingRoom(p.catchUp.getPendingKey()).getDimSize(0);
  FragmentEmitter outside(b, p.scalars);
  Value commits = outside.scalar(p.catchUp.getCommit());
  Value one = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(1.0f));
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  kept = arith::SelectOp::create(
      b, loc, commits, one, emitReplayKept(b, loc, p.shared[logDecays], most));
  auto flat = [&](Value buffer) -> Value {
    auto line = VectorType::get({blockTokens * most}, b.getF32Type());
    return gpu::ReshapeOp::create(b, loc, gpu::SharedType::get(line), buffer);
  };
  Value keyNumbers = flat(pendingKeyPairs),
        queryNumbers = flat(pendingQueryPairs);
  Value none = gpu::FillOp::create(b, loc, type, zero);
  SmallVector<Value> sums(2 * blockTokens, none);
  auto loop = scf::ForOp::create(b, loc, p.index(0), countPending(),
                                 p.index(turnTokens), sums);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> inputs(loop.getRegionIterArgs()), numbers;
    for (int64_t j = 0; j < turnTokens; ++j) {
      Value at = p.add(loop.getInductionVar(), p.index(j));
      inputs.push_back(
          gpu::LoadSharedOp::create(b, loc, row, p.shared[deltas], at));
      for (int64_t t = 0; t < blockTokens; ++t)
        for (Value pairs : {keyNumbers, queryNumbers})
          numbers.push_back(p.loadNumber(pairs, p.add(at, p.index(t * most))));
    }
    SmallVector<Type> types(sums.size(), type);
    ValueRange next = p.mapRows(types, inputs, [&](ValueRange args) {
      SmallVector<Value> added(args.slice(1, sums.size()));
      for (int64_t j = 0; j < turnTokens; ++j) {
        Value delta = emitWide(b, loc, args[1 + sums.size() + j]);
        for (auto [i, sum] : llvm::enumerate(added))
          sum = arith::AddFOp::create(
              b, loc, sum,
              arith::MulFOp::create(b, loc, numbers[j * sums.size() + i], delta)
                  .getResult());
      }
      return added;
    });
    scf::YieldOp::create(b, loc, next);
  }
  for (int64_t t = 0; t < blockTokens; ++t) {
    pendingKnown.push_back(loop.getResult(2 * t));
    pendingSeen.push_back(loop.getResult(2 * t + 1));
  }
}

void TokenSolve::emitProducts(Value state, Value first, Value count) {
  if (p.takesTensorCores()) {
    // The sequence's first tokens meet the state as its slot holds it.
    Value exact = p.isStateNarrow() ? p.isEqual(first, p.begin) : Value();
    gpu::ShareProductsOp::create(b, loc, state, p.shared[scan.getKey()],
                                 p.shared[scan.getQuery()], count, knownBuffer,
                                 seenBuffer, exact);
    return;
  }
  int64_t rows = scan.getState().getType().getDimSize(0);
  auto perRow =
      gpu::FragmentType::get(VectorType::get({rows}, b.getF32Type()),
                             gpu::PerRowAttr::get(b.getContext(), p.stateRows));
  auto recurrence = scf::ForOp::create(b, loc, p.index(0), count, p.index(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(recurrence.getBody());
  Value at = recurrence.getInductionVar();
  Value key = p.loadPerColumn(scan.getKey(), at);
  Value query = p.loadPerColumn(scan.getQuery(), at);
  auto emitRow = [&](ValueRange args) -> SmallVector<Value> {
    Value known = emitDot(b, loc, args[1], args[2]);
    return {known, emitDot(b, loc, args[1], args[3])};
  };
  ValueRange made = p.mapRows({perRow, perRow}, {state, key, query}, emitRow);
  gpu::StoreSharedOp::create(b, loc, made[0], knownBuffer, at);
  gpu::StoreSharedOp::create(b, loc, made[1], seenBuffer, at);
}

Value TokenSolve::emitSolved(int64_t t, ArrayRef<Value> deltas, Value decay,
                             gpu::FragmentType type) {
  Value at = p.index(t);
  auto get = [&](Value buffer) -> Value {
    return gpu::LoadSharedOp::create(b, loc, type, buffer, at);
  };
  auto flat = [&](Value buffer) -> Value {
    auto line = VectorType::get({blockTokens * blockTokens}, b.getF32Type());
    return gpu::ReshapeOp::create(b, loc, gpu::SharedType::get(line), buffer);
  };
  Value keyBuffer = flat(keyPairs), queryBuffer = flat(queryPairs);
  SmallVector<Value> keys, queries;
  for (int64_t s = 0; s <= t; ++s) {
    Value buffer = p.index(t * blockTokens + s);
    if (s < t)
      keys.push_back(p.loadNumber(keyBuffer, buffer));
    queries.push_back(p.loadNumber(queryBuffer, buffer));
  }
  Value beta = p.loadNumber(p.shared[scan.getBeta()], at);
  Value factor = math::ExpOp::create(b, loc, decay);
  if (kept)
    factor = arith::MulFOp::create(b, loc, factor, kept);
  SmallVector<Value> inputs = {get(knownBuffer), get(seenBuffer),
                               get(p.shared[scan.getValue()])};
  llvm::append_range(inputs, deltas);
  if (kept)
    llvm::append_range(inputs,
                       ArrayRef<Value>{pendingKnown[t], pendingSeen[t]});
  auto multiply = [&](Value x, Value y) -> Value {
    return arith::MulFOp::create(b, loc, x, y);
  };
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddFOp::create(b, loc, x, y);
  };
  auto emitRow = [&](ValueRange args) -> SmallVector<Value> {
    Value known = multiply(factor, args[1]);
    Value seen = multiply(factor, args[2]);
    if (kept) {
      known = add(known, args[4 + t]);
      seen = add(seen, args[5 + t]);
    }
    for (int64_t s = 0; s < t; ++s) {
      known = add(known, multiply(keys[s], args[4 + s]));
      seen = add(seen, multiply(queries[s], args[4 + s]));
    }
    Value error = arith::SubFOp::create(b, loc, args[3], known);
    Value d = multiply(beta, error);
    return {d, add(seen, multiply(d, queries[t]))};
  };
  ValueRange made = p.mapRows({type, type}, inputs, emitRow);
  gpu::StoreSharedOp::create(b, loc, made[0], p.shared[scan.getDeltas()], at);
  gpu::StoreSharedOp::create(b, loc, made[1], p.shared[scan.getOutput()], at);
  return made[0];
}

void TokenSolve::emitSolve(Value count) {
  MLIRContext *context = b.getContext();
  int64_t size = scan.getState().getType().getDimSize(0);
  auto rows =
      gpu::RowsAttr::get(context, p.numWarps, /*lanes=*/1, /*vector=*/1);
  auto type = gpu::FragmentType::get(VectorType::get({size}, b.getF32Type()),
                                     gpu::PerRowAttr::get(context, rows));
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  if (p.catchUp)
    emitPendingTerms(type);
  SmallVector<Value> deltas;
  Value sum; // of the decays up to the token
  for (int64_t t = 0; t < blockTokens; ++t) {
    Value at = p.index(t);
    Value decay = p.loadNumber(p.shared[scan.getLogDecay()], at);
    sum = sum ? Value(arith::AddFOp::create(b, loc, sum, decay)) : decay;
    Value isToken =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, at, count);
    auto none = [&]() -> Value {
      return gpu::FillOp::create(b, loc, type, zero);
    };
    deltas.push_back(p.emitIf(
        isToken, type, [&] { return emitSolved(t, deltas, sum, type); }, none));
  }
}

Value TokenSolve::emitCarried(Value state, Value last, Value count) {
  Value isMore =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, last, p.end);
  auto fold = [&] {
    return p.emitFold(state, count, scan.getKey(), scan.getDeltas(),
                      scan.getLogDecay());
  };
  return p.emitIf(isMore, state.getType(), fold, [&] { return state; });
}
