// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.decay_operands. Warp w has the tokens 16 w to 16 w + 15, a lane of it
// two of them and a quarter of the channels, as accumulators lie:
//
//   1  the decay of each block of 16 tokens, as a sum of logs, to all warps
//   2  a thread per channel: decays before and behind each block, and between
//      two of them
//   3  16 channels at a time: decays from the middle of the 16 tokens to each
//      of them, and their inverses, make scores between these by products of
//      tf32, whose range holds them. Then decays from the first token to each,
//      and from each to the last. They are exponentials of sums of logs, which
//      are products of these with matrices of zeros and ones
//   4  behind a barrier: the warp's tokens with those of the warps before it;
//      then decays of whole blocks on its queries and keys, which it has in
//      registers
//   5  behind another: such decays on keys to the end, which no warp reads now
//
// A product has 16 rows and 8 columns: its rows are eight tokens' queries, then
// their keys, so it gives both scores.
#include "Fragments/SharedMatrix.h"
#include "Products/BlockDecays.h"
#include "Products/ProductFamily.h"
#include "Products/TokenDecays.h"

using namespace mlir;
using namespace gdn;

namespace {

constexpr int64_t block = gdn::gpu::DecayOperandsOp::block;
constexpr int64_t sliceChannels = BlockDecays::sliceChannels;

class DecayOperands : WordMaths {
public:
  DecayOperands(OpBuilder &b, const BlockThreads &threads,
                gdn::gpu::DecayOperandsOp op, const IRMapping &values)
      : WordMaths(b, op.getLoc()), op(op), threads(threads),
        type(op.getLogDecay().getType()), warps(type.getRows().getWarps()),
        channels(type.getDimSize(1)), query(matrix(op.getQuery(), values)),
        key(matrix(op.getKey(), values)), inputs(matrixOfBoth(values)),
        toEnd(matrix(op.getToEnd(), values)),
        hasStore4(gdn::gpu::KernelFields(op->getParentOfType<func::FuncOp>())
                      .getStoresMatrices()),
        stored(op.getQuery().getType().getElementType()),
        warpRow(mul(threads.warp, i32(2))), ownRow(divide(threads.lane, 4)),
        ownColumn(mul(bitAnd(threads.lane, 3), i32(2))),
        decays(b, loc, threads, warps, channels, ownColumn,
               values.lookup(op.getSums()), values.lookup(op.getEnd())),
        within(b, loc, ownRow, ownColumn), zero(f32(0)) {}

  SmallVector<Value> emit(Value local);

private:
  /// Numbers that a lane has of 16 tokens and 16 channels: of each of four
  /// words, in the order of a left operand, two neighbouring channels of a
  /// token.
  using Eight = SmallVector<Value, 8>;

  SharedMatrix matrix(Value buffer, const IRMapping &values) {
    return SharedMatrix(b, loc, threads.lane,
                        cast<gdn::gpu::SharedType>(buffer.getType()),
                        values.lookup(buffer));
  }
  /// Of four blocks the first and the third are of queries.
  SharedMatrix matrixOfBoth(const IRMapping &values) {
    Value pointer =
        select(isEqual(bitAnd(threads.lane, 8), i32(8)),
               values.lookup(op.getKey()), values.lookup(op.getQuery()));
    return SharedMatrix(b, loc, threads.lane, op.getQuery().getType(), pointer);
  }

  Eight widen(ArrayRef<Value> words);
  /// Numbers times decays, as words of f32.
  Eight wordsOf(ArrayRef<Value> numbers, ArrayRef<Value> decays);
  /// sums + the tokens of `rows`, 0: the first eight, or 1, with those of
  /// `columns`: of two of a row, with the query and with the key on the left.
  Numbers addCorner(ArrayRef<Value> ofQuery, ArrayRef<Value> ofKey,
                    ArrayRef<Value> right, int64_t rows, int64_t columns,
                    Numbers sums);
  void loadInputs(Value number, Words &ofQuery, Words &ofKey);

