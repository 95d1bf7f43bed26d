// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The key under which a cache keeps what LLVM makes of a module.
#ifndef GDN_LIB_TARGET_CODEGENKEY_H
#define GDN_LIB_TARGET_CODEGENKEY_H

#include "gdn/Support/ContentCache.h"
#include "gdn/Target/TargetModel.h"

#include "llvm/IR/Module.h"

namespace gdn {

/// All that decides what the code generators make of `ir` as it is now: its
/// text, the target, the sources of the code generators, and LLVM.
ContentKey keyOfCodegen(llvm::StringRef kind, const llvm::Module &ir,
                        const TargetModel &target);

} // namespace gdn

#endif // GDN_LIB_TARGET_CODEGENKEY_H
