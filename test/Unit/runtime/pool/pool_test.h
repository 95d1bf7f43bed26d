// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A small pool on a CPU, and the bytes of its slots.

#ifndef GDNRT_TEST_POOL_TEST_H
#define GDNRT_TEST_POOL_TEST_H

#include "gdnrt/cpu_device.h"
#include "gdnrt/state_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace gdnrt::test {

using Ids = std::vector<int32_t>;

/// 3 layers, 4 slots for requests, 2 to track; Hk 1, Hv 2, dk 3, dv 5, K 4.
inline StatePoolShape smallShape() {
  StatePoolShape shape;
  shape.numLayers = 3;
  shape.numRequests = 4;
  shape.numTrack = 2;
  shape.keyHeads = 1;
  shape.valueHeads = 2;
  shape.keyDim = 3;
  shape.valueDim = 5;
  return shape;
}

inline std::shared_ptr<Device> cpu() { return *createCpuDevice(1); }

inline std::unique_ptr<StatePool>
makePool(const StatePoolShape &shape = smallShape(),
         const StatePoolOptions &options = {}) {
  auto made = StatePool::make(cpu(), shape, options);
  EXPECT_TRUE(made.isOk()) << made.status().toString();
  return made.isOk() ? std::move(*made) : nullptr;
}

/// Calls `visit` with the address of each element of a slot as kernels see it.
template <typename Visit>
void forEachElement(const StatePool &pool, PoolBuffer buffer, int64_t layer,
                    int32_t slot, Visit &&visit) {
  Argument view = *pool.view(buffer, layer);
  int64_t bytes = sizeInBytes(static_cast<DType>(view.dtype));
  std::vector<int64_t> index(static_cast<size_t>(view.rank));
  index[0] = slot;
  for (;;) {
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d)
      offset += index[d] * view.strides[d];
    visit(static_cast<uint8_t *>(view.data) + offset * bytes, bytes);
    size_t d = index.size() - 1;
    while (d > 0 && ++index[d] == view.sizes[d])
      index[d--] = 0;
    if (d == 0)
      return;
  }
}

/// All memory of a slot.
inline std::vector<PoolBuffer> buffersOf(const StatePool &pool) {
  std::vector<PoolBuffer> buffers = {PoolBuffer::state,
                                     PoolBuffer::convHistory};
  if (pool.shape().pendingTokens > 0)
    buffers.insert(buffers.end(),
                   {PoolBuffer::pendingKeys, PoolBuffer::pendingDeltas,
                    PoolBuffer::pendingDecays});
  if (pool.shape().statePlanes > 0)
    buffers.push_back(PoolBuffer::stateScales);
  if (pool.shape().statePlanes == 2)
    buffers.push_back(PoolBuffer::stateLow);
  return buffers;
}

/// Fills all of a slot with one byte, through the views.
inline void paint(const StatePool &pool, int32_t slot, uint8_t value) {
  for (auto buffer : buffersOf(pool))
    for (int64_t layer = 0; layer < pool.shape().numLayers; ++layer)
      forEachElement(pool, buffer, layer, slot,
                     [&](uint8_t *at, int64_t bytes) {
                       std::memset(at, value, static_cast<size_t>(bytes));
                     });
}

/// The byte that all of a slot holds, or -1 if there are several.
inline int colour(const StatePool &pool, int32_t slot) {
  int found = -2;
  for (auto buffer : buffersOf(pool))
    for (int64_t layer = 0; layer < pool.shape().numLayers; ++layer)
      forEachElement(pool, buffer, layer, slot,
                     [&](const uint8_t *at, int64_t bytes) {
                       for (int64_t i = 0; i < bytes; ++i)
                         found = found == -2 || found == at[i] ? at[i] : -1;
                     });
  return found;
}

/// Slot p of the whole pool holds p + 1.
inline void paintAll(const StatePool &pool) {
  for (int32_t slot = 0; slot < pool.numSlots(); ++slot)
    paint(pool, slot, static_cast<uint8_t>(slot + 1));
}

inline std::vector<int> colours(const StatePool &pool) {
  std::vector<int> all;
  for (int32_t slot = 0; slot < pool.numSlots(); ++slot)
    all.push_back(colour(pool, slot));
  return all;
}

/// Takes slots that have to be there.
inline Ids take(StatePool &pool, size_t count, bool zero = false,
                SlotKind kind = SlotKind::request) {
  Ids slots(count, -7);
  auto taken = pool.allocate(kind, count, slots.data(), zero, nullptr);
  EXPECT_TRUE(taken.isOk()) << taken.status().toString();
  EXPECT_TRUE(taken.isOk() && *taken);
  return slots;
}

inline std::string freeAll(StatePool &pool, const Ids &slots) {
  return pool.free(slots.data(), slots.size(), nullptr).toString();
}

} // namespace gdnrt::test

#endif // GDNRT_TEST_POOL_TEST_H
