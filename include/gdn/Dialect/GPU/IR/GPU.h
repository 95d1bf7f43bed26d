// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gdn_gpu dialect. See GPUDialect.td.
#ifndef GDN_DIALECT_GPU_IR_GPU_H
#define GDN_DIALECT_GPU_IR_GPU_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "gdn/Dialect/GPU/IR/KernelFields.h"

#include "gdn/Dialect/GPU/IR/GPUDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "gdn/Dialect/GPU/IR/GPUAttributes.h.inc"
#define GET_TYPEDEF_CLASSES
#include "gdn/Dialect/GPU/IR/GPUTypes.h.inc"
#define GET_OP_CLASSES
#include "gdn/Dialect/GPU/IR/GPUOps.h.inc"

namespace gdn {
class AttributeTable;
} // namespace gdn

namespace gdn::gpu {
/// What one row has of a fragment: its row, a rank-1 vector, of a fragment in
/// the layout `rows`; a scalar of one `per_row`; the whole tile, a rank-1
/// vector, of one `per_column`.
mlir::Type getRowType(FragmentType fragment);

/// Threads of a warp.
constexpr int64_t warpThreads = 32;

/// Registers of a multiprocessor.
constexpr int64_t multiprocessorRegisters = 65536;
/// Warps that have their registers and products together.
constexpr int64_t groupWarps = 4;

/// The role of a `gdn_gpu.roles` that `op` is inside; null if there is none.
WarpsOp getRole(mlir::Operation *op);

/// True for an op whose region is arithmetic on fragments.
inline bool hasArithmetic(mlir::Operation *op) {
  return mlir::isa<MapRowsOp, ConvColumnsOp>(op);
}

/// True if only some warps of the block or role run `op`, by a `gdn_gpu.warps`.
bool isInSomeWarps(mlir::Operation *op);

/// Fails, with a diagnostic, if only some warps run `op`, or each by itself.
mlir::LogicalResult verifyOutsideWarps(mlir::Operation *op);

/// Fails, with a diagnostic, unless the op is in the body of a function and in
/// nothing else.
mlir::LogicalResult verifyDirectlyInFunction(mlir::Operation *op);

/// How many warps run `op`: those of its role or of the block. None where no
/// function says.
std::optional<int64_t> countWarps(mlir::Operation *op);

/// True if `copy` may be 'tensor_map': begin_copy_c8.
bool canUseTensorMap(BeginCopyOp copy);
/// The same of copy_out_c5.
bool canUseTensorMap(CopyOutOp copy);

/// The attributes of the dialect on functions.
const AttributeTable &getAttributeTable();
} // namespace gdn::gpu

#endif // GDN_DIALECT_GPU_IR_GPU_H
