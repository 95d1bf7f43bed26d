// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What identifies the code of a kernel, whatever its name.
#ifndef GDN_TARGET_PTXDIGEST_H
#define GDN_TARGET_PTXDIGEST_H

#include "gdn/Target/PtxText.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace gdn {

/// The part of `ptx` that `kernel` is made of: the kernel itself, and all that
/// is outside of kernels (the target, shared memory, device functions).
/// Comments, blank lines, the version of PTX, debug directives and their
/// labels, and white space are left out; the kernel is called `kernel`, also in
/// the names of its parameters and of its shared memory, and its labels are
/// numbered from 0. Fails if `ptx` has no such kernel.
llvm::Expected<std::string> normalizePtx(const PtxLines &ptx,
                                         llvm::StringRef kernel);

/// The SHA-256 of `normalizePtx`, in lower-case hexadecimal digits.
llvm::Expected<std::string> digestPtx(const PtxLines &ptx,
                                      llvm::StringRef kernel);

} // namespace gdn

#endif // GDN_TARGET_PTXDIGEST_H
