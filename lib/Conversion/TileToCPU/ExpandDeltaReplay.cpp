// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States without their last tokens, on the CPU: with them (delta_catch_up), and
// the delta rule from there (delta_replay). For the rule the state is read once
// and, unless it is time to commit, not written:
//
//   decay[j], left: what is left of each pending token, and of the state
//   commit:  for each row i of the state:
//              row = left * row + sum over j: decay[j] * d[j][i] * k[j]
//            none is pending any more, and left is 1
//   for each token t:
//     factor[t] = what is left of the state
//     weights of k[t] and q[t]: decay * (k[j] . k[t]), decay * (k[j] . q[t])
//   for each block of rows, each token, each row i:
//     deltas[t][i] = state[i] . k[t],  output[t][i] = state[i] . q[t]
//   for each token, each vector of rows:
//     y = factor * deltas[t] + sum over tokens: weight * d[j]
//     o = factor * output[t] + the same with the other weights
//     d = beta * (value[t] - y),  deltas[t] = d,  output[t] = o + weight * d
#include "ExpandTileOps.h"
#include "StateRows.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace gdn;

/// Rows of the state, and vectors of each, that tokens are added to at a time.
static constexpr int64_t foldRows = 2, foldChunks = 4;

namespace {
/// Rows of pending tokens in f32: what they are, and a factor for each.
struct PendingBuffers {
  Value key, deltas, logDecay, decay;
};

/// What puts pending tokens into a state.
class PendingLoops : protected StateRows {
protected:
  PendingLoops(OpBuilder &b, tile::PendingOpInterface op,
               const PendingBuffers &pending, int64_t lanes)
      : StateRows(b, op.getLoc(), op.getState().getType(), lanes),
        pending(pending), pendingCount(op.getCount()) {}

