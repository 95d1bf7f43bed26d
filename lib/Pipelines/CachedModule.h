// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a compilation gave, in a cache: the functions of the lowered module
// without their bodies, which say how kernels are launched, texts and code, and
// what was said on the way.
#ifndef GDN_LIB_PIPELINES_CACHEDMODULE_H
#define GDN_LIB_PIPELINES_CACHEDMODULE_H

#include "gdn/Support/ContentCache.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace gdn {

/// A module and what was made of it.
struct CachedModule {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  llvm::SmallVector<std::string, 0> parts;
};

/// `source` with its locations, as a part of a key.
std::string textForKey(mlir::ModuleOp source);

/// The module and the parts of an earlier call, whose remarks and warnings are
/// emitted again; or what `compile` gives, which is stored unless it fails. A
/// module from the cache has the functions of the llvm dialect alone, without
/// bodies.
mlir::FailureOr<CachedModule>
compileOnce(const ContentCache &cache, const ContentKey &key,
            mlir::MLIRContext *context,
            llvm::function_ref<mlir::FailureOr<CachedModule>()> compile);

} // namespace gdn

#endif // GDN_LIB_PIPELINES_CACHEDMODULE_H
