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
//
// With a decay per channel what is left is a row: k[j] is multiplied with it
// ahead of each product, and so are k[t] and q[t] ahead of those with the
// state.
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
  /// Factors or log decays of a token: one number, or a row of vectors.
  using Decay = SmallVector<Value>;

  PendingLoops(OpBuilder &b, tile::PendingOpInterface op,
               const PendingBuffers &pending, int64_t lanes)
      : StateRows(b, op.getLoc(), op.getState().getType(), lanes),
        perChannel(op.isPendingPerChannel()),
        room(op.getPendingKey().getType().getDimSize(0)), pending(pending),
        pendingCount(op.getCount()) {}

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
  Decay times(ArrayRef<Value> x, ArrayRef<Value> y) {
    Decay all;
    for (auto [left, right] : llvm::zip_equal(x, y))
      all.push_back(times(left, right));
    return all;
  }
  Decay plus(ArrayRef<Value> x, ArrayRef<Value> y) {
    Decay all;
    for (auto [left, right] : llvm::zip_equal(x, y))
      all.push_back(plus(left, right));
    return all;
  }
  Decay exp(ArrayRef<Value> x) {
    return llvm::map_to_vector(x, [&](Value part) -> Value {
      return math::ExpOp::create(b, loc, part);
    });
  }
  /// The same number in all of a decay.
  Decay decayOfAll(float number) {
    Value all = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(number));
    return perChannel ? Decay(columns / lanes, splat(all)) : Decay{all};
  }
  Decay loadDecay(Value buffer, Value t) {
    return perChannel ? read(buffer, t) : Decay{load(buffer, t)};
  }
  void storeDecay(const Decay &decay, Value buffer, Value t) {
    if (!perChannel)
      return store(decay[0], buffer, t);
    for (auto [c, part] : llvm::enumerate(decay))
      write(part, buffer, t, c * lanes);
  }
  /// The sum of what body(i, total) adds to `start`, i from `from` to `to`.
  Decay total(Value from, Value to, const Decay &start,
              function_ref<Decay(Value, const Decay &)> body);
  Decay emitDecays();
  void emitFold(const Decay &left, Value state, Value to);

  bool perChannel;
  int64_t room;
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
        replay(replay), buffers(buffers) {}

  void emit();

private:
  Value dot(const Chunks &x, const Chunks &y);
  void emitWeights(Value count, const Decay &stateDecay);
  void emitProducts();
  void emitOutputs(Value count);

  tile::DeltaReplayOp replay;
  const ReplayBuffers &buffers;
};
} // namespace

PendingLoops::Decay
PendingLoops::total(Value from, Value to, const Decay &start,
                    function_ref<Decay(Value, const Decay &)> body) {
  auto op = scf::ForOp::create(b, loc, from, to, index(1), start);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  Decay next = body(op.getInductionVar(), Decay(op.getRegionIterArgs()));
  scf::YieldOp::create(b, loc, next);
  return Decay(op.getResults());
}

/// What is left of each pending token behind the last; gives what is left of
/// the state, which with a decay per channel is behind those of the tokens,
/// too. Sums go backwards: none is a difference of others.
PendingLoops::Decay PendingLoops::emitDecays() {
  Decay sum = total(
      index(0), pendingCount, decayOfAll(0), [&](Value i, const Decay &later) {
        Value j = arith::SubIOp::create(
            b, loc, arith::SubIOp::create(b, loc, pendingCount, index(1)), i);
        storeDecay(exp(later), pending.decay, j);
        return plus(later, loadDecay(pending.logDecay, j));
      });
  Decay left = exp(sum);
  if (perChannel)
    storeDecay(left, pending.decay, index(room));
  return left;
}

