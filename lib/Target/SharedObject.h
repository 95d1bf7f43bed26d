// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The linker, in this process.
#ifndef GDN_LIB_TARGET_SHAREDOBJECT_H
#define GDN_LIB_TARGET_SHAREDOBJECT_H

#include "gdn/Target/CpuCodegen.h"

namespace gdn {

/// Links one ELF object into a shared object that needs nothing: no libraries
/// and no undefined symbols. Fails with the names of undefined symbols.
llvm::Expected<Bytes> linkSharedObject(llvm::ArrayRef<char> object);

} // namespace gdn

#endif // GDN_LIB_TARGET_SHAREDOBJECT_H
