// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared checks of attributes and whole shapes, and the wording of their
// errors.
#include "OpChecks.h"
#include "NamedSizes.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace gdn;

static LogicalResult verifySign(Operation *op, StringRef name,
                                const APFloat &value, bool isNegative) {
  if (value.isFinite() && value.isNegative() == isNegative && !value.isZero())
    return success();
  SmallString<16> text;
  value.toString(text, /*FormatPrecision=*/6);
  return op->emitOpError("expects '")
         << name << "' to be " << (isNegative ? "negative" : "positive")
         << " and finite, but got " << text;
}

LogicalResult gdn::verifyPositive(Operation *op, StringRef name,
                                  const APFloat &value) {
  return verifySign(op, name, value, /*isNegative=*/false);
}

LogicalResult gdn::verifyNegative(Operation *op, StringRef name,
                                  const APFloat &value) {
  return verifySign(op, name, value, /*isNegative=*/true);
}

LogicalResult gdn::verifyActivation(Operation *op, Activation got,
                                    ArrayRef<Activation> allowed) {
  if (llvm::is_contained(allowed, got))
    return success();
  return op->emitOpError("expects the activation to be ")
         << llvm::join(llvm::map_range(allowed, stringifyActivation), " or ")
         << ", but got " << stringifyActivation(got);
}

LogicalResult gdn::verifyFloats(Operation *op, StringRef name, PoolType pool) {
  if (isa<FloatType>(pool.getElementType()))
    return success();
  return op->emitOpError("expects the elements of '")
         << name << "' to be floats, but got " << pool.getElementType();
}

LogicalResult gdn::verifyStates(Operation *op, NamedSizes &sizes, PoolType pool,
                                TypedValue<PoolType> scales,
                                TypedValue<PoolType> low) {
  if (!scales && low)
    return op->emitOpError("expects 'state_scales' to be given with "
                           "'state_low', but got none");
  if (!scales)
    return verifyFloats(op, "pool", pool);
  if (!pool.getElementType().isSignlessInteger(8))
    return op->emitOpError("expects the elements of 'pool' to be 'i8' beside "
                           "'state_scales', but got ")
           << pool.getElementType();
  if (!scales.getType().getElementType().isF32())
    return op->emitOpError("expects the elements of 'state_scales' to be "
                           "'f32', but got ")
           << scales.getType().getElementType();
  if (low && low.getType().getElementType() != pool.getElementType())
    return op->emitOpError("expects the elements of 'state_low' to be 'i8', "
                           "but got ")
           << low.getType().getElementType();
  if (failed(sizes.agree("state_scales", scales.getType(), {"P", "Hv", "dv"})))
    return failure();
  return low ? sizes.agree("state_low", low.getType(), {"P", "Hv", "dv", "dk"})
             : success();
}

LogicalResult gdn::verifyMaxTokens(Operation *op, Value cuSeqlens,
                                   std::optional<int64_t> most) {
  if (most.has_value() != bool(cuSeqlens))
    return op->emitOpError("expects 'max_tokens' to be given with "
                           "'cu_seqlens', but got ")
           << (most ? "'max_tokens'" : "'cu_seqlens'") << " alone";
  if (most && *most < 1)
    return op->emitOpError("expects 'max_tokens' to be at least 1, but got ")
           << *most;
  return success();
}

LogicalResult gdn::verifySameShape(Operation *op, StringRef want, Type wantType,
                                   StringRef got, Type gotType) {
  ArrayRef<int64_t> wantSizes = getSizes(wantType),
                    gotSizes = getSizes(gotType);
  if (wantSizes.size() != gotSizes.size())
    return op->emitOpError("expects '")
           << got << "' to have rank " << wantSizes.size() << ", set by '"
           << want << "', but got rank " << gotSizes.size();
  for (auto [dim, pair] : llvm::enumerate(llvm::zip(wantSizes, gotSizes))) {
    auto [wantSize, gotSize] = pair;
    if (ShapedType::isDynamic(wantSize) || ShapedType::isDynamic(gotSize) ||
        wantSize == gotSize)
      continue;
    return op->emitOpError("expects dim ")
           << dim << " of '" << got << "' to be " << wantSize << ", set by dim "
           << dim << " of '" << want << "', but got " << gotSize;
  }
  return success();
}
