// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.decay_within. A warp has 16 tokens and 64 channels, in four slices of
// 16 channels, each of two parts of eight. Its tokens are two halves of eight:
// a lane has one token of each, and two channels of each part, as accumulators
// lie.
//
// A product of tf32, or of f16 if the logs are, sums the logs of a half: its
// first eight rows are sums up to and with a token, the others behind it. Rows
// of the scores are eight queries, then their keys; columns are keys of the
// first half or the second. Factors of scores begin where a half does, or
// between both.
//
// Parts overlap: while one is multiplied, exponentials of the next one are
// under way, of which the unit takes one in eight cycles, and sums of that
// behind it. A loop has a slice in a turn, in one block of instructions; a
// slice that forgets almost all has instructions of its own behind the loop.
// All roles of such a kernel have their instructions in one cache.
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
  static constexpr int64_t slices = 4;
  using Pair = std::array<Value, 2>;
  /// Of both halves, two channels.
  using Pairs = std::array<Pair, 2>;

  /// Decays of a part: up to and with a token of the half, the inverse of that,
  /// and behind the token.
  struct Decays {
    Pairs upTo, inverse, behind;
  };
  /// Logs of a part, of both halves: two numbers each, or a word of them.
  using Logs = std::array<Numbers, 2>;
  /// Their sums.
  using Sums = std::array<Numbers, 2>;

  /// Factors of the scores of a part: of each half queries and keys as rows,
  /// and keys as columns; and those of the first half for the second's.
  struct Factors {
    Pairs query, key, column;
    Pair below;
  };

  /// What goes from slice to slice: its number, whether it forgets almost all,
  /// decays of the first part, sums of the second, scores of half by half.
  struct Carried {
    Value slice, isSmall;
    Decays decays;
    Sums sums;
    Numbers first, below, second;
    SmallVector<Value *> all();
  };

  Logs loadLogs(Value slice, int64_t part);
  Decays decaysOf(const Sums &sums);
  Sums sum(const Logs &logs);
  Pair widen(Value word);
  Pair mulPair(const Pair &x, const Pair &y) {
    return {times(x[0], y[0]), times(x[1], y[1])};
  }
  Value roundPair(const Pair &x) { return ChunkCode::roundPair(x[0], x[1]); }
  Factors boundFactors(Logs logs, const Pairs &queries, const Pairs &keys);
  Value isTooSmall(ArrayRef<Sums> sums);
  SmallVector<Value> getCarried();
  SmallVector<Type> getTypes();
  void take(ValueRange from);
  void emitSlice(bool isBounded);
  void emitSlices(OpBuilder &b, Location loc, ValueRange from);

  Type stored;   // of queries and keys as they come
  bool isNarrow; // whether logs are of f16
  Value evenLogs, oddLogs, query, key, toEnd, decays, parts; // addresses
  Numbers matrix;
  Pairs queryNorms, keyNorms; // of both halves, twice the same; null: none
  Carried carried;
};

} // namespace

