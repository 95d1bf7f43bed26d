// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.decay_operands. Warp w has the tokens 16 w to 16 w + 15, a lane of it
// two of them and a quarter of the channels, as accumulators lie:
//
//   1  the decay of each block of 16 tokens, as a sum of logs, to all warps
//   2  a thread per channel: decays before and behind each block, and between
//      two of them
//   3  16 channels at a time: decays from the first token of a block of 1, 2,
//   4,
//      8 and 16 tokens to each of its tokens, and from there to its last one,
//      products that double with each step. With each size, the second half of
//      a block is multiplied with its first half. What a lane has of a left
//      operand's rows it also has of a right one's columns, so both come from
//      the same registers
//   4  behind a barrier: the warp's tokens with those of the warps before it
//   5  behind another: decays of whole blocks
//
// A product has 16 rows and 8 columns. Halves of blocks up to 8 tokens are
// corners of 8 x 8: its rows are eight tokens' queries, then their keys, so it
// gives both scores.
#include "Fragments/SharedMatrix.h"
#include "Products/BlockDecays.h"
#include "Products/ProductFamily.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
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
        key(matrix(op.getKey(), values)), toEnd(matrix(op.getToEnd(), values)),
        hasStore4(gdn::gpu::KernelFields(op->getParentOfType<func::FuncOp>())
                      .getStoresMatrices()),
        f16(b.getF16Type()), stored(op.getQuery().getType().getElementType()),
        warpRow(a.mul(threads.warp, a.i32(2))),
        ownRow(arith::DivUIOp::create(b, loc, threads.lane, a.i32(4))),
        ownColumn(a.mul(arith::AndIOp::create(b, loc, threads.lane, a.i32(3)),
                        a.i32(2))),
        decays(b, loc, threads, warps, channels, ownColumn,
               values.lookup(op.getSums()), values.lookup(op.getEnd())) {
    zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
    one = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(1));
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
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  Value exp2(Value x) {
    return math::Exp2Op::create(b, loc, x, arith::FastMathFlags::afn);
  }
  Value ofOther(Value value, int64_t lanes) {
    return NVVM::ShflOp::create(b, loc, b.getF32Type(), a.i32(-1), value,
                                a.i32(lanes), a.i32(31), NVVM::ShflKind::bfly,
                                UnitAttr());
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
  Sums product(ArrayRef<Value> left, ArrayRef<Value> rhs, Sums acc) {
    return emitMma(b, loc, f16, left, rhs, acc);
  }
  /// acc += the tokens of `rows`, 0: the first eight, or 1, with those of
  /// `columns`; operands of `element`.
  void addCorner(Type element, ArrayRef<Value> ofQuery, ArrayRef<Value> ofKey,
                 int64_t rows, int64_t columns, Corner &acc);

  SharedMatrix::Corner slice(int64_t number) {
    SharedMatrix::Corner at;
    at.column = 2 * number;
    at.rowValue = warpRow;
    return at;
  }
  void store(const SharedMatrix &to, int64_t number, ArrayRef<Value> words);
  Words fade(ArrayRef<Value> words, ArrayRef<Value> decay);
  /// Whether number i is of one of the first eight tokens.
  static bool isFirstHalf(size_t i) { return ((i >> 1) & 1) == 0; }

  void emitSlice(int64_t number, ArrayRef<Value> logs);
  void emitPairs();
  void fadeBlocks();
  Value assemble(ArrayRef<Sums> others, bool isQuery);

  OpBuilder &b;
  gdn::gpu::DecayOperandsOp op;
  Location loc;
  Arithmetic a;
  const BlockThreads &threads;
  gdn::gpu::FragmentType type;
  int64_t warps, channels;
  SharedMatrix query, key, toEnd;
  bool hasStore4;
  Type f16, stored; // of queries and keys as they come
  Value warpRow, ownRow, ownColumn;
  BlockDecays decays;
  Value zero, one;

  // Scores within the warp's tokens, by the size of half a block and by the
  // eight tokens: with halves of one token, two and four; `below` between the
  // first eight and the others, `same` of tokens with themselves.
  std::array<std::array<Corner, 2>, 3> halves;
  std::array<Corner, 2> same;
  Corner below;
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

void DecayOperands::addCorner(Type element, ArrayRef<Value> ofQuery,
                              ArrayRef<Value> ofKey, int64_t rows,
                              int64_t columns, Corner &acc) {
  acc =
      emitMma(b, loc, element,
              {ofQuery[rows], ofKey[rows], ofQuery[2 + rows], ofKey[2 + rows]},
              {ofKey[columns], ofKey[2 + columns]}, acc);
}

void DecayOperands::store(const SharedMatrix &to, int64_t number,
                          ArrayRef<Value> words) {
  SharedMatrix::Corner at = slice(number);
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
void DecayOperands::emitSlice(int64_t number, ArrayRef<Value> logs) {
  Words ofQuery = query.load4(slice(number), {1, 0}, {0, 1}, false);
  Words ofKey = key.load4(slice(number), {1, 0}, {0, 1}, false);
  syncWarp(); // all have loaded what is written below
  for (int64_t half = 0; half < 2; ++half)
    addCorner(stored, ofQuery, ofKey, half, half, same[half]);
  if (!stored.isF16()) {
    ofQuery = round(widen(ofQuery));
    ofKey = round(widen(ofKey));
  }

  const int64_t positions = channels / 4;
  Numbers total;
  for (int64_t word = 0; word < 4; ++word)
    for (int64_t e = 0; e < 2; ++e)
      total.push_back(exp2(
          logs[(word & 1) * positions + (2 * number + (word >> 1)) * 2 + e]));
  // Of a token in the second half of a block, `factors` has the decay from the
  // first token of its half on, with that of the token, and `others` that
  // behind it; of one in the first half it is the other way round.
  Value isSecond = hasBit(ownRow, 1);
  Numbers factors, others;
  for (Value decay : total) {
    factors.push_back(select(isSecond, decay, one));
    others.push_back(select(isSecond, one, decay));
  }
  for (int64_t level = 0; level < 3; ++level) {
    const int64_t size = int64_t(1) << level;
    {
      Words decay = round(factors);
      Words query = fade(ofQuery, decay), key = fade(ofKey, decay);
      for (int64_t half = 0; half < 2; ++half)
        addCorner(f16, query, key, half, half, halves[level][half]);
    }
    // Whether the token is in the second half of the next larger block. Where
    // that is not what it is in this one, both change their places. Of 16
    // tokens, the word says it.
    Value isNext = level < 2 ? hasBit(ownRow, 2 * size) : Value();
    Value isSame = isNext
                       ? arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                               isSecond, isNext)
                             .getResult()
                       : isSecond;
    for (size_t i = 0; i < total.size(); ++i) {
      Value other = ofOther(total[i], 4 * size);
      Value longer = mul(factors[i], other), kept = others[i];
      total[i] = mul(total[i], other);
      if (!isNext && isFirstHalf(i))
        std::swap(longer, kept);
      factors[i] = select(isSame, longer, kept);
      others[i] = select(isSame, kept, longer);
    }
    isSecond = isNext;
  }
  {
    Words decay = round(factors);
    addCorner(f16, fade(ofQuery, decay), fade(ofKey, decay), 1, 0, below);
  }
  // Blocks of 16: the other eight tokens are in the word beside.
  Numbers before, behind;
  for (size_t i = 0; i < total.size(); ++i) {
    Value longer = mul(factors[i], total[i ^ 2]);
    before.push_back(isFirstHalf(i) ? others[i] : longer);
    behind.push_back(isFirstHalf(i) ? longer : others[i]);
  }
  Words decay = round(before);
  store(toEnd, number, fade(ofKey, round(behind)));
  store(query, number, fade(ofQuery, decay));
  store(key, number, fade(ofKey, decay));
}

/// Step 4.
void DecayOperands::emitPairs() {
  for (int64_t j = 0; j + 1 < warps; ++j) {
    SmallVector<Type> types(16, b.getF32Type());
    auto isBehind = scf::IfOp::create(
        b, loc, types, a.isLess(a.i32(j), threads.warp), /*withElse=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(isBehind.elseBlock());
    scf::YieldOp::create(b, loc, SmallVector<Value>(16, zero));
    b.setInsertionPointToStart(isBehind.thenBlock());
    // Of columns 0..7 and 8..15.
    Sums scoresOfQuery[2] = {zeros(), zeros()},
         scoresOfKey[2] = {zeros(), zeros()};
    Value between = decays.between(j);
    for (int64_t number = 0; number < channels / sliceChannels; ++number) {
      Words ofQuery = query.load4(slice(number), {1, 0}, {0, 1}, false);
      Words ofKey = key.load4(slice(number), {1, 0}, {0, 1}, false);
      SharedMatrix::Corner at;
      at.row = 2 * j;
      at.column = 2 * number;
      auto [low, high] = decays.load(between, number);
      Words keys = fade(toEnd.load4(at, {0, 1}, {1, 0}, /*transpose=*/false),
                        {low, high, low, high});
      for (int64_t half = 0; half < 2; ++half) {
        ArrayRef<Value> rhs = ArrayRef(keys).slice(2 * half, 2);
        scoresOfQuery[half] = product(ofQuery, rhs, scoresOfQuery[half]);
        scoresOfKey[half] = product(ofKey, rhs, scoresOfKey[half]);
      }
    }
    SmallVector<Value> yielded;
    for (int64_t half = 0; half < 2; ++half) {
      llvm::append_range(yielded, scoresOfQuery[half]);
      llvm::append_range(yielded, scoresOfKey[half]);
    }
    scf::YieldOp::create(b, loc, yielded);
    for (int64_t half = 0; half < 2; ++half) {
      auto results = isBehind.getResults().slice(8 * half, 8);
      pairsOfQuery.emplace_back(results.take_front(4));
      pairsOfKey.emplace_back(results.drop_front(4));
    }
  }
}

