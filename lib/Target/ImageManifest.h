// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The manifest of an image: parameters and symbols of an entry, from its
// function's attributes.
#ifndef GDN_LIB_TARGET_IMAGEMANIFEST_H
#define GDN_LIB_TARGET_IMAGEMANIFEST_H

#include "gdnrt/image_generated.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gdn {

/// The entry without its codes, whose code takes the values of `symbols` in
/// that order. Fails with an error on the function.
mlir::FailureOr<gdnrt::fb::EntryT>
describeEntry(mlir::func::FuncOp entry, llvm::ArrayRef<std::string> symbols);

/// `form` over `symbols`; fails if it is malformed or has another symbol.
mlir::FailureOr<gdnrt::fb::LinearFormT>
encodeForm(llvm::StringRef form, llvm::ArrayRef<std::string> symbols);

} // namespace gdn

#endif // GDN_LIB_TARGET_IMAGEMANIFEST_H
