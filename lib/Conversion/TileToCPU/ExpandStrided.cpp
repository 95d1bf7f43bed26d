// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads and stores of matrices whose rows are not contiguous by their types. Of
// most the strides are known at run time only, as of convolution windows and
// weights: three ways, chosen by the strides.
//
//   rows apart, their elements side by side:       row after row
//   columns side by side, as x0 y0 z0 x1 y1 z1 ..: vectors, then shuffled
//   anything else:                                 element by element
//
// Where types say that columns are contiguous, and they have more than a few
// rows (states that lie as [dk, dv]), blocks of some columns and rows are
// transposed one after another.
#include "ExpandStrided.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

/// Of a block that is transposed in registers; as many columns.
static constexpr int64_t maxBlockRows = 8;

namespace {

class StridedAccess {
public:
  StridedAccess(OpBuilder &b, Location loc, const StridedMatrix &matrix,
                Value buffer, bool isLoad, int64_t lanes)
      : b(b), loc(loc), matrix(matrix), buffer(buffer), isLoad(isLoad),
        lanes(lanes) {
    auto type = cast<MemRefType>(buffer.getType());
    rows = type.getDimSize(0);
    columns = type.getDimSize(1);
    element = type.getElementType();
    while (columns % this->lanes != 0)
      this->lanes /= 2;
  }

  void emit(function_ref<void()> byElement);

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value equal(Value x, int64_t y) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, index(y));
  }
  Value flatView(Value offset, int64_t size);
  Value read(Value memory, ValueRange at, int64_t size);
  void write(Value vector, Value memory, ValueRange at);
  Value shuffle(Value x, Value y, ArrayRef<int64_t> mask) {
    return vector::ShuffleOp::create(b, loc, x, y, mask);
  }
  void emitRows();
  void emitInterleaved();
  void emitBlocks();

  OpBuilder &b;
  Location loc;
  const StridedMatrix &matrix;
  Value buffer;
  bool isLoad;
  int64_t lanes, rows, columns;
  Type element;
  Value base, offset, rowStride, columnStride;
};

} // namespace

/// `size` elements of the view, side by side.
Value StridedAccess::flatView(Value at, int64_t size) {
  auto layout =
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1});
  auto type = MemRefType::get({size}, element, layout);
  return memref::ReinterpretCastOp::create(
      b, loc, type, base, OpFoldResult(at),
      ArrayRef<OpFoldResult>{b.getIndexAttr(size)},
      ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
}

/// Elements as integers of their width, which every CPU can shuffle.
Value StridedAccess::read(Value memory, ValueRange at, int64_t size) {
  Value x = vector::LoadOp::create(b, loc, VectorType::get({size}, element),
                                   memory, at);
  Type bits = b.getIntegerType(element.getIntOrFloatBitWidth());
  return vector::BitCastOp::create(b, loc, VectorType::get({size}, bits), x);
}

void StridedAccess::write(Value vector, Value memory, ValueRange at) {
  auto type = cast<VectorType>(vector.getType());
  Value x = vector::BitCastOp::create(b, loc, type.clone(element), vector);
  vector::StoreOp::create(b, loc, x, memory, at);
}