  Value zero() {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  }
  Value load(Value buffer, ValueRange at) {
    return memref::LoadOp::create(b, loc, buffer, at);
  }
  void store(Value value, Value buffer, ValueRange at) {
    memref::StoreOp::create(b, loc, value, buffer, at);
  }
  Value times(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value plus(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value exp(Value x) { return math::ExpOp::create(b, loc, x); }
  /// The sum of what body(i, total) adds to `start`, i from `from` to `to`.
  Value total(Value from, Value to, Value start,
              function_ref<Value(Value, Value)> body);
  Value emitDecays();
  void emitFold(Value left, Value state, Value to);

  PendingBuffers pending;
  Value pendingCount;
};

class ReplayLoops : private PendingLoops {
public:
  ReplayLoops(OpBuilder &b, tile::DeltaReplayOp replay,
              const ReplayBuffers &buffers, int64_t lanes)
      : PendingLoops(b, replay,
                     {buffers.pendingKey, buffers.pendingDeltas,
                      buffers.pendingLogDecay, buffers.pendingDecay},
                     lanes),
        replay(replay), buffers(buffers),
        room(replay.getPendingKey().getType().getDimSize(0)) {}

  void emit();

private:
  Value dot(const Chunks &x, const Chunks &y);
  void emitWeights(Value count, Value stateDecay);
  void emitProducts();
  void emitOutputs(Value count);

  tile::DeltaReplayOp replay;
  const ReplayBuffers &buffers;
  int64_t room;
};
} // namespace

Value PendingLoops::total(Value from, Value to, Value start,
                          function_ref<Value(Value, Value)> body) {
  auto op = scf::ForOp::create(b, loc, from, to, index(1), start);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  Value next = body(op.getInductionVar(), op.getRegionIterArg(0));
  scf::YieldOp::create(b, loc, next);
  return op.getResult(0);
}

/// What is left of each pending token behind the last; gives what is left of
/// the state. Sums go backwards: none is a difference of others.
Value PendingLoops::emitDecays() {
  Value sum = total(index(0), pendingCount, zero(), [&](Value i, Value later) {
    Value j = arith::SubIOp::create(
        b, loc, arith::SubIOp::create(b, loc, pendingCount, index(1)), i);
    store(exp(later), pending.decay, j);
    return plus(later, load(pending.logDecay, j));
  });
  return exp(sum);
}

/// The state with the pending tokens, whose rows are rounded once: some rows
/// and vectors of them at a time, which stay in registers for all tokens.
void PendingLoops::emitFold(Value left, Value state, Value to) {
  OpBuilder::InsertionGuard guard(b);
  const int64_t height = rows % foldRows == 0 ? foldRows : 1,
                chunks = columns / lanes,
                width = std::gcd(chunks, int64_t(foldChunks));
  Value first = loop(index(0), index(rows), height).getInductionVar();
  Value column =
      loop(index(0), index(columns), width * lanes).getInductionVar();
  Value decay = splat(left);
  SmallVector<Value> rowsOfBlock, columnsOfBlock, sums;
  for (int64_t i = 0; i < height; ++i)
    rowsOfBlock.push_back(arith::AddIOp::create(b, loc, first, index(i)));
  for (int64_t c = 0; c < width; ++c)
    columnsOfBlock.push_back(
        arith::AddIOp::create(b, loc, column, index(c * lanes)));
  for (Value i : rowsOfBlock)
    for (Value c : columnsOfBlock)
      sums.push_back(times(decay, readAt(state, i, c)));
  auto tokens =
      scf::ForOp::create(b, loc, index(0), pendingCount, index(1), sums);
  {
    OpBuilder::InsertionGuard inLoop(b);
    b.setInsertionPointToStart(tokens.getBody());
    Value j = tokens.getInductionVar();
    Value weight = load(pending.decay, j);
    SmallVector<Value> keys, next;
    for (Value c : columnsOfBlock)
      keys.push_back(readAt(pending.key, j, c));
    unsigned sum = 0;
    for (Value i : rowsOfBlock) {
      Value delta = splat(times(weight, load(pending.deltas, {j, i})));
      for (Value key : keys)
        next.push_back(vector::FMAOp::create(b, loc, delta, key,
                                             tokens.getRegionIterArg(sum++)));
    }
    scf::YieldOp::create(b, loc, next);
  }
  unsigned sum = 0;
  for (Value i : rowsOfBlock)
    for (Value c : columnsOfBlock)
      writeAt(tokens.getResult(sum++), to, i, c);
}

/// In two chains, then lane by lane in a fixed tree.
Value ReplayLoops::dot(const Chunks &x, const Chunks &y) {
  SmallVector<Value> partial;
  for (unsigned c = 0; c < x.size(); ++c)
    if (c < 2)
      partial.push_back(times(x[c], y[c]));
    else
      partial[c % 2] =
          vector::FMAOp::create(b, loc, x[c], y[c], partial[c % 2]);
  Value sum = partial.size() > 1 ? plus(partial[0], partial[1]) : partial[0];
  return vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD, sum,
                                     arith::FastMathFlags::reassoc);
}

void ReplayLoops::emitWeights(Value count, Value stateDecay) {
  OpBuilder::InsertionGuard guard(b);
  auto tokens =
      scf::ForOp::create(b, loc, index(0), replay.getValid(), index(1), zero());
  b.setInsertionPointToStart(tokens.getBody());
  Value t = tokens.getInductionVar();
  Chunks key = read(buffers.key, t), query = read(buffers.query, t);
  Value sum = plus(tokens.getRegionIterArg(0), load(buffers.logDecay, t));
  Value left = exp(sum);
  store(times(stateDecay, left), buffers.decay, t);
  auto setWeights = [&](Value column, const Chunks &other, Value decay) {
    store(times(decay, dot(other, key)), buffers.keyWeights, {t, column});
    store(times(decay, dot(other, query)), buffers.queryWeights, {t, column});
  };
  {
    OpBuilder::InsertionGuard inLoop(b);
    Value j = loop(index(0), count, 1).getInductionVar();
    setWeights(j, read(buffers.pendingKey, j),
               times(load(buffers.pendingDecay, j), left));
  }
  // The step's own tokens, backwards, this one first.
  total(index(0), arith::AddIOp::create(b, loc, t, index(1)), zero(),
        [&](Value back, Value later) {
          Value i = arith::SubIOp::create(b, loc, t, back);
          setWeights(arith::AddIOp::create(b, loc, index(room), i),
                     read(buffers.key, i), exp(later));
          return plus(later, load(buffers.logDecay, i));
        });
  scf::YieldOp::create(b, loc, sum);
}

/// What the state gives: one pass over its rows.
void ReplayLoops::emitProducts() {
  Value state = buffers.seen ? buffers.seen : buffers.newState;
  forBlocks(replay.getValid(), [&](Value t, Value first, Value last) {
    Chunks key = read(buffers.key, t), query = read(buffers.query, t);
    Value i = loop(first, last, 1).getInductionVar();
    if (buffers.stateIsInPool && !buffers.seen)
      emitPrefetch(state, i);
    Chunks row = read(state, i);
    store(dot(row, key), buffers.deltas, {t, i});
    store(dot(row, query), buffers.output, {t, i});
  });
}

void ReplayLoops::emitOutputs(Value count) {
  OpBuilder::InsertionGuard guard(b);
  const int64_t width = std::gcd(rows, this->lanes);
  auto chunk = VectorType::get({width}, b.getF32Type());
  auto all = [&](Value scalar) -> Value {
    return vector::BroadcastOp::create(b, loc, chunk, scalar);
  };
  auto rowsOf = [&](Value buffer, Value token, Value column) -> Value {
    return vector::LoadOp::create(b, loc, chunk, buffer,
                                  ValueRange{token, column});
  };
  Value t = loop(index(0), replay.getValid(), 1).getInductionVar();
  Value left = all(load(buffers.decay, t)), beta = all(load(buffers.beta, t));
  Value column = loop(index(0), index(rows), width).getInductionVar();
  SmallVector<Value> sums = {times(left, rowsOf(buffers.deltas, t, column)),
                             times(left, rowsOf(buffers.output, t, column))};
  auto add = [&](Value to, Value offset, Value deltas) {
    auto op = scf::ForOp::create(b, loc, index(0), to, index(1), sums);
    OpBuilder::InsertionGuard inLoop(b);
    b.setInsertionPointToStart(op.getBody());
    Value j = op.getInductionVar();
    Value weight = arith::AddIOp::create(b, loc, offset, j);
    Value delta = rowsOf(deltas, j, column);
    SmallVector<Value> next;
    const std::array<Value, 2> both = {buffers.keyWeights,
                                       buffers.queryWeights};
    for (auto [weights, sum] : llvm::zip(both, op.getRegionIterArgs()))
      next.push_back(vector::FMAOp::create(
          b, loc, all(load(weights, {t, weight})), delta, sum));
    scf::YieldOp::create(b, loc, next);
    sums.assign(op.getResults().begin(), op.getResults().end());
  };
  add(count, index(0), buffers.pendingDeltas);
  add(t, index(room), buffers.deltas);
  Value error =
      arith::SubFOp::create(b, loc, rowsOf(buffers.value, t, column), sums[0]);
  Value delta = times(beta, error);
  Value own = arith::AddIOp::create(b, loc, index(room), t);
  Value output = vector::FMAOp::create(
      b, loc, all(load(buffers.queryWeights, {t, own})), delta, sums[1]);
  vector::StoreOp::create(b, loc, delta, buffers.deltas, ValueRange{t, column});
  vector::StoreOp::create(b, loc, output, buffers.output,
                          ValueRange{t, column});
}

void ReplayLoops::emit() {
  Value left = emitDecays();
  auto branch =
      scf::IfOp::create(b, loc, replay.getCommit(), !buffers.isInPlace);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    emitFold(left, buffers.state, buffers.newState);
    if (!buffers.isInPlace) {
      b.setInsertionPointToStart(branch.elseBlock());
      expandCopy(b, loc, buffers.state, buffers.newState);
    }
  }
  Value count = replay.getCount();
  if (!buffers.seen) {
    Value one = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(1));
    count =
        arith::SelectOp::create(b, loc, replay.getCommit(), index(0), count);
    left = arith::SelectOp::create(b, loc, replay.getCommit(), one, left);
  }
  emitWeights(count, left);
  emitProducts();
  emitOutputs(count);
}

