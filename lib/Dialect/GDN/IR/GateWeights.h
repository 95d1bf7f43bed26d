// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How gdn.gates is written: `a_log` may be left out ahead of `dt_bias`.
#ifndef GDN_LIB_DIALECT_GDN_IR_GATEWEIGHTS_H
#define GDN_LIB_DIALECT_GDN_IR_GATEWEIGHTS_H

#include "gdn/Dialect/GDN/IR/GDN.h"

namespace gdn {

/// `%a_log, %dt_bias`, or `%dt_bias` alone.
mlir::ParseResult
parseGateWeights(mlir::OpAsmParser &parser,
                 std::optional<mlir::OpAsmParser::UnresolvedOperand> &aLog,
                 mlir::OpAsmParser::UnresolvedOperand &dtBias);
void printGateWeights(mlir::OpAsmPrinter &printer, GatesOp, mlir::Value aLog,
                      mlir::Value dtBias);

/// Their types.
mlir::ParseResult parseGateWeightTypes(mlir::OpAsmParser &parser,
                                       mlir::Type &aLog, mlir::Type &dtBias);
void printGateWeightTypes(mlir::OpAsmPrinter &printer, GatesOp, mlir::Type aLog,
                          mlir::Type dtBias);

} // namespace gdn

#endif // GDN_LIB_DIALECT_GDN_IR_GATEWEIGHTS_H