void StridedAccess::emitRows() {
  auto each = scf::ForOp::create(b, loc, index(0), index(rows), index(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(each.getBody());
  Value i = each.getInductionVar();
  Value start = arith::AddIOp::create(
      b, loc, offset, arith::MulIOp::create(b, loc, i, rowStride));
  Value view = flatView(start, columns);
  if (isLoad)
    write(read(view, index(0), columns), buffer, {i, index(0)});
  else
    write(read(buffer, {i, index(0)}, columns), view, index(0));
}

void StridedAccess::emitInterleaved() {
  Value view = flatView(offset, rows * columns);
  auto each =
      scf::ForOp::create(b, loc, index(0), index(columns), index(lanes));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(each.getBody());
  Value column = each.getInductionVar();
  Value at = arith::MulIOp::create(b, loc, column, index(rows));
  if (isLoad) {
    Value all = read(view, at, rows * lanes);
    for (int64_t i = 0; i < rows; ++i) {
      SmallVector<int64_t> mask;
      for (int64_t j = 0; j < lanes; ++j)
        mask.push_back(j * rows + i);
      write(shuffle(all, all, mask), buffer, {index(i), column});
    }
    return;
  }
  Value all = read(buffer, {index(0), column}, lanes);
  for (int64_t i = 1; i < rows; ++i)
    all = shuffle(all, read(buffer, {index(i), column}, lanes),
                  llvm::to_vector(llvm::seq<int64_t>(0, (i + 1) * lanes)));
  SmallVector<int64_t> mask;
  for (int64_t j = 0; j < lanes; ++j)
    for (int64_t i = 0; i < rows; ++i)
      mask.push_back(i * lanes + j);
  write(shuffle(all, all, mask), view, at);
}

/// Blocks of rows by columns, each of which is transposed in registers.
void StridedAccess::emitBlocks() {
  int64_t height = std::min(lanes, maxBlockRows), width = height;
  while (rows % height != 0)
    height /= 2;
  while (columns % width != 0)
    width /= 2;
  OpBuilder::InsertionGuard guard(b);
  auto loop = [&](int64_t size, int64_t step) {
    auto each = scf::ForOp::create(b, loc, index(0), index(size), index(step));
    b.setInsertionPointToStart(each.getBody());
    return each.getInductionVar();
  };
  Value column = loop(columns, width), row = loop(rows, height);
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, loc, x, y);
  };
  // Vectors of the block, in memory its columns and in the buffer its rows.
  SmallVector<Value> inMemory, inBuffer;
  for (int64_t j = 0; j < width; ++j) {
    Value at =
        arith::MulIOp::create(b, loc, add(column, index(j)), columnStride);
    inMemory.push_back(flatView(add(add(offset, at), row), height));
  }
  for (int64_t i = 0; i < height; ++i)
    inBuffer.push_back(add(row, index(i)));
  SmallVector<Value> from;
  if (isLoad)
    for (Value view : inMemory)
      from.push_back(read(view, index(0), height));
  else
    for (Value at : inBuffer)
      from.push_back(read(buffer, {at, column}, width));
  const int64_t length = isLoad ? height : width;
  Value all = from.front();
  for (int64_t n = 1; n < int64_t(from.size()); ++n)
    all = shuffle(all, from[n],
                  llvm::to_vector(llvm::seq<int64_t>(0, (n + 1) * length)));
  for (int64_t i = 0; i < length; ++i) {
    SmallVector<int64_t> mask;
    for (int64_t n = 0; n < int64_t(from.size()); ++n)
      mask.push_back(n * length + i);
    if (isLoad)
      write(shuffle(all, all, mask), buffer, {inBuffer[i], column});
    else
      write(shuffle(all, all, mask), inMemory[i], index(0));
  }
}

void StridedAccess::emit(function_ref<void()> byElement) {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, matrix.view);
  base = metadata.getBaseBuffer();
  offset = metadata.getOffset();
  for (auto [index, stride] : llvm::zip(matrix.indices, metadata.getStrides()))
    offset = arith::AddIOp::create(
        b, loc, offset, arith::MulIOp::create(b, loc, index, stride));
  rowStride = metadata.getStrides()[matrix.rowDim];
  columnStride = metadata.getStrides()[matrix.columnDim];

  auto type = cast<MemRefType>(matrix.view.getType());
  if (rows > maxBlockRows &&
      type.getStridesAndOffset().first[matrix.rowDim] == 1)
    return emitBlocks();
  OpBuilder::InsertionGuard guard(b);
  auto byRows = scf::IfOp::create(b, loc, equal(columnStride, 1), true);
  b.setInsertionPointToStart(byRows.thenBlock());
  emitRows();
  b.setInsertionPointToStart(byRows.elseBlock());
  Value isInterleaved = arith::AndIOp::create(b, loc, equal(rowStride, 1),
                                              equal(columnStride, rows));
  auto byColumns = scf::IfOp::create(b, loc, isInterleaved, true);
  b.setInsertionPointToStart(byColumns.thenBlock());
  emitInterleaved();
  b.setInsertionPointToStart(byColumns.elseBlock());
  byElement();
}

void gdn::expandStrided(OpBuilder &b, Location loc, const StridedMatrix &matrix,
                        Value buffer, bool isLoad, int64_t lanes,
                        function_ref<void()> byElement) {
  StridedAccess(b, loc, matrix, buffer, isLoad, lanes).emit(byElement);
}
