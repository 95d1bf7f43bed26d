// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a module of kernels in the llvm and nvvm dialects to PTX: LLVM IR,
// LLVM's optimiser and its NVPTX code generator, in this process.
#ifndef GDN_TARGET_NVPTXCODEGEN_H
#define GDN_TARGET_NVPTXCODEGEN_H

#include "gdn/Support/ContentCache.h"
#include "gdn/Target/TargetModel.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace gdn {

/// Adds the dialects that kernels are written in, llvm and nvvm, with their
/// translation to LLVM IR.
void registerKernelDialects(mlir::DialectRegistry &registry);

/// What a module of kernels becomes.
struct KernelText {
  std::string llvmIr; // after optimisation; empty if PTX was asked for
  std::string ptx;    // empty if it was not
};

/// Translates `module`, optimises it for `target`, and makes PTX of it or,
/// without `wantsPtx`, text of LLVM IR. One call at a time in a process;
/// kernels that share nothing become PTX side by side. Functions with
/// `nvvm.kernel` are visible, all others internal.
///
/// Fails with an error on the operation that `target` cannot do, on a call of
/// a function that nothing defines (there is no device library), and on
/// whatever LLVM refuses, which would otherwise end the process. With a cache,
/// PTX that was made of the same IR is taken from there.
mlir::FailureOr<KernelText>
generateKernels(mlir::ModuleOp module, const TargetModel &target, bool wantsPtx,
                const ContentCache *cache = nullptr);

} // namespace gdn

#endif // GDN_TARGET_NVPTXCODEGEN_H
