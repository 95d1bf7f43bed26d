// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Addresses in a swizzled tile, and its blocks by ldmatrix. A wide tile lies in
// panels of 128 bytes per row, one behind the other. The row of a lane
// within its block decides about the swizzle, so the lane's part of an address
// is the same for all blocks of a column; the rest are constants.
#include "Fragments/SharedMatrix.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;

static constexpr int64_t pieceBytes = 16;
static constexpr int64_t blockRows = 8;

SharedMatrix::SharedMatrix(OpBuilder &b, Location loc, Value lane,
                           gdn::gpu::SharedType type, Value pointer)
    : b(b), loc(loc), a{b, loc}, lane(lane), pointer(pointer),
      rowBytes(type.getPanelRowBytes()), panelBytes(type.getPanelBytes()) {
  int64_t pieces = rowBytes / pieceBytes;
  group = std::min<int64_t>(blockRows, pieces & -pieces);
}

static Value bitXor(const Arithmetic &a, Value x, Value y) {
  return arith::XOrIOp::create(a.b, a.loc, x, y);
}
static Value bitAnd(const Arithmetic &a, Value x, int64_t mask) {
  return arith::AndIOp::create(a.b, a.loc, x, a.i32(mask));
}
static Value shiftRight(const Arithmetic &a, Value x, int64_t bits) {
  return bits == 0 ? x : arith::ShRUIOp::create(a.b, a.loc, x, a.i32(bits));
}
static Value shiftLeft(const Arithmetic &a, Value x, int64_t bits) {
  return arith::ShLIOp::create(a.b, a.loc, x, a.i32(bits));
}

/// What the pieces of `row` are xored with.
Value SharedMatrix::swizzleOf(Value row) const {
  if (group == 1)
    return a.i32(0);
  return bitAnd(a, shiftRight(a, row, llvm::Log2_64(blockRows / group)),
                group - 1);
}

/// The piece of the lane's row in the block at `corner`, `laneColumn` blocks
/// further to the right.
Value SharedMatrix::addressOf(Value rowInBlock, const Corner &corner,
                              Value laneColumn) const {
  Value piece = swizzleOf(rowInBlock);
  Value columnValue = corner.columnValue, panel;
  int64_t panelPieces = rowBytes / pieceBytes;
  if (columnValue && panelBytes != 0) {
    panel = shiftRight(a, columnValue, llvm::Log2_64(panelPieces));
    columnValue = bitAnd(a, columnValue, panelPieces - 1);
  }
  for (Value part : {laneColumn, columnValue})
    if (part)
      piece = bitXor(a, piece, part);
  int64_t low = corner.column & (group - 1);
  if (low != 0)
    piece = bitXor(a, piece, a.i32(low));
  Value row = rowInBlock;
  if (corner.rowValue)
    row = a.add(row, shiftLeft(a, corner.rowValue, 3));
  Value offset = a.add(a.mul(row, a.i32(rowBytes)), shiftLeft(a, piece, 4));
  if (panel)
    offset = a.add(offset, a.mul(panel, a.i32(panelBytes)));
  int64_t constant = corner.row * blockRows * rowBytes;
  if (panelBytes != 0)
    constant += corner.column / panelPieces * panelBytes;
  else
    constant += (corner.column - low) * pieceBytes;
  Value address = a.advance(pointer, offset);
  return constant == 0 ? address : a.advance(address, constant);
}

Value SharedMatrix::getAddress(Value row, Value column) const {
  Value piece = shiftRight(a, column, 4);
  if (panelBytes != 0)
    piece = bitAnd(a, piece, rowBytes / pieceBytes - 1);
  piece = bitXor(a, piece, swizzleOf(row));
  Value offset = a.add(a.mul(row, a.i32(rowBytes)), shiftLeft(a, piece, 4));
  if (panelBytes != 0)
    offset = a.add(offset, a.mul(shiftRight(a, column, llvm::Log2_64(rowBytes)),
                                 a.i32(panelBytes)));
  offset = a.add(offset, bitAnd(a, column, pieceBytes - 1));
  return a.advance(pointer, offset);
}

Value SharedMatrix::getBelow(Value address, Value rows) const {
  return a.advance(address, a.mul(rows, a.i32(rowBytes)));
}

