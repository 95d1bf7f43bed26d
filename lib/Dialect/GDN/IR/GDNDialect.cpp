// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registration of the gdn dialect, and the attributes it puts on functions.
#include "gdn/Dialect/GDN/IR/GDN.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace gdn;

#include "gdn/Dialect/GDN/IR/GDNDialect.cpp.inc"
#include "gdn/Dialect/GDN/IR/GDNEnums.cpp.inc"

#define GET_OP_CLASSES
#include "gdn/Dialect/GDN/IR/GDNOps.cpp.inc"

void GDNDialect::initialize() {
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "gdn/Dialect/GDN/IR/GDNOps.cpp.inc"
      >();
}

LogicalResult GDNDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attr) {
  return success();
}

LogicalResult GDNDialect::verifyRegionArgAttribute(Operation *op,
                                                   unsigned regionIndex,
                                                   unsigned argIndex,
                                                   NamedAttribute attr) {
  return success();
}

LogicalResult GDNDialect::verifyRegionResultAttribute(Operation *op,
                                                      unsigned regionIndex,
                                                      unsigned resultIndex,
                                                      NamedAttribute attr) {
  return success();
}
