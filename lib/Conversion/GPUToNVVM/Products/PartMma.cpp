// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// mma.m16n8k16 with eight rows of the state on the left and eight columns on
// the right, in an order in which a lane has the columns of the sum that it
// holds. Rows 0 to 7 are the first parts of the left side and rows 8 to 15 the
// second ones; or, where a lane has two rows of the state, both are eight rows
// of one part. A lane's four neighbouring tokens are its words of both sides;
// its words of the right side lie side by side in shared memory.
#include "Products/PartMma.h"

#include "Products/ProductFamily.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

namespace {
/// Four numbers as words of two in bf16, and what that leaves.
struct Parts {
  SmallVector<Value, 2> first, second;
};

class PartEmitter {
public:
  PartEmitter(OpBuilder &b, Location loc) : b(b), loc(loc), a{b, loc} {}

protected:
  static constexpr int64_t f32Bytes = 4, bf16Bytes = 2;
  /// Tokens of a lane, and of a product.
  static constexpr int64_t laneTokens = 4, stepTokens = 16;

  Value zero() {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  }
  /// A number of f32 or f16, in f32.
  Value loadNumber(Value pointer, Type element);
  static int64_t bytesOf(gdn::gpu::SharedType tile) {
    return tile.getElementType().getIntOrFloatBitWidth() / 8;
  }
  Parts split(ArrayRef<Value> numbers);

  OpBuilder &b;
  Location loc;
  Arithmetic a;
};

/// gdn_gpu.add_part_products.
class PartProducts : PartEmitter {
public:
  PartProducts(OpBuilder &b, const BlockThreads &threads,
               gdn::gpu::AddPartProductsOp op, const IRMapping &values);
  Value emit();

private:
  /// Of two columns each, of rows that go together.
  static constexpr int64_t pairsAtOnce = 4;

  SmallVector<Parts> loadLeft(int64_t row);
  Parts loadRight(int64_t step, int64_t column);
  SmallVector<Value, 2> multiply(ArrayRef<Parts> left, int64_t localColumn,
                                 ArrayRef<Value> sums);
  void multiplyTwo(ArrayRef<Parts> left, ArrayRef<Parts> other,
                   int64_t localColumn, MutableArrayRef<Value> made);

  const BlockThreads &threads;
  Value sum, deltas, at, weights, parts;
  gdn::gpu::FragmentType type;
  gdn::gpu::RowsAttr layout;
  Type element; // of deltas
  int64_t elementBytes, numTokens, tokenRows, steps, partBytes;
  Value group, inGroup; // of four lanes, and the lane in it
};
} // namespace

Value PartEmitter::loadNumber(Value pointer, Type element) {
  Value number = LLVM::LoadOp::create(b, loc, element, pointer,
                                      element.getIntOrFloatBitWidth() / 8);
  return element.isF32()
             ? number
             : arith::ExtFOp::create(b, loc, b.getF32Type(), number);
}

Parts PartEmitter::split(ArrayRef<Value> numbers) {
  auto two = VectorType::get({2}, b.getF32Type());
  auto narrow = VectorType::get({2}, b.getBF16Type());
  Parts parts;
  for (size_t i = 0; i < numbers.size(); i += 2) {
    Value pair = vector::FromElementsOp::create(
        b, loc, two, ValueRange{numbers[i], numbers[i + 1]});
    Value first = arith::TruncFOp::create(b, loc, narrow, pair);
    Value rest = arith::SubFOp::create(
        b, loc, pair, arith::ExtFOp::create(b, loc, two, first));
    Value second = arith::TruncFOp::create(b, loc, narrow, rest);
    auto word = [&](Value both) -> Value {
      return LLVM::BitcastOp::create(b, loc, b.getI32Type(), both);
    };
    parts.first.push_back(word(first));
    parts.second.push_back(word(second));
  }
  return parts;
}

