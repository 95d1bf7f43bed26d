// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.tri_inverse. With blocks of 16 x 16 and warp w at block row w:
//
//   1  D_w = (1 + L_ww)^-1      its corners of 8 by substitution in f32, what
//                               is between them by two products
//   2  B_wm = D_w L_wm          m < w
//   3  R_iw^T = -sum_m R_mw^T B_im^T, m from w to i - 1, R_ww = D_w
//   4  R to the scratch tile, and from there to where its rows belong, unless
//      R^T is wanted
//
// In step 3 a warp works down its own column of blocks: transposed, since then
// what comes out of a product is the left operand of the next as it is.
//
// Two matrices go through each step side by side. Blocks (i, j), j < i, of the
// second are in the place of (j, i), and its diagonal in a row of blocks of its
// own. A warp's blocks behind its diagonal, which count for nothing, are then
// in the diagonal's position.
#include "Fragments/SharedMatrix.h"
#include "Kernel/OptimizationBarrier.h"
#include "Products/WordMaths.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace gdn;

namespace {

constexpr int64_t side = gdn::gpu::TriInverseOp::block;
/// Of blocks that are inverted by substitution: 28 steps, where blocks of 16
/// take 120 and leave as many lanes idle.
constexpr int64_t corner8 = 8;

class BlockInverse : WordMaths {
public:
  BlockInverse(OpBuilder &b, const BlockThreads &threads,
               gdn::gpu::TriInverseOp inverse, Value pointer)
      : WordMaths(b, inverse.getLoc()), inverse(inverse), threads(threads),
        type(cast<gdn::gpu::FragmentType>(
            inverse.getMatrices().front().getType())),
        scratch(inverse.getScratch().getType()), pointer(pointer),
        matrix(b, loc, threads.lane, scratch, pointer),
        all(inverse.getMatrices().size()), count(type.getRows().getWarps()),
        hasStore4(
            gdn::gpu::KernelFields(inverse->getParentOfType<func::FuncOp>())
                .mayStoreMatrices()) {
    own = mul(threads.warp, i32(2));
    all.back().isAcross = all.size() > 1;
  }

  SmallVector<Value> emit(ValueRange locals);

private:
  /// A matrix on its way.
  struct Work {
    bool isAcross = false;       // the second one
    Words negative;              // -D_w
    Words transposed;            // D_w^T
    SmallVector<Words> products; // -B_wm
    SmallVector<Words> column;   // of blocks of R^T
  };

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
  /// Block (i, j) below the diagonal.
  SharedMatrix::Corner below(const Work &work, int64_t i, int64_t j) {
    return work.isAcross ? corner(j, i) : corner(i, j);
  }
  /// The warp's block on the diagonal.
  SharedMatrix::Corner diagonal(const Work &work) {
    return work.isAcross ? corner(count, {}) : corner({}, {});
  }
  /// The warp's block in column `m` of blocks.
  SharedMatrix::Corner ownBlock(const Work &work, int64_t m) {
    if (all.size() == 1)
      return corner({}, m);
    SharedMatrix::Corner at = diagonal(work);
    Value isBelow = isLess(i32(m), threads.warp);
    if (work.isAcross) {
      at.row = 0;
      at.rowValue = select(isBelow, i32(2 * m), i32(2 * count));
    } else {
      at.columnValue = select(isBelow, i32(2 * m), own);
    }
    return at;
  }
  void storeBlock(const Work &work, Value local);
  /// A block as a right operand, for columns 0..7 and 8..15, or its transpose.
  Words loadRight(const SharedMatrix::Corner &at, bool transpose) {
    if (transpose)
      return matrix.load4(at, {0, 1}, {1, 0}, /*transpose=*/false);
    return matrix.load4(at, {1, 0}, {0, 1}, /*transpose=*/true);
  }
  /// sums += left * right; 8 sums: of columns 0..7, then 8..15.
  SmallVector<Value> multiply(const Words &left, const Words &right,
                              SmallVector<Value> sums);
  Words round(ArrayRef<Value> sums);
  void store(const SharedMatrix::Corner &at, ValueRange words, bool transpose) {
    matrix.storeLeft(at, words, transpose, hasStore4);
  }
  void invertCorners();
  void invertDiagonal(Work &work);
  void findColumn(Work &work, int64_t begin, int64_t end);
  void findColumns();
  SmallVector<Value> zeroSums() { return SmallVector<Value>(8, f32(0)); }
  void barrier() { emitBarrier(b, inverse, threads); }

  gdn::gpu::TriInverseOp inverse;
  const BlockThreads &threads;
  gdn::gpu::FragmentType type;
  gdn::gpu::SharedType scratch;
  Value pointer;
  SharedMatrix matrix;
  SmallVector<Work, 2> all;
  int64_t count; // of warps, and of blocks in a row
  bool hasStore4;
  Value own; // block row of 8 of the warp's first row
};

} // namespace