  SharedMatrix::Corner slice(Value number) {
    SharedMatrix::Corner at;
    at.rowValue = warpRow;
    at.columnValue = mul(number, i32(2));
    return at;
  }
  /// `body` for each slice, in a loop: unrolled, the code of all steps is more
  /// than what a multiprocessor keeps of it. It takes sums, and gives the next.
  SmallVector<Value>
  forEachSlice(ValueRange sums,
               function_ref<SmallVector<Value>(Value, ValueRange)> body);
  void store(const SharedMatrix &to, const SharedMatrix::Corner &at,
             ValueRange words) {
    to.storeLeft(at, words, /*transpose=*/false, hasStore4);
  }

  SmallVector<Value> emitSlice(Value number, ValueRange sums);
  void finishOwn(ArrayRef<Value> sums);
  Words fadeRows(ArrayRef<Value> words, Value decayRow, Value number);
  SmallVector<Value> addPair(int64_t j, Value number, ArrayRef<Value> ofQuery,
                             ArrayRef<Value> ofKey, ValueRange sums);
  SmallVector<Value> emitPairs();
  void fadeToEnd();
  Value assemble(ArrayRef<Value> others, bool isKey);

  gdn::gpu::DecayOperandsOp op;
  const BlockThreads &threads;
  gdn::gpu::FragmentType type;
  int64_t warps, channels;
  SharedMatrix query, key, inputs, toEnd;
  bool hasStore4;
  Type stored; // of queries and keys as they come
  Value warpRow, ownRow, ownColumn;
  BlockDecays decays;
  TokenDecays within;
  Value zero;

  // Scores within the warp's tokens, with the query and with the key on the
  // left: of the lane's two rows, columns 0..7 and 8..15.
  std::array<std::array<Value, 8>, 2> own;
};

} // namespace

DecayOperands::Eight DecayOperands::widen(ArrayRef<Value> words) {
  Eight numbers;
  for (Value word : words)
    llvm::append_range(numbers, WordMaths::widen(word, stored));
  return numbers;
}

DecayOperands::Eight DecayOperands::wordsOf(ArrayRef<Value> numbers,
                                            ArrayRef<Value> decays) {
  Eight words;
  for (auto [number, decay] : llvm::zip_equal(numbers, decays))
    words.push_back(asBits(times(number, decay)));
  return words;
}

DecayOperands::Numbers DecayOperands::addCorner(ArrayRef<Value> ofQuery,
                                                ArrayRef<Value> ofKey,
                                                ArrayRef<Value> right,
                                                int64_t rows, int64_t columns,
                                                Numbers sums) {
  // Two neighbouring channels are taken for the columns k and k + 4.
  for (int64_t half : {0, 4}) {
    const int64_t left = half + 2 * rows, at = half + 2 * columns;
    sums = emitTf32Mma(
        b, loc,
        {ofQuery[left], ofKey[left], ofQuery[left + 1], ofKey[left + 1]},
        {right[at], right[at + 1]}, sums);
  }
  return sums;
}

/// Queries and keys of a slice; a word of both by one instruction, since they
/// are rows of one operand.
void DecayOperands::loadInputs(Value number, Words &ofQuery, Words &ofKey) {
  SharedMatrix::Corner at = slice(number);
  for (int64_t half = 0; half < 2; ++half) {
    at.row = half;
    Words both = inputs.load4(at, {0, 0}, {0, 1}, /*transpose=*/false);
    for (int64_t column : {0, 2}) {
      ofQuery[column + half] = both[column];
      ofKey[column + half] = both[column + 1];
    }
  }
}

SmallVector<Value> DecayOperands::forEachSlice(
    ValueRange sums, function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(
      b, loc, i32(0), i32(channels / sliceChannels), i32(1), sums,
      [&](OpBuilder &b, Location loc, Value number, ValueRange sums) {
        scf::YieldOp::create(b, loc, body(number, sums));
      });
  return SmallVector<Value>(loop.getResults());
}

