// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The two planes of a state are the lowest byte of each number and the one
// above it. Left to itself the compiler makes each plane by itself, with a
// shift for each byte of the upper one and three permutations for four bytes,
// and each number by two shifts. Both planes of four numbers are four
// permutations of the bytes of two words, and four numbers of both planes six.
#include "PermuteBytes.h"

#include "gdn/Target/GpuFacts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

static constexpr int64_t wordBytes = 4;

/// Whether each thread of the kernel around `op` has that many registers.
static bool hasRegisters(Operation *op, int64_t least) {
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
  return gdn::gpufacts::registersPerSm / inAll >= least;
}

/// Each digit is a byte of the result, 0 to 3 of `x` and 4 to 7 of `y`.
static Value permute(OpBuilder &b, Location loc, Value x, Value y,
                     uint32_t bytes) {
  auto mode =
      NVVM::PermuteModeAttr::get(b.getContext(), NVVM::PermuteMode::DEFAULT);
  Value selector =
      arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(bytes));
  return NVVM::PermuteOp::create(b, loc, b.getI32Type(), x, y, selector, mode);
}

/// Whether vectors of this type are permuted: of four numbers, or more.
static bool isInWords(VectorType type) {
  return type && type.getRank() == 1 && type.getElementType().isInteger(8) &&
         type.getNumElements() % wordBytes == 0;
}

/// The words that bytes of this type lie in.
static VectorType inWords(VectorType bytes) {
  return VectorType::get({bytes.getNumElements() / wordBytes},
                         IntegerType::get(bytes.getContext(), 32));
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
/// A pattern for kernels whose threads have so many registers. Pairs take
/// registers: those that are spilled for them cost more than the instructions
/// saved.
template <typename OpType>
class WithRegisters : public OpRewritePattern<OpType> {
public:
  WithRegisters(MLIRContext *context, int64_t leastRegisters)
      : OpRewritePattern<OpType>(context), leastRegisters(leastRegisters) {}

protected:
  bool hasRegisters(Operation *op) const {
    return ::hasRegisters(op, leastRegisters);
  }

private:
  int64_t leastRegisters;
};

class PlanesOfNumbers final : public WithRegisters<arith::TruncIOp> {
public:
  using WithRegisters::WithRegisters;

  LogicalResult matchAndRewrite(arith::TruncIOp low,
                                PatternRewriter &b) const override {
    Value numbers = low.getIn();
    auto type = dyn_cast<VectorType>(low.getType());
    if (!isInWords(type) ||
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
    SmallVector<Value> lows, uppers;
    for (int64_t i = 0; i < type.getNumElements(); i += wordBytes) {
      Value first = permute(b, loc, number(i), number(i + 1), 0x5140);
      Value second = permute(b, loc, number(i + 2), number(i + 3), 0x5140);
      lows.push_back(permute(b, loc, first, second, 0x5410));
      uppers.push_back(permute(b, loc, first, second, 0x7632));
    }
    VectorType words = inWords(type);
    for (const auto &[bytes, made] :
         {std::pair(low, lows), std::pair(upper, uppers)})
      b.replaceOp(bytes,
                  vector::BitCastOp::create(
                      b, loc, type,
                      vector::FromElementsOp::create(b, loc, words, made)));
    return success();
  }
};

/// A number of two bytes below two others that all numbers have:
/// `upper << 8 | low | above`.
class NumbersOfPlanes final : public WithRegisters<arith::OrIOp> {
public:
  using WithRegisters::WithRegisters;

  LogicalResult matchAndRewrite(arith::OrIOp numbers,
                                PatternRewriter &b) const override {
    APInt above, shift;
    auto both = numbers.getLhs().getDefiningOp<arith::OrIOp>();
    auto shifted =
        both ? both.getLhs().getDefiningOp<arith::ShLIOp>() : arith::ShLIOp();
    if (!shifted || !matchPattern(numbers.getRhs(), m_ConstantInt(&above)) ||
        above.getBitWidth() != 32 || above.countr_zero() < 16 ||
        !matchPattern(shifted.getRhs(), m_ConstantInt(&shift)) || shift != 8)
      return failure();
    auto upper = shifted.getLhs().getDefiningOp<arith::ExtUIOp>();
    auto low = both.getRhs().getDefiningOp<arith::ExtUIOp>();
    if (!upper || !low || upper.getIn().getType() != low.getIn().getType() ||
        !isInWords(dyn_cast<VectorType>(low.getIn().getType())) ||
        !hasRegisters(numbers))
      return failure();
    Location loc = numbers.getLoc();
    auto type = cast<VectorType>(numbers.getType());
    VectorType words = inWords(cast<VectorType>(low.getIn().getType()));
    auto asWords = [&](Value bytes) -> Value {
      return vector::BitCastOp::create(b, loc, words, bytes);
    };
    Value lows = asWords(low.getIn()), uppers = asWords(upper.getIn());
    Value rest = arith::ConstantOp::create(
        b, loc, b.getI32IntegerAttr(int32_t(above.getZExtValue())));
    SmallVector<Value> made;
    for (int64_t i = 0; i < words.getNumElements(); ++i) {
      Value x = vector::ExtractOp::create(b, loc, lows, i);
      Value y = vector::ExtractOp::create(b, loc, uppers, i);
      for (uint32_t pair : {0x5140, 0x7362}) {
        Value two = permute(b, loc, x, y, pair);
        for (uint32_t bytes : {0x7610, 0x7632})
          made.push_back(permute(b, loc, two, rest, bytes));
      }
    }
    b.replaceOpWithNewOp<vector::FromElementsOp>(numbers, type, made);
    return success();
  }
};
} // namespace

void gdn::populatePermuteBytesPatterns(RewritePatternSet &patterns,
                                       int64_t bytesRegisters,
                                       int64_t numbersRegisters) {
  MLIRContext *context = patterns.getContext();
  if (bytesRegisters > 0)
    patterns.add<PlanesOfNumbers>(context, bytesRegisters);
  if (numbersRegisters > 0)
    patterns.add<NumbersOfPlanes>(context, numbersRegisters);
}
