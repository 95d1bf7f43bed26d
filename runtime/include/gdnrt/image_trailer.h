// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The trailer and the format version of an image. The trailer is the last 16
// bytes: the bytes GDNKEND1, then the XXH3-64 of all bytes before the trailer,
// little-endian. The reader and the writers of images share this file. Header
// only, so that a writer links nothing of the runtime.

#ifndef GDNRT_IMAGE_TRAILER_H
#define GDNRT_IMAGE_TRAILER_H

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gdnrt {

/// The version of the format that writers write and the reader reads.
constexpr uint32_t kFormatVersion = 7;

constexpr size_t kTrailerSize = 16;
constexpr char kTrailerMagic[9] = "GDNKEND1";

/// XXH3-64 with seed 0, the hash in the trailer and in Blob.xxh3.
inline uint64_t imageHash(const void *data, size_t size) {
  return XXH3_64bits(data, size);
}

/// Appends the trailer to a finished FlatBuffers root. The result is an image.
inline void appendTrailer(std::vector<uint8_t> &root) {
  uint64_t hash = imageHash(root.data(), root.size());
  root.insert(root.end(), kTrailerMagic, kTrailerMagic + 8);
  for (int byte = 0; byte < 8; ++byte)
    root.push_back(static_cast<uint8_t>(hash >> (8 * byte)));
}

} // namespace gdnrt

#endif // GDNRT_IMAGE_TRAILER_H
