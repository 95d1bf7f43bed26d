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
#include "Products/ProductFamily.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

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

  /// Factors of scores: rows of queries and keys, and columns of keys.
  struct Factors {
    std::array<Numbers, 2> rows, columns; // of 8 channels each
  };

  /// Decays of two channels: up to and with a token of the half, behind it, and
  /// the inverse of that from the middle of the 16 tokens.
  struct Decays {
    OfHalves<Pair> upTo, behind, inverse;
  };

  /// Where a lane's logs of a half begin: of even and odd tokens.
  struct LogPlace {
    Value even, odd;
  };
  /// What goes from turn to carried.
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
  Pair mulPair(const Pair &x, const Pair &y) {
    return {mul(x[0], y[0]), mul(x[1], y[1])};
  }
  Value roundPair(const Pair &x) { return ChunkCode::roundPair(x[0], x[1]); }
  void setRows(Factors &factors, int64_t g, const Pair &query, const Pair &key,
               const Pair &decay);
  std::array<Factors, 2> boundFactors(OfHalves<Pair> logs,
                                      const OfHalves<Pair> &queries,
                                      const OfHalves<Pair> &keys);
  Value storeDecays(Value to, const std::array<Pair, 2> &decays);
  void emitSlice(int64_t slice, const LogPlace &behind, Carried &carried);

  Type stored; // of queries and keys as they come
  Numbers matrix;
  LogPlace logs;
  Value query, key, toEnd, decays, parts;
};

} // namespace

DecayWithin::DecayWithin(OpBuilder &b, const BlockThreads &threads,
                         DecayWithinOp op, const IRMapping &values)
    : ChunkCode(b, op.getLoc(), threads),
      stored(op.getQuery().getType().getElementType()) {
  auto addressOf = [&](Value tile) { return address(values.lookup(tile)); };
  Value tokens = right(threads.warp, 1), half = bits(threads.warp, 1);
  Value fromToken = a.mul(tokens, a.i32(blockBytes));
  // Logs: rows 2 c and 2 c + 1 of the eight tokens of a half, column `row`.
  Value log = add(addressOf(op.getLogDecay()),
                  add(a.mul(half, a.i32(2 * panelBytes)), fromToken));
  Value piece = flip(right(row, 2), column);
  Value inPiece = left(bits(row, 3), 2);
  Value place =
      add(add(a.mul(column, a.i32(rowBytes)), left(piece, 4)), inPiece);
  logs = {add(log, place), add(log, flip(add(place, rowBytes), 16))};
  parts = add(add(log, panelBytes), left(lane, 4));
  // Matrices.
  Value blocks = rowOfBlocks();
  Value inBlocks = add(add(a.mul(half, a.i32(panelBytes)), fromToken), blocks);
  query = add(addressOf(op.getQuery()), inBlocks);
  key = add(addressOf(op.getKey()), inBlocks);
  Value ofFirst = add(addressOf(op.getFirstKeys()), left(half, 11));
  toEnd = add(select(a.isEqual(tokens, a.i32(0)), ofFirst, log), blocks);
  decays = add(addressOf(op.getDecays()),
               add(add(left(tokens, 9), left(half, 8)), left(column, 2)));
  // log2(e), a little more for what tf32 takes off.
  Value one = f32(DecayWithinOp::log2e), none = f32(0);
  for (int64_t e = 0; e < 2; ++e) {
    Value isUpTo = a.isLess(add(column, e), add(row, 1));
    matrix.push_back(select(isUpTo, one, none));
    matrix.push_back(select(isUpTo, none, one));
  }
}

/// Of both halves and eight channels each, two tokens. A panel has the logs of
/// a carried.
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

void DecayWithin::setRows(Factors &factors, int64_t g, const Pair &query,
                          const Pair &key, const Pair &decay) {
  Pair q = mulPair(query, decay), k = mulPair(key, decay);
  factors.rows[g] = {q[0], k[0], q[1], k[1]};
}

