// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the buffers of a pool lie in one block of memory, from its shape alone.

#ifndef GDNRT_SRC_POOL_POOL_SHAPE_H
#define GDNRT_SRC_POOL_POOL_SHAPE_H

#include "gdnrt/state_pool.h"

namespace gdnrt {

/// One buffer: all of SlotBuffer but addresses, and distances in bytes.
struct BufferPlan {
  SlotBuffer buffer;
  PoolBuffer kind = PoolBuffer::state;
  int64_t layerStrideBytes = 0;
  /// From the start of the block, and from there to its last element.
  uint64_t offset = 0, bytes = 0;
};

/// Places of buffers in memory of a pool. Only the first two may be the
/// caller's.
constexpr size_t kConvBuffer = 1, kFirstOwnBuffer = 2;

/// Checks counts, sizes and dtypes, not strides.
Status checkShape(const StatePoolShape &shape);

/// The buffers of a pool, one behind the other.
Result<std::vector<BufferPlan>> planPool(const StatePoolShape &shape);

/// The bytes of the buffers from `first` on.
uint64_t plannedBytes(const std::vector<BufferPlan> &plans, size_t first);

} // namespace gdnrt

#endif // GDNRT_SRC_POOL_POOL_SHAPE_H
