// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Temporary files; see TemporaryFile.h.
#include "gdn/Target/TemporaryFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace gdn;
namespace fs = llvm::sys::fs;

TemporaryFile::~TemporaryFile() {
  if (!path.empty())
    (void)fs::remove(path);
}

llvm::Error TemporaryFile::create(llvm::StringRef suffix,
                                  llvm::StringRef content) {
  int descriptor;
  llvm::SmallString<128> name;
  if (std::error_code error =
          fs::createTemporaryFile("gdn", suffix, descriptor, name))
    return llvm::createStringError(error, "cannot make a temporary file: " +
                                              error.message());
  path = name.str().str();
  llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
  stream << content;
  stream.close();
  if (std::error_code error = stream.error()) {
    stream.clear_error();
    return llvm::createStringError(
        error, path + ": cannot be written: " + error.message());
  }
  return llvm::Error::success();
}

llvm::Expected<std::string> TemporaryFile::read() const {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false,
                                            /*IsVolatile=*/true);
  if (!buffer)
    return llvm::createStringError(
        buffer.getError(),
        path + ": cannot be read: " + buffer.getError().message());
  return (*buffer)->getBuffer().str();
}
