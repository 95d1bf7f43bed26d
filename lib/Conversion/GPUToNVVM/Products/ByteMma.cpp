// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.share_byte_products: mma.m16n8k32 of integers with the bytes on the
// left as they are. Two words of a piece are of an upper row of the product and
// two of a lower one: so of one product the upper rows are of use, and of
// another with other columns on the right the lower rows. No word has to move.
// Columns 0 to 3 of the right side are the parts of `first`, the upper
// one first and the lowest twice, columns 4 to 7 those of `second`. Sums are
// integers and exact.
#include "Products/ByteMma.h"

#include "Kernel/Assembly.h"
#include "Products/PieceWords.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
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
  static constexpr int64_t f32Bytes = 4;
  /// Columns of the right side that one of the rows has, and its parts.
  static constexpr int64_t rowColumns = 4, numParts = 3;
  /// Of four bytes, each: what stands for zero; as numbers with a sign, less
  /// it.
  static constexpr int64_t zeroBytes = 0x80808080;
  static constexpr double lowPart = 1.0 / 256;

  Value get(Value value) { return values.lookupOrDefault(value); }
  Value toI32(Value index) { return a.toI32(get(index)); }
  SmallVector<Value> loadRight();
  /// Eight rows of a fragment, of which a lane has its `row`.
  struct RowSet {
    size_t fragment;
    int64_t row;
  };
  using Sums = SmallVector<Value, 4>;
  Sums emitMma(StringRef left, ArrayRef<Value> words, int64_t piece,
               bool isLower, ArrayRef<Value> sums);
  Sums multiply(Value plane, int64_t row, ArrayRef<Value> begin);
  Value toNumber(ArrayRef<Value> sums, ArrayRef<Value> factors);
  void store(ArrayRef<Sums> sums, ArrayRef<RowSet> sets);

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
  SmallVector<Value> right;
};
} // namespace

/// The words of a lane of the right side: one for each four columns of its, as
/// numbers with a sign.
SmallVector<Value> ByteProducts::loadRight() {
  Value isFirst = a.isLess(group, a.i32(rowColumns));
  Value pointer = arith::SelectOp::create(b, loc, isFirst, get(op.getFirst()),
                                          get(op.getSecond()));
  Value column = arith::RemUIOp::create(b, loc, group, a.i32(rowColumns));
  Value part = arith::MaxSIOp::create(
      b, loc, arith::SubIOp::create(b, loc, a.i32(numParts - 1), column),
      a.i32(0));
  pointer = a.advance(pointer, a.add(a.mul(part, a.i32(type.getDimSize(1))),
                                     a.mul(inGroup, a.i32(laneBytes))));
  return loadPieces(a, pointer, pieces, layout.getLanes() * laneBytes,
                    zeroBytes);
}

/// One mma of 16 rows, 8 columns and a depth of 32, `left` of u8 or s8: with
/// the columns on the right of the words of the upper rows, or of the lower
/// ones.
ByteProducts::Sums ByteProducts::emitMma(StringRef left, ArrayRef<Value> words,
                                         int64_t piece, bool isLower,
                                         ArrayRef<Value> sums) {
  Type i32 = b.getI32Type();
  auto result =
      LLVM::LLVMStructType::getLiteral(b.getContext(), {i32, i32, i32, i32});
  SmallVector<Value> operands(words);
  const int64_t first = laneWords * piece + isLower;
  operands.append({right[first], right[first + 2]});
  llvm::append_range(operands, sums);
  Value all =
      emitAssembly(b, loc, result, operands,
                   ("mma.sync.aligned.m16n8k32.row.col.s32." + left +
                    ".s8.s32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, "
                    "{$10, $11, $12, $13};")
                       .str(),
                   "=r,=r,=r,=r,r,r,r,r,r,r,r,r,r,r", /*hasSideEffects=*/false);
  Sums made;
  for (int64_t i = 0; i < 4; ++i)
    made.push_back(LLVM::ExtractValueOp::create(b, loc, all, i));
  return made;
}

/// `begin`, of which the first two count, with the products of eight rows: of
/// two neighbouring columns of the right side.
ByteProducts::Sums ByteProducts::multiply(Value plane, int64_t row,
                                          ArrayRef<Value> begin) {
  SmallVector<Value> words = toWords(a, get(plane));
  Sums upper(begin), lower(4, a.i32(0));
  for (int64_t piece = 0; piece < pieces; ++piece) {
    auto mine =
        ArrayRef(words).slice((row * pieces + piece) * laneWords, laneWords);
    upper = emitMma("u8", mine, piece, false, upper);
    lower = emitMma("u8", mine, piece, true, lower);
  }
  return {a.add(upper[0], lower[2]), a.add(upper[1], lower[3])};
}

