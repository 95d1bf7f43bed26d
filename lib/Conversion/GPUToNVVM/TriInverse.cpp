// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.tri_inverse. With blocks of 16 x 16 and warp w at block row w:
//
//   1  D_w = (1 + L_ww)^-1      its corners of 8 by substitution in f32, what
//                               is between them by two products
//   2  B_wm = D_w L_wm          m < w
//   3  R_iw^T = -sum_m R_mw^T B_im^T, m from w to i - 1, R_ww = D_w
//   4  R through the scratch tile to where its rows belong
//
// In step 3 a warp works down its own column of blocks: transposed, since then
// what comes out of a product is the left operand of the next as it is.
#include "SharedMatrix.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace gdn;

namespace {

constexpr int64_t side = gdn::gpu::TriInverseOp::block;
/// Of blocks that are inverted by substitution: 28 steps, where blocks of 16
/// take 120 and leave as many lanes idle.
constexpr int64_t corner8 = 8;

class BlockInverse {
public:
  BlockInverse(OpBuilder &b, const BlockThreads &threads,
               gdn::gpu::TriInverseOp inverse, Value pointer)
      : b(b), inverse(inverse), loc(inverse.getLoc()), a{b, loc},
        threads(threads), type(inverse.getMatrix().getType()),
        scratch(inverse.getScratch().getType()), pointer(pointer),
        matrix(b, loc, threads.lane, scratch, pointer),
        count(type.getRows().getWarps()),
        hasStore4(inverse->getParentOfType<func::FuncOp>()->hasAttr(
            "gdn_gpu.warpgroups")),
        f16(b.getF16Type()) {
    own = a.mul(threads.warp, a.i32(2));
  }

  Value emit(Value local);

private:
  using Words = SmallVector<Value, 4>; // a 16 x 16 block as a left operand

  /// The corner of block (i, j); a null index is the warp's own.
  SharedMatrix::Corner corner(std::optional<int64_t> i,
                              std::optional<int64_t> j) {
    SharedMatrix::Corner at;
    at.row = 2 * i.value_or(0);
    at.column = 2 * j.value_or(0);
    at.rowValue = i ? Value() : own;
    at.columnValue = j ? Value() : own;
    return at;
  }
  /// A block as a left operand, or its transpose.
  Words loadLeft(const SharedMatrix::Corner &at, bool transpose) {
    if (transpose)
      return matrix.load4(at, {0, 1}, {1, 0}, /*transpose=*/true);
    return matrix.load4(at, {1, 0}, {0, 1}, /*transpose=*/false);
  }
  /// A block as a right operand, for columns 0..7 and 8..15, or its transpose.
  Words loadRight(const SharedMatrix::Corner &at, bool transpose) {
    if (transpose)
      return matrix.load4(at, {0, 1}, {1, 0}, /*transpose=*/false);
    return matrix.load4(at, {1, 0}, {0, 1}, /*transpose=*/true);
  }
  /// sums += left * right; 8 sums: of columns 0..7, then 8..15.
  SmallVector<Value> multiply(const Words &left, const Words &right,
                              SmallVector<Value> sums);
  Words round(ArrayRef<Value> sums, bool negate);
  void store(const SharedMatrix::Corner &at, const Words &words,
             bool transpose);
  void invertCorners();
  std::pair<Words, Words> invertDiagonal();
  Value roundPair(Value first, Value second, bool negate);
  SmallVector<Value> zeroSums() {
    return SmallVector<Value>(
        8, arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0)));
  }
  void syncWarp() { NVVM::SyncWarpOp::create(b, loc, a.i32(-1)); }
  void barrier() { emitBarrier(b, inverse, threads); }

  OpBuilder &b;
  gdn::gpu::TriInverseOp inverse;
  Location loc;
  Arithmetic a;
  const BlockThreads &threads;
  gdn::gpu::FragmentType type;
  gdn::gpu::SharedType scratch;
  Value pointer;
  SharedMatrix matrix;
  int64_t count; // of warps, and of blocks in a row
  bool hasStore4;
  Type f16;
  Value own; // block row of 8 of the warp's first row
};

} // namespace

