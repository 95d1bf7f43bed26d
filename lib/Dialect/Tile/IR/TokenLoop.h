// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attribute `gdn_tile.tokens` of a loop; users ask `isTokenLoop` and
// `getMostTokens` in Tile.h.
#ifndef GDN_LIB_DIALECT_TILE_IR_TOKENLOOP_H
#define GDN_LIB_DIALECT_TILE_IR_TOKENLOOP_H

#include "gdn/Dialect/AttributeTable.h"

namespace gdn::tile {

/// Fails unless the loop can be what the attribute says.
mlir::LogicalResult verifyTokenLoop(const AttributeUse &use);

} // namespace gdn::tile

#endif // GDN_LIB_DIALECT_TILE_IR_TOKENLOOP_H
