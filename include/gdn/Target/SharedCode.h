// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels of several entries that are the same code, such as the norm behind
// states of several types: an image has it once.
#ifndef GDN_TARGET_SHAREDCODE_H
#define GDN_TARGET_SHAREDCODE_H

#include "gdn/Target/Ptxas.h"

namespace gdn {

/// The kernel whose code `kernel` has (`gdn_gpu.code`): itself, or one before
/// it.
llvm::StringRef getCodeOf(mlir::LLVM::LLVMFuncOp kernel);

/// Gives kernels of `module` the code of the first one with the same digest,
/// by `digests` of each kernel, and the same allowances. The result is `ptx`
/// without the code of the others. PTX with the lines of a source stays as it
/// is.
std::string shareCode(mlir::ModuleOp module,
                      const llvm::StringMap<std::string> &digests,
                      llvm::StringRef ptx);

/// Says of kernels that have the code of another one what ptxas said of that.
void reportSharedCode(mlir::ModuleOp module, PtxasReport &report);

} // namespace gdn

#endif // GDN_TARGET_SHAREDCODE_H
