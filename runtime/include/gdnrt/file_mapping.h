// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file that is mapped read-only. The file must not shrink or change while it
// is mapped. To install a new image, rename it over the old one.

#ifndef GDNRT_FILE_MAPPING_H
#define GDNRT_FILE_MAPPING_H

#include "gdnrt/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gdnrt {

class FileMapping {
public:
  static Result<std::unique_ptr<FileMapping>> open(const char *path);
  ~FileMapping();
  FileMapping(const FileMapping &) = delete;
  FileMapping &operator=(const FileMapping &) = delete;

  const uint8_t *data() const { return data_; }
  size_t size() const { return size_; }

private:
  FileMapping(const uint8_t *data, size_t size) : data_(data), size_(size) {}
  const uint8_t *data_;
  size_t size_;
};

} // namespace gdnrt

#endif // GDNRT_FILE_MAPPING_H