SmallVector<Value> BlockInverse::multiply(const Words &left, const Words &right,
                                          SmallVector<Value> sums) {
  for (int64_t half = 0; half < 2; ++half) {
    auto part = emitMma(b, loc, f16, left, ValueRange(right).slice(2 * half, 2),
                        ValueRange(sums).slice(4 * half, 4));
    llvm::copy(part, sums.begin() + 4 * half);
  }
  return sums;
}

/// Two sums as a word.
Value BlockInverse::roundPair(Value first, Value second, bool negate) {
  SmallVector<Value> values = {first, second};
  if (negate)
    for (Value &value : values)
      value = arith::NegFOp::create(b, loc, value);
  Value pair = vector::FromElementsOp::create(
      b, loc, VectorType::get({2}, b.getF32Type()), values);
  pair = arith::TruncFOp::create(b, loc, VectorType::get({2}, f16), pair);
  return getWords(b, loc, pair).front();
}

/// Sums as the words of a left operand.
BlockInverse::Words BlockInverse::round(ArrayRef<Value> sums, bool negate) {
  SmallVector<Value> values(sums);
  if (negate)
    for (Value &value : values)
      value = arith::NegFOp::create(b, loc, value);
  Value all = vector::FromElementsOp::create(
      b, loc, VectorType::get({8}, b.getF32Type()), values);
  all = arith::TruncFOp::create(b, loc, VectorType::get({8}, f16), all);
  return Words(getWords(b, loc, all));
}

void BlockInverse::store(const SharedMatrix::Corner &at, const Words &words,
                         bool transpose) {
  if (hasStore4) // in the order of a left operand's words
    return matrix.store4(at, transpose ? std::pair(0, 1) : std::pair(1, 0),
                         transpose ? std::pair(1, 0) : std::pair(0, 1), words,
                         transpose);
  for (int64_t q = 0; q < 4; ++q) {
    SharedMatrix::Corner block = at;
    int64_t row = q & 1, column = q >> 1; // of a left operand's words
    block.row += transpose ? column : row;
    block.column += transpose ? row : column;
    matrix.store(block, words[q], transpose);
  }
}

/// Lane j of eight finds column j of one of the two blocks of 8 on the diagonal
/// of (1 + L_ww)^-1: x_i = (i == j) - sum_m L_im x_m.
void BlockInverse::invertCorners() {
  Value number = arith::RemUIOp::create(
      b, loc, arith::DivUIOp::create(b, loc, threads.lane, a.i32(corner8)),
      a.i32(2));
  Value column =
      arith::AndIOp::create(b, loc, threads.lane, a.i32(corner8 - 1));
  Value first =
      a.add(a.mul(threads.warp, a.i32(side)), a.mul(number, a.i32(corner8)));
  auto rowType = VectorType::get({corner8}, f16);
  SmallVector<Value> x;
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0));
  Value one = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(1.0));
  for (int64_t i = 0; i < corner8; ++i) {
    Value value =
        arith::SelectOp::create(b, loc, a.isEqual(column, a.i32(i)), one, zero);
    if (i > 0) {
      Value at =
          matrix.getAddress(a.add(first, a.i32(i)), a.mul(first, a.i32(2)));
      Value elements = LLVM::LoadOp::create(b, loc, rowType, at, 16);
      elements = arith::ExtFOp::create(
          b, loc, VectorType::get({corner8}, b.getF32Type()), elements);
      for (int64_t m = 0; m < i; ++m) {
        Value factor = vector::ExtractOp::create(b, loc, elements, m);
        factor = arith::NegFOp::create(b, loc, factor);
        value = math::FmaOp::create(b, loc, factor, x[m], value);
      }
    }
    x.push_back(value);
  }
  syncWarp();
  auto isOne = scf::IfOp::create(b, loc, a.isLess(threads.lane, a.i32(side)),
                                 /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(isOne.thenBlock());
    for (int64_t i = 0; i < corner8; ++i) {
      Value at = matrix.getAddress(a.add(first, a.i32(i)),
                                   a.mul(a.add(first, column), a.i32(2)));
      Value narrow = arith::TruncFOp::create(b, loc, f16, x[i]);
      LLVM::StoreOp::create(b, loc, narrow, at, 2);
    }
  }
  syncWarp();
}

