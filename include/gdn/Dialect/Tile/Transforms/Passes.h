// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Passes within the gdn_tile dialect; documented in Passes.td.
#ifndef GDN_DIALECT_TILE_TRANSFORMS_PASSES_H
#define GDN_DIALECT_TILE_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace gdn {
#define GEN_PASS_DECL
#include "gdn/Dialect/Tile/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "gdn/Dialect/Tile/Transforms/Passes.h.inc"
} // namespace gdn

#endif // GDN_DIALECT_TILE_TRANSFORMS_PASSES_H
