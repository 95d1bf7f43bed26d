// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two planes of a state are the lowest byte of each number and the one
// above it. Left to itself the compiler makes each plane by itself, with a
// shift for each byte of the upper one and three permutations for four bytes.
// Both planes of four numbers are four permutations of the bytes of two words.
#include "PermuteBytes.h"

#include "gdn/Target/GpuFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

static constexpr int64_t wordBytes = 4;

/// The pairs take registers. With 80 of them the words that are spilled for it
/// cost more than the instructions saved.
static constexpr int64_t leastRegisters = 96;

static bool hasRegisters(Operation *op) {
  auto kernel = op->getParentOfType<LLVM::LLVMFuncOp>();
  auto threads = kernel ? kernel->getAttrOfType<DenseI32ArrayAttr>(
                              NVVM::NVVMDialect::getReqntidAttrName())
                        : nullptr;
  auto blocks = kernel ? kernel->getAttrOfType<IntegerAttr>(
                             NVVM::NVVMDialect::getMinctasmAttrName())
                       : nullptr;
  if (!threads || !blocks)
    return true;
  int64_t inAll = blocks.getInt();
  for (int32_t extent : threads.asArrayRef())
    inAll *= extent;
  return gdn::gpufacts::registersPerSm / inAll >= leastRegisters;
}

/// The bytes that are taken from `numbers`.
static arith::TruncIOp findBytes(Value numbers, Type type) {
  for (Operation *user : numbers.getUsers())
    if (auto bytes = dyn_cast<arith::TruncIOp>(user))
      if (bytes.getType() == type)
        return bytes;
  return nullptr;
}

static arith::TruncIOp findUpperBytes(Value numbers, Type type) {
  for (Operation *user : numbers.getUsers()) {
    auto shift = dyn_cast<arith::ShRUIOp>(user);
    APInt bits;
    if (shift && shift.getLhs() == numbers &&
        matchPattern(shift.getRhs(), m_ConstantInt(&bits)) && bits == 8)
      if (arith::TruncIOp bytes = findBytes(shift, type))
        return bytes;
  }
  return nullptr;
}

namespace {
struct PlanesOfNumbers final : OpRewritePattern<arith::TruncIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncIOp low,
                                PatternRewriter &b) const override {
    Value numbers = low.getIn();
    auto type = dyn_cast<VectorType>(low.getType());
    if (!type || type.getRank() != 1 || !type.getElementType().isInteger(8) ||
        type.getNumElements() % wordBytes != 0 ||
        !getElementTypeOrSelf(numbers.getType()).isInteger(32))
      return failure();
    arith::TruncIOp upper = findUpperBytes(numbers, type);
    if (!upper || !numbers.hasNUses(2) || !hasRegisters(low))
      return failure();
    Location loc = low.getLoc();
    b.setInsertionPointAfterValue(numbers);
    auto number = [&](int64_t i) -> Value {
      return vector::ExtractOp::create(b, loc, numbers, i);
    };
    // Each digit is a byte of the result, 0 to 3 of `x` and 4 to 7 of `y`.
    auto permute = [&](Value x, Value y, uint32_t bytes) -> Value {
      auto mode = NVVM::PermuteModeAttr::get(b.getContext(),
                                             NVVM::PermuteMode::DEFAULT);
      Value selector =
          arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(bytes));
      return NVVM::PermuteOp::create(b, loc, b.getI32Type(), x, y, selector,
                                     mode);
    };
    SmallVector<Value> lows, uppers;
    for (int64_t i = 0; i < type.getNumElements(); i += wordBytes) {
      Value first = permute(number(i), number(i + 1), 0x5140);
      Value second = permute(number(i + 2), number(i + 3), 0x5140);
      lows.push_back(permute(first, second, 0x5410));
      uppers.push_back(permute(first, second, 0x7632));
    }
    auto words =
        VectorType::get({type.getNumElements() / wordBytes}, b.getI32Type());
    for (const auto &[bytes, made] :
         {std::pair(low, lows), std::pair(upper, uppers)})
      b.replaceOp(bytes,
                  vector::BitCastOp::create(
                      b, loc, type,
                      vector::FromElementsOp::create(b, loc, words, made)));
    return success();
  }
};
} // namespace

void gdn::populatePermuteBytesPatterns(RewritePatternSet &patterns) {
  patterns.add<PlanesOfNumbers>(patterns.getContext());
}
