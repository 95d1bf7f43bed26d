// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Input files of tools, which may be anything, without end included.

#ifndef GDN_SUPPORT_INPUTFILE_H
#define GDN_SUPPORT_INPUTFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdint>
#include <memory>

namespace gdn {

/// The contents of the file at `path`, "-" for the standard input, a 0 behind
/// them. An error names the file if it has more than `most` bytes, or 256 MiB
/// where it is no regular file, if it is a directory, or if it cannot be read.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readInputFile(llvm::StringRef path, uint64_t most);

/// The same of a program, as text or as MLIR's bytecode. The error says if it
/// is neither, as an image is.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readProgramFile(llvm::StringRef path, uint64_t most);

} // namespace gdn

#endif // GDN_SUPPORT_INPUTFILE_H