SmallVector<Value> BlockInverse::multiply(const Words &left, const Words &right,
                                          SmallVector<Value> sums) {
  for (int64_t half = 0; half < 2; ++half) {
    auto part = addProduct(left, ValueRange(right).slice(2 * half, 2),
                           ValueRange(sums).slice(4 * half, 4));
    llvm::copy(part, sums.begin() + 4 * half);
  }
  return sums;
}

/// Sums as the words of a left operand.
BlockInverse::Words BlockInverse::round(ArrayRef<Value> sums) {
  auto type = VectorType::get({8}, b.getF16Type());
  return Words(
      getWords(b, loc, arith::TruncFOp::create(b, loc, type, vectorOf(sums))));
}

/// The warp's rows of a matrix to the scratch tile.
void BlockInverse::storeBlock(const Work &work, Value local) {
  if (all.size() == 1)
    return storeMatrix(b, loc, threads, type, local, scratch, pointer,
                       /*from=*/nullptr, /*transpose=*/false, hasStore4);
  // The words of a fragment go row of blocks by row of blocks. The block on the
  // diagonal comes behind those that only pass through its position.
  SmallVector<Value> words = getWords(b, loc, local);
  for (int64_t m = count - 1; m >= 0; --m) {
    ArrayRef<Value> above = ArrayRef(words).slice(2 * m, 2),
                    low = ArrayRef(words).slice(2 * (count + m), 2);
    store(ownBlock(work, m), {above[0], low[0], above[1], low[1]},
          /*transpose=*/false);
  }
}

/// Lane j of eight finds column j of one of the two blocks of 8 on the diagonal
/// of (1 + L_ww)^-1: x_i = (i == j) - sum_m L_im x_m. It goes to row j of the
/// block's position: in one piece, so that the block lies there transposed. A
/// second matrix has the lanes from 16 on.
void BlockInverse::invertCorners() {
  Value number = remainder(divide(threads.lane, corner8), 2);
  Value column = bitAnd(threads.lane, corner8 - 1);
  Value first = add(mul(threads.warp, i32(side)), mul(number, i32(corner8)));
  Value isFirst = isLess(threads.lane, i32(side));
  // The row and the byte at which the block begins.
  Value row = first, bytes = mul(first, i32(2));
  if (all.size() > 1)
    row = arith::SelectOp::create(
        b, loc, isFirst, first,
        add(mul(number, i32(corner8)), i32(count * side)));
  auto rowType = VectorType::get({corner8}, b.getF16Type());
  SmallVector<Value> x;
  Value zero = f32(0), one = f32(1);
  for (int64_t i = 0; i < corner8; ++i) {
    Value value = select(isEqual(column, i32(i)), one, zero);
    if (i > 0) {
      Value at = matrix.getAddress(add(row, i32(i)), bytes);
      Value elements = LLVM::LoadOp::create(b, loc, rowType, at, 16);
      elements = arith::ExtFOp::create(
          b, loc, VectorType::get({corner8}, b.getF32Type()), elements);
      for (int64_t m = 0; m < i; ++m) {
        Value factor = vector::ExtractOp::create(b, loc, elements, m);
        value = fma(negative(factor), x[m], value);
      }
    }
    x.push_back(value);
  }
  syncWarp();
  auto store = [&] {
    Value narrow = arith::TruncFOp::create(b, loc, rowType, vectorOf(x));
    LLVM::StoreOp::create(b, loc, narrow,
                          matrix.getAddress(add(row, column), bytes), 16);
  };
  if (all.size() > 1)
    store();
  else
    onlyIf(isFirst, store);
  syncWarp();
}

/// -D_w and D_w^T as left operands. With the corners D and E of blocks of 8,
/// and C below the first, the block in the place of C is -E C D.
void BlockInverse::invertDiagonal(Work &work) {
  // In the order of a left operand's words: D, C, what is above, E; of which D
  // and E lie transposed.
  Words plain = matrix.load4(diagonal(work), {1, 0}, {0, 1},
                             /*transpose=*/false);
  Words transposed = matrix.load4(diagonal(work), {1, 0}, {0, 1},
                                  /*transpose=*/true);
  std::swap(plain[0], transposed[0]);
  std::swap(plain[3], transposed[3]);
  // A corner that is loaded transposed is a right operand, and one that is not
  // is its transpose. Both chains go through the same instructions, E C D in
  // the first eight rows and inner elements, D^T C^T E^T in the others.
  Value zero = i32(0);
  auto multiplyBoth = [&](Value first, Value second, ValueRange right) {
    Words left = {first, zero, zero, second};
    return addProduct(left, right, zeros());
  };
  auto sums = multiplyBoth(plain[3], transposed[0], {transposed[1], plain[1]});
  sums = multiplyBoth(roundPair(sums[0], sums[1]), roundPair(sums[2], sums[3]),
                      {transposed[0], plain[3]});
  work.negative = {negativeWord(plain[0]), roundPair(sums[0], sums[1]), zero,
                   negativeWord(plain[3])};
  work.transposed = {transposed[0], zero,
                     negativeWord(roundPair(sums[2], sums[3])), transposed[3]};
}