DecayWithin::DecayWithin(OpBuilder &b, const BlockThreads &threads,
                         DecayWithinOp op, const IRMapping &values)
    : ChunkCode(b, op.getLoc(), threads, values),
      stored(op.getQuery().getType().getElementType()),
      isNarrow(op.getLogDecay().getType().getElementType().isF16()) {
  Value tokens = right(warp, 1), half = bitAnd(warp, 1);
  Value fromToken = mul(tokens, i32(blockBytes));
  // Logs: rows 2 c and 2 c + 1 of the eight tokens of a half, column `row`.
  Value log = add(addressOf(op.getLogDecay()),
                  add(mul(half, i32(2 * panelBytes)), fromToken));
  Value piece = flip(right(row, 2), column);
  Value inPiece = left(bitAnd(row, 3), 2);
  Value place = add(add(mul(column, i32(rowBytes)), left(piece, 4)), inPiece);
  evenLogs = add(log, place);
  oddLogs = add(log, flip(add(place, rowBytes), 16));
  parts = add(add(log, panelBytes), left(lane, 4));
  // Matrices.
  Value blocks = rowOfBlocks();
  Value inBlocks = add(add(mul(half, i32(panelBytes)), fromToken), blocks);
  query = add(addressOf(op.getQuery()), inBlocks);
  key = add(addressOf(op.getKey()), inBlocks);
  Value ofFirst = add(addressOf(op.getFirstKeys()), left(half, 11));
  toEnd = add(select(isEqual(tokens, i32(0)), ofFirst, log), blocks);
  decays = add(addressOf(op.getDecays()),
               add(add(left(tokens, 9), left(half, 8)), left(column, 2)));
  if (isNarrow)
    evenLogs = add(log, blocks);
  if (Value norms = op.getNorms()) {
    Value ofToken = add(addressOf(norms), add(left(tokens, 6), left(row, 2)));
    for (int64_t half = 0; half < 2; ++half)
      for (auto [pairs, row] : {std::pair{&queryNorms, 0}, {&keyNorms, 1}}) {
        Value norm = load(b.getF32Type(), ofToken, half * 32 + row * 128);
        (*pairs)[half] = {norm, norm};
      }
  }
  // log2(e), a little more for what tf32 takes off; logs of f16 are to base 2.
  Value one = f32(isNarrow ? 0x1p-8f : DecayWithinOp::log2e), none = f32(0);
  for (int64_t e = 0; e < 2; ++e) {
    Value isUpTo = isLess(add(column, e), add(row, 1));
    matrix.push_back(select(isUpTo, one, none));
    matrix.push_back(select(isUpTo, none, one));
  }
  if (isNarrow)
    matrix = {ChunkCode::roundPair(matrix[0], matrix[2]),
              ChunkCode::roundPair(matrix[1], matrix[3])};
}

/// Of both halves and eight channels, two tokens. A panel has the logs of two
/// slices. A decay of 0 has a log that is finite, for the zeros of the matrix;
/// NaN stays.
DecayWithin::Logs DecayWithin::loadLogs(Value slice, int64_t part) {
  if (isNarrow) { // those of both parts, which LLVM loads once
    Words words = loadBlocks(flip(evenLogs, left(slice, 5)), true);
    return {Numbers{words[2 * part]}, Numbers{words[2 * part + 1]}};
  }
  Value inPanel = left(bitAnd(slice, 1), 6), panel = left(right(slice, 1), 12);
  Logs logs;
  Value lowest = f32(std::numeric_limits<float>::lowest());
  for (int64_t half = 0; half < 2; ++half)
    for (int64_t e = 0; e < 2; ++e) {
      Value place = add(flip(e ? oddLogs : evenLogs, inPanel), panel);
      Value log =
          load(b.getF32Type(), flip(place, part * 32), half * 8 * rowBytes);
      logs[half].push_back(larger(log, lowest));
    }
  return logs;
}

DecayWithin::Sums DecayWithin::sum(const Logs &logs) {
  auto of = [&](ValueRange logs) {
    return isNarrow ? addProduct(matrix, logs, zeros())
                    : addTf32(matrix, logs, zeros());
  };
  return {of(logs[0]), of(logs[1])};
}

/// Of bf16 as bits, not by a conversion.
DecayWithin::Pair DecayWithin::widen(Value word) {
  if (stored.isBF16())
    return {asFloat(left(word, 16)),
            asFloat(bitAnd(word, -(int64_t(1) << 16)))};
  Numbers numbers = ChunkCode::widen(word, stored);
  return {numbers[0], numbers[1]};
}

/// Factors of scores where 16 tokens forget almost all: with bounded logs, from
/// between the halves. What they are to give is less than what rounding leaves
/// of others.
DecayWithin::Factors DecayWithin::boundFactors(Logs logs, const Pairs &queries,
                                               const Pairs &keys) {
  constexpr float least = DecayWithinOp::leastLogOfScores;
  FloatAttr leastNarrow =
      b.getF16FloatAttr(least * DecayWithinOp::scaleOfNarrowLogs);
  for (Numbers &ofHalf : logs)
    for (Value &log : ofHalf)
      if (isNarrow)
        log = atLeast(fromWords(b, loc, log, b.getF16Type()), leastNarrow);
      else
        log = arith::MaxNumFOp::create(b, loc, log, f32(least));
  Sums sums = sum(logs);
  auto decay = [&](int64_t half, bool isInverse) {
    // Behind a token of the first half, up to one of the second.
    ArrayRef<Value> logs = ArrayRef(sums[half]).slice(half ? 0 : 2, 2);
    return Pair{exp2(logs[0], isInverse), exp2(logs[1], isInverse)};
  };
  Factors factors;
  for (int64_t half = 0; half < 2; ++half) {
    const Pair ofRow = decay(half, /*isInverse=*/half == 0);
    factors.query[half] = mulPair(queries[half], ofRow);
    factors.key[half] = mulPair(keys[half], ofRow);
    factors.column[half] = mulPair(keys[half], decay(half, half == 1));
  }
  factors.below = factors.column[0];
  return factors;
}

