// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Views of a dimension as several, as code: MLIR's own patterns take one
// dynamic size among them.
#ifndef GDN_CONVERSION_EXPANDEDVIEWS_H
#define GDN_CONVERSION_EXPANDEDVIEWS_H

#include "mlir/IR/Operation.h"

namespace gdn {

/// Makes each `memref.expand_shape` in `function` a `memref.reinterpret_cast`
/// of its source, with the strides of the dimensions as products.
void lowerExpandedViews(mlir::Operation *function);

} // namespace gdn

#endif // GDN_CONVERSION_EXPANDEDVIEWS_H