/// The state with the pending tokens, whose rows are rounded once: some rows
/// and vectors of them at a time, which stay in registers for all tokens.
void PendingLoops::emitFold(const Decay &left, Value state, Value to) {
  OpBuilder::InsertionGuard guard(b);
  const int64_t height = rows % foldRows == 0 ? foldRows : 1,
                chunks = columns / lanes,
                width = std::gcd(chunks, int64_t(foldChunks));
  Value first = loop(index(0), index(rows), height).getInductionVar();
  Value column =
      loop(index(0), index(columns), width * lanes).getInductionVar();
  SmallVector<Value> rowsOfBlock, columnsOfBlock, decays, sums;
  if (!perChannel)
    decays.assign(width, splat(left[0]));
  for (int64_t i = 0; i < height; ++i)
    rowsOfBlock.push_back(arith::AddIOp::create(b, loc, first, index(i)));
  for (int64_t c = 0; c < width; ++c)
    columnsOfBlock.push_back(
        arith::AddIOp::create(b, loc, column, index(c * lanes)));
  if (perChannel)
    for (Value c : columnsOfBlock)
      decays.push_back(readAt(pending.decay, index(room), c));
  for (Value i : rowsOfBlock)
    for (auto [c, decay] : llvm::zip_equal(columnsOfBlock, decays))
      sums.push_back(times(decay, readAt(state, i, c)));
  auto tokens =
      scf::ForOp::create(b, loc, index(0), pendingCount, index(1), sums);
  {
    OpBuilder::InsertionGuard inLoop(b);
    b.setInsertionPointToStart(tokens.getBody());
    Value j = tokens.getInductionVar();
    Value weight = perChannel ? Value() : load(pending.decay, j);
    SmallVector<Value> keys, next;
    for (Value c : columnsOfBlock) {
      Value key = readAt(pending.key, j, c);
      keys.push_back(perChannel ? times(key, readAt(pending.decay, j, c))
                                : key);
    }
    unsigned sum = 0;
    for (Value i : rowsOfBlock) {
      Value number = load(pending.deltas, {j, i});
      Value delta = splat(perChannel ? number : times(weight, number));
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

void ReplayLoops::emitWeights(Value count, const Decay &stateDecay) {
  OpBuilder::InsertionGuard guard(b);
  Decay none = decayOfAll(0);
  auto tokens =
      scf::ForOp::create(b, loc, index(0), replay.getValid(), index(1), none);
  b.setInsertionPointToStart(tokens.getBody());
  Value t = tokens.getInductionVar();
  Chunks key = read(buffers.key, t), query = read(buffers.query, t);
  Decay sum =
      plus(Decay(tokens.getRegionIterArgs()), loadDecay(buffers.logDecay, t));
  Decay left = exp(sum);
  storeDecay(times(stateDecay, left), buffers.decay, t);
  auto setWeights = [&](Value column, Chunks other, const Decay &decay) {
    auto set = [&](const Chunks &row, Value buffer) {
      Value weight = dot(other, row);
      store(perChannel ? weight : times(decay[0], weight), buffer, {t, column});
    };
    if (perChannel)
      other = times(other, decay);
    set(key, buffers.keyWeights);
    set(query, buffers.queryWeights);
  };
  {
    OpBuilder::InsertionGuard inLoop(b);
    Value j = loop(index(0), count, 1).getInductionVar();
    setWeights(j, read(buffers.pendingKey, j),
               times(loadDecay(buffers.pendingDecay, j), left));
  }
  // The step's own tokens, backwards, this one first.
  total(index(0), arith::AddIOp::create(b, loc, t, index(1)), none,
        [&](Value back, const Decay &later) {
          Value i = arith::SubIOp::create(b, loc, t, back);
          setWeights(arith::AddIOp::create(b, loc, index(room), i),
                     read(buffers.key, i), exp(later));
          return plus(later, loadDecay(buffers.logDecay, i));
        });
  scf::YieldOp::create(b, loc, sum);
}

/// What the state gives: one pass over its rows.
void ReplayLoops::emitProducts() {
  Value state = buffers.seen ? buffers.seen : buffers.newState;
  forBlocks(replay.getValid(), [&](Value t, Value first, Value last) {
    Chunks key = read(buffers.key, t), query = read(buffers.query, t);
    if (perChannel) {
      Decay left = read(buffers.decay, t);
      key = times(left, key);
      query = times(left, query);
    }
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
  Value left = perChannel ? Value() : all(load(buffers.decay, t));
  Value beta = all(load(buffers.beta, t));
  Value column = loop(index(0), index(rows), width).getInductionVar();
  SmallVector<Value> sums;
  for (Value product : {buffers.deltas, buffers.output}) {
    Value row = rowsOf(product, t, column);
    sums.push_back(perChannel ? row : times(left, row));
  }
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
  Decay left = emitDecays();
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
    Decay whole = decayOfAll(1);
    count =
        arith::SelectOp::create(b, loc, replay.getCommit(), index(0), count);
    for (auto [one, part] : llvm::zip_equal(whole, left))
      part = arith::SelectOp::create(b, loc, replay.getCommit(), one, part);
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
    Decay left = emitDecays();
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
