// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.share_byte_products: mma.m16n8k16 with the bytes on the left, eight
// rows of each fragment. A lane's four neighbouring bytes are its words of a
// product; the columns of both sides may come in any order that is the same.
// Columns 0 to 3 of the right side are the parts of `first` and of `second`,
// columns 4 to 7 the same again.
#include "Products/ByteMma.h"

#include "Products/ProductFamily.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

namespace {
class ByteProducts {
public:
  ByteProducts(OpBuilder &b, const BlockThreads &threads,
               gdn::gpu::ShareByteProductsOp op, const IRMapping &values)
      : b(b), loc(op.getLoc()), a{b, loc}, threads(threads), op(op),
        values(values), type(op.getBytesType()), layout(type.getRows()),
        pieces(layout.getPieces(type.getDimSize(1))) {
    group = arith::DivUIOp::create(b, loc, threads.lane, a.i32(4));
    inGroup = arith::RemUIOp::create(b, loc, threads.lane, a.i32(4));
  }
  void emit();

private:
  static constexpr int64_t f32Bytes = 4, f16Bytes = 2;
  /// Neighbouring columns of a lane: as many bytes as a load takes.
  static constexpr int64_t pieceColumns = 16;
  /// f16 numbers from 1024 on count ones in their low byte.
  static constexpr int64_t f16Base = 0x64, byteZero = 128;
  static constexpr double lowPart = 1.0 / 256;

  Value get(Value value) { return values.lookupOrDefault(value); }
  Value advance(Value pointer, Value bytes) {
    return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(),
                               pointer, ArrayRef<LLVM::GEPArg>{bytes});
  }
  Value toI32(Value index) { return a.toI32(get(index)); }
  SmallVector<Value> loadRight();
  SmallVector<Value> toWords(Value bytes);
  Value toF16(Value word, bool isUpperHalf);
  /// Eight rows of a fragment, of which a lane has its `row`.
  struct RowSet {
    size_t fragment;
    int64_t row;
  };
  SmallVector<Value, 4> multiply(ValueRange planes, ArrayRef<RowSet> sets,
                                 ArrayRef<Value> right, int64_t numChains);
  void store(ArrayRef<Value> sums, ArrayRef<RowSet> sets);

  OpBuilder &b;
  Location loc;
  Arithmetic a;
  const BlockThreads &threads;
  gdn::gpu::ShareByteProductsOp op;
  const IRMapping &values;
  gdn::gpu::FragmentType type;
  gdn::gpu::RowsAttr layout;
  int64_t pieces;
  Value group, inGroup; // of four lanes, and the lane in it
};
} // namespace

/// The words of a lane of the right side: two for each four columns of its.
SmallVector<Value> ByteProducts::loadRight() {
  Value part = arith::RemUIOp::create(b, loc, group, a.i32(4));
  Value isFirst = a.isLess(part, a.i32(2));
  Value pointer = arith::SelectOp::create(b, loc, isFirst, get(op.getFirst()),
                                          get(op.getSecond()));
  Value row = arith::RemUIOp::create(b, loc, part, a.i32(2));
  int64_t columns = type.getDimSize(1);
  pointer =
      advance(pointer, a.add(a.mul(row, a.i32(columns * f16Bytes)),
                             a.mul(inGroup, a.i32(pieceColumns * f16Bytes))));
  auto four = VectorType::get({4}, b.getI32Type());
  SmallVector<Value> words;
  for (int64_t piece = 0; piece < pieces; ++piece)
    for (int64_t half = 0; half < 2; ++half) {
      auto bytes = int32_t(piece * layout.getLanes() * pieceColumns * f16Bytes +
                           half * 16);
      Value from = LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(),
                                       pointer, ArrayRef<LLVM::GEPArg>{bytes});
      Value loaded = LLVM::LoadOp::create(b, loc, four, from, 16);
      for (int64_t i = 0; i < 4; ++i)
        words.push_back(vector::ExtractOp::create(b, loc, loaded, i));
    }
  return words;
}

/// Words of four neighbouring bytes.
SmallVector<Value> ByteProducts::toWords(Value bytes) {
  int64_t count = cast<VectorType>(bytes.getType()).getNumElements() / 4;
  Value all = vector::BitCastOp::create(
      b, loc, VectorType::get({count}, b.getI32Type()), bytes);
  SmallVector<Value> words;
  for (int64_t i = 0; i < count; ++i)
    words.push_back(vector::ExtractOp::create(b, loc, all, i));
  return words;
}

/// Two bytes of a word as f16, less what stands for zero.
Value ByteProducts::toF16(Value word, bool isUpperHalf) {
  Value base = a.i32(f16Base * 0x01010101);
  Value both = NVVM::PermuteOp::create(b, loc, b.getI32Type(), word, base,
                                       a.i32(isUpperHalf ? 0x4342 : 0x4140),
                                       NVVM::PermuteMode::DEFAULT);
  auto halves = VectorType::get({2}, b.getF16Type());
  Value numbers = LLVM::BitcastOp::create(b, loc, halves, both);
  Value zero = arith::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(
          halves, FloatAttr::get(b.getF16Type(), -(1024.0 + byteZero))));
  Value made = arith::AddFOp::create(b, loc, numbers, zero);
  return LLVM::BitcastOp::create(b, loc, b.getI32Type(), made);
}

