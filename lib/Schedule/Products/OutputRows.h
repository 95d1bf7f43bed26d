// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work of the consumers on whole rows of outputs: a norm.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_OUTPUTROWS_H
#define GDN_LIB_SCHEDULE_PRODUCTS_OUTPUTROWS_H

#include "Products/RolePlan.h"
#include "Products/TileChannels.h"

namespace gdn {

/// Emits the work of `plan` on rows of the outputs that `tiles`, of the
/// consumers, have shared, and of what was fetched for it. Adds channels that
/// are to be released to `received`.
void emitOutputRows(SharedTiles &tiles, const RolePlan &plan,
                    TileChannels &channels, mlir::Block *entry,
                    llvm::SmallVectorImpl<mlir::Value> &received);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_OUTPUTROWS_H
