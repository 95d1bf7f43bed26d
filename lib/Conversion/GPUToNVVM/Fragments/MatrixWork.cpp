// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fragments from and to swizzled tiles. A fragment in a layout of
// matrix instructions is made of blocks of 8 x 8; its word (i, p) is the lane's
// part of the block in block row i of the warp and block column p.
#include "Fragments/SharedMatrix.h"

#include "Fragments/TileAccess.h"
#include "Kernel/Assembly.h"
#include "Kernel/KernelEntry.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;

/// The first block row of the warp, an i32; null if there is one warp.
static Value getFirstRow(const Arithmetic &a, const BlockThreads &threads,
                         gdn::gpu::FragmentType type,
                         const MatrixBlocks &blocks) {
  if (type.getRows().getWarps() == 1)
    return nullptr;
  return a.mul(threads.warp, a.i32(blocks.rows));
}

/// The corner of block (i, p) of the fragment in the tile.
static SharedMatrix::Corner getCorner(const Arithmetic &a, Value firstRow,
                                      const MatrixBlocks &blocks, int64_t i,
                                      int64_t p, bool transpose) {
  SharedMatrix::Corner corner;
  Value value = firstRow;
  // A value and a constant may be xored where their bits are apart.
  if (transpose && firstRow && !llvm::isPowerOf2_64(blocks.rows)) {
    value = a.add(firstRow, a.i32(i));
    i = 0;
  }
  corner.row = transpose ? p : i;
  corner.column = transpose ? i : p;
  (transpose ? corner.columnValue : corner.rowValue) = value;
  return corner;
}

/// In a layout of pieces of up to 16 bytes, from row `firstRow` of the buffer
/// on if given: a multiple of 8, so that the swizzle is that of the first rows.
static Value fetchPieces(const Arithmetic &a, const BlockThreads &threads,
                         gdn::gpu::FragmentType type,
                         const SharedMatrix &buffer, Value firstRow,
                         Value stored) {
  OpBuilder &b = a.b;
  gdn::gpu::RowsAttr rows = type.getRows();
  int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t localRows = rows.getLocalRows(type.getDimSize(0));
  int64_t pieces = rows.getPieces(type.getDimSize(1)),
          vector = rows.getVector();
  auto part = VectorType::get({vector}, type.getElementType());
  VectorType whole = getLocalType(type);
  Value local =
      arith::ConstantOp::create(b, a.loc, whole, b.getZeroAttr(whole));
  for (int64_t i = 0; i < localRows; ++i)
    for (int64_t p = 0; p < pieces; ++p) {
      Value row = threads.row(a, rows, type.getDimSize(0), i);
      int64_t first = p * rows.getLanes() * vector;
      Value column = a.add(threads.column(a, rows), a.i32(first));
      Value address = buffer.getAddress(row, a.mul(column, a.i32(bytes)));
      if (firstRow)
        address = buffer.getBelow(address, firstRow);
      int64_t at = (i * pieces + p) * vector;
      if (stored) {
        Value value = vector::ExtractStridedSliceOp::create(
            b, a.loc, stored, ArrayRef<int64_t>{at}, ArrayRef<int64_t>{vector},
            ArrayRef<int64_t>{1});
        LLVM::StoreOp::create(b, a.loc, value, address, vector * bytes);
        continue;
      }
      Value value =
          LLVM::LoadOp::create(b, a.loc, part, address, vector * bytes);
      local = vector::InsertStridedSliceOp::create(
          b, a.loc, value, local, ArrayRef<int64_t>{at}, ArrayRef<int64_t>{1});
    }
  return local;
}

/// Four blocks that one instruction moves: their corner and the steps from it
/// in place, and their words.
struct Four {
  SharedMatrix::Corner corner;
  std::pair<int64_t, int64_t> step, other;
  SmallVector<int64_t, 4> words;
};

/// All blocks, four at once: two by two, or in a row or column of blocks.
static void forFourBlocks(const Arithmetic &a, Value firstRow,
                          const MatrixBlocks &blocks, bool transpose,
                          llvm::function_ref<void(const Four &)> visit) {
  int64_t tall = blocks.rows % 2 == 0 ? 2 : 1, wide = 4 / tall;
  if (blocks.columns % wide != 0) {
    wide = 1;
    tall = 4;
  }
  // Steps along the fragment's rows and columns.
  std::pair<int64_t, int64_t> step(1, 0), other(0, 1);
  if (tall == 1)
    std::tie(step, other) = std::pair(std::pair(0, 1), std::pair(0, 2));
  if (tall == 4)
    other = {2, 0};
  auto inPlace = [&](std::pair<int64_t, int64_t> along) {
    return transpose ? std::pair(along.second, along.first) : along;
  };
  for (int64_t i = 0; i < blocks.rows; i += tall)
    for (int64_t p = 0; p < blocks.columns; p += wide) {
      Four four = {getCorner(a, firstRow, blocks, i, p, transpose),
                   inPlace(step),
                   inPlace(other),
                   {}};
      for (int64_t q = 0; q < 4; ++q)
        four.words.push_back(
            blocks.word(i + (q & 1) * step.first + (q >> 1) * other.first,
                        p + (q & 1) * step.second + (q >> 1) * other.second));
      visit(four);
    }
}

Value gdn::loadMatrix(OpBuilder &b, Location loc, const BlockThreads &threads,
                      gdn::gpu::FragmentType type, gdn::gpu::SharedType buffer,
                      Value pointer, Value from, bool transpose) {
  Arithmetic a{b, loc};
  SharedMatrix matrix(b, loc, threads.lane, buffer, pointer);
  if (from || !type.getRows().isMatrix() || type.getElementType().isF32())
    return fetchPieces(a, threads, type, matrix, from, nullptr);
  MatrixBlocks blocks(type);
  Value firstRow = getFirstRow(a, threads, type, blocks);
  SmallVector<Value> words(blocks.rows * blocks.columns);
  forFourBlocks(a, firstRow, blocks, transpose, [&](const Four &four) {
    SmallVector<Value, 4> loaded =
        matrix.load4(four.corner, four.step, four.other, transpose);
    for (auto [word, value] : llvm::zip(four.words, loaded))
      words[word] = value;
  });
  return fromWords(b, loc, words, type.getElementType());
}

void gdn::storeMatrix(OpBuilder &b, Location loc, const BlockThreads &threads,
                      gdn::gpu::FragmentType type, Value local,
                      gdn::gpu::SharedType buffer, Value pointer, Value from,
                      bool transpose, bool hasStore4) {
  Arithmetic a{b, loc};
  SharedMatrix matrix(b, loc, threads.lane, buffer, pointer);
  if (from || !type.getRows().isMatrix() || type.getElementType().isF32()) {
    fetchPieces(a, threads, type, matrix, from, local);
    return;
  }
  MatrixBlocks blocks(type);
  Value firstRow = getFirstRow(a, threads, type, blocks);
  SmallVector<Value> words = getWords(b, loc, local);
  if (hasStore4 && blocks.rows * blocks.columns % 4 == 0)
    return forFourBlocks(a, firstRow, blocks, transpose, [&](const Four &four) {
      SmallVector<Value, 4> stored;
      for (int64_t word : four.words)
        stored.push_back(words[word]);
      matrix.store4(four.corner, four.step, four.other, stored, transpose);
    });
  for (int64_t i = 0; i < blocks.rows; ++i)
    for (int64_t p = 0; p < blocks.columns; ++p)
      matrix.store(getCorner(a, firstRow, blocks, i, p, transpose),
                   words[blocks.word(i, p)], transpose);
}