/// Factors of scores where 16 tokens forget almost all: with bounded logs. What
/// they are to give is less than what rounding leaves of others.
std::array<DecayWithin::Factors, 2>
DecayWithin::boundFactors(OfHalves<Pair> logs, const OfHalves<Pair> &queries,
                          const OfHalves<Pair> &keys) {
  Value least = f32(DecayWithinOp::leastLogOfScores);
  for (auto &half : logs)
    for (Pair &pair : half)
      for (Value &log : pair)
        log = arith::MaxNumFOp::create(b, loc, log, least);
  OfHalves<Numbers> sums = sum(logs);
  std::array<Factors, 2> factors;
  for (int64_t g = 0; g < 2; ++g) {
    ArrayRef<Value> behind = ArrayRef(sums[0][g]).drop_front(2),
                    upTo = ArrayRef(sums[1][g]).take_front(2);
    auto pair = [&](ArrayRef<Value> logs, bool isInverse) {
      Pair result;
      for (int64_t e = 0; e < 2; ++e)
        result[e] = exp2(logs[e], isInverse);
      return result;
    };
    setRows(factors[0], g, queries[0][g], keys[0][g], pair(behind, true));
    setRows(factors[1], g, queries[1][g], keys[1][g], pair(upTo, false));
    factors[0].columns[g] =
        llvm::to_vector(mulPair(keys[0][g], pair(behind, false)));
    factors[1].columns[g] =
        llvm::to_vector(mulPair(keys[1][g], pair(upTo, true)));
  }
  return factors;
}

/// Decays of the 16 tokens; whether one of any lane is too small for the
/// factors of scores.
Value DecayWithin::storeDecays(Value to, const std::array<Pair, 2> &ofHalf) {
  auto branch = scf::IfOp::create(b, loc, a.isEqual(row, a.i32(0)),
                                  /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    for (int64_t g = 0; g < 2; ++g)
      storeNumbers(ofHalf[g], to, g * 8 * 4);
  }
  auto least = [&](Value x, Value y) -> Value {
    return arith::MinNumFOp::create(b, loc, x, y);
  };
  Value all = least(least(ofHalf[0][0], ofHalf[0][1]),
                    least(ofHalf[1][0], ofHalf[1][1]));
  Value isSmall = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, all,
                                        f32(DecayWithinOp::leastDecayOfScores));
  return NVVM::VoteSyncOp::create(b, loc, b.getI1Type(), a.i32(-1), isSmall,
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
  auto append = [&](Numbers &numbers) {
    for (Value &number : numbers)
      all.push_back(&number);
  };
  for (auto &half : sums)
    for (Numbers &ofChannels : half)
      append(ofChannels);
  append(first);
  append(below);
  append(second);
  return all;
}

