// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Allocation of 64-byte aligned blocks.

#include "gdnrt/aligned_bytes.h"

using namespace gdnrt;

AlignedBytes gdnrt::allocateAligned(size_t size) {
  // aligned_alloc wants a multiple of the alignment, and not zero.
  if (size > SIZE_MAX - kAlignment)
    return nullptr;
  size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  void *block = std::aligned_alloc(kAlignment, rounded ? rounded : kAlignment);
  return AlignedBytes(static_cast<uint8_t *>(block));
}
