// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile program of a gdn.kernel that combines maps of tokens or applies them.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_MAPS_MAPPRODUCTS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_MAPS_MAPPRODUCTS_H

#include "Program/EntryViews.h"

namespace gdn {

/// True if the kernel is a gdn.combine_maps or a gdn.apply_maps.
bool multipliesMaps(KernelOp kernel);

/// Fills `views.function` with the program of such a kernel; `inParts`: for
/// tensor cores, which take each operand in two parts of 16 bits. Fails with an
/// error on the op if an operand is no argument of the entry, if the kernel has
/// other ops, or if its result is not one of the entry's.
mlir::LogicalResult emitMapProducts(EntryViews &views, KernelOp kernel,
                                    bool inParts);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_MAPS_MAPPRODUCTS_H
