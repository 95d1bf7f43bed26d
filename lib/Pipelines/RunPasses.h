// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How the pipelines of the compiler run: what all passes together have made is
// verified, once. MLIR's way, after each pass, is a third of the time from
// gdn_gpu programs to kernels, and finds the same a few passes earlier;
// whoever looks for that pass turns the pass manager's verifier on.
#ifndef GDN_LIB_PIPELINES_RUNPASSES_H
#define GDN_LIB_PIPELINES_RUNPASSES_H

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"

namespace gdn {

/// Runs `passes` on `module` and verifies the outcome; fails with a diagnostic.
inline mlir::LogicalResult runPasses(mlir::PassManager &passes,
                                     mlir::ModuleOp module) {
  if (failed(passes.run(module)))
    return mlir::failure();
  return mlir::verify(module);
}

} // namespace gdn

#endif // GDN_LIB_PIPELINES_RUNPASSES_H
