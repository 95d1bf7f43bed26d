// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared checks of attributes and whole shapes, and the wording of their
// errors.
#include "OpChecks.h"
#include "NamedSizes.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace gdn;

LogicalResult gdn::verifyPositive(Operation *op, StringRef name,
                                  const APFloat &value) {
  if (value.isFinite() && !value.isNegative() && !value.isZero())
    return success();
  SmallString<16> text;
  value.toString(text, /*FormatPrecision=*/6);
  return op->emitOpError("expects '")
         << name << "' to be positive and finite, but got " << text;
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