PartProducts::PartProducts(OpBuilder &b, const BlockThreads &threads,
                           gdn::gpu::AddPartProductsOp op,
                           const IRMapping &values)
    : PartEmitter(b, op.getLoc()), threads(threads),
      sum(values.lookupOrDefault(op.getSum())),
      deltas(values.lookup(op.getDeltas())),
      at(a.toI32(values.lookupOrDefault(op.getAt()))),
      weights(values.lookup(op.getWeights())),
      parts(values.lookup(op.getParts())), type(op.getSum().getType()),
      layout(type.getRows()),
      element(op.getDeltas().getType().getElementType()),
      elementBytes(bytesOf(op.getDeltas().getType())),
      numTokens(op.getWeights().getType().getShape().back()),
      tokenRows(op.getDeltas().getType().getShape()[0] / numTokens),
      steps(llvm::divideCeil(numTokens, stepTokens)),
      partBytes(op.getParts().getType().getShape()[1] * bf16Bytes) {
  group = arith::DivUIOp::create(b, loc, threads.lane, a.i32(4));
  inGroup = arith::RemUIOp::create(b, loc, threads.lane, a.i32(4));
}

/// The weighted deltas of a row, in parts, for each step.
SmallVector<Parts> PartProducts::loadLeft(int64_t row) {
  const int64_t rowBytes = type.getDimSize(0) * elementBytes;
  Value place = a.mul(threads.row(a, layout, type.getDimSize(0), row),
                      a.i32(elementBytes));
  place = a.add(place, a.mul(at, a.i32(rowBytes)));
  auto four = VectorType::get({laneTokens}, b.getF32Type());
  SmallVector<Parts> all;
  for (int64_t step = 0; step < steps; ++step) {
    Value first =
        a.add(a.mul(inGroup, a.i32(laneTokens)), a.i32(step * stepTokens));
    // Behind the last token those of the first one serve as well, times zero.
    Value isToken;
    if ((step + 1) * stepTokens > numTokens) {
      isToken = a.isLess(first, a.i32(numTokens));
      first = arith::SelectOp::create(b, loc, isToken, first, a.i32(0));
    }
    Value factors = LLVM::LoadOp::create(
        b, loc, four, a.advance(weights, a.mul(first, a.i32(f32Bytes))),
        laneTokens * f32Bytes);
    Value pointer = a.advance(
        deltas, a.add(place, a.mul(first, a.i32(tokenRows * rowBytes))));
    SmallVector<Value> numbers;
    for (int64_t i = 0; i < laneTokens; ++i) {
      Value factor = vector::ExtractOp::create(b, loc, factors, i);
      if (isToken)
        factor = arith::SelectOp::create(b, loc, isToken, factor, zero());
      Value delta =
          loadNumber(a.advance(pointer, i * tokenRows * rowBytes), element);
      if (isToken)
        delta = arith::SelectOp::create(b, loc, isToken, delta, zero());
      numbers.push_back(arith::MulFOp::create(b, loc, factor, delta));
    }
    all.push_back(split(numbers));
  }
  return all;
}

/// Both parts of the lane's tokens of a step, of its column on the right; the
/// columns of a product are two neighbours of each lane of a group, which
/// begin at `column` of the lane's.
Parts PartProducts::loadRight(int64_t step, int64_t column) {
  const int64_t vector = layout.getVector();
  int64_t piece = column / vector, inPiece = column % vector;
  Value two = a.i32(2);
  Value mine =
      a.add(a.mul(arith::DivUIOp::create(b, loc, group, two), a.i32(vector)),
            arith::RemUIOp::create(b, loc, group, two));
  Value place = a.add(a.mul(mine, a.i32(partBytes)),
                      a.mul(inGroup, a.i32(2 * laneTokens * bf16Bytes)));
  int64_t bytes = (piece * layout.getLanes() * vector + inPiece) * partBytes +
                  step * 2 * stepTokens * bf16Bytes;
  Value words = LLVM::LoadOp::create(
      b, loc, VectorType::get({4}, b.getI32Type()),
      a.advance(a.advance(parts, place), bytes), 2 * laneTokens * bf16Bytes);
  Parts both;
  for (int64_t i = 0; i < 4; ++i)
    (i < 2 ? both.first : both.second)
        .push_back(vector::ExtractOp::create(b, loc, words, i));
  return both;
}

