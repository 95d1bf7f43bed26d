// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.decay_within. A warp has 16 tokens and 64 channels, in four slices of
// 16 channels. Its tokens are two halves of eight: a lane has one token of
// each, and two channels of each eight, as accumulators lie.
//
// A product of tf32 sums the logs of a half: its first eight rows are sums up
// to and with a token, the others behind it. Rows of the scores are eight
// queries, then their keys; columns are keys of the first half or the second.
// Factors of scores begin in the middle of the 16 tokens.
//
// Sums of the next slice are under way while this one is multiplied. A loop has
// two slices in a turn: all roles of such a kernel have their instructions in
// one cache, and a fourth of a warp's time went by waiting for those of four
// slices.
#include "Products/ChunkCode.h"
#include "Products/ChunkOps.h"

using namespace mlir;
using namespace gdn;

using gdn::gpu::DecayWithinOp;

namespace {

class DecayWithin : public ChunkCode {
public:
  DecayWithin(OpBuilder &b, const BlockThreads &threads, DecayWithinOp op,
              const IRMapping &values);
  void emit();

private:
  /// Turns of the loop, and slices in one.
  static constexpr int64_t turns = 2, slices = 2;
  /// Of a half, the channels 8 g and on, for g = 0, 1.
  template <typename T> using OfHalves = std::array<std::array<T, 2>, 2>;
  using Pair = std::array<Value, 2>;

  /// Factors of scores: a query and a key for each of two channels, and the
  /// key as a column.
  using Factors = OfHalves<SmallVector<Value, 6>>;

  /// Decays of two channels: up to and with a token of the half, behind it, and
  /// the inverse of that from the middle of the 16 tokens.
  struct Decays {
    OfHalves<Pair> upTo, behind, inverse;
  };

  /// Where a lane's logs of a half begin: of even and odd tokens.
  struct LogPlace {
    Value even, odd;
  };
  /// What goes from turn to turn.
  struct Carried {
    LogPlace logs; // where the turn's slices begin, and
    Value query, key, toEnd, decays;
    OfHalves<Numbers> sums;       // of logs of the next slice
    Numbers first, below, second; // scores of half by half
    SmallVector<Value *> all();
  };

  OfHalves<Pair> loadLogs(const LogPlace &place, int64_t slice);
  Decays decaysOf(const OfHalves<Numbers> &sums);
  OfHalves<Numbers> sum(const OfHalves<Pair> &logs);
  Pair widen(Value word);
  Pair mulPair(const Pair &x, const Pair &y) {
    return {times(x[0], y[0]), times(x[1], y[1])};
  }
  Value roundPair(const Pair &x) { return ChunkCode::roundPair(x[0], x[1]); }
  Factors boundFactors(OfHalves<Pair> logs, const OfHalves<Pair> &queries,
                       const OfHalves<Pair> &keys);
  Value isTooSmall(ArrayRef<Pair> decays);
  void emitSlice(int64_t slice, const LogPlace &behind);

  Type stored; // of queries and keys as they come
  Numbers matrix;
  Carried carried;
  Value parts;
};

} // namespace

