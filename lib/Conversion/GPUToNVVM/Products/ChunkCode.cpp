// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions of the ops of a chunk; see ChunkCode.h.
#include "Products/ChunkCode.h"

#include "Fragments/SharedMatrix.h"
#include "Kernel/Assembly.h"

using namespace mlir;
using namespace gdn;

ChunkCode::ChunkCode(OpBuilder &b, Location loc, const BlockThreads &threads,
                     const IRMapping &values)
    : WordMaths(b, loc), values(values), lane(threads.lane), warp(threads.warp),
      row(right(lane, 2)), column(left(bitAnd(lane, 3), 1)),
      rowIn(bitAnd(lane, 7)), block(right(lane, 3)) {}

Value ChunkCode::addressOf(Value tile) {
  return LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), values.lookup(tile));
}

/// The constant goes into the instruction.
Value ChunkCode::pointerTo(Value address, int64_t offset) {
  auto type = LLVM::LLVMPointerType::get(
      b.getContext(), unsigned(NVVM::NVVMMemorySpace::Shared));
  Value pointer = LLVM::IntToPtrOp::create(b, loc, type, address);
  return offset == 0 ? pointer : advance(pointer, offset);
}

static unsigned alignmentOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() * vector.getElementTypeBitWidth() / 8
                : type.getIntOrFloatBitWidth() / 8;
}

Value ChunkCode::load(Type type, Value address, int64_t offset) {
  return ThreadMaths::load(type, pointerTo(address, offset), alignmentOf(type));
}

ChunkCode::Numbers ChunkCode::loadNumbers(Value address, int64_t offset,
                                          int64_t count) {
  return Numbers(elementsOf(
      load(VectorType::get({count}, b.getF32Type()), address, offset)));
}

void ChunkCode::store(Value value, Value address, int64_t offset) {
  LLVM::StoreOp::create(b, loc, value, pointerTo(address, offset),
                        alignmentOf(value.getType()));
}

ChunkCode::Words ChunkCode::loadBlocks(Value address, bool transpose) {
  return loadMatrices(b, loc, pointerTo(address), transpose);
}

void ChunkCode::storeBlocks(Value address, ValueRange words) {
  storeMatrices(b, loc, pointerTo(address), words, /*transpose=*/false);
}

Value ChunkCode::exp2(Value x, bool isInverse) {
  // A sign that LLVM sees is a flip of a bit to it, in an instruction.
  StringRef text = isInverse ? "{\n.reg .f32 of;\nneg.f32 of, $1;\n"
                               "ex2.approx.ftz.f32 $0, of;\n}"
                             : "ex2.approx.ftz.f32 $0, $1;";
  return emitAssembly(b, loc, b.getF32Type(), x, text, "=f,f",
                      /*hasSideEffects=*/true);
}

Value ChunkCode::rowOfBlocks(bool isRight) {
  Value low = bitAnd(block, 1), high = right(block, 1);
  if (isRight)
    std::swap(low, high);
  Value at = add(left(low, 10), left(rowIn, 7));
  return add(at, left(flip(high, rowIn), 4));
}

Value ChunkCode::rowOfKeyScores() {
  constexpr int64_t from = 3 * panelBytes + 3 * 512;
  Value token = add(left(bitAnd(block, 1), 3), rowIn);
  Value piece = flip(right(block, 1), right(rowIn, 2));
  return add(add(left(token, 5), left(piece, 4)), from);
}
