// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads of pieces, words of elements, and sums of neighbouring lanes.
#include "Products/PieceWords.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace gdn;

SmallVector<Value> gdn::loadPieces(const Arithmetic &a, Value pointer,
                                   int64_t pieces, int64_t distance,
                                   int64_t inverted) {
  OpBuilder &b = a.b;
  Location loc = a.loc;
  auto four = VectorType::get({laneWords}, b.getI32Type());
  SmallVector<Value> words;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    Value from = a.advance(pointer, piece * distance);
    Value loaded = LLVM::LoadOp::create(b, loc, four, from, laneBytes);
    for (int64_t i = 0; i < laneWords; ++i)
      words.push_back(arith::XOrIOp::create(
          b, loc, vector::ExtractOp::create(b, loc, loaded, i),
          a.i32(int32_t(inverted))));
  }
  return words;
}

SmallVector<Value> gdn::toWords(const Arithmetic &a, Value elements) {
  OpBuilder &b = a.b;
  auto type = cast<VectorType>(elements.getType());
  const int64_t count =
      type.getNumElements() * type.getElementTypeBitWidth() / 32;
  Value all = vector::BitCastOp::create(
      b, a.loc, VectorType::get({count}, b.getI32Type()), elements);
  SmallVector<Value> words;
  for (int64_t i = 0; i < count; ++i)
    words.push_back(vector::ExtractOp::create(b, a.loc, all, i));
  return words;
}

Value gdn::addNeighbour(const Arithmetic &a, Value mine) {
  Value other = NVVM::ShflOp::create(a.b, a.loc, mine.getType(), a.i32(-1),
                                     mine, a.i32(1), a.i32(31),
                                     NVVM::ShflKind::bfly, UnitAttr());
  return arith::AddFOp::create(a.b, a.loc, mine, other);
}
