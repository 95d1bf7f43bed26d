// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a tile function must look like to become CPU code.
#ifndef GDN_LIB_CONVERSION_TILETOCPU_CHECKTILEPROGRAM_H
#define GDN_LIB_CONVERSION_TILETOCPU_CHECKTILEPROGRAM_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gdn {

/// Fails with an error on the op that has no CPU code. After success every
/// tile outside the bodies of gdn_tile.map_rows is a result of a gdn_tile op or
/// carried by scf.for, and is used by those alone; tiles that such a body uses
/// whole have rank 1; arguments are strided memrefs and indices.
mlir::LogicalResult checkTileProgram(mlir::func::FuncOp function);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_TILETOCPU_CHECKTILEPROGRAM_H
