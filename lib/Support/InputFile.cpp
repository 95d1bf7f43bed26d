// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is no regular file has no size: it is read piece by piece up to the
// bound.

#include "gdn/Support/InputFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"

#include <algorithm>
#include <optional>

using namespace gdn;
namespace fs = llvm::sys::fs;
using Buffer = std::unique_ptr<llvm::MemoryBuffer>;

/// Streams are held in memory, also those that somebody named by mistake.
static constexpr uint64_t mostStreamBytes = 256 << 20;

/// All bytes of a stream; nothing if there are more than `most`.
static llvm::Expected<std::optional<Buffer>>
readStream(fs::file_t file, llvm::StringRef path, uint64_t most) {
  constexpr size_t piece = 1 << 16;
  llvm::SmallString<0> bytes;
  while (bytes.size() <= most) {
    const size_t size = bytes.size();
    bytes.resize_for_overwrite(size + piece);
    llvm::Expected<size_t> count = fs::readNativeFile(
        file, llvm::MutableArrayRef<char>(bytes.data() + size, piece));
    if (!count)
      return count.takeError();
    bytes.truncate(size + *count);
    if (*count == 0)
      return llvm::MemoryBuffer::getMemBufferCopy(bytes, path);
  }
  return std::nullopt;
}

llvm::Expected<Buffer> gdn::readInputFile(llvm::StringRef path, uint64_t most) {
  auto failed = [&](const llvm::Twine &why) {
    return llvm::createStringError(path + ": cannot be read: " + why);
  };
  fs::file_t file = fs::getStdinHandle();
  if (path != "-") {
    llvm::Expected<fs::file_t> opened = fs::openNativeFileForRead(path);
    if (!opened)
      return failed(llvm::toString(opened.takeError()));
    file = *opened;
  }
  struct CloseAtEnd {
    fs::file_t file;
    bool isOurs;
    ~CloseAtEnd() {
      if (isOurs)
        (void)fs::closeFile(file);
    }
  } closeAtEnd{file, path != "-"};

  fs::file_status status;
  if (std::error_code code = fs::status(file, status))
    return failed(code.message());
  if (fs::is_directory(status))
    return failed("Is a directory");
  if (path != "-" && fs::is_regular_file(status)) {
    if (status.getSize() > most)
      return failed("expects at most " + llvm::Twine(most) +
                    " bytes, but got " + llvm::Twine(status.getSize()));
    auto buffer = llvm::MemoryBuffer::getOpenFile(file, path, status.getSize());
    if (!buffer)
      return failed(buffer.getError().message());
    return std::move(*buffer);
  }
  const uint64_t mostOfStream = std::min(most, mostStreamBytes);
  llvm::Expected<std::optional<Buffer>> buffer =
      readStream(file, path, mostOfStream);
  if (!buffer)
    return failed(llvm::toString(buffer.takeError()));
  if (!*buffer)
    return failed("expects at most " + llvm::Twine(mostOfStream) +
                  " bytes of what is no regular file, but got more");
  return std::move(**buffer);
}

llvm::Expected<Buffer> gdn::readProgramFile(llvm::StringRef path,
                                            uint64_t most) {
  llvm::Expected<Buffer> buffer = readInputFile(path, most);
  if (!buffer)
    return buffer.takeError();
  llvm::StringRef bytes = (*buffer)->getBuffer();
  if (!bytes.starts_with("ML\xefR") && bytes.take_front(64).contains('\0'))
    return llvm::createStringError(
        path + ": expects a program as text or bytecode of MLIR, but got other "
               "bytes (images are read by gdn-run and by the runtime)");
  return std::move(*buffer);
}
