// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Maps over rows of matrices: of all rows, or of a few at a time.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_ROWMAPS_H
#define GDN_LIB_SCHEDULE_PRODUCTS_ROWMAPS_H

#include "Products/SharedTiles.h"

namespace gdn {

/// Copies the body of a map, of which `mapping` has the arguments. What the
/// mapping has of its ops was taken out of it.
void cloneBody(mlir::OpBuilder &b, mlir::Block &from, mlir::Block *to,
               mlir::IRMapping &mapping);

void emitMap(SharedTiles &tiles, tile::MapRowsOp map);

/// Emits maps whose rows are made of the same rows of shared matrices and of
/// elements of shared vectors, a few rows at a time, so that few registers
/// are enough. Results that have a destination go there.
void emitInSlices(SharedTiles &tiles, mlir::ArrayRef<mlir::Operation *> maps);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_ROWMAPS_H