DecayWithin::DecayWithin(OpBuilder &b, const BlockThreads &threads,
                         DecayWithinOp op, const IRMapping &values)
    : ChunkCode(b, op.getLoc(), threads, values),
      stored(op.getQuery().getType().getElementType()) {
  Value tokens = right(warp, 1), half = bitAnd(warp, 1);
  Value fromToken = mul(tokens, i32(blockBytes));
  // Logs: rows 2 c and 2 c + 1 of the eight tokens of a half, column `row`.
  Value log = add(addressOf(op.getLogDecay()),
                  add(mul(half, i32(2 * panelBytes)), fromToken));
  Value piece = flip(right(row, 2), column);
  Value inPiece = left(bitAnd(row, 3), 2);
  Value place = add(add(mul(column, i32(rowBytes)), left(piece, 4)), inPiece);
  carried.logs = {add(log, place), add(log, flip(add(place, rowBytes), 16))};
  parts = add(add(log, panelBytes), left(lane, 4));
  // Matrices.
  Value blocks = rowOfBlocks();
  Value inBlocks = add(add(mul(half, i32(panelBytes)), fromToken), blocks);
  carried.query = add(addressOf(op.getQuery()), inBlocks);
  carried.key = add(addressOf(op.getKey()), inBlocks);
  Value ofFirst = add(addressOf(op.getFirstKeys()), left(half, 11));
  carried.toEnd = add(select(isEqual(tokens, i32(0)), ofFirst, log), blocks);
  carried.decays =
      add(addressOf(op.getDecays()),
          add(add(left(tokens, 9), left(half, 8)), left(column, 2)));
  // log2(e), a little more for what tf32 takes off.
  Value one = f32(DecayWithinOp::log2e), none = f32(0);
  for (int64_t e = 0; e < 2; ++e) {
    Value isUpTo = isLess(add(column, e), add(row, 1));
    matrix.push_back(select(isUpTo, one, none));
    matrix.push_back(select(isUpTo, none, one));
  }
}

/// Of both halves and eight channels each, two tokens. A panel has the logs of
/// a turn.
DecayWithin::OfHalves<DecayWithin::Pair>
DecayWithin::loadLogs(const LogPlace &place, int64_t slice) {
  OfHalves<Pair> logs;
  for (int64_t g = 0; g < 2; ++g)
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t e = 0; e < 2; ++e)
        logs[half][g][e] =
            load(b.getF32Type(),
                 flip(e ? place.odd : place.even, slice * 64 + g * 32),
                 half * 8 * rowBytes);
  return logs;
}

DecayWithin::OfHalves<DecayWithin::Numbers>
DecayWithin::sum(const OfHalves<Pair> &logs) {
  OfHalves<Numbers> sums;
  for (int64_t half = 0; half < 2; ++half)
    for (int64_t g = 0; g < 2; ++g)
      sums[half][g] = addTf32(matrix, logs[half][g], zeros());
  return sums;
}

/// Of bf16 as bits, not by a conversion.
DecayWithin::Pair DecayWithin::widen(Value word) {
  if (stored.isBF16())
    return {asFloat(left(word, 16)),
            asFloat(bitAnd(word, -(int64_t(1) << 16)))};
  Numbers numbers = ChunkCode::widen(word, stored);
  return {numbers[0], numbers[1]};
}

static SmallVector<Value, 6> factorsOf(const std::array<Value, 2> &query,
                                       const std::array<Value, 2> &key,
                                       const std::array<Value, 2> &column) {
  return {query[0], key[0], query[1], key[1], column[0], column[1]};
}

/// Factors of scores where 16 tokens forget almost all: with bounded logs. What
/// they are to give is less than what rounding leaves of others.
DecayWithin::Factors DecayWithin::boundFactors(OfHalves<Pair> logs,
                                               const OfHalves<Pair> &queries,
                                               const OfHalves<Pair> &keys) {
  Value least = f32(DecayWithinOp::leastLogOfScores);
  for (auto &half : logs)
    for (Pair &pair : half)
      for (Value &log : pair)
        log = arith::MaxNumFOp::create(b, loc, log, least);
  OfHalves<Numbers> sums = sum(logs);
  Factors factors;
  for (int64_t g = 0; g < 2; ++g) {
    auto decay = [&](int64_t half, bool isInverse) {
      // Behind a token of the first half, up to one of the second.
      ArrayRef<Value> logs = ArrayRef(sums[half][g]).slice(half ? 0 : 2, 2);
      Pair result;
      for (int64_t e = 0; e < 2; ++e)
        result[e] = exp2(logs[e], isInverse);
      return result;
    };
    OfHalves<Pair> rows; // queries, keys
    for (int64_t half = 0; half < 2; ++half) {
      const Pair ofRow = decay(half, /*isInverse=*/half == 0);
      rows[half] = {mulPair(queries[half][g], ofRow),
                    mulPair(keys[half][g], ofRow)};
    }
    for (int64_t half = 0; half < 2; ++half)
      factors[half][g] =
          factorsOf(rows[half][0], rows[half][1],
                    mulPair(keys[half][g], decay(half, half == 1)));
  }
  return factors;
}