/// Step 3 for one slice. In arrays of eight numbers, two of each word, the
/// words 0 and 2 are of token `ownRow` of the warp's, 1 and 3 of the one eight
/// further on. Sums are scores within the warp's tokens: of the first eight and
/// of the others, each with themselves, and of the others with the first eight.
SmallVector<Value> DecayOperands::emitSlice(Value number, ValueRange sums) {
  Words ofQuery(4), ofKey(4);
  loadInputs(number, ofQuery, ofKey);
  Words logs = toEnd.load4(slice(number), {1, 0}, {0, 1}, /*transpose=*/true);
  syncWarp(); // all have loaded what is written below
  Eight queries = widen(ofQuery), keys = widen(ofKey);
  auto [fromMiddle, inverse] = within.aroundMiddle(logs);
  Eight left = wordsOf(queries, fromMiddle),
        leftKey = wordsOf(keys, fromMiddle), right = wordsOf(keys, inverse);
  auto corner = [&](int64_t rows, int64_t columns, int64_t sum) {
    return addCorner(left, leftKey, right, rows, columns,
                     Numbers(sums.slice(4 * sum, 4)));
  };
  Numbers first = corner(0, 0, 0), below = corner(1, 0, 2),
          second = corner(1, 1, 1);
  if (!stored.isF16()) {
    ofQuery = roundPairs(queries);
    ofKey = roundPairs(keys);
  }
  auto [before, behind] = within.ofBlock(logs);
  Words decay = roundPairs(before);
  store(toEnd, slice(number), timesWords(ofKey, roundPairs(behind)));
  store(query, slice(number), timesWords(ofQuery, decay));
  store(key, slice(number), timesWords(ofKey, decay));
  return llvm::to_vector(llvm::concat<Value>(first, second, below));
}

/// What is left of scores within the warp's tokens.
void DecayOperands::finishOwn(ArrayRef<Value> sums) {
  Value scale = f32(gdn::gpu::DecayOperandsOp::scaleOfScores);
  auto of = [&](int64_t corner, bool isKey, int64_t e) {
    return times(sums[4 * corner + (isKey ? 2 + e : e)], scale);
  };
  for (int64_t e = 0; e < 2; ++e) {
    Value column = add(ownColumn, i32(e));
    Value isBelow = isLess(column, ownRow),
          isUpTo = isLess(column, add(ownRow, 1));
    for (bool isKey : {false, true})
      for (int64_t i = 0; i < 2; ++i)
        for (int64_t half = 0; half < 2; ++half) {
          Value value = i == 1 ? of(2, isKey, e) : zero;
          if (i == half)
            value = select(isKey ? isBelow : isUpTo, of(half, isKey, e), zero);
          own[isKey][4 * i + 2 * half + e] = value;
        }
  }
}

/// Words of queries or keys of one slice, with decays of whole blocks.
DecayOperands::Words DecayOperands::fadeRows(ArrayRef<Value> words,
                                             Value decayRow, Value number) {
  auto [low, high] = decays.load(decayRow, number);
  return timesWords(words, {low, low, high, high});
}

/// sums += products of a slice's queries and keys with those of warp `j`:
/// columns 0..7 and 8..15, of queries and of keys.
SmallVector<Value> DecayOperands::addPair(int64_t j, Value number,
                                          ArrayRef<Value> ofQuery,
                                          ArrayRef<Value> ofKey,
                                          ValueRange sums) {
  SharedMatrix::Corner at = slice(number);
  at.rowValue = {};
  at.row = 2 * j;
  auto [low, high] = decays.load(decays.between(j), number);
  Words keys = timesWords(toEnd.load4(at, {0, 1}, {1, 0}, /*transpose=*/false),
                          {low, high, low, high});
  SmallVector<Value> next;
  for (int64_t half = 0; half < 2; ++half) {
    ArrayRef<Value> rhs = ArrayRef(keys).slice(2 * half, 2);
    for (bool isKey : {false, true})
      llvm::append_range(next, addProduct(isKey ? ofKey : ofQuery, rhs,
                                          sums.slice(8 * half + 4 * isKey, 4)));
  }
  return next;
}

