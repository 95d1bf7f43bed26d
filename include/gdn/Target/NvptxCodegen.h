// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a module of kernels in the llvm and nvvm dialects to PTX: LLVM IR,
// LLVM's optimiser and its NVPTX code generator, in this process.
#ifndef GDN_TARGET_NVPTXCODEGEN_H
#define GDN_TARGET_NVPTXCODEGEN_H

#include "gdn/Target/TargetModel.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace gdn {

/// Adds the dialects that kernels are written in, llvm and nvvm, with their
/// translation to LLVM IR.
void registerKernelDialects(mlir::DialectRegistry &registry);

/// What a module of kernels becomes.
struct KernelText {
  std::string llvmIr; // after optimisation
  std::string ptx;    // only if it was asked for
};

/// Translates `module`, optimises it for `target`, and with `wantsPtx` makes
/// PTX of it. One call at a time in a process. Functions with `nvvm.kernel` are
/// visible, all others internal.
///
/// Fails with an error on the operation that `target` cannot do, on a call of
/// a function that nothing defines (there is no device library), and on
/// whatever LLVM refuses, which would otherwise end the process.
mlir::FailureOr<KernelText> generateKernels(mlir::ModuleOp module,
                                            const TargetModel &target,
                                            bool wantsPtx);

} // namespace gdn

#endif // GDN_TARGET_NVPTXCODEGEN_H