void DecayWithin::emitSlice(int64_t slice, const LogPlace &behind,
                            Carried &carried) {
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
  Value isSmall = storeDecays(add(carried.decays, slice * 16 * 4),
                              {mulPair(ofHalf[0][0], ofHalf[1][0]),
                               mulPair(ofHalf[0][1], ofHalf[1][1])});
  OfHalves<Pair> queries, keys;
  std::array<Factors, 2> factors;
  Words toQuery(4), toKey(4), toLast(4);
  for (int64_t g = 0; g < 2; ++g) {
    for (int64_t half = 0; half < 2; ++half) {
      queries[half][g] = widen(queryWords[2 * g + half], stored);
      keys[half][g] = widen(keyWords[2 * g + half], stored);
    }
    const Pair &q = queries[0][g], &k = keys[0][g], &later = keys[1][g];
    setRows(factors[0], g, q, k, of.inverse[0][g]);
    setRows(factors[1], g, queries[1][g], later, of.upTo[1][g]);
    Pair toMiddle = mulPair(k, of.behind[0][g]);
    factors[0].columns[g] = llvm::to_vector(toMiddle);
    factors[1].columns[g] = llvm::to_vector(mulPair(later, of.inverse[1][g]));
    toQuery[2 * g] = roundPair(mulPair(q, of.upTo[0][g]));
    toKey[2 * g] = roundPair(mulPair(k, of.upTo[0][g]));
    toLast[2 * g + 1] = roundPair(mulPair(later, of.behind[1][g]));
    const Numbers &rows = factors[1].rows[g];
    toQuery[2 * g + 1] = roundPair(mulPair({rows[0], rows[2]}, ofHalf[0][g]));
    toKey[2 * g + 1] = roundPair(mulPair({rows[1], rows[3]}, ofHalf[0][g]));
    toLast[2 * g] = roundPair(mulPair(toMiddle, ofHalf[1][g]));
  }
  auto flatten = [](const std::array<Factors, 2> &all) {
    SmallVector<Value> flat;
    for (const Factors &factors : all)
      for (int64_t g = 0; g < 2; ++g) {
        llvm::append_range(flat, factors.rows[g]);
        llvm::append_range(flat, factors.columns[g]);
      }
    return flat;
  };
  SmallVector<Value> given = flatten(factors);
  auto branch = scf::IfOp::create(b, loc, TypeRange(ValueRange(given)), isSmall,
                                  /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(
        b, loc,
        flatten(boundFactors(loadLogs(carried.logs, slice), queries, keys)));
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, given);
  }
  syncWarp(); // all have loaded what is written below
  for (int64_t g = 0; g < 2; ++g) {
    auto part = [&](int64_t half) {
      return branch.getResults().slice(12 * half + 6 * g, 6);
    };
    ValueRange left = part(0).take_front(4), leftBelow = part(1).take_front(4);
    ValueRange right = part(0).drop_front(4),
               rightBelow = part(1).drop_front(4);
    carried.first = addTf32(left, right, carried.first);
    carried.below = addTf32(leftBelow, right, carried.below);
    carried.second = addTf32(leftBelow, rightBelow, carried.second);
  }
  storeBlocks(flip(carried.query, at), toQuery);
  storeBlocks(flip(carried.key, at), toKey);
  storeBlocks(flip(carried.toEnd, at), toLast);
}

void DecayWithin::emit() {
  Carried carried = {logs,    query,   key,
                     toEnd,   decays,  sum(loadLogs(logs, 0)),
                     zeros(), zeros(), zeros()};
  auto values = [&] {
    return llvm::map_to_vector(carried.all(),
                               [](Value *value) { return *value; });
  };
  auto take = [&](ValueRange from) {
    for (auto [value, other] : llvm::zip_equal(carried.all(), from))
      *value = other;
  };
  auto loop =
      scf::ForOp::create(b, loc, a.i32(0), a.i32(turns), a.i32(1), values());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    take(loop.getRegionIterArgs());
    // Behind the last turn those of it again: they are there, and of no use.
    Value isLast = a.isEqual(loop.getInductionVar(), a.i32(turns - 1));
    Value offset = select(isLast, a.i32(0), a.i32(panelBytes));
    const LogPlace behind = {add(carried.logs.even, offset),
                             add(carried.logs.odd, offset)};
    for (int64_t slice = 0; slice < slices; ++slice)
      emitSlice(slice, behind, carried);
    carried.logs = behind;
    for (Value *tile : {&carried.query, &carried.key, &carried.toEnd})
      *tile = flip(*tile, slices * sliceBytes);
    carried.decays = add(carried.decays, slices * 16 * 4);
    scf::YieldOp::create(b, loc, values());
  }
  take(loop.getResults());
  // Where this warp's logs were.
  storeNumbers(carried.first, parts, 0);
  storeNumbers(carried.below, parts, 512);
  storeNumbers(carried.second, parts, 1024);
}

void gdn::emitDecayWithin(OpBuilder &b, const BlockThreads &threads,
                          DecayWithinOp op, const IRMapping &values) {
  DecayWithin(b, threads, op, values).emit();
}