/// Step 4, in which no warp stands before the first; sums as of `addPair`, for
/// each warp before.
SmallVector<Value> DecayOperands::emitPairs() {
  constexpr int64_t ofPair = 16;
  SmallVector<Value> none((warps - 1) * ofPair, zero);
  if (none.empty())
    return none;
  auto keep = [](ValueRange sums) {
    return [sums] { return SmallVector<Value>(sums); };
  };
  auto addSlice = [&](Value number, ValueRange sums) {
    Words ofQuery = query.load4(slice(number), {1, 0}, {0, 1}, false);
    Words ofKey = key.load4(slice(number), {1, 0}, {0, 1}, false);
    SmallVector<Value> next;
    for (int64_t j = 0; j + 1 < warps; ++j) {
      ValueRange ofWarp = sums.slice(ofPair * j, ofPair);
      auto add = [&] { return addPair(j, number, ofQuery, ofKey, ofWarp); };
      llvm::append_range(next, j == 0 ? add()
                                      : choose(isLess(i32(j), threads.warp),
                                               add, keep(ofWarp)));
    }
    syncWarp(); // all have loaded what is written below
    store(query, slice(number), fadeRows(ofQuery, decays.before(), number));
    store(key, slice(number), fadeRows(ofKey, decays.before(), number));
    return next;
  };
  return choose(
      isLess(i32(0), threads.warp),
      [&] { return forEachSlice(none, addSlice); }, keep(none));
}

/// Step 5, in which no warp stands behind the last.
void DecayOperands::fadeToEnd() {
  if (warps == 1)
    return;
  auto fadeSlice = [&](Value number, ValueRange) -> SmallVector<Value> {
    Words words = toEnd.load4(slice(number), {1, 0}, {0, 1}, false);
    words = fadeRows(words, decays.behind(), number);
    syncWarp();
    store(toEnd, slice(number), words);
    return {};
  };
  onlyIf(isLess(threads.warp, i32(warps - 1)),
         [&] { forEachSlice({}, fadeSlice); });
}

/// The lane's elements of one of the results.
Value DecayOperands::assemble(ArrayRef<Value> others, bool isKey) {
  const int64_t pieces = block * warps / 8;
  SmallVector<Value> elements;
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t piece = 0; piece < pieces; ++piece)
      for (int64_t e = 0; e < 2; ++e) {
        Value within = own[isKey][4 * i + 2 * (piece % 2) + e];
        Value other = piece / 2 + 1 < warps
                          ? others[8 * piece + 4 * isKey + 2 * i + e]
                          : zero;
        elements.push_back(
            select(isEqual(threads.warp, i32(piece / 2)), within, other));
      }
  return vectorOf(elements);
}

SmallVector<Value> DecayOperands::emit(Value local) {
  // In powers of two.
  Value log2e = f32(llvm::numbers::log2ef);
  SmallVector<Value> logs;
  const int64_t count = cast<VectorType>(local.getType()).getNumElements();
  for (int64_t i = 0; i < count; ++i)
    logs.push_back(times(vector::ExtractOp::create(b, loc, local, i), log2e));
  decays.shareSums(logs, type.getRows());
  decays.storeLogs(logs, type.getRows(), toEnd);
  syncWarp();
  emitBarrier(b, op, threads);
  decays.shareDecays(); // for steps behind further barriers
  within.makeMatrices();
  const SmallVector<Value> none(12, zero);
  finishOwn(forEachSlice(none, [&](Value number, ValueRange sums) {
    return emitSlice(number, sums);
  }));
  emitBarrier(b, op, threads);
  const SmallVector<Value> pairs = emitPairs();
  emitBarrier(b, op, threads);
  fadeToEnd();
  return {assemble(pairs, /*isKey=*/false), assemble(pairs, /*isKey=*/true)};
}

SmallVector<Value> gdn::emitDecayOperands(OpBuilder &b,
                                          const BlockThreads &threads,
                                          gdn::gpu::DecayOperandsOp op,
                                          const IRMapping &values,
                                          Value local) {
  return DecayOperands(b, threads, op, values).emit(local);
}