/// Whether a decay of any lane is too small for the factors of scores.
Value DecayWithin::isTooSmall(ArrayRef<Pair> decays) {
  auto least = [&](Value x, Value y) -> Value {
    return arith::MinNumFOp::create(b, loc, x, y);
  };
  Value all = least(least(decays[0][0], decays[0][1]),
                    least(decays[1][0], decays[1][1]));
  Value isSmall = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, all,
                                        f32(DecayWithinOp::leastDecayOfScores));
  return NVVM::VoteSyncOp::create(b, loc, b.getI1Type(), i32(-1), isSmall,
                                  NVVM::VoteSyncKind::any);
}

DecayWithin::Decays DecayWithin::decaysOf(const OfHalves<Numbers> &sums) {
  Decays decays;
  for (int64_t half = 0; half < 2; ++half)
    for (int64_t g = 0; g < 2; ++g)
      for (int64_t e = 0; e < 2; ++e) {
        const Numbers &sum = sums[half][g];
        decays.upTo[half][g][e] = exp2(sum[e]);
        decays.behind[half][g][e] = exp2(sum[2 + e]);
        decays.inverse[half][g][e] =
            exp2(sum[half ? e : 2 + e], /*isInverse=*/true);
      }
  return decays;
}

SmallVector<Value *> DecayWithin::Carried::all() {
  SmallVector<Value *> all = {&logs.even, &logs.odd, &query,
                              &key,       &toEnd,    &decays};
  for (Numbers *numbers : {&sums[0][0], &sums[0][1], &sums[1][0], &sums[1][1],
                           &first, &below, &second})
    for (Value &number : *numbers)
      all.push_back(&number);
  return all;
}

