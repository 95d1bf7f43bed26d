// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.share_products: mma.m16n8k8 on parts of 11 bits. The thread's
// elements are the left fragments as they lie: of 16 rows a lane has two, and
// its neighbouring columns are taken for the columns k and k + 4 of a product,
// on both sides alike. The 8 columns of a product are 4 rows of `first` and 4
// of `second`.
#include "Products/SplitMma.h"

#include "Kernel/OptimizationBarrier.h"
#include "Products/ProductFamily.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

static constexpr int64_t f32Bytes = 4;
/// Rows of `first`, and of `second`, that a product takes.
static constexpr int64_t groupRows = 4;

namespace {
/// A factor as the sum of two of 11 bits, the second one of what the first
/// leaves; as the words that mma takes.
struct Split {
  Value high, low;
};

class ProductsEmitter {
public:
  ProductsEmitter(OpBuilder &b, const BlockThreads &threads,
                  gdn::gpu::ShareProductsOp op, Value lhs, Value exact,
                  ArrayRef<Value> buffers)
      : b(b), loc(op.getLoc()), a{b, loc}, lhs(lhs), exact(exact),
        buffers(buffers), type(op.getLhs().getType()), layout(type.getRows()),
        vector(layout.getVector()),
        localRows(layout.getLocalRows(type.getDimSize(0))),
        columns(type.getDimSize(1)),
        pieces(layout.getPieces(type.getDimSize(1))) {
    Arithmetic a{b, loc};
    group = arith::DivUIOp::create(b, loc, threads.lane, a.i32(4));
    inGroup = arith::RemUIOp::create(b, loc, threads.lane, a.i32(4));
    firstRow = threads.row(a, layout, type.getDimSize(0), 0);
  }
  /// The products with the first `count` groups of rows, side by side, so that
  /// the parts of an element are made once.
  void emit(int64_t count);

private:
  Split split(Value x);
  Value element(int64_t row, int64_t at) {
    return vector::ExtractOp::create(b, loc, lhs, row * pieces * vector + at);
  }
  SmallVector<Value> loadRight(Value pointer, int64_t column);
  void multiply(MutableArrayRef<Value> sums, ArrayRef<Value> left,
                ArrayRef<Value> right);

  OpBuilder &b;
  Location loc;
  Arithmetic a;
  Value lhs, exact; // an i1, or null for never
  ArrayRef<Value> buffers;
  gdn::gpu::FragmentType type;
  gdn::gpu::RowsAttr layout;
  int64_t vector, localRows, columns, pieces;
  Value group, inGroup; // of four lanes, and the lane in it
  Value firstRow;
};
} // namespace

Split ProductsEmitter::split(Value x) {
  Type i32 = b.getI32Type();
  // Here and now: the parts of all elements at once have no room.
  Value bits = optimizationBarrier(
      b, loc, arith::BitcastOp::create(b, loc, i32, x).getResult());
  x = arith::BitcastOp::create(b, loc, b.getF32Type(), bits);
  Value high = arith::AndIOp::create(b, loc, bits, a.i32(int32_t(0xffffe000)));
  Value rest = arith::SubFOp::create(
      b, loc, x, arith::BitcastOp::create(b, loc, b.getF32Type(), high));
  return {high, arith::BitcastOp::create(b, loc, i32, rest)};
}

/// Four neighbours of the lane's row of the group, from `column` of its piece.
SmallVector<Value> ProductsEmitter::loadRight(Value pointer, int64_t column) {
  Value from = a.advance(pointer, column * f32Bytes);
  Value four = LLVM::LoadOp::create(
      b, loc, VectorType::get({4}, b.getF32Type()), from, 4 * f32Bytes);
  SmallVector<Value> values;
  for (int64_t i = 0; i < 4; ++i)
    values.push_back(vector::ExtractOp::create(b, loc, four, i));
  return values;
}

/// One mma of 16 rows, 8 columns and a depth of 8.
void ProductsEmitter::multiply(MutableArrayRef<Value> sums,
                               ArrayRef<Value> left, ArrayRef<Value> right) {
  llvm::copy(emitTf32Mma(b, loc, left, right, sums), sums.begin());
}