/// Step 5.
void DecayOperands::fadeBlocks() {
  Value before = decays.before(), behind = decays.behind();
  for (int64_t number = 0; number < channels / sliceChannels; ++number) {
    auto load = [&](const SharedMatrix &tile, std::array<Value, 2> decay) {
      auto [low, high] = decay;
      return fade(tile.load4(slice(number), {1, 0}, {0, 1}, false),
                  {low, low, high, high});
    };
    std::array<Value, 2> decay = decays.load(before, number);
    Words ofQuery = load(query, decay), ofKey = load(key, decay);
    Words ofEnd = load(toEnd, decays.load(behind, number));
    syncWarp();
    store(query, number, ofQuery);
    store(key, number, ofKey);
    store(toEnd, number, ofEnd);
  }
}

/// The lane's elements of one of the results.
Value DecayOperands::assemble(ArrayRef<Sums> others, bool isQuery) {
  auto of = [&](const Corner &corner, int64_t e) {
    return corner[isQuery ? e : 2 + e];
  };
  // In the corners on the diagonal the highest bit in which two tokens differ
  // is the size of the halves that they are in.
  auto inCorner = [&](int64_t half, int64_t e) {
    Value column = a.add(ownColumn, a.i32(e));
    Value differs = arith::XOrIOp::create(b, loc, ownRow, column);
    Value value = select(hasBit(differs, 2), of(halves[1][half], e),
                         of(halves[0][half], e));
    value = select(hasBit(differs, 4), of(halves[2][half], e), value);
    value = select(a.isLess(column, ownRow), value, zero);
    return isQuery ? select(a.isEqual(column, ownRow), of(same[half], e), value)
                   : value;
  };
  const int64_t pieces = block * warps / 8;
  SmallVector<Value> elements;
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t piece = 0; piece < pieces; ++piece)
      for (int64_t e = 0; e < 2; ++e) {
        const int64_t half = piece % 2, at = 2 * i + e;
        Value own = i == half ? inCorner(half, e)
                    : i == 1  ? of(below, e)
                              : zero;
        Value other = piece / 2 + 1 < warps ? others[piece][at] : zero;
        elements.push_back(
            select(a.isEqual(threads.warp, a.i32(piece / 2)), own, other));
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
  decays.shareSums(logs);
  emitBarrier(b, op, threads);
  decays.shareDecays(); // for steps behind further barriers
  same.fill(zeros());
  halves.fill({zeros(), zeros()});
  below = zeros();
  for (int64_t number = 0; number < channels / sliceChannels; ++number)
    emitSlice(number, logs);
  emitBarrier(b, op, threads);
  emitPairs();
  emitBarrier(b, op, threads);
  fadeBlocks();
  return {assemble(pairsOfQuery, true), assemble(pairsOfKey, false)};
}

SmallVector<Value> gdn::emitDecayOperands(OpBuilder &b,
                                          const BlockThreads &threads,
                                          gdn::gpu::DecayOperandsOp op,
                                          const IRMapping &values,
                                          Value local) {
  return DecayOperands(b, threads, op, values).emit(local);
}
