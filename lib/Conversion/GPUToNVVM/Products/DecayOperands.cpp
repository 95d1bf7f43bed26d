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

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

namespace {

constexpr int64_t block = gdn::gpu::DecayOperandsOp::block;
constexpr int64_t sliceChannels = BlockDecays::sliceChannels;

class DecayOperands {
public:
  DecayOperands(OpBuilder &b, const BlockThreads &threads,
                gdn::gpu::DecayOperandsOp op, const IRMapping &values)
      : b(b), op(op), loc(op.getLoc()), a{b, loc}, threads(threads),
        type(op.getLogDecay().getType()), warps(type.getRows().getWarps()),
        channels(type.getDimSize(1)), query(matrix(op.getQuery(), values)),
        key(matrix(op.getKey(), values)), inputs(matrixOfBoth(values)),
        toEnd(matrix(op.getToEnd(), values)),
        hasStore4(gdn::gpu::KernelFields(op->getParentOfType<func::FuncOp>())
                      .getStoresMatrices()),
        f16(b.getF16Type()), stored(op.getQuery().getType().getElementType()),
        warpRow(a.mul(threads.warp, a.i32(2))),
        ownRow(arith::DivUIOp::create(b, loc, threads.lane, a.i32(4))),
        ownColumn(a.mul(arith::AndIOp::create(b, loc, threads.lane, a.i32(3)),
                        a.i32(2))),
        decays(b, loc, threads, warps, channels, ownColumn,
               values.lookup(op.getSums()), values.lookup(op.getEnd())),
        within(b, loc, ownRow, ownColumn) {
    zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
  }

  SmallVector<Value> emit(Value local);

private:
  /// What a lane has of 16 tokens and 16 channels: two neighbouring channels
  /// of a token in each of four words, in the order of a left operand.
  using Words = SmallVector<Value, 4>;
  using Numbers = SmallVector<Value, 8>;
  using Sums = SmallVector<Value, 4>;
  /// Scores of two tokens of a row with eight columns, with the query and with
  /// the key on the left.
  using Corner = Sums;

  SharedMatrix matrix(Value buffer, const IRMapping &values) {
    return SharedMatrix(b, loc, threads.lane,
                        cast<gdn::gpu::SharedType>(buffer.getType()),
                        values.lookup(buffer));
  }
  /// Of four blocks the first and the third are of queries.
  SharedMatrix matrixOfBoth(const IRMapping &values) {
    Value isKey = hasBit(threads.lane, 8);
    Value pointer =
        select(isKey, values.lookup(op.getKey()), values.lookup(op.getQuery()));
    return SharedMatrix(b, loc, threads.lane, op.getQuery().getType(), pointer);
  }
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  /// Whether the bit `bit` of an i32 is set.
  Value hasBit(Value value, int64_t bit) {
    Value set = arith::AndIOp::create(b, loc, value, a.i32(bit));
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, set,
                                 a.i32(0));
  }
  void syncWarp() { NVVM::SyncWarpOp::create(b, loc, a.i32(-1)); }
  Sums zeros() { return Sums(4, zero); }

  Value roundPair(Value x, Value y);
  Words round(ArrayRef<Value> numbers);
  Numbers widen(ArrayRef<Value> words);
  Sums product(ArrayRef<Value> left, ArrayRef<Value> rhs, const Sums &acc) {
    return emitMma(b, loc, f16, left, rhs, acc);
  }
  /// Numbers times decays, as words.
  Numbers wordsOf(ArrayRef<Value> numbers, ArrayRef<Value> decays);
  /// acc += the tokens of `rows`, 0: the first eight, or 1, with those of
  /// `columns`.
  void addCorner(ArrayRef<Value> ofQuery, ArrayRef<Value> ofKey,
                 ArrayRef<Value> right, int64_t rows, int64_t columns,
                 Corner &acc);
  void loadInputs(Value number, Words &ofQuery, Words &ofKey);

  SharedMatrix::Corner slice(int64_t number) {
    SharedMatrix::Corner at;
    at.column = 2 * number;
    at.rowValue = warpRow;
    return at;
  }
  SharedMatrix::Corner slice(Value number) {
    SharedMatrix::Corner at = slice(int64_t(0));
    at.columnValue = a.mul(number, a.i32(2));
    return at;
  }
  /// `body` for each slice, in a loop: unrolled, the code of all steps is more
  /// than what a multiprocessor keeps of it. It takes sums, and gives the next.
  SmallVector<Value>
  forEachSlice(ValueRange sums,
               function_ref<SmallVector<Value>(Value, ValueRange)> body);
  void store(const SharedMatrix &to, SharedMatrix::Corner at,
             ArrayRef<Value> words);
  Words fade(ArrayRef<Value> words, ArrayRef<Value> decay);

