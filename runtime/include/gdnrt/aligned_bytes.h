// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block of 64-byte aligned memory of fixed size, for copies of images and for
// the scratch memory of worker threads.

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

/// Allocates at least `size` bytes at a multiple of 64. Null if there is no
/// memory. The contents are undefined.
AlignedBytes allocateAligned(size_t size);

} // namespace gdnrt

#endif // GDNRT_ALIGNED_BYTES_H
