// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work on rows of a tile that registers hold transposed, such as a norm of
// outputs.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_TRANSPOSEDMAPS_H
#define GDN_LIB_SCHEDULE_PRODUCTS_TRANSPOSEDMAPS_H

#include "Products/SharedTiles.h"

namespace gdn {

/// True if `map` works on such rows.
bool isTransposedMap(tile::MapRowsOp map);

/// True if only transposed work reads what `load` loads.
bool isReadTransposed(tile::LoadOp load);

/// Emits such a map, transposed; its results are shared.
void emitTransposedMap(SharedTiles &tiles, tile::MapRowsOp map);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_TRANSPOSEDMAPS_H