  void emitSlice(Value number);
  SmallVector<Corner *> ownSums();
  void finishOwn();
  Words fadeRows(ArrayRef<Value> words, Value decayRow, Value number);
  SmallVector<Value> addPair(int64_t j, Value number, ArrayRef<Value> ofQuery,
                             ArrayRef<Value> ofKey, ValueRange sums);
  SmallVector<Value> onlyIf(Value condition, ValueRange otherwise,
                            function_ref<SmallVector<Value>()> body);
  void emitPairs();
  void fadeToEnd();
  Value assemble(ArrayRef<Sums> others, bool isQuery);

  OpBuilder &b;
  gdn::gpu::DecayOperandsOp op;
  Location loc;
  Arithmetic a;
  const BlockThreads &threads;
  gdn::gpu::FragmentType type;
  int64_t warps, channels;
  SharedMatrix query, key, inputs, toEnd;
  bool hasStore4;
  Type f16, stored; // of queries and keys as they come
  Value warpRow, ownRow, ownColumn;
  BlockDecays decays;
  TokenDecays within;
  Value zero;

  // Scores within the warp's tokens: of the first eight and of the others, each
  // with themselves, and `below` of the others with the first eight.
  std::array<Corner, 2> same;
  Corner below;
  // What is left of these, with the query and with the key on the left: of the
  // lane's two rows, columns 0..7 and 8..15.
  std::array<std::array<Value, 8>, 2> own;
  // With the tokens of each warp before: columns 0..7 and 8..15 of it.
  SmallVector<Sums> pairsOfQuery, pairsOfKey;
};

} // namespace

Value DecayOperands::roundPair(Value x, Value y) {
  Value pair = vector::FromElementsOp::create(
      b, loc, VectorType::get({2}, b.getF32Type()), ValueRange{x, y});
  pair = arith::TruncFOp::create(b, loc, VectorType::get({2}, f16), pair);
  return getWords(b, loc, pair).front();
}

DecayOperands::Words DecayOperands::round(ArrayRef<Value> numbers) {
  Words words;
  for (size_t i = 0; i < numbers.size(); i += 2)
    words.push_back(roundPair(numbers[i], numbers[i + 1]));
  return words;
}

DecayOperands::Numbers DecayOperands::widen(ArrayRef<Value> words) {
  Numbers numbers;
  for (Value word : words) {
    Value pair = fromWords(b, loc, word, stored);
    pair = arith::ExtFOp::create(b, loc, VectorType::get({2}, b.getF32Type()),
                                 pair);
    for (int64_t e = 0; e < 2; ++e)
      numbers.push_back(vector::ExtractOp::create(b, loc, pair, e));
  }
  return numbers;
}

DecayOperands::Numbers DecayOperands::wordsOf(ArrayRef<Value> numbers,
                                              ArrayRef<Value> decays) {
  Numbers words;
  for (auto [number, decay] : llvm::zip_equal(numbers, decays))
    words.push_back(
        arith::BitcastOp::create(b, loc, b.getI32Type(), mul(number, decay)));
  return words;
}

void DecayOperands::addCorner(ArrayRef<Value> ofQuery, ArrayRef<Value> ofKey,
                              ArrayRef<Value> right, int64_t rows,
                              int64_t columns, Corner &acc) {
  // Two neighbouring channels are taken for the columns k and k + 4.
  for (int64_t half : {0, 4}) {
    const int64_t left = half + 2 * rows, at = half + 2 * columns;
    acc = emitTf32Mma(
        b, loc,
        {ofQuery[left], ofKey[left], ofQuery[left + 1], ofKey[left + 1]},
        {right[at], right[at + 1]}, acc);
  }
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
      b, loc, a.i32(0), a.i32(channels / sliceChannels), a.i32(1), sums);
  OpBuilder::InsertionGuard guard(b);
  if (sums.empty()) // it has its terminator
    b.setInsertionPointToStart(loop.getBody());
  else
    b.setInsertionPointToEnd(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!sums.empty())
    scf::YieldOp::create(b, loc, next);
  return SmallVector<Value>(loop.getResults());
}

void DecayOperands::store(const SharedMatrix &to, SharedMatrix::Corner at,
                          ArrayRef<Value> words) {
  if (hasStore4)
    return to.store4(at, {1, 0}, {0, 1}, words, /*transpose=*/false);
  for (int64_t q = 0; q < 4; ++q) {
    SharedMatrix::Corner part = at;
    part.row += q & 1;
    part.column += q >> 1;
    to.store(part, words[q], /*transpose=*/false);
  }
}