/// Whether the decay of a channel is too small for the factors of scores: the
/// last token of a half, which some lanes have, knows it, and none says more.
Value DecayWithin::isTooSmall(ArrayRef<Sums> sums) {
  Value least;
  for (const auto &[half, later] : sums)
    for (int64_t e = 0; e < 2; ++e) {
      Value all = plus(half[e], later[e]);
      least = least ? arith::MinNumFOp::create(b, loc, least, all) : all;
    }
  Value isSmall =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, least,
                            f32(DecayWithinOp::leastLogDecayOfScores));
  return NVVM::VoteSyncOp::create(b, loc, b.getI1Type(), i32(-1), isSmall,
                                  NVVM::VoteSyncKind::any);
}

DecayWithin::Decays DecayWithin::decaysOf(const Sums &sums) {
  Decays decays;
  for (int64_t half = 0; half < 2; ++half)
    for (int64_t e = 0; e < 2; ++e) {
      decays.upTo[half][e] = exp2(sums[half][e]);
      decays.behind[half][e] = exp2(sums[half][2 + e]);
      decays.inverse[half][e] = exp2(sums[half][e], /*isInverse=*/true);
    }
  return decays;
}

SmallVector<Value *> DecayWithin::Carried::all() {
  SmallVector<Value *> all = {&slice, &isSmall};
  for (Pairs *pairs : {&decays.upTo, &decays.inverse, &decays.behind})
    for (Pair &pair : *pairs)
      for (Value &value : pair)
        all.push_back(&value);
  for (Numbers *numbers : {&sums[0], &sums[1], &first, &below, &second})
    for (Value &number : *numbers)
      all.push_back(&number);
  return all;
}

SmallVector<Value> DecayWithin::getCarried() {
  return llvm::map_to_vector(carried.all(),
                             [](Value *value) { return *value; });
}

SmallVector<Type> DecayWithin::getTypes() {
  return llvm::map_to_vector(carried.all(),
                             [](Value *value) { return value->getType(); });
}

void DecayWithin::take(ValueRange from) {
  for (auto [value, other] : llvm::zip_equal(carried.all(), from))
    *value = other;
}

