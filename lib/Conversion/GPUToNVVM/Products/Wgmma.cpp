// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of warpgroups: wgmma with the left side and the sums in registers.
// The nvvm dialect has the instruction with descriptors of both sides only.
#include "Fragments/SharedMatrix.h"
#include "Kernel/Assembly.h"
#include "Kernel/OptimizationBarrier.h"
#include "Products/ProductFamily.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace gdn;

/// A row in a panel of a tile.
static constexpr int64_t panelRowBytes = 128;
/// Eight rows of a panel, the unit of the swizzle.
static constexpr int64_t atomBytes = 8 * panelRowBytes;
/// The bits of an address that a descriptor has room for.
static constexpr int32_t addressMask = 0x3ffff;

/// What a descriptor says of a tile beside its address: the bytes from one
/// panel to the next (where rows are contiguous in the product's columns) and
/// from eight rows to the next eight, and the swizzle of 128 bytes.
static uint64_t describe(int64_t panelBytes) {
  return uint64_t(1) << 62 | uint64_t(atomBytes >> 4) << 32 |
         uint64_t(panelBytes >> 4) << 16;
}

/// One instruction for `sums.size() / 2 * 4` columns: sums += left * tile.
/// `left` is four words of a thread, or a shared tile, which may be transposed.
static SmallVector<Value> emitStep(OpBuilder &b, Location loc, Type element,
                                   ArrayRef<Value> left, bool isLeftTransposed,
                                   Value descriptor, ArrayRef<Value> sums,
                                   bool isFirst, bool isTransposed) {
  const size_t count = sums.size(), next = count + left.size();
  const bool isShared = left.size() == 1;
  std::string text, constraints;
  llvm::raw_string_ostream os(text), limits(constraints);
  os << "wgmma.mma_async.sync.aligned.m64n" << count * 2 << "k16.f32."
     << (element.isF16() ? "f16.f16 {" : "bf16.bf16 {");
  for (size_t i = 0; i < count; ++i)
    os << (i ? ", $" : "$") << i;
  os << (isShared ? "}, " : "}, {");
  for (size_t i = 0; i < left.size(); ++i)
    os << (i ? ", $" : "$") << count + i;
  // What the sums were does not count in the first step without any; signs; and
  // whether the tile has columns of the product in its rows.
  os << (isShared ? ", $" : "}, $") << next << ", " << (isFirst ? 0 : 1)
     << ", 1, 1, ";
  if (isShared)
    os << (isLeftTransposed ? 1 : 0) << ", ";
  os << (isTransposed ? 0 : 1) << ";";
  for (size_t i = 0; i < count; ++i)
    limits << (i ? ",=f" : "=f");
  limits << (isShared ? ",l,l" : ",r,r,r,r,l");
  for (size_t i = 0; i < count; ++i)
    limits << "," << i;
  SmallVector<Value> operands(left);
  operands.push_back(descriptor);
  operands.append(sums.begin(), sums.end());
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(count, b.getF32Type()));
  Value all = emitAssembly(b, loc, type, operands, text, constraints,
                           /*hasSideEffects=*/true);
  SmallVector<Value> results;
  for (size_t i = 0; i < count; ++i)
    results.push_back(LLVM::ExtractValueOp::create(b, loc, all, i));
  return results;
}

/// Waits until `left` groups of products are under way at most; these sums can
/// be read behind it only.
static SmallVector<Value> emitWait(OpBuilder &b, Location loc,
                                   ArrayRef<Value> sums, int64_t left) {
  std::string text =
      "wgmma.wait_group.sync.aligned " + std::to_string(left) + ";";
  std::string constraints;
  llvm::raw_string_ostream limits(constraints);
  for (size_t i = 0; i < sums.size(); ++i)
    limits << (i ? ",=f" : "=f");
  for (size_t i = 0; i < sums.size(); ++i)
    limits << "," << i;
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(sums.size(), b.getF32Type()));
  Value all = emitAssembly(b, loc, type, sums, text, constraints,
                           /*hasSideEffects=*/true);
  SmallVector<Value> results;
  for (size_t i = 0; i < sums.size(); ++i)
    results.push_back(LLVM::ExtractValueOp::create(b, loc, all, i));
  return results;
}

/// What names the tile at `pointer` to the instructions, an i64.
static Value describeTile(OpBuilder &b, Location loc, gdn::gpu::SharedType tile,
                          Value pointer) {
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  auto constant = [&](uint64_t value) -> Value {
    return arith::ConstantOp::create(b, loc,
                                     b.getIntegerAttr(i64, int64_t(value)));
  };
  // Known to others, it would be kept from one product of the tile to the next,
  // beside all that lies between.
  Value address = optimizationBarrier(
      b, loc, LLVM::PtrToIntOp::create(b, loc, i32, pointer));
  // In a cluster the bits above these say which block's shared memory it is.
  // (Elsewhere they are zero, and to clear them costs 2 % of a recurrence.)
  auto kernel = b.getBlock()->getParent()->getParentOfType<LLVM::LLVMFuncOp>();
  if (kernel->hasAttr(NVVM::NVVMDialect::getClusterDimAttrName()))
    address = arith::AndIOp::create(
        b, loc, address,
        arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(addressMask)));
  Value start = arith::ExtUIOp::create(b, loc, i64, address);
  start = arith::ShRUIOp::create(b, loc, start, constant(4));
  return arith::OrIOp::create(b, loc, start,
                              constant(describe(tile.getPanelBytes())));
}

