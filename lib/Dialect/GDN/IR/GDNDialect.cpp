// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registration of the gdn dialect.
#include "GateWeights.h"

#include "gdn/Dialect/GDN/IR/GDN.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace gdn;

#include "gdn/Dialect/GDN/IR/GDNDialect.cpp.inc"
#include "gdn/Dialect/GDN/IR/GDNEnums.cpp.inc"

#include "gdn/Dialect/GDN/IR/GDNInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "gdn/Dialect/GDN/IR/GDNOps.cpp.inc"

void GDNDialect::initialize() {
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "gdn/Dialect/GDN/IR/GDNOps.cpp.inc"
      >();
}