/// The piece of the row that the lane names of four blocks.
Value SharedMatrix::addressOf4(const Corner &corner,
                               std::pair<int64_t, int64_t> step,
                               std::pair<int64_t, int64_t> other) const {
  // Lanes 8 i to 8 i + 7 name the rows of block i.
  Value one = bitAnd(a, shiftRight(a, lane, 3), 1);
  Value two = shiftRight(a, lane, 4);
  auto combine = [&](int64_t first, int64_t second) -> Value {
    Value sum;
    for (auto [bit, factor] : {std::pair(one, first), std::pair(two, second)})
      if (factor != 0) {
        Value part = a.mul(bit, a.i32(factor));
        sum = sum ? a.add(sum, part) : part;
      }
    return sum;
  };
  Value row = bitAnd(a, lane, blockRows - 1);
  Value column = combine(step.second, other.second);
  Corner at = corner;
  // Blocks below have the same swizzle.
  if (Value below = combine(step.first, other.first))
    at.rowValue = at.rowValue ? a.add(at.rowValue, below) : below;
  return addressOf(row, at, column);
}

SmallVector<Value, 4> gdn::loadMatrices(OpBuilder &b, Location loc,
                                        Value pointer, bool transpose) {
  Type i32 = b.getI32Type();
  auto type =
      LLVM::LLVMStructType::getLiteral(b.getContext(), {i32, i32, i32, i32});
  Value all = NVVM::LdMatrixOp::create(
      b, loc, type, pointer, /*num=*/4,
      transpose ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  SmallVector<Value, 4> blocks;
  for (int64_t i = 0; i < 4; ++i)
    blocks.push_back(LLVM::ExtractValueOp::create(b, loc, all, i));
  return blocks;
}

void gdn::storeMatrices(OpBuilder &b, Location loc, Value pointer,
                        ValueRange blocks, bool transpose) {
  NVVM::StMatrixOp::create(b, loc, pointer, blocks,
                           transpose ? NVVM::MMALayout::col
                                     : NVVM::MMALayout::row,
                           NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
                           NVVM::LdStMatrixEltType::B16);
}

SmallVector<Value, 4> SharedMatrix::load4(const Corner &corner,
                                          std::pair<int64_t, int64_t> step,
                                          std::pair<int64_t, int64_t> other,
                                          bool transpose) const {
  return loadMatrices(b, loc, addressOf4(corner, step, other), transpose);
}

void SharedMatrix::store4(const Corner &corner,
                          std::pair<int64_t, int64_t> step,
                          std::pair<int64_t, int64_t> other, ValueRange blocks,
                          bool transpose) const {
  storeMatrices(b, loc, addressOf4(corner, step, other), blocks, transpose);
}

void SharedMatrix::storeLeft(const Corner &corner, ValueRange words,
                             bool transpose, bool hasStore4) const {
  if (hasStore4)
    return store4(corner, transpose ? std::pair(0, 1) : std::pair(1, 0),
                  transpose ? std::pair(1, 0) : std::pair(0, 1), words,
                  transpose);
  for (int64_t q = 0; q < 4; ++q) {
    Corner block = corner;
    const int64_t row = q & 1, column = q >> 1;
    block.row += transpose ? column : row;
    block.column += transpose ? row : column;
    store(block, words[q], transpose);
  }
}

void SharedMatrix::store(const Corner &corner, Value block,
                         bool transpose) const {
  if (transpose)
    block =
        LLVM::InlineAsmOp::create(
            b, loc, block.getType(), block,
            "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r",
            /*has_side_effects=*/true, /*is_align_stack=*/false,
            LLVM::tailcallkind::TailCallKind::None,
            LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
            /*operand_attrs=*/ArrayAttr())
            .getResult(0);
  Value address = addressOf(shiftRight(a, lane, 2), corner, nullptr);
  address = a.advance(address, shiftLeft(a, bitAnd(a, lane, 3), 2));
  LLVM::StoreOp::create(b, loc, block, address, /*alignment=*/4);
}

SmallVector<Value> gdn::getWords(OpBuilder &b, Location loc, Value local) {
  int64_t size = cast<VectorType>(local.getType()).getNumElements();
  auto type = VectorType::get({size / 2}, b.getI32Type());
  Value words = vector::BitCastOp::create(b, loc, type, local);
  SmallVector<Value> all;
  for (int64_t i = 0; i < size / 2; ++i)
    all.push_back(vector::ExtractOp::create(b, loc, words, i));
  return all;
}

Value gdn::fromWords(OpBuilder &b, Location loc, ValueRange words,
                     Type element) {
  int64_t size = words.size();
  Value all = vector::FromElementsOp::create(
      b, loc, VectorType::get({size}, b.getI32Type()), words);
  return vector::BitCastOp::create(b, loc, VectorType::get({2 * size}, element),
                                   all);
}
