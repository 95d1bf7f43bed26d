// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pool type: syntax and verification.
#include "gdn/Dialect/GDN/IR/GDN.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace gdn;

#define GET_TYPEDEF_CLASSES
#include "gdn/Dialect/GDN/IR/GDNTypes.cpp.inc"

void GDNDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "gdn/Dialect/GDN/IR/GDNTypes.cpp.inc"
      >();
}

Type PoolType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type elementType;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseDimensionList(shape) ||
      parser.parseType(elementType) || parser.parseGreater())
    return {};
  return parser.getChecked<PoolType>(loc, parser.getContext(), shape,
                                     elementType);
}

void PoolType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printDimensionList(getShape());
  printer << 'x' << getElementType() << '>';
}

LogicalResult PoolType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> shape, Type elementType) {
  // pool_c1
  if (shape.size() < 2)
    return emitError() << "expects a pool to have rank 2 or more, but got rank "
                       << shape.size();
  // pool_c2
  if (!ShapedType::isDynamic(shape.front()))
    return emitError() << "expects dim 0 of a pool, its slots, to be dynamic, "
                          "but got "
                       << shape.front();
  // pool_c3
  for (auto [dim, size] : llvm::enumerate(shape))
    if (!ShapedType::isDynamic(size) && size <= 0)
      return emitError() << "expects dim " << dim
                         << " of a pool to be positive or dynamic, but got "
                         << size;
  // pool_c4
  if (!elementType.isF32() && !elementType.isBF16() && !elementType.isF16() &&
      !elementType.isSignlessInteger(32) && !elementType.isSignlessInteger(8))
    return emitError() << "expects the elements of a pool to be f32, bf16, "
                          "f16, i32 or i8, but got "
                       << elementType;
  return success();
}
