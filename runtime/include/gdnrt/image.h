// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loaded image: checked completely before anything of it can be seen, and
// immutable afterwards, so that threads may share it without locks.

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

/// What the reader takes out of an image. Blobs point into the image's bytes.
struct ImageContents {
  struct Blob {
    const uint8_t *data;
    size_t size;
  };
  std::string producer;
  std::vector<std::shared_ptr<const EntrySchema>> entries;
  std::vector<Blob> blobs;
};

/// Checks `size` bytes at `data` (64-byte aligned) in this order: size,
/// trailer, hash, identifier, FlatBuffers verifier, format version, ranges. On
/// success the contents are complete; on failure nothing is kept.
Result<ImageContents> readImage(const uint8_t *data, size_t size);

class Image {
public:
  /// Maps the file; messages begin with its path.
  static Result<std::shared_ptr<const Image>> loadFile(const char *path);

  /// Reads caller's memory, which must stay as it is while the image lives.
  /// Memory that is not 64-byte aligned is copied.
  static Result<std::shared_ptr<const Image>> loadMemory(const void *data,
                                                         size_t size);

  const std::string &producer() const { return contents_.producer; }
  const std::vector<std::shared_ptr<const EntrySchema>> &entries() const {
    return contents_.entries;
  }
  const std::vector<ImageContents::Blob> &blobs() const {
    return contents_.blobs;
  }

  /// Differs between any two images loaded by this process.
  uint64_t id() const { return id_; }

  /// The entry called `name`, or else the only one called `name` + "_" + more.
  Result<size_t> findEntry(std::string_view name) const;
  /// The entry of a kind for a type of inputs and outputs and a type of states,
  /// "bf16" and so on; "" for whichever there is.
  Result<size_t> findKind(std::string_view kind, std::string_view io,
                          std::string_view state) const;

private:
  Image();
  uint64_t id_;
  std::unique_ptr<FileMapping> mapping_;
  AlignedBytes copy_;
  ImageContents contents_;
};

/// What an entry is, "decode" and so on: its name without types.
std::string_view kindOf(const EntrySchema &entry);

} // namespace gdnrt

#endif // GDNRT_IMAGE_H
