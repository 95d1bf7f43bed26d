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
  int64_t layerStrideBytes = 0;
  /// From the start of the block.
  uint64_t offset = 0;
};

struct PoolPlan {
  BufferPlan state, conv;
  uint64_t bytes = 0;
};

/// Checks counts, sizes and dtypes, not strides.
Status checkShape(const StatePoolShape &shape);

/// The layout of a pool that owns its memory.
Result<PoolPlan> planPool(const StatePoolShape &shape);

} // namespace gdnrt

#endif // GDNRT_SRC_POOL_POOL_SHAPE_H
