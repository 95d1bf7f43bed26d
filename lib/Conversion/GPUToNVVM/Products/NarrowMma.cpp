// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.share_part_products: mma.m16n8k16 with the numbers on the left as
// they are, eight neighbouring columns in a piece. As with bytes (ByteMma.cpp),
// two words of a piece are of an upper row of the product and two of a lower
// one: so of one product the upper rows are of use, and of another with other
// columns on the right the lower rows. No word has to move. Columns 0 to 3 of
// the right side are the parts of `first`, the last one twice, columns 4 to 7
// those of `second`.
#include "Products/NarrowMma.h"

#include "Products/PieceWords.h"
#include "Products/ProductFamily.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

namespace {
class NarrowProducts {
public:
  NarrowProducts(OpBuilder &b, const BlockThreads &threads,
                 gdn::gpu::SharePartProductsOp op, const IRMapping &values)
      : b(b), loc(op.getLoc()), a{b, loc}, threads(threads), op(op),
        values(values), type(op.getLhs().getType()), layout(type.getRows()),
        pieces(layout.getPieces(type.getDimSize(1))) {
    group = arith::DivUIOp::create(b, loc, threads.lane, a.i32(4));
    inGroup = arith::RemUIOp::create(b, loc, threads.lane, a.i32(4));
  }
  void emit();

private:
  static constexpr int64_t f32Bytes = 4, bytes = 2;
  /// Columns of the right side that one of the rows has, and its parts.
  static constexpr int64_t rowColumns = 4, numParts = 3;
  /// Of two numbers.
  static constexpr int64_t signBits = 0x80008000;

  Value get(Value value) { return values.lookupOrDefault(value); }
  SmallVector<Value> loadRight();
  Value addParts(ArrayRef<Value> sums, Value isEven);

  OpBuilder &b;
  Location loc;
  Arithmetic a;
  const BlockThreads &threads;
  gdn::gpu::SharePartProductsOp op;
  const IRMapping &values;
  gdn::gpu::FragmentType type;
  gdn::gpu::RowsAttr layout;
  int64_t pieces;
  Value group, inGroup; // of four lanes, and the lane in it
};
} // namespace

/// The words of a lane of the right side, with the other signs.
SmallVector<Value> NarrowProducts::loadRight() {
  Value isFirst = a.isLess(group, a.i32(rowColumns));
  Value pointer = arith::SelectOp::create(b, loc, isFirst, get(op.getFirst()),
                                          get(op.getSecond()));
  Value part = arith::MinUIOp::create(
      b, loc, arith::RemUIOp::create(b, loc, group, a.i32(rowColumns)),
      a.i32(numParts - 1));
  pointer =
      a.advance(pointer, a.add(a.mul(part, a.i32(type.getDimSize(1) * bytes)),
                               a.mul(inGroup, a.i32(laneBytes))));
  return loadPieces(a, pointer, pieces, layout.getLanes() * laneBytes,
                    signBits);
}

/// Of a row with all parts of a row on the right, of which an even lane has two
/// and its neighbour the last one, twice.
Value NarrowProducts::addParts(ArrayRef<Value> sums, Value isEven) {
  Value none = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  Value second = arith::SelectOp::create(b, loc, isEven, sums[1], none);
  Value mine = arith::AddFOp::create(b, loc, sums[0], second);
  return addNeighbour(a, mine);
}

void NarrowProducts::emit() {
  SmallVector<Value> right = loadRight(), left = toWords(a, get(op.getLhs()));
  const int64_t rowWords = pieces * laneWords;
  const int64_t localRows = layout.getLocalRows(type.getDimSize(0));
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  Value isFirst = a.isLess(inGroup, a.i32(2));
  Value isEven =
      a.isEqual(arith::RemUIOp::create(b, loc, inGroup, a.i32(2)), a.i32(0));
  SmallVector<Value> numbers;
  for (int64_t row = 0; row < localRows; ++row) {
    SmallVector<Value, 4> upper(4, zero), lower = upper;
    for (int64_t at = 0; at < rowWords; at += laneWords) {
      ArrayRef<Value> words = ArrayRef(left).slice(row * rowWords + at, 4);
      upper = emitMma(b, loc, type.getElementType(), words,
                      {right[at], right[at + 2]}, upper);
      lower = emitMma(b, loc, type.getElementType(), words,
                      {right[at + 1], right[at + 3]}, lower);
    }
    SmallVector<Value, 2> sums;
    for (int64_t i = 0; i < 2; ++i)
      sums.push_back(arith::AddFOp::create(b, loc, upper[i], lower[i + 2]));
    numbers.push_back(addParts(sums, isEven));
  }

  // Of four lanes with a row, two have its product with `first`, two that with
  // `second`, and the even ones of them write.
  Value unit = arith::SelectOp::create(b, loc, isFirst, get(op.getFirstScale()),
                                       get(op.getSecondScale()));
  Value to =
      a.advance(get(op.getTo()),
                arith::SelectOp::create(b, loc, isFirst, a.i32(0),
                                        a.i32(type.getDimSize(0) * f32Bytes)));
  auto branch = scf::IfOp::create(b, loc, isEven, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  for (auto [row, number] : llvm::enumerate(numbers)) {
    Value place =
        a.mul(threads.row(a, layout, type.getDimSize(0), int64_t(row)),
              a.i32(f32Bytes));
    Value turned = arith::NegFOp::create(b, loc, number);
    LLVM::StoreOp::create(b, loc, arith::MulFOp::create(b, loc, turned, unit),
                          a.advance(to, place), f32Bytes);
  }
}

void gdn::emitSharePartProducts(OpBuilder &b, const BlockThreads &threads,
                                gdn::gpu::SharePartProductsOp products,
                                const IRMapping &values) {
  NarrowProducts(b, threads, products, values).emit();
}