/// The sums of one or two sets, one after the other: of two neighbouring
/// columns of the right side each.
SmallVector<Value, 4> ByteProducts::multiply(ValueRange planes,
                                             ArrayRef<RowSet> sets,
                                             ArrayRef<Value> right,
                                             int64_t numChains) {
  SmallVector<SmallVector<Value>> words;
  for (RowSet set : sets)
    words.push_back(toWords(get(planes[set.fragment])));
  Value none = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  Value zero = a.i32(0);
  // Chains, since one waits for the product before.
  SmallVector<SmallVector<Value, 4>> sums(numChains,
                                          SmallVector<Value, 4>(4, none));
  const int64_t steps = pieces * pieceColumns / 4;
  for (int64_t s = 0; s < steps; ++s) {
    auto left = [&](size_t i, bool isUpperHalf) {
      return i < sets.size()
                 ? toF16(words[i][sets[i].row * steps + s], isUpperHalf)
                 : zero;
    };
    auto &chain = sums[s % numChains];
    chain =
        emitMma(b, loc, b.getF16Type(),
                {left(0, false), left(1, false), left(0, true), left(1, true)},
                {right[2 * s], right[2 * s + 1]}, chain);
  }
  for (int64_t left = numChains / 2; left > 0; left /= 2)
    for (int64_t chain = 0; chain < left; ++chain)
      for (int64_t i = 0; i < 4; ++i)
        sums[chain][i] = arith::AddFOp::create(b, loc, sums[chain][i],
                                               sums[chain + left][i]);
  return sums.front();
}

/// Of four lanes with a row, the first has both parts of its product with
/// `first`, the next one those with `second`.
void ByteProducts::store(ArrayRef<Value> sums, ArrayRef<RowSet> sets) {
  int64_t numRows = type.getDimSize(0);
  Value isFirst = a.isEqual(inGroup, a.i32(0));
  Value factor = arith::SelectOp::create(
      b, loc, isFirst, get(op.getFirstScale()), get(op.getSecondScale()));
  Value to = arith::SelectOp::create(b, loc, isFirst, toI32(op.getFirstAt()),
                                     toI32(op.getSecondAt()));
  Value made = advance(get(op.getTo()), a.mul(to, a.i32(numRows * f32Bytes)));
  auto branch = scf::IfOp::create(b, loc, a.isLess(inGroup, a.i32(2)),
                                  /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  for (auto [i, set] : llvm::enumerate(sets)) {
    Value scale = vector::ExtractOp::create(
        b, loc, get(op.getScales()[set.fragment]), set.row);
    Value sum = arith::AddFOp::create(b, loc, sums[2 * i], sums[2 * i + 1]);
    sum = arith::MulFOp::create(
        b, loc, sum, arith::MulFOp::create(b, loc, scale, factor).getResult());
    Value place =
        a.mul(threads.row(a, layout, numRows, set.row), a.i32(f32Bytes));
    place = a.add(place, a.i32(set.fragment * numRows * f32Bytes));
    LLVM::StoreOp::create(b, loc, sum, advance(made, place), f32Bytes);
  }
}

void ByteProducts::emit() {
  SmallVector<Value> right = loadRight();
  const bool hasLow = !op.getLow().empty();
  constexpr int64_t numChains = 4;
  SmallVector<RowSet> sets;
  for (size_t fragment = 0; fragment < op.getUpper().size(); ++fragment)
    for (int64_t row = 0; row < layout.getLocalRows(type.getDimSize(0)); ++row)
      sets.push_back({fragment, row});
  ArrayRef<RowSet> left = sets;
  while (!left.empty()) {
    ArrayRef<RowSet> some = left.take_front(2);
    left = left.drop_front(some.size());
    SmallVector<Value, 4> sums = multiply(op.getUpper(), some, right,
                                          hasLow ? numChains / 2 : numChains);
    if (hasLow) {
      Value part =
          arith::ConstantOp::create(b, loc, b.getF32FloatAttr(lowPart));
      for (auto [sum, more] :
           llvm::zip(sums, multiply(op.getLow(), some, right, numChains / 2)))
        sum = arith::AddFOp::create(
            b, loc, sum, arith::MulFOp::create(b, loc, more, part).getResult());
    }
    store(sums, some);
  }
}

void gdn::emitShareByteProducts(OpBuilder &b, const BlockThreads &threads,
                                gdn::gpu::ShareByteProductsOp products,
                                const IRMapping &values) {
  ByteProducts(b, threads, products, values).emit();
}