void DecayWithin::emitSlice(bool isBounded) {
  Value slice = carried.slice, at = left(slice, 5);
  Value queryAt = flip(query, at), keyAt = flip(key, at);
  Words queryWords = loadBlocks(queryAt), keyWords = loadBlocks(keyAt);
  // Behind the last slice it again: it is there, and of no use.
  Value next = arith::MinUIOp::create(b, loc, add(slice, 1), i32(slices - 1));
  const std::array<Logs, 2> logs = {loadLogs(next, 0), loadLogs(next, 1)};
  const std::array<Decays, 2> of = {carried.decays, decaysOf(carried.sums)};
  const std::array<Sums, 2> sums = {sum(logs[0]), sum(logs[1])};
  std::array<Pairs, 2> queries, keys, ofHalf;
  std::array<Pair, 2> ofAll;
  std::array<Factors, 2> factors;
  Words toQuery(4), toKey(4), toLast(4);
  for (int64_t part = 0; part < 2; ++part) {
    const auto &[upTo, inverse, behind] = of[part];
    Factors &own = factors[part];
    Pairs &q = queries[part], &k = keys[part], &half = ofHalf[part];
    for (int64_t i = 0; i < 2; ++i) {
      q[i] = widen(queryWords[2 * part + i]);
      k[i] = widen(keyWords[2 * part + i]);
      if (queryNorms[i][0]) {
        q[i] = mulPair(q[i], queryNorms[i]);
        k[i] = mulPair(k[i], keyNorms[i]);
      }
      half[i] = mulPair(upTo[i], behind[i]);
      own.query[i] = mulPair(q[i], upTo[i]);
      own.key[i] = mulPair(k[i], upTo[i]);
    }
    ofAll[part] = mulPair(half[0], half[1]);
    own.below = mulPair(k[0], behind[0]);
    toQuery[2 * part] = roundPair(own.query[0]);
    toKey[2 * part] = roundPair(own.key[0]);
    toLast[2 * part] = roundPair(mulPair(own.below, half[1]));
    toQuery[2 * part + 1] = roundPair(mulPair(own.query[1], half[0]));
    toKey[2 * part + 1] = roundPair(mulPair(own.key[1], half[0]));
    toLast[2 * part + 1] = roundPair(mulPair(k[1], behind[1]));
  }
  Value decaysAt = add(decays, left(slice, 6));
  onlyIf(isEqual(row, i32(0)), [&] {
    for (int64_t part = 0; part < 2; ++part)
      store(vectorOf(ofAll[part]), decaysAt, part * 8 * 4);
  });
  for (int64_t part = 0; part < 2; ++part) {
    if (isBounded)
      factors[part] =
          boundFactors(loadLogs(slice, part), queries[part], keys[part]);
    else
      for (int64_t i = 0; i < 2; ++i)
        factors[part].column[i] = mulPair(keys[part][i], of[part].inverse[i]);
  }
  carried.decays = decaysOf(sums[0]);
  carried.sums = sums[1];
  carried.isSmall = isTooSmall(sums);
  carried.slice = add(slice, 1);
  syncWarp(); // all have loaded what is written below
  for (Factors &own : factors) {
    auto addScores = [&](int64_t half, const Pair &columns, Numbers &scores) {
      const Pair &q = own.query[half], &k = own.key[half];
      scores = addTf32({q[0], k[0], q[1], k[1]}, columns, scores);
    };
    addScores(0, own.column[0], carried.first);
    addScores(1, own.below, carried.below);
    addScores(1, own.column[1], carried.second);
  }
  storeBlocks(queryAt, toQuery);
  storeBlocks(keyAt, toKey);
  storeBlocks(flip(toEnd, at), toLast);
}

/// All slices up to one that forgets almost all, and that.
void DecayWithin::emitSlices(OpBuilder &b, Location loc, ValueRange from) {
  auto isLeft = [&] { return isLess(carried.slice, i32(slices)); };
  auto loop = scf::WhileOp::create(
      b, loc, getTypes(), from,
      [&](OpBuilder &b, Location loc, ValueRange from) {
        take(from);
        Value isOther = arith::XOrIOp::create(
            b, loc, carried.isSmall,
            arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
        Value isNext = arith::AndIOp::create(b, loc, isLeft(), isOther);
        scf::ConditionOp::create(b, loc, isNext, from);
      },
      [&](OpBuilder &b, Location loc, ValueRange from) {
        take(from);
        emitSlice(/*isBounded=*/false);
        scf::YieldOp::create(b, loc, getCarried());
      });
  take(loop.getResults());
  take(choose(
      isLeft(),
      [&] {
        emitSlice(/*isBounded=*/true);
        return getCarried();
      },
      [&] { return SmallVector<Value>(loop.getResults()); }));
  scf::YieldOp::create(b, loc, getCarried());
}

void DecayWithin::emit() {
  Value none = i32(0);
  const std::array<Sums, 2> sums = {sum(loadLogs(none, 0)),
                                    sum(loadLogs(none, 1))};
  carried.slice = none;
  carried.isSmall = isTooSmall(sums);
  carried.decays = decaysOf(sums[0]);
  carried.sums = sums[1];
  carried.first = carried.below = carried.second = zeros();
  auto loop = scf::WhileOp::create(
      b, loc, getTypes(), getCarried(),
      [&](OpBuilder &b, Location loc, ValueRange from) {
        take(from);
        scf::ConditionOp::create(b, loc, isLess(carried.slice, i32(slices)),
                                 from);
      },
      [&](OpBuilder &b, Location loc, ValueRange from) {
        emitSlices(b, loc, from);
      });
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
