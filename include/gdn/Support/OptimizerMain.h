// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The main function of tools that run passes on IR.

#ifndef GDN_SUPPORT_OPTIMIZERMAIN_H
#define GDN_SUPPORT_OPTIMIZERMAIN_H

#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/StringRef.h"

namespace gdn {

/// MLIR's main function of such tools, with the files of all gdn tools: inputs
/// have a bound, and an output file is the whole result or what it was before.
/// `title` is the first line of --help. Returns the exit status of the process.
int runOptimizer(int argc, char **argv, llvm::StringRef title,
                 mlir::DialectRegistry &registry);

} // namespace gdn

#endif // GDN_SUPPORT_OPTIMIZERMAIN_H