SmallVector<Value, 2> PartProducts::multiply(ArrayRef<Parts> left,
                                             int64_t localColumn,
                                             ArrayRef<Value> sums) {
  SmallVector<Value, 4> all(4, zero());
  for (auto [step, mine] : llvm::enumerate(left)) {
    Parts right = loadRight(step, localColumn);
    SmallVector<Value, 4> words = {mine.first[0], mine.second[0], mine.first[1],
                                   mine.second[1]};
    for (ArrayRef<Value> columns : {right.second, right.first})
      all = emitMma(b, loc, b.getBF16Type(), words, columns, all);
  }
  SmallVector<Value, 2> made;
  for (int64_t i = 0; i < 2; ++i)
    made.push_back(arith::AddFOp::create(
        b, loc, sums[i],
        arith::AddFOp::create(b, loc, all[i], all[i + 2]).getResult()));
  return made;
}

/// Two rows of the lane, from `localColumn` on so many columns that products
/// do not wait for each other. Each part of the left side is a product of its
/// own, with the same words on the right; sums are those of a row alone.
void PartProducts::multiplyTwo(ArrayRef<Parts> left, ArrayRef<Parts> other,
                               int64_t localColumn,
                               MutableArrayRef<Value> made) {
  const int64_t columns = made.size() / 2;
  struct Sums {
    SmallVector<Value, 4> first, second;
  };
  SmallVector<Sums> all(pairsAtOnce, {SmallVector<Value, 4>(4, zero()),
                                      SmallVector<Value, 4>(4, zero())});
  for (auto [step, mine] : llvm::enumerate(left)) {
    const Parts &its = other[step];
    SmallVector<Parts> right;
    for (int64_t i = 0; i < pairsAtOnce; ++i)
      right.push_back(loadRight(step, localColumn + 2 * i));
    auto add = [&](ArrayRef<Value> upper, ArrayRef<Value> lower,
                   ArrayRef<Value> words, SmallVector<Value, 4> &sums) {
      sums = emitMma(b, loc, b.getBF16Type(),
                     {upper[0], lower[0], upper[1], lower[1]}, words, sums);
    };
    for (bool isFirst : {false, true})
      for (auto [words, sums] : llvm::zip_equal(right, all)) {
        ArrayRef<Value> column = isFirst ? words.first : words.second;
        add(mine.first, its.first, column, sums.first);
        add(mine.second, its.second, column, sums.second);
      }
  }
  for (auto [i, sums] : llvm::enumerate(all))
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t of = 0; of < 2; ++of) {
        Value &result = made[row * columns + localColumn + 2 * i + of];
        Value product = arith::AddFOp::create(b, loc, sums.first[2 * row + of],
                                              sums.second[2 * row + of]);
        result = arith::AddFOp::create(b, loc, result, product);
      }
}

/// Two rows at a time where a lane has them: what is loaded of the right side
/// serves both.
Value PartProducts::emit() {
  const int64_t columns = layout.getLocalColumns(type.getDimSize(1));
  const int64_t rows = layout.getLocalRows(type.getDimSize(0));
  SmallVector<Value> made;
  for (int64_t i = 0; i < rows * columns; ++i)
    made.push_back(vector::ExtractOp::create(b, loc, sum, i));
  const int64_t atOnce = 2 * pairsAtOnce;
  int64_t row = 0;
  for (; row + 1 < rows && columns % atOnce == 0; row += 2) {
    SmallVector<Parts> left = loadLeft(row), other = loadLeft(row + 1);
    for (int64_t column = 0; column < columns; column += atOnce)
      multiplyTwo(left, other, column,
                  MutableArrayRef(made).slice(row * columns, 2 * columns));
  }
  for (; row < rows; ++row) {
    SmallVector<Parts> left = loadLeft(row);
    for (int64_t column = 0; column < columns; column += 2) {
      auto sums = MutableArrayRef(made).slice(row * columns + column, 2);
      llvm::copy(multiply(left, column, sums), sums.begin());
    }
  }
  return vector::FromElementsOp::create(b, loc, sum.getType(), made);
}

