// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gdn_tile dialect. See TileDialect.td.
#ifndef GDN_DIALECT_TILE_IR_TILE_H
#define GDN_DIALECT_TILE_IR_TILE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "gdn/Dialect/Tile/IR/StageFields.h"

#include "gdn/Dialect/Tile/IR/TileDialect.h.inc"
#include "gdn/Dialect/Tile/IR/TileInterfaces.h.inc"

#define GET_OP_CLASSES
#include "gdn/Dialect/Tile/IR/TileOps.h.inc"

namespace gdn {
class AttributeTable;
} // namespace gdn

namespace gdn::tile {
/// The row of a tile: a rank-1 vector for rank 2, the element type for rank 1.
mlir::Type getRowType(mlir::VectorType tile);
/// Rows and columns of the blocks of a gdn_tile.tri_inverse in f16.
constexpr int64_t inverseBlock = 16;

/// Whether `loop` is said to be one over the tokens of a sequence
/// (`gdn_tile.tokens`): several at once, or one by one, and nothing behind the
/// last token takes what it carries.
bool isTokenLoop(mlir::scf::ForOp loop);
/// How many tokens a sequence has at most, as far as the loop says.
std::optional<int64_t> getMostTokens(mlir::scf::ForOp loop);
/// Says so; `most` may be 0, for any number.
void setTokenLoop(mlir::scf::ForOp loop, int64_t most);

/// The attributes of the dialect on functions and loops.
const AttributeTable &getAttributeTable();
} // namespace gdn::tile

#endif // GDN_DIALECT_TILE_IR_TILE_H