/// Words times decays.
DecayOperands::Words DecayOperands::fade(ArrayRef<Value> words,
                                         ArrayRef<Value> decay) {
  Words faded;
  for (auto [word, factor] : llvm::zip_equal(words, decay)) {
    Value product =
        mul(fromWords(b, loc, word, f16), fromWords(b, loc, factor, f16));
    faded.push_back(getWords(b, loc, product).front());
  }
  return faded;
}

/// Step 3 for one slice. In arrays of eight numbers, two of each word, the
/// words 0 and 2 are of token `ownRow` of the warp's, 1 and 3 of the one eight
/// further on.
void DecayOperands::emitSlice(Value number) {
  Words ofQuery(4), ofKey(4);
  loadInputs(number, ofQuery, ofKey);
  Words logs = toEnd.load4(slice(number), {1, 0}, {0, 1}, /*transpose=*/true);
  syncWarp(); // all have loaded what is written below
  Numbers queries = widen(ofQuery), keys = widen(ofKey);
  {
    auto [decay, inverse] = within.aroundMiddle(logs);
    Numbers left = wordsOf(queries, decay), leftKey = wordsOf(keys, decay),
            right = wordsOf(keys, inverse);
    addCorner(left, leftKey, right, 0, 0, same[0]);
    addCorner(left, leftKey, right, 1, 0, below);
    addCorner(left, leftKey, right, 1, 1, same[1]);
  }
  if (!stored.isF16()) {
    ofQuery = round(queries);
    ofKey = round(keys);
  }
  auto [before, behind] = within.ofBlock(logs);
  Words decay = round(before);
  store(toEnd, slice(number), fade(ofKey, round(behind)));
  store(query, slice(number), fade(ofQuery, decay));
  store(key, slice(number), fade(ofKey, decay));
}

SmallVector<DecayOperands::Corner *> DecayOperands::ownSums() {
  return {&same[0], &same[1], &below};
}

/// What is left of scores within the warp's tokens.
void DecayOperands::finishOwn() {
  Value scale = arith::ConstantOp::create(
      b, loc, b.getF32FloatAttr(gdn::gpu::DecayOperandsOp::scaleOfScores));
  auto of = [&](const Corner &corner, bool isKey, int64_t e) {
    return mul(corner[isKey ? 2 + e : e], scale);
  };
  for (int64_t e = 0; e < 2; ++e) {
    Value column = a.add(ownColumn, a.i32(e));
    Value isLess = a.isLess(column, ownRow),
          isUpTo = a.isLess(column, a.add(ownRow, a.i32(1)));
    for (bool isKey : {false, true})
      for (int64_t i = 0; i < 2; ++i)
        for (int64_t half = 0; half < 2; ++half) {
          Value value = i == 1 ? of(below, isKey, e) : zero;
          if (i == half)
            value =
                select(isKey ? isLess : isUpTo, of(same[half], isKey, e), zero);
          own[isKey][4 * i + 2 * half + e] = value;
        }
  }
}

/// Words of queries or keys of one slice, with decays of whole blocks.
DecayOperands::Words DecayOperands::fadeRows(ArrayRef<Value> words,
                                             Value decayRow, Value number) {
  auto [low, high] = decays.load(decayRow, number);
  return fade(words, {low, low, high, high});
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
  Words keys = fade(toEnd.load4(at, {0, 1}, {1, 0}, /*transpose=*/false),
                    {low, high, low, high});
  SmallVector<Value> next;
  for (int64_t half = 0; half < 2; ++half) {
    ArrayRef<Value> rhs = ArrayRef(keys).slice(2 * half, 2);
    for (bool isKey : {false, true})
      llvm::append_range(next,
                         product(isKey ? ofKey : ofQuery, rhs,
                                 Sums(sums.slice(8 * half + 4 * isKey, 4))));
  }
  return next;
}

/// `body` for warps for which `condition` holds, or what it would change.
SmallVector<Value>
DecayOperands::onlyIf(Value condition, ValueRange otherwise,
                      function_ref<SmallVector<Value>()> body) {
  auto branch = scf::IfOp::create(b, loc, otherwise.getTypes(), condition,
                                  /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, otherwise);
  b.setInsertionPointToStart(branch.thenBlock());
  SmallVector<Value> results = body();
  scf::YieldOp::create(b, loc, results);
  return SmallVector<Value>(branch.getResults());
}

