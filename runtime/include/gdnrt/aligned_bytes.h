// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A fixed block of 64-byte aligned memory: copies of images and the scratch of
// worker threads.

#ifndef GDNRT_ALIGNED_BYTES_H
#define GDNRT_ALIGNED_BYTES_H

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace gdnrt {

constexpr size_t kAlignment = 64;

struct FreeDeleter {
  void operator()(uint8_t *bytes) const { std::free(bytes); }
};
using AlignedBytes = std::unique_ptr<uint8_t[], FreeDeleter>;

/// At least `size` bytes at a multiple of 64, or null if there is no memory.
/// The contents are undefined.
AlignedBytes allocateAligned(size_t size);

} // namespace gdnrt

#endif // GDNRT_ALIGNED_BYTES_H