Value gdn::emitAddPartProducts(OpBuilder &b, const BlockThreads &threads,
                               gdn::gpu::AddPartProductsOp op,
                               const IRMapping &values) {
  return PartProducts(b, threads, op, values).emit();
}

namespace {
/// gdn_gpu.share_column_parts: a thread for each column, or several, which
/// share out its tokens.
class ColumnParts : PartEmitter {
public:
  ColumnParts(OpBuilder &b, gdn::gpu::ShareColumnPartsOp op,
              const IRMapping &values)
      : PartEmitter(b, op.getLoc()), from(values.lookup(op.getFrom())),
        to(values.lookup(op.getTo())),
        element(op.getFrom().getType().getElementType()),
        elementBytes(bytesOf(op.getFrom().getType())),
        numTokens(op.getFrom().getType().getShape()[0]),
        columns(op.getFrom().getType().getShape()[1]),
        partBytes(op.getTo().getType().getShape()[1] * bf16Bytes),
        groups(partBytes / groupBytes), isSpread(op.getSpread()) {}
  void emit(const BlockThreads &threads);

private:
  /// Both parts of a lane's tokens.
  static constexpr int64_t groupBytes = 2 * laneTokens * bf16Bytes;

  void emitColumn(Value column, Value share, int64_t shares);

  Value from, to;
  Type element; // of `from`
  int64_t elementBytes, numTokens, columns, partBytes, groups;
  bool isSpread;
};
} // namespace

/// One of so many shares of the groups of tokens.
void ColumnParts::emitColumn(Value column, Value share, int64_t shares) {
  Value source = a.advance(from, a.mul(column, a.i32(elementBytes)));
  Value target = a.advance(to, a.mul(column, a.i32(partBytes)));
  const int64_t ownGroups = groups / shares;
  if (shares > 1) {
    source = a.advance(source, a.mul(share, a.i32(ownGroups * laneTokens *
                                                  columns * elementBytes)));
    target = a.advance(target, a.mul(share, a.i32(ownGroups * groupBytes)));
  }
  for (int64_t q = 0; q < ownGroups; ++q) {
    SmallVector<Value> numbers;
    for (int64_t i = 0; i < laneTokens; ++i) {
      int64_t token = q * laneTokens + i;
      numbers.push_back(
          token < numTokens
              ? loadNumber(a.advance(source, token * columns * elementBytes),
                           element)
              : zero());
    }
    Parts parts = split(numbers);
    SmallVector<Value> words;
    llvm::append_range(words, parts.first);
    llvm::append_range(words, parts.second);
    LLVM::StoreOp::create(
        b, loc,
        vector::FromElementsOp::create(
            b, loc, VectorType::get({4}, b.getI32Type()), words),
        a.advance(target, q * groupBytes), groupBytes);
  }
}

void ColumnParts::emit(const BlockThreads &threads) {
  Value thread =
      a.add(a.mul(threads.warp, a.i32(gdn::gpu::warpThreads)), threads.lane);
  // Tokens that are not there would be in some shares alone.
  const int64_t shares = threads.numThreads / columns;
  if (isSpread && shares > 1 && threads.numThreads % columns == 0 &&
      groups % shares == 0 && numTokens == groups * laneTokens)
    return emitColumn(arith::RemUIOp::create(b, loc, thread, a.i32(columns)),
                      arith::DivUIOp::create(b, loc, thread, a.i32(columns)),
                      shares);
  for (int64_t first = 0; first < columns; first += threads.numThreads) {
    Value column = a.add(thread, a.i32(first));
    if (first + threads.numThreads <= columns) {
      emitColumn(column, Value(), /*shares=*/1);
      continue;
    }
    auto branch = scf::IfOp::create(b, loc, a.isLess(column, a.i32(columns)),
                                    /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    emitColumn(column, Value(), /*shares=*/1);
  }
}

void gdn::emitShareColumnParts(OpBuilder &b, const BlockThreads &threads,
                               gdn::gpu::ShareColumnPartsOp op,
                               const IRMapping &values) {
  ColumnParts(b, op, values).emit(threads);
}
