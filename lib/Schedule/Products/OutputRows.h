// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work of the consumers on whole rows of outputs: a norm.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_OUTPUTROWS_H
#define GDN_LIB_SCHEDULE_PRODUCTS_OUTPUTROWS_H

#include "Products/RolePlan.h"
#include "Products/SharedTiles.h"

namespace gdn {

/// Emits the work of `plan` on rows of the outputs that `tiles`, of the
/// consumers, have shared, and of what was fetched for it.
void emitOutputRows(SharedTiles &tiles, const RolePlan &plan,
                    mlir::Block *entry);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_OUTPUTROWS_H