/// Sixteen of the inner size on from `k` of them: within the rows of a panel
/// and from panel to panel where these are the inner size, or sixteen rows.
static Value advanceTile(OpBuilder &b, Location loc, gdn::gpu::SharedType tile,
                         Value start, int64_t k, bool innerInRows) {
  int64_t inner = k * 2;
  int64_t offset = innerInRows ? inner / panelRowBytes * tile.getPanelBytes() +
                                     inner % panelRowBytes
                               : k * panelRowBytes;
  Value step = arith::ConstantOp::create(
      b, loc, b.getIntegerAttr(b.getI64Type(), offset >> 4));
  return arith::AddIOp::create(b, loc, start, step);
}

namespace {
class Wgmma final : public ProductFamily {
  SmallVector<Value> start(OpBuilder &b, Location loc,
                           const BlockThreads &threads,
                           const ProductOperands &operands) const override;
  Value await(OpBuilder &b, Location loc, gdn::gpu::FragmentType result,
              ArrayRef<Value> sums, int64_t left) const override;
};
} // namespace

const ProductFamily &gdn::getWgmma() {
  static const Wgmma family;
  return family;
}

SmallVector<Value> Wgmma::start(OpBuilder &b, Location loc,
                                const BlockThreads &,
                                const ProductOperands &operands) const {
  const gdn::gpu::SharedType tile = operands.rhsTile;
  const gdn::gpu::FragmentType result = operands.result;
  int64_t leftColumns = operands.inner / 8, columns = result.getDimSize(1) / 8,
          rows = result.getRows().getLocalRows(result.getDimSize(0));
  SmallVector<Value> words;
  Value left, start = describeTile(b, loc, tile, operands.rhs);
  if (operands.lhsTile)
    left = describeTile(b, loc, operands.lhsTile, operands.lhs);
  else
    words = getWords(b, loc, operands.lhs);

  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0));
  SmallVector<Value> sums; // by 16 rows of a warp, then by columns
  for (int64_t i = 0; i < rows; i += 2)
    for (int64_t p = 0; p < columns; ++p)
      for (int64_t at = 0; at < 4; ++at) {
        int64_t element = ((i + at / 2) * columns + p) * 2 + at % 2;
        sums.push_back(operands.loadSum(b, loc, element, zero));
      }
  NVVM::WgmmaFenceAlignedOp::create(b, loc);
  for (int64_t k = 0; k < leftColumns; k += 2) {
    Value descriptor = advanceTile(b, loc, tile, start, operands.from + k * 8,
                                   /*innerInRows=*/operands.isRhsTransposed);
    for (int64_t i = 0; i < rows; i += 2) {
      auto word = [&](int64_t row, int64_t column) {
        return words[(i + row) * leftColumns + k + column];
      };
      SmallVector<Value, 4> step;
      if (left)
        step = {advanceTile(b, loc, operands.lhsTile, left, k * 8,
                            /*innerInRows=*/!operands.isLhsTransposed)};
      else
        step = {word(0, 0), word(1, 0), word(0, 1), word(1, 1)};
      size_t first = i / 2 * columns * 4, count = columns * 4;
      SmallVector<Value> part = emitStep(
          b, loc, tile.getElementType(), step, operands.isLhsTransposed,
          descriptor, ArrayRef(sums).slice(first, count),
          k == 0 && !operands.acc, operands.isRhsTransposed);
      llvm::copy(part, sums.begin() + first);
    }
  }
  NVVM::WgmmaGroupSyncAlignedOp::create(b, loc);
  return sums;
}

Value Wgmma::await(OpBuilder &b, Location loc, gdn::gpu::FragmentType result,
                   ArrayRef<Value> sums, int64_t left) const {
  int64_t columns = result.getDimSize(1) / 8;
  SmallVector<Value> elements(sums.size());
  for (auto [n, value] : llvm::enumerate(emitWait(b, loc, sums, left))) {
    int64_t i = n / (columns * 4) * 2, p = n / 4 % columns, at = n % 4;
    elements[((i + at / 2) * columns + p) * 2 + at % 2] = value;
  }
  return vector::FromElementsOp::create(
      b, loc, VectorType::get({int64_t(elements.size())}, b.getF32Type()),
      elements);
}
