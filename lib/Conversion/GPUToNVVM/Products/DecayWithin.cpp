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
// Decays of the next slice, and sums of the one behind it, are under way while
// this one is multiplied.
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
  static constexpr int64_t slices = 4;
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

  OfHalves<Pair> loadLogs(int64_t slice);
  Decays decaysOf(const OfHalves<Numbers> &sums);
  OfHalves<Numbers> sum(const OfHalves<Pair> &logs);
  Pair mulPair(const Pair &x, const Pair &y) {
    return {mul(x[0], y[0]), mul(x[1], y[1])};
  }
  Value roundPair(const Pair &x) { return ChunkCode::roundPair(x[0], x[1]); }
  void setRows(Factors &factors, int64_t g, const Pair &query, const Pair &key,
               const Pair &decay);
  std::array<Factors, 2> boundFactors(int64_t slice,
                                      const OfHalves<Pair> &queries,
                                      const OfHalves<Pair> &keys);
  Value storeDecays(int64_t slice, const std::array<Pair, 2> &decays);
  void emitSlice(int64_t slice, Decays &decays, OfHalves<Numbers> &sums);

  Type stored; // of queries and keys as they come
  Numbers matrix;
  Value evenLogs, oddLogs, query, key, toEnd, decays, parts;
  Numbers first, below, second; // scores of half by half
};

} // namespace

DecayWithin::DecayWithin(OpBuilder &b, const BlockThreads &threads,
                         DecayWithinOp op, const IRMapping &values)
    : ChunkCode(b, op.getLoc(), threads),
      stored(op.getQuery().getType().getElementType()), first(zeros()),
      below(zeros()), second(zeros()) {
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
  evenLogs = add(log, place);
  oddLogs = add(log, flip(add(place, rowBytes), 16));
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

/// Of both halves and eight channels each, two tokens.
DecayWithin::OfHalves<DecayWithin::Pair> DecayWithin::loadLogs(int64_t slice) {
  OfHalves<Pair> logs;
  for (int64_t g = 0; g < 2; ++g)
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t offset = half * 8 * rowBytes + slice / 2 * panelBytes;
      for (int64_t e = 0; e < 2; ++e)
        logs[half][g][e] =
            load(b.getF32Type(),
                 flip(e ? oddLogs : evenLogs, slice % 2 * 64 + g * 32), offset);
    }
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
DecayWithin::boundFactors(int64_t slice, const OfHalves<Pair> &queries,
                          const OfHalves<Pair> &keys) {
  OfHalves<Pair> logs = loadLogs(slice);
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
Value DecayWithin::storeDecays(int64_t slice,
                               const std::array<Pair, 2> &ofHalf) {
  auto branch = scf::IfOp::create(b, loc, a.isEqual(row, a.i32(0)),
                                  /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    for (int64_t g = 0; g < 2; ++g)
      storeNumbers(ofHalf[g], decays, (slice * 16 + g * 8) * 4);
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

void DecayWithin::emitSlice(int64_t slice, Decays &of,
                            OfHalves<Numbers> &sums) {
  const int64_t at = slice * sliceBytes;
  Words queryWords = loadBlocks(flip(query, at)),
        keyWords = loadBlocks(flip(key, at));
  OfHalves<Pair> logs;
  if (slice + 2 < slices)
    logs = loadLogs(slice + 2);
  OfHalves<Pair> ofHalf;
  for (int64_t half = 0; half < 2; ++half)
    for (int64_t g = 0; g < 2; ++g)
      ofHalf[half][g] = mulPair(of.upTo[half][g], of.behind[half][g]);
  Value isSmall = storeDecays(slice, {mulPair(ofHalf[0][0], ofHalf[1][0]),
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
  syncWarp(); // all have loaded what is written below
  storeBlocks(flip(query, at), toQuery);
  storeBlocks(flip(key, at), toKey);
  if (slice + 1 < slices)
    of = decaysOf(sums);
  if (slice + 2 < slices)
    sums = sum(logs);
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
    scf::YieldOp::create(b, loc, flatten(boundFactors(slice, queries, keys)));
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, given);
  }
  if (slice == 0) // its logs are where the first keys to the end go
    syncWarp();
  for (int64_t g = 0; g < 2; ++g) {
    auto part = [&](int64_t half) {
      return branch.getResults().slice(12 * half + 6 * g, 6);
    };
    ValueRange left = part(0).take_front(4), leftBelow = part(1).take_front(4);
    ValueRange right = part(0).drop_front(4),
               rightBelow = part(1).drop_front(4);
    first = addTf32(left, right, first);
    below = addTf32(leftBelow, right, below);
    second = addTf32(leftBelow, rightBelow, second);
  }
  storeBlocks(flip(toEnd, at), toLast);
}

void DecayWithin::emit() {
  Decays decays = decaysOf(sum(loadLogs(0)));
  OfHalves<Numbers> sums = sum(loadLogs(1));
  for (int64_t slice = 0; slice < slices; ++slice)
    emitSlice(slice, decays, sums);
  // Where this warp's logs were.
  storeNumbers(first, parts, 0);
  storeNumbers(below, parts, 512);
  storeNumbers(second, parts, 1024);
}

void gdn::emitDecayWithin(OpBuilder &b, const BlockThreads &threads,
                          DecayWithinOp op, const IRMapping &values) {
  DecayWithin(b, threads, op, values).emit();
}
