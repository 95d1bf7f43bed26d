// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of single warps: mma.sync with the left side and the sums in
// registers. Nothing is under way behind them.
#include "Fragments/SharedMatrix.h"
#include "Products/ProductFamily.h"

#include "Kernel/Assembly.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace gdn;

namespace {
class MmaSync final : public ProductFamily {
  SmallVector<Value> start(OpBuilder &b, Location loc,
                           const BlockThreads &threads,
                           const ProductOperands &operands) const override;
  Value await(OpBuilder &b, Location loc, gdn::gpu::FragmentType result,
              ArrayRef<Value> sums, int64_t left) const override;
};
} // namespace

const ProductFamily &gdn::getMmaSync() {
  static const MmaSync family;
  return family;
}

SmallVector<Value, 4> gdn::emitMma(OpBuilder &b, Location loc, Type type,
                                   ValueRange lhs, ValueRange rhs,
                                   ValueRange acc) {
  bool isF16 = type.isF16();
  auto operand = [&](Value word) -> Value {
    if (!isF16)
      return word;
    return LLVM::BitcastOp::create(b, loc, VectorType::get({2}, b.getF16Type()),
                                   word);
  };
  auto operands = [&](ValueRange words) {
    return llvm::map_to_vector<4>(words, operand);
  };
  Type f32 = b.getF32Type();
  auto sums =
      LLVM::LLVMStructType::getLiteral(b.getContext(), {f32, f32, f32, f32});
  NVVM::MMATypes kind = isF16 ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  Value all = NVVM::MmaOp::create(
      b, loc, sums, operands(lhs), operands(rhs), acc,
      ArrayRef<int64_t>{16, 8, 4 * int64_t(lhs.size())}, std::nullopt,
      std::nullopt, std::array<NVVM::MMATypes, 2>{kind, kind},
      std::array<NVVM::MMALayout, 2>{NVVM::MMALayout::row,
                                     NVVM::MMALayout::col});
  SmallVector<Value, 4> results;
  for (int64_t i = 0; i < 4; ++i)
    results.push_back(LLVM::ExtractValueOp::create(b, loc, all, i));
  return results;
}

SmallVector<Value, 4> gdn::emitTf32Mma(OpBuilder &b, Location loc,
                                       ValueRange lhs, ValueRange rhs,
                                       ValueRange acc) {
  Type f32 = b.getF32Type();
  auto sums =
      LLVM::LLVMStructType::getLiteral(b.getContext(), {f32, f32, f32, f32});
  SmallVector<Value> operands(lhs);
  llvm::append_range(operands, rhs);
  llvm::append_range(operands, acc);
  Value all = emitAssembly(
      b, loc, sums, operands,
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {$0, $1, $2, $3}, "
      "{$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};",
      "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f", /*hasSideEffects=*/false);
  SmallVector<Value, 4> results;
  for (int64_t i = 0; i < 4; ++i)
    results.push_back(LLVM::ExtractValueOp::create(b, loc, all, i));
  return results;
}

SmallVector<Value> MmaSync::start(OpBuilder &b, Location loc,
                                  const BlockThreads &threads,
                                  const ProductOperands &operands) const {
  SharedMatrix rhs(b, loc, threads.lane, operands.rhsTile, operands.rhs);
  MatrixBlocks result(operands.result);
  const int64_t leftColumns = operands.inner / 8;
  Type type = operands.rhsTile.getElementType();
  SmallVector<Value> words = getWords(b, loc, operands.lhs);
  auto left = [&](int64_t i, int64_t k) { return words[i * leftColumns + k]; };
  // sums[(i, p)]: the two elements of a lane.
  int64_t size = result.rows * result.columns * 2;
  SmallVector<Value> sums;
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0));
  for (int64_t at = 0; at < size; ++at)
    sums.push_back(operands.loadSum(b, loc, at, zero));
  bool isTransposed = operands.isRhsTransposed;
  for (int64_t k = 0; k < leftColumns; k += 2)
    for (int64_t p = 0; p < result.columns; p += 2) {
      SharedMatrix::Corner corner;
      corner.row = isTransposed ? p : k;
      corner.column = isTransposed ? operands.from / 8 + k : p;
      std::pair<int64_t, int64_t> inner{1, 0}, outer{0, 1};
      if (isTransposed)
        std::swap(inner, outer);
      SmallVector<Value, 4> right =
          rhs.load4(corner, inner, outer, /*transpose=*/!isTransposed);
      for (int64_t i = 0; i < result.rows; i += 2)
        for (int64_t half = 0; half < 2; ++half) {
          int64_t upper = result.word(i, p + half) * 2;
          int64_t lower = result.word(i + 1, p + half) * 2;
          SmallVector<Value, 4> part = emitMma(
              b, loc, type,
              {left(i, k), left(i + 1, k), left(i, k + 1), left(i + 1, k + 1)},
              ValueRange(right).slice(2 * half, 2),
              {sums[upper], sums[upper + 1], sums[lower], sums[lower + 1]});
          sums[upper] = part[0];
          sums[upper + 1] = part[1];
          sums[lower] = part[2];
          sums[lower + 1] = part[3];
        }
    }
  return sums;
}

Value MmaSync::await(OpBuilder &b, Location loc, gdn::gpu::FragmentType,
                     ArrayRef<Value> sums, int64_t) const {
  return vector::FromElementsOp::create(
      b, loc, VectorType::get({int64_t(sums.size())}, b.getF32Type()), sums);
}
