// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// open, fstat, mmap, close; an empty file has no mapping.

#include "gdnrt/file_mapping.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

using namespace gdnrt;

static Status osFailure(const char *path, const char *what) {
  // Not strerror, which threads share.
  std::string reason = std::generic_category().message(errno);
  return failure(StatusCode::ioError, path, ": ", what, ": ", reason);
}

Result<std::unique_ptr<FileMapping>> FileMapping::open(const char *path) {
  int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return osFailure(path, "cannot open");
  struct CloseAtEnd {
    int file;
    ~CloseAtEnd() { ::close(file); }
  } closeAtEnd{file};

  struct stat info;
  if (::fstat(file, &info) != 0)
    return osFailure(path, "cannot read its size");
  if (!S_ISREG(info.st_mode))
    return failure(StatusCode::ioError, path, ": expected a regular file");
  size_t size = static_cast<size_t>(info.st_size);
  void *data = nullptr;
  if (size != 0) {
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED)
      return osFailure(path, "cannot map");
  }
  return std::unique_ptr<FileMapping>(
      new FileMapping(static_cast<const uint8_t *>(data), size));
}

FileMapping::~FileMapping() {
  if (data_)
    ::munmap(const_cast<uint8_t *>(data_), size_);
}
