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
  return success();
}
