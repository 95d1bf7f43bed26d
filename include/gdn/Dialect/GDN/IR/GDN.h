// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gdn dialect: types, attributes and ops. See GDNDialect.td.
#ifndef GDN_DIALECT_GDN_IR_GDN_H
#define GDN_DIALECT_GDN_IR_GDN_H

#include "gdn/Dialect/GDN/IR/StateOperands.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "gdn/Dialect/GDN/IR/GDNDialect.h.inc"
#include "gdn/Dialect/GDN/IR/GDNEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "gdn/Dialect/GDN/IR/GDNTypes.h.inc"

namespace gdn {
/// `scale`, or dk^(-1/2) where it is not given.
double getScaleOrDefault(std::optional<llvm::APFloat> scale, int64_t dk);
} // namespace gdn

#include "gdn/Dialect/GDN/IR/GDNInterfaces.h.inc"

#define GET_OP_CLASSES
#include "gdn/Dialect/GDN/IR/GDNOps.h.inc"

namespace gdn {
class AttributeTable;

/// The attributes of the dialect on functions, arguments and results.
const AttributeTable &getAttributeTable();
} // namespace gdn

#endif // GDN_DIALECT_GDN_IR_GDN_H