/// Step 4, in which no warp stands before the first.
void DecayOperands::emitPairs() {
  constexpr int64_t ofPair = 16;
  SmallVector<Value> none((warps - 1) * ofPair, zero);
  if (none.empty())
    return;
  auto addSlice = [&](Value number, ValueRange sums) {
    Words ofQuery = query.load4(slice(number), {1, 0}, {0, 1}, false);
    Words ofKey = key.load4(slice(number), {1, 0}, {0, 1}, false);
    SmallVector<Value> next;
    for (int64_t j = 0; j + 1 < warps; ++j) {
      ValueRange ofWarp = sums.slice(ofPair * j, ofPair);
      auto add = [&] { return addPair(j, number, ofQuery, ofKey, ofWarp); };
      llvm::append_range(
          next, j == 0 ? add()
                       : onlyIf(a.isLess(a.i32(j), threads.warp), ofWarp, add));
    }
    syncWarp(); // all have loaded what is written below
    store(query, slice(number), fadeRows(ofQuery, decays.before(), number));
    store(key, slice(number), fadeRows(ofKey, decays.before(), number));
    return next;
  };
  SmallVector<Value> sums = onlyIf(a.isLess(a.i32(0), threads.warp), none, [&] {
    return forEachSlice(none, addSlice);
  });
  for (size_t i = 0; i < sums.size(); i += 8) {
    auto half = ArrayRef(sums).slice(i, 8);
    pairsOfQuery.emplace_back(half.take_front(4));
    pairsOfKey.emplace_back(half.drop_front(4));
  }
}

/// Step 5, in which no warp stands behind the last.
void DecayOperands::fadeToEnd() {
  if (warps == 1)
    return;
  auto isBefore = scf::IfOp::create(
      b, loc, a.isLess(threads.warp, a.i32(warps - 1)), /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(isBefore.thenBlock());
  forEachSlice({}, [&](Value number, ValueRange) -> SmallVector<Value> {
    Words words = toEnd.load4(slice(number), {1, 0}, {0, 1}, false);
    words = fadeRows(words, decays.behind(), number);
    syncWarp();
    store(toEnd, slice(number), words);
    return {};
  });
}

/// The lane's elements of one of the results.
Value DecayOperands::assemble(ArrayRef<Sums> others, bool isQuery) {
  const int64_t pieces = block * warps / 8;
  SmallVector<Value> elements;
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t piece = 0; piece < pieces; ++piece)
      for (int64_t e = 0; e < 2; ++e) {
        Value within = own[!isQuery][4 * i + 2 * (piece % 2) + e];
        Value other = piece / 2 + 1 < warps ? others[piece][2 * i + e] : zero;
        elements.push_back(
            select(a.isEqual(threads.warp, a.i32(piece / 2)), within, other));
      }
  return vector::FromElementsOp::create(
      b, loc, VectorType::get({int64_t(elements.size())}, b.getF32Type()),
      elements);
}

SmallVector<Value> DecayOperands::emit(Value local) {
  // In powers of two.
  Value log2e = arith::ConstantOp::create(
      b, loc, b.getF32FloatAttr(llvm::numbers::log2ef));
  SmallVector<Value> logs;
  for (int64_t i = 0; i < cast<VectorType>(local.getType()).getNumElements();
       ++i)
    logs.push_back(mul(vector::ExtractOp::create(b, loc, local, i), log2e));
  decays.shareSums(logs, type.getRows());
  decays.storeLogs(logs, type.getRows(), toEnd);
  syncWarp();
  emitBarrier(b, op, threads);
  decays.shareDecays(); // for steps behind further barriers
  within.makeMatrices();
  SmallVector<Value> none(4 * ownSums().size(), zero);
  auto take = [&](ValueRange sums) {
    for (auto [i, corner] : llvm::enumerate(ownSums()))
      *corner = Corner(sums.slice(4 * i, 4));
  };
  take(forEachSlice(none, [&](Value number, ValueRange sums) {
    take(sums);
    emitSlice(number);
    SmallVector<Value> next;
    for (Corner *corner : ownSums())
      llvm::append_range(next, *corner);
    return next;
  }));
  finishOwn();
  emitBarrier(b, op, threads);
  emitPairs();
  emitBarrier(b, op, threads);
  fadeToEnd();
  return {assemble(pairsOfQuery, true), assemble(pairsOfKey, false)};
}

SmallVector<Value> gdn::emitDecayOperands(OpBuilder &b,
                                          const BlockThreads &threads,
                                          gdn::gpu::DecayOperandsOp op,
                                          const IRMapping &values,
                                          Value local) {
  return DecayOperands(b, threads, op, values).emit(local);
}