namespace {
class CatchUpLoops : private PendingLoops {
public:
  CatchUpLoops(OpBuilder &b, tile::DeltaCatchUpOp catchUp,
               const CatchUpBuffers &buffers, int64_t lanes)
      : PendingLoops(b, catchUp,
                     {buffers.pendingKey, buffers.pendingDeltas,
                      buffers.pendingLogDecay, buffers.pendingDecay},
                     lanes),
        commits(catchUp.getCommit()), buffers(buffers) {}

  void emit() {
    Value left = emitDecays();
    auto branch = scf::IfOp::create(b, loc, commits, /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    emitFold(left, buffers.state, buffers.newState);
    emitWidened();
    b.setInsertionPointToStart(branch.elseBlock());
    emitFold(left, buffers.state, buffers.whole);
    if (!buffers.isInPlace)
      expandCopy(b, loc, buffers.state, buffers.newState);
  }

private:
  /// The new state in f32.
  void emitWidened() {
    OpBuilder::InsertionGuard guard(b);
    Value i = loop(index(0), index(rows), 1).getInductionVar();
    for (auto [c, chunk] : llvm::enumerate(read(buffers.newState, i)))
      write(chunk, buffers.whole, i, c * lanes);
  }

  Value commits;
  const CatchUpBuffers &buffers;
};
} // namespace

void gdn::expandDeltaCatchUp(OpBuilder &b, tile::DeltaCatchUpOp catchUp,
                             const CatchUpBuffers &buffers, int64_t lanes) {
  CatchUpLoops(b, catchUp, buffers, lanes).emit();
}

void gdn::expandDeltaReplay(OpBuilder &b, tile::DeltaReplayOp replay,
                            const ReplayBuffers &buffers, int64_t lanes) {
  ReplayLoops(b, replay, buffers, lanes).emit();
}
