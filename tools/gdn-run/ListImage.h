// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is in an image, as it says itself: no device is asked.

#ifndef GDN_TOOLS_GDN_RUN_LISTIMAGE_H
#define GDN_TOOLS_GDN_RUN_LISTIMAGE_H

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace gdn::run {

/// Prints the entries of the image at `path`: their codes, the facts that it
/// states about them, their parameters, and the variants of codes that have
/// several.
llvm::Error listImage(llvm::StringRef path, llvm::raw_ostream &os);

} // namespace gdn::run

#endif // GDN_TOOLS_GDN_RUN_LISTIMAGE_H