/// D_w and its transpose as left operands. With the corners D and E of blocks
/// of 8, and C below the first, the block in the place of C is -E C D.
std::pair<BlockInverse::Words, BlockInverse::Words>
BlockInverse::invertDiagonal() {
  invertCorners();
  // In the order of a left operand's words: D, C, what is above, E.
  Words plain = loadLeft(corner({}, {}), /*transpose=*/false);
  Words turned = matrix.load4(corner({}, {}), {1, 0}, {0, 1},
                              /*transpose=*/true);
  Value zero = a.i32(0);
  // The product of three corners, the first as a left operand.
  auto chain = [&](Value left, Value middle, Value right) {
    Words first = {left, zero, zero, zero};
    auto sums = emitMma(b, loc, f16, first, ValueRange{middle, zero},
                        ValueRange(zeroSums()).take_front(4));
    Words second = {roundPair(sums[0], sums[1], /*negate=*/true), zero, zero,
                    zero};
    sums = emitMma(b, loc, f16, second, ValueRange{right, zero},
                   ValueRange(zeroSums()).take_front(4));
    return roundPair(sums[0], sums[1], /*negate=*/false);
  };
  // A corner that is loaded turned is a right operand, and one that is not is
  // its transpose.
  Value below = chain(plain[3], turned[1], turned[0]);
  Value belowT = chain(turned[0], plain[1], plain[3]);
  return {Words{plain[0], below, zero, plain[3]},
          Words{turned[0], zero, belowT, turned[3]}};
}

Value BlockInverse::emit(Value local) {
  shareMatrix(b, loc, threads, type, local, scratch, pointer,
              /*transpose=*/false, hasStore4);
  syncWarp();
  auto [diagonal, diagonalT] = invertDiagonal();
  // B_wm in the place of L_wm. The last column of blocks is never left of a
  // diagonal; what the products of others make above it is not read.
  SmallVector<Words> products;
  for (int64_t m = 0; m + 1 < count; ++m)
    products.push_back(
        round(multiply(diagonal, loadRight(corner({}, m), false), zeroSums()),
              /*negate=*/false));
  syncWarp();
  for (int64_t m = 0; m + 1 < count; ++m)
    store(corner({}, m), products[m], /*transpose=*/false);
  barrier();

  // The column of blocks, transposed; zero above the diagonal.
  SmallVector<Words> column;
  Value zero = a.i32(0);
  for (int64_t i = 0; i < count; ++i) {
    Value isOwn = a.isEqual(threads.warp, a.i32(i));
    Words block;
    for (Value word : diagonalT)
      block.push_back(arith::SelectOp::create(b, loc, isOwn, word, zero));
    if (i > 0) {
      SmallVector<Value> sums = zeroSums();
      for (int64_t m = 0; m < i; ++m)
        sums = multiply(column[m], loadRight(corner(i, m), true), sums);
      Words below = round(sums, /*negate=*/true);
      Value isBelow = a.isLess(threads.warp, a.i32(i));
      for (auto [word, other] : llvm::zip(block, below))
        word = arith::SelectOp::create(b, loc, isBelow, other, word);
    }
    column.push_back(block);
  }
  barrier();
  for (int64_t i = 0; i < count; ++i)
    store(corner(i, {}), column[i], /*transpose=*/true);
  barrier();
  return fetchMatrix(b, loc, threads, type, scratch, pointer,
                     /*transpose=*/false);
}

Value gdn::emitTriInverse(OpBuilder &b, const BlockThreads &threads,
                          gdn::gpu::TriInverseOp inverse, Value matrix,
                          Value pointer) {
  return BlockInverse(b, threads, inverse, pointer).emit(matrix);
}