/// The column of blocks, transposed, of a warp from `begin` to `end`; zero
/// above the diagonal, as products with the zeros there are.
void BlockInverse::findColumn(Work &work, int64_t begin, int64_t end) {
  work.column.assign(begin, Words(4, i32(0)));
  for (int64_t i = begin; i < count; ++i) {
    // All bits where the warp's diagonal is. Kept from the compiler, which
    // would choose with a predicate for each word.
    Value isOwn;
    if (i < end) {
      isOwn = arith::ExtSIOp::create(b, loc, b.getI32Type(),
                                     isEqual(threads.warp, i32(i)));
      isOwn = optimizationBarrier(b, loc, isOwn);
    }
    SmallVector<Value> sums = zeroSums();
    for (int64_t m = begin; m < i; ++m)
      sums = multiply(work.column[m], loadRight(below(work, i, m), true), sums);
    Words block = i > begin ? round(sums) : Words(4, Value());
    for (auto [word, own] : llvm::zip(block, work.transposed)) {
      if (!isOwn)
        break;
      Value kept = arith::AndIOp::create(b, loc, own, isOwn);
      word = word ? Value(arith::OrIOp::create(b, loc, word, kept)) : kept;
    }
    work.column.push_back(block);
  }
}

/// Those of all matrices. Of two, the warps of the lower half do without the
/// products with what is zero for them all: each waits its turn behind products
/// of warpgroups (347 us of a recurrence with them, 341 without).
void BlockInverse::findColumns() {
  const int64_t half = count / 2;
  if (all.size() == 1 || half == 0) {
    for (Work &work : all)
      findColumn(work, 0, count);
    return;
  }
  SmallVector<Type> types(all.size() * count * 4, b.getI32Type());
  auto isUpper =
      scf::IfOp::create(b, loc, types, isLess(threads.warp, i32(count / 2)),
                        /*withElseRegion=*/true);
  auto emitHalf = [&](Block *block, int64_t begin, int64_t end) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(block);
    SmallVector<Value> words;
    for (Work &work : all) {
      findColumn(work, begin, end);
      for (const Words &found : work.column)
        llvm::append_range(words, found);
    }
    scf::YieldOp::create(b, loc, words);
  };
  emitHalf(isUpper.thenBlock(), 0, half);
  emitHalf(isUpper.elseBlock(), half, count);
  auto word = isUpper.getResults().begin();
  for (Work &work : all)
    for (Words &block : work.column)
      for (Value &each : block)
        each = *word++;
}

SmallVector<Value> BlockInverse::emit(ValueRange locals) {
  for (auto [work, local] : llvm::zip(all, locals))
    storeBlock(work, local);
  syncWarp();
  invertCorners();
  for (Work &work : all)
    invertDiagonal(work);
  // -B_wm in the place of L_wm. The last column of blocks is never left of a
  // diagonal; what the products of others make above it is not read.
  for (int64_t m = 0; m + 1 < count; ++m)
    for (Work &work : all)
      work.products.push_back(round(multiply(
          work.negative, loadRight(ownBlock(work, m), false), zeroSums())));
  syncWarp();
  for (Work &work : all)
    for (int64_t m = 0; m + 1 < count; ++m)
      store(ownBlock(work, m), work.products[m], /*transpose=*/false);
  barrier();
  findColumns();
  SmallVector<Value> results;
  if (inverse.getTransposed()) {
    // The words of a fragment go row of blocks by row of blocks.
    for (const Work &work : all) {
      SmallVector<Value> words;
      for (int64_t row = 0; row < 2; ++row)
        for (const Words &block : work.column)
          words.append({block[row], block[2 + row]});
      results.push_back(fromWords(b, loc, words, b.getF16Type()));
    }
    return results;
  }
  barrier();
  for (int64_t i = 0; i < count; ++i)
    store(corner(i, {}), all.front().column[i], /*transpose=*/true);
  if (inverse.getInverses().front().use_empty()) // it is taken from there
    return {LLVM::PoisonOp::create(b, loc, locals.front().getType())};
  barrier();
  return {loadMatrix(b, loc, threads, type, scratch, pointer,
                     /*from=*/nullptr, /*transpose=*/false)};
}

SmallVector<Value> gdn::emitTriInverse(OpBuilder &b,
                                       const BlockThreads &threads,
                                       gdn::gpu::TriInverseOp inverse,
                                       ValueRange matrices, Value pointer) {
  return BlockInverse(b, threads, inverse, pointer).emit(matrices);
}
