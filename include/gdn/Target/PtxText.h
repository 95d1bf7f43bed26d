// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX as LLVM prints it, one directive or instruction a line, cut into kernels.
#ifndef GDN_TARGET_PTXTEXT_H
#define GDN_TARGET_PTXTEXT_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace gdn {

/// Whether names in PTX have this character.
bool isPtxNameCharacter(char c);

/// The lines of `ptx` but for those of kernels that `keeps`, which is asked for
/// each name, does not want.
llvm::SmallVector<llvm::StringRef>
linesOfKernels(llvm::StringRef ptx,
               llvm::function_ref<bool(llvm::StringRef name)> keeps);

/// `ptx` where the directive `.minnctapersm` of `kernel` says `blocks`. Nothing
/// changes where the kernel, or its directive, is not there.
std::string withBlocksPerSm(llvm::StringRef ptx, llvm::StringRef kernel,
                            int64_t blocks);

} // namespace gdn

#endif // GDN_TARGET_PTXTEXT_H
