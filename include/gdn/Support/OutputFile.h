// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Output files of tools: the whole of a file or the old one.

#ifndef GDN_SUPPORT_OUTPUTFILE_H
#define GDN_SUPPORT_OUTPUTFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace gdn {

/// Makes `bytes` the contents of the file at `path`; "-" is the standard
/// output. They are written beside the file, brought to the disk and renamed,
/// so that whatever goes wrong leaves what was there. A symbolic link stays
/// one, and its target is written; what is no file (a device, a pipe) is
/// written in place.
llvm::Error writeOutputFile(llvm::StringRef path, llvm::StringRef bytes);

} // namespace gdn

#endif // GDN_SUPPORT_OUTPUTFILE_H
