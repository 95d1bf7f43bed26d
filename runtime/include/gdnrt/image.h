// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loaded image. It is checked completely before any of it can be read, and
// never changes after that, so threads share it without locks.

#ifndef GDNRT_IMAGE_H
#define GDNRT_IMAGE_H

#include "gdnrt/aligned_bytes.h"
#include "gdnrt/entry_schema.h"
#include "gdnrt/file_mapping.h"
#include "gdnrt/status.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gdnrt {

/// The contents of an image, as the reader returns them. Blobs point into the
/// bytes of the image.
struct ImageContents {
  struct Blob {
    const uint8_t *data;
    size_t size;
  };
  std::string producer;
  std::vector<std::shared_ptr<const EntrySchema>> entries;
  std::vector<Blob> blobs;
};

/// Checks the `size` bytes at `data` (64-byte aligned) in this order: size,
/// trailer, hash, identifier, FlatBuffers verifier, format version, ranges. On
/// success the contents are complete. On failure nothing is returned but the
/// error.
Result<ImageContents> readImage(const uint8_t *data, size_t size);

class Image {
public:
  /// Maps the file and reads it. Error messages begin with its path.
  static Result<std::shared_ptr<const Image>> loadFile(const char *path);

  /// Reads an image in the caller's memory, which must not change while the
  /// image exists. Memory that is not 64-byte aligned is copied.
  static Result<std::shared_ptr<const Image>> loadMemory(const void *data,
                                                         size_t size);

  const std::string &producer() const { return contents_.producer; }
  const std::vector<std::shared_ptr<const EntrySchema>> &entries() const {
    return contents_.entries;
  }
  const std::vector<ImageContents::Blob> &blobs() const {
    return contents_.blobs;
  }

  /// A number that is different for each image that this process loads.
  uint64_t id() const { return id_; }

  /// The index of the entry called `name`, or else of the only entry whose name
  /// begins with `name` and "_". NOT_FOUND if there is none or more than one.
  Result<size_t> findEntry(std::string_view name) const;
  /// The index of the entry of a kind with the type `io` of inputs and outputs
  /// and the type `state` of states. A type is a text such as "bf16", or "" for
  /// any. NOT_FOUND if no entry fits or more than one.
  Result<size_t> findKind(std::string_view kind, std::string_view io,
                          std::string_view state) const;

private:
  Image();
  uint64_t id_;
  std::unique_ptr<FileMapping> mapping_;
  AlignedBytes copy_;
  ImageContents contents_;
};

/// The kind of an entry, such as "decode": its name without types.
std::string_view kindOf(const EntrySchema &entry);

} // namespace gdnrt

#endif // GDNRT_IMAGE_H