void ProductsEmitter::emit(int64_t count) {
  const int64_t tiles = localRows / 2;
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  // Of each group and 16 rows: the sums of the largest products, and of those
  // with either small part. Sums side by side, since one waits for the one
  // before.
  SmallVector<Value> large(count * tiles * 4, zero), small = large,
                                                     other = large;
  // Lanes of the first four rows of a fragment read from `first`.
  Value isFirst = a.isLess(group, a.i32(groupRows));
  Value pointer =
      arith::SelectOp::create(b, loc, isFirst, buffers[0], buffers[1]);
  Value row = arith::RemUIOp::create(b, loc, group, a.i32(groupRows));
  pointer = a.advance(pointer, a.add(a.mul(row, a.i32(columns * f32Bytes)),
                                     a.mul(inGroup, a.i32(vector * f32Bytes))));
  for (int64_t piece = 0; piece < pieces; ++piece)
    for (int64_t four = 0; four < vector; four += 4) {
      SmallVector<Split> left, right; // of a row, four neighbours
      for (int64_t g = 0; g < count; ++g)
        for (Value x : loadRight(pointer, g * groupRows * columns +
                                              piece * 4 * vector + four))
          right.push_back(split(x));
      for (int64_t i = 0; i < localRows; ++i)
        for (int64_t at = 0; at < 4; ++at)
          left.push_back(split(element(i, piece * vector + four + at)));
      auto rows = [&](int64_t t, int64_t at, Value Split::*part) {
        const Split *upper = &left[2 * t * 4 + at];
        const Split *lower = &left[(2 * t + 1) * 4 + at];
        return SmallVector<Value>{upper->*part, lower->*part,
                                  (upper + 1)->*part, (lower + 1)->*part};
      };
      auto both = [&](int64_t g, int64_t at, Value Split::*part) {
        const Split *from = &right[g * 4 + at];
        return SmallVector<Value>{from->*part, (from + 1)->*part};
      };
      auto multiplyAll = [&](SmallVector<Value> &sums, Value Split::*ofLeft,
                             Value Split::*ofRight) {
        for (int64_t at = 0; at < 4; at += 2)
          for (int64_t g = 0; g < count; ++g)
            for (int64_t t = 0; t < tiles; ++t)
              multiply(MutableArrayRef(sums).slice((g * tiles + t) * 4, 4),
                       rows(t, at, ofLeft), both(g, at, ofRight));
      };
      multiplyAll(large, &Split::high, &Split::high);
      multiplyAll(small, &Split::high, &Split::low);
      if (!exact) {
        multiplyAll(other, &Split::low, &Split::high);
        continue;
      }
      auto branch = scf::IfOp::create(b, loc, ValueRange(other).getTypes(),
                                      exact, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(branch.thenBlock());
      scf::YieldOp::create(b, loc, other);
      b.setInsertionPointToStart(branch.elseBlock());
      multiplyAll(other, &Split::low, &Split::high);
      scf::YieldOp::create(b, loc, other);
      other = SmallVector<Value>(branch.getResults());
    }

  // A lane has two columns: two rows of `first` or of `second`.
  Value isOfFirst = a.isLess(inGroup, a.i32(2));
  Value to = arith::SelectOp::create(b, loc, isOfFirst, buffers[2], buffers[3]);
  Value at = a.mul(arith::RemUIOp::create(b, loc, inGroup, a.i32(2)), a.i32(2));
  int64_t rowBytes = type.getDimSize(0) * f32Bytes;
  to = a.advance(
      to, a.add(a.mul(at, a.i32(rowBytes)), a.mul(firstRow, a.i32(f32Bytes))));
  for (int64_t g = 0; g < count; ++g)
    for (int64_t t = 0; t < tiles; ++t)
      for (int64_t i = 0; i < 4; ++i) {
        int64_t of = (g * tiles + t) * 4 + i;
        Value sum = arith::AddFOp::create(b, loc, small[of], other[of]);
        sum = arith::AddFOp::create(b, loc, large[of], sum);
        int64_t bytes = (g * groupRows + i % 2) * rowBytes +
                        (2 * t + i / 2) * layout.getRowStep() * f32Bytes;
        LLVM::StoreOp::create(b, loc, sum, a.advance(to, bytes), f32Bytes);
      }
}

void gdn::emitShareProducts(OpBuilder &b, const BlockThreads &threads,
                            gdn::gpu::ShareProductsOp products,
                            const IRMapping &values) {
  Location loc = products.getLoc();
  Arithmetic a{b, loc};
  SmallVector<Value> buffers;
  for (Value buffer : {products.getFirst(), products.getSecond(),
                       products.getFirstTo(), products.getSecondTo()})
    buffers.push_back(values.lookup(buffer));
  Value lhs = values.lookupOrDefault(products.getLhs());
  Value rows = values.lookupOrDefault(products.getRows());
  Value exact = products.getExact();
  if (exact)
    exact = values.lookupOrDefault(exact);
  ProductsEmitter emitter(b, threads, products, lhs, exact, buffers);
  // Whole groups, as many as the rows asked for.
  Value count = arith::TruncIOp::create(b, loc, b.getI32Type(), a.toI64(rows));
  // A branch for each count: a loop over groups would have ptxas make the parts
  // of all elements before it.
  int64_t most = products.getFirst().getType().getShape()[0] / groupRows;
  for (int64_t groups = 1; groups <= most; ++groups) {
    Value isMore = a.isLess(a.i32((groups - 1) * groupRows), count);
    Value fits =
        groups == most
            ? isMore
            : arith::AndIOp::create(
                  b, loc, isMore,
                  arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                                        count, a.i32(groups * groupRows)));
    auto branch = scf::IfOp::create(b, loc, fits, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    emitter.emit(groups);
  }
}