/// Of a row with all parts of a row on the right, of which a lane has two and
/// its neighbour the rest.
Value ByteProducts::toNumber(ArrayRef<Value> sums, ArrayRef<Value> factors) {
  SmallVector<Value, 2> parts;
  for (auto [sum, factor] : llvm::zip(sums, factors))
    parts.push_back(arith::MulFOp::create(
        b, loc,
        arith::SIToFPOp::create(b, loc, b.getF32Type(), sum).getResult(),
        factor));
  Value mine = arith::AddFOp::create(b, loc, parts[0], parts[1]);
  return addNeighbour(a, mine);
}

/// Of four lanes with a row, two have the parts of its product with `first`,
/// two those with `second`, and the even ones of them write.
void ByteProducts::store(ArrayRef<Sums> sums, ArrayRef<RowSet> sets) {
  int64_t numRows = type.getDimSize(0);
  Value isFirst = a.isLess(inGroup, a.i32(2));
  Value isEven =
      a.isEqual(arith::RemUIOp::create(b, loc, inGroup, a.i32(2)), a.i32(0));
  Value unit = arith::SelectOp::create(b, loc, isFirst, get(op.getFirstScale()),
                                       get(op.getSecondScale()));
  auto times = [&](double number) -> Value {
    if (!op.getLow().empty())
      number *= lowPart;
    return arith::MulFOp::create(
        b, loc, unit,
        arith::ConstantOp::create(b, loc, b.getF32FloatAttr(float(number))));
  };
  Value none = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  SmallVector<Value, 2> factors = {
      arith::SelectOp::create(b, loc, isEven, times(65536), times(1)),
      arith::SelectOp::create(b, loc, isEven, times(256), none)};
  Value to = arith::SelectOp::create(b, loc, isFirst, toI32(op.getFirstAt()),
                                     toI32(op.getSecondAt()));
  Value made = a.advance(get(op.getTo()), a.mul(to, a.i32(numRows * f32Bytes)));
  SmallVector<Value> numbers;
  for (const Sums &parts : sums)
    numbers.push_back(toNumber(parts, factors));
  auto branch = scf::IfOp::create(b, loc, isEven, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  for (auto [number, set] : llvm::zip(numbers, sets)) {
    Value scale = vector::ExtractOp::create(
        b, loc, get(op.getScales()[set.fragment]), set.row);
    Value scaled = arith::MulFOp::create(b, loc, number, scale);
    Value place =
        a.mul(threads.row(a, layout, numRows, set.row), a.i32(f32Bytes));
    place = a.add(place, a.i32(set.fragment * numRows * f32Bytes));
    LLVM::StoreOp::create(b, loc, scaled, a.advance(made, place), f32Bytes);
  }
}

void ByteProducts::emit() {
  right = loadRight();
  // What the zeros of the bytes add to each sum, less.
  SmallVector<Value, 4> less(4, a.i32(int32_t(zeroBytes)));
  Value zero = a.i32(0);
  Sums start(4, zero);
  for (int64_t piece = 0; piece < pieces; ++piece)
    for (bool isLower : {false, true})
      start = emitMma("s8", less, piece, isLower, start);
  SmallVector<RowSet> sets;
  SmallVector<Sums> sums;
  for (size_t fragment = 0; fragment < op.getUpper().size(); ++fragment)
    for (int64_t row = 0; row < layout.getLocalRows(type.getDimSize(0));
         ++row) {
      sets.push_back({fragment, row});
      Sums sum = multiply(op.getUpper()[fragment], row, start);
      if (!op.getLow().empty()) {
        for (auto [part, begin] : llvm::zip(sum, start))
          part = a.add(a.mul(part, a.i32(256)), begin);
        sum.append({zero, zero});
        sum = multiply(op.getLow()[fragment], row, sum);
      }
      sums.push_back(sum);
    }
  store(sums, sets);
}

void gdn::emitShareByteProducts(OpBuilder &b, const BlockThreads &threads,
                                gdn::gpu::ShareByteProductsOp products,
                                const IRMapping &values) {
  ByteProducts(b, threads, products, values).emit();
}
