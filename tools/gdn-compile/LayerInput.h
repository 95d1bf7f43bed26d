// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gdn module that gdn-compile starts from.
#ifndef GDN_TOOLS_GDNCOMPILE_LAYERINPUT_H
#define GDN_TOOLS_GDNCOMPILE_LAYERINPUT_H

#include "CommandLine.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/SourceMgr.h"

namespace gdn {

/// Reads the layer or generates it from a model. `sources` keeps the text that
/// diagnostics show. A null module means that diagnostics were printed.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
loadLayer(mlir::MLIRContext &context, const CommandLine &line,
          const std::shared_ptr<llvm::SourceMgr> &sources);

} // namespace gdn

#endif // GDN_TOOLS_GDNCOMPILE_LAYERINPUT_H
