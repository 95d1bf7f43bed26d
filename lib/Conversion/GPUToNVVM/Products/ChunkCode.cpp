// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions of the ops of a chunk; see ChunkCode.h.
#include "Products/ChunkCode.h"

#include "Fragments/SharedMatrix.h"
#include "Kernel/Assembly.h"
#include "Products/ProductFamily.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace gdn;

ChunkCode::ChunkCode(OpBuilder &b, Location loc, const BlockThreads &threads)
    : b(b), loc(loc), a{b, loc}, threads(threads), lane(threads.lane),
      row(right(lane, 2)), column(left(bits(lane, 3), 1)), rowIn(bits(lane, 7)),
      block(right(lane, 3)) {}

Value ChunkCode::address(Value pointer) {
  return LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), pointer);
}
Value ChunkCode::add(Value x, int64_t constant) {
  return constant == 0 ? x : a.add(x, a.i32(constant));
}
Value ChunkCode::flip(Value x, int64_t bits) {
  return bits == 0 ? x : flip(x, a.i32(bits));
}
Value ChunkCode::flip(Value x, Value y) {
  return arith::XOrIOp::create(b, loc, x, y);
}
Value ChunkCode::bits(Value x, int64_t mask) {
  return arith::AndIOp::create(b, loc, x, a.i32(mask));
}
Value ChunkCode::left(Value x, int64_t count) {
  return arith::ShLIOp::create(b, loc, x, a.i32(count));
}
Value ChunkCode::right(Value x, int64_t count) {
  return arith::ShRUIOp::create(b, loc, x, a.i32(count));
}
Value ChunkCode::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, loc, condition, x, y);
}

/// A pointer to shared memory; the constant goes into the instruction.
static Value pointerTo(OpBuilder &b, Location loc, Value address,
                       int64_t offset = 0) {
  auto type = LLVM::LLVMPointerType::get(
      b.getContext(), unsigned(NVVM::NVVMMemorySpace::Shared));
  Value pointer = LLVM::IntToPtrOp::create(b, loc, type, address);
  if (offset == 0)
    return pointer;
  return LLVM::GEPOp::create(b, loc, type, b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{int32_t(offset)});
}

static unsigned alignmentOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() * vector.getElementTypeBitWidth() / 8
                : type.getIntOrFloatBitWidth() / 8;
}

Value ChunkCode::load(Type type, Value address, int64_t offset) {
  return LLVM::LoadOp::create(b, loc, type, pointerTo(b, loc, address, offset),
                              alignmentOf(type));
}

ChunkCode::Numbers ChunkCode::loadNumbers(Value address, int64_t offset,
                                          int64_t count) {
  Value all = load(VectorType::get({count}, b.getF32Type()), address, offset);
  Numbers numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(vector::ExtractOp::create(b, loc, all, i));
  return numbers;
}

void ChunkCode::store(Value value, Value address, int64_t offset) {
  LLVM::StoreOp::create(b, loc, value, pointerTo(b, loc, address, offset),
                        alignmentOf(value.getType()));
}

void ChunkCode::storeNumbers(ValueRange numbers, Value address,
                             int64_t offset) {
  store(vector::FromElementsOp::create(
            b, loc, VectorType::get({int64_t(numbers.size())}, b.getF32Type()),
            numbers),
        address, offset);
}

ChunkCode::Words ChunkCode::loadBlocks(Value address, bool transpose) {
  Type i32 = b.getI32Type();
  auto type =
      LLVM::LLVMStructType::getLiteral(b.getContext(), {i32, i32, i32, i32});
  Value all = NVVM::LdMatrixOp::create(
      b, loc, type, pointerTo(b, loc, address), /*num=*/4,
      transpose ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  Words words;
  for (int64_t i = 0; i < 4; ++i)
    words.push_back(LLVM::ExtractValueOp::create(b, loc, all, i));
  return words;
}

void ChunkCode::storeBlocks(Value address, ValueRange words) {
  NVVM::StMatrixOp::create(b, loc, pointerTo(b, loc, address), words,
                           NVVM::MMALayout::row,
                           NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
                           NVVM::LdStMatrixEltType::B16);
}

void ChunkCode::syncWarp() { NVVM::SyncWarpOp::create(b, loc, a.i32(-1)); }

Value ChunkCode::f32(float value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}
Value ChunkCode::mul(Value x, Value y) {
  return arith::MulFOp::create(b, loc, x, y);
}
Value ChunkCode::negate(Value x) { return arith::NegFOp::create(b, loc, x); }

Value ChunkCode::exp2(Value x, bool isInverse) {
  // A sign that LLVM sees is a flip of a bit to it, in an instruction.
  StringRef text = isInverse ? "{\n.reg .f32 of;\nneg.f32 of, $1;\n"
                               "ex2.approx.ftz.f32 $0, of;\n}"
                             : "ex2.approx.ftz.f32 $0, $1;";
  return emitAssembly(b, loc, b.getF32Type(), x, text, "=f,f",
                      /*hasSideEffects=*/true);
}

Value ChunkCode::roundPair(Value x, Value y) {
  Value pair = vector::FromElementsOp::create(
      b, loc, VectorType::get({2}, b.getF32Type()), ValueRange{x, y});
  pair = arith::TruncFOp::create(b, loc, VectorType::get({2}, b.getF16Type()),
                                 pair);
  return getWords(b, loc, pair).front();
}

Value ChunkCode::mulWords(Value x, Value y) {
  Type f16 = b.getF16Type();
  return getWords(b, loc,
                  mul(fromWords(b, loc, x, f16), fromWords(b, loc, y, f16)))
      .front();
}

std::array<Value, 2> ChunkCode::widen(Value word, Type element) {
  if (element.isBF16())
    return {arith::BitcastOp::create(b, loc, b.getF32Type(), left(word, 16)),
            arith::BitcastOp::create(b, loc, b.getF32Type(),
                                     bits(word, -(int64_t(1) << 16)))};
  Value pair =
      arith::ExtFOp::create(b, loc, VectorType::get({2}, b.getF32Type()),
                            fromWords(b, loc, word, element));
  return {vector::ExtractOp::create(b, loc, pair, 0),
          vector::ExtractOp::create(b, loc, pair, 1)};
}

ChunkCode::Numbers ChunkCode::addProduct(ValueRange left, ValueRange right,
                                         ValueRange sums) {
  return emitMma(b, loc, b.getF16Type(), left, right, sums);
}

ChunkCode::Numbers ChunkCode::addTf32(ValueRange left, ValueRange right,
                                      ValueRange sums) {
  auto words = [&](ValueRange numbers) {
    return llvm::map_to_vector<4>(numbers, [&](Value number) -> Value {
      return arith::BitcastOp::create(b, loc, b.getI32Type(), number);
    });
  };
  return emitTf32Mma(b, loc, words(left), words(right), sums);
}

Value ChunkCode::rowOfBlocks(bool isRight) {
  Value low = bits(block, 1), high = right(block, 1);
  if (isRight)
    std::swap(low, high);
  Value at = add(left(low, 10), left(rowIn, 7));
  return add(at, left(flip(high, rowIn), 4));
}

Value ChunkCode::rowOfKeyScores() {
  constexpr int64_t from = 3 * panelBytes + 3 * 512;
  Value token = add(left(bits(block, 1), 3), rowIn);
  Value piece = flip(right(block, 1), right(rowIn, 2));
  return add(add(left(token, 5), left(piece, 4)), from);
}
