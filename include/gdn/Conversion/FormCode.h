// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear forms of grids and workspaces as code.
#ifndef GDN_CONVERSION_FORMCODE_H
#define GDN_CONVERSION_FORMCODE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace gdn {

/// The value of a checked form over the `symbols` (names), whose values are
/// `values`; all of type index, none negative.
mlir::Value emitForm(mlir::OpBuilder &builder, mlir::Location loc,
                     llvm::StringRef form, mlir::ArrayAttr symbols,
                     llvm::ArrayRef<mlir::Value> values);

} // namespace gdn

#endif // GDN_CONVERSION_FORMCODE_H