void DecayWithin::emitSlice(int64_t slice, const LogPlace &behind) {
  const int64_t at = slice * sliceBytes;
  Words queryWords = loadBlocks(flip(carried.query, at)),
        keyWords = loadBlocks(flip(carried.key, at));
  OfHalves<Pair> logsBehind = slice + 1 < slices
                                  ? loadLogs(carried.logs, slice + 1)
                                  : loadLogs(behind, 0);
  const Decays of = decaysOf(carried.sums);
  carried.sums = sum(logsBehind);
  OfHalves<Pair> ofHalf;
  for (int64_t half = 0; half < 2; ++half)
    for (int64_t g = 0; g < 2; ++g)
      ofHalf[half][g] = mulPair(of.upTo[half][g], of.behind[half][g]);
  Value decaysAt = add(carried.decays, slice * 16 * 4);
  const std::array<Pair, 2> ofAll = {mulPair(ofHalf[0][0], ofHalf[1][0]),
                                     mulPair(ofHalf[0][1], ofHalf[1][1])};
  onlyIf(isEqual(row, i32(0)), [&] {
    for (int64_t g = 0; g < 2; ++g)
      store(vectorOf(ofAll[g]), decaysAt, g * 8 * 4);
  });
  Value isSmall = isTooSmall(ofAll);
  OfHalves<Pair> queries, keys;
  Factors factors;
  Words toQuery(4), toKey(4), toLast(4);
  for (int64_t g = 0; g < 2; ++g) {
    for (int64_t half = 0; half < 2; ++half) {
      queries[half][g] = widen(queryWords[2 * g + half]);
      keys[half][g] = widen(keyWords[2 * g + half]);
    }
    const Pair &q = queries[0][g], &k = keys[0][g], &later = keys[1][g];
    const Pair row = mulPair(q, of.inverse[0][g]),
               keyRow = mulPair(k, of.inverse[0][g]),
               laterRow = mulPair(queries[1][g], of.upTo[1][g]),
               laterKeyRow = mulPair(later, of.upTo[1][g]),
               toMiddle = mulPair(k, of.behind[0][g]);
    factors[0][g] = factorsOf(row, keyRow, toMiddle);
    factors[1][g] =
        factorsOf(laterRow, laterKeyRow, mulPair(later, of.inverse[1][g]));
    toQuery[2 * g] = roundPair(mulPair(q, of.upTo[0][g]));
    toKey[2 * g] = roundPair(mulPair(k, of.upTo[0][g]));
    toLast[2 * g + 1] = roundPair(mulPair(later, of.behind[1][g]));
    toQuery[2 * g + 1] = roundPair(mulPair(laterRow, ofHalf[0][g]));
    toKey[2 * g + 1] = roundPair(mulPair(laterKeyRow, ofHalf[0][g]));
    toLast[2 * g] = roundPair(mulPair(toMiddle, ofHalf[1][g]));
  }
  auto flatten = [](const Factors &all) {
    SmallVector<Value> flat;
    for (const auto &half : all)
      for (const auto &factors : half)
        llvm::append_range(flat, factors);
    return flat;
  };
  SmallVector<Value> taken = choose(
      isSmall,
      [&] {
        return flatten(
            boundFactors(loadLogs(carried.logs, slice), queries, keys));
      },
      [&] { return flatten(factors); });
  syncWarp(); // all have loaded what is written below
  for (int64_t g = 0; g < 2; ++g) {
    ArrayRef<Value> half = ArrayRef(taken).slice(6 * g, 6),
                    later = ArrayRef(taken).slice(12 + 6 * g, 6);
    auto addScores = [&](ArrayRef<Value> rows, ArrayRef<Value> columns,
                         Numbers &scores) {
      scores = addTf32(rows.take_front(4), columns.drop_front(4), scores);
    };
    addScores(half, half, carried.first);
    addScores(later, half, carried.below);
    addScores(later, later, carried.second);
  }
  storeBlocks(flip(carried.query, at), toQuery);
  storeBlocks(flip(carried.key, at), toKey);
  storeBlocks(flip(carried.toEnd, at), toLast);
}

void DecayWithin::emit() {
  carried.sums = sum(loadLogs(carried.logs, 0));
  carried.first = carried.below = carried.second = zeros();
  auto values = [&] {
    return llvm::map_to_vector(carried.all(),
                               [](Value *value) { return *value; });
  };
  auto take = [&](ValueRange from) {
    for (auto [value, other] : llvm::zip_equal(carried.all(), from))
      *value = other;
  };
  auto emitTurn = [&](OpBuilder &b, Location loc, Value turn, ValueRange from) {
    take(from);
    // Behind the last turn those of it again: they are there, and of no use.
    Value isLast = isEqual(turn, i32(turns - 1));
    Value offset = select(isLast, i32(0), i32(panelBytes));
    const LogPlace behind = {add(carried.logs.even, offset),
                             add(carried.logs.odd, offset)};
    for (int64_t slice = 0; slice < slices; ++slice)
      emitSlice(slice, behind);
    carried.logs = behind;
    for (Value *tile : {&carried.query, &carried.key, &carried.toEnd})
      *tile = flip(*tile, slices * sliceBytes);
    carried.decays = add(carried.decays, slices * 16 * 4);
    scf::YieldOp::create(b, loc, values());
  };
  auto loop = scf::ForOp::create(b, loc, i32(0), i32(turns), i32(1), values(),
                                 emitTurn);
  take(loop.getResults());
  // Where this warp's logs were.
  store(vectorOf(carried.first), parts, 0);
  store(vectorOf(carried.below), parts, 512);
  store(vectorOf(carried.second), parts, 1024);
}

void gdn::emitChunkOp(OpBuilder &b, const BlockThreads &threads,
                      DecayWithinOp op, const IRMapping &values) {
  DecayWithin(b, threads, op, values).emit();
}
