// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What others than kernels do with slots of a pool: counts of pending tokens
// for the host, and copies on streams of their own.

#include "gdnrt/state_pool.h"

#include "slot_transfers.h"

#include <algorithm>

using namespace gdnrt;

void StatePool::expectTransfers() { transfers_->expect(numSlots()); }

Status StatePool::checkTransfer(const int32_t *slots, size_t count,
                                bool distinct) {
  for (size_t i = 0; i < count; ++i)
    if (SlotTable::isPadding(slots[i]))
      return invalid("state_pool: slot ", slots[i],
                     " is padding and has no state to move");
  std::lock_guard<std::mutex> guard(lock_);
  return table_.check(slots, count, /*inUse=*/true, distinct);
}

void StatePool::noteTransfer(const int32_t *slots, size_t count,
                             const std::shared_ptr<StreamEvent> &event) {
  transfers_->note(slots, count, event);
}

Status StatePool::orderAfterTransfers(const int32_t *slots, size_t count,
                                      void *stream) {
  return transfers_->orderAfter(*device_, slots, count, stream);
}

Status StatePool::hasPending(const int32_t *slots, size_t count, void *stream,
                             uint8_t *pending) {
  if (!shape_.deferredWrites)
    return invalid("state_pool: the pool has no memory for counts of pending "
                   "tokens: expected deferred_writes");
  {
    std::lock_guard<std::mutex> guard(lock_);
    if (Status status = table_.check(slots, count, options_.debugChecks, false);
        !status.isOk())
      return status;
  }
  auto capturing = device_->isCapturing(stream);
  if (!capturing.isOk())
    return capturing.status();
  if (*capturing)
    return failure(StatusCode::unsupported,
                   "state_pool: has_pending: expected a stream that is not "
                   "being captured, for the call waits for it");
  if (Status status = orderAfterTransfers(slots, count, stream); !status.isOk())
    return status;
  if (Status status = device_->synchronize(stream); !status.isOk())
    return status;
  const SlotBuffer &buffer = *find(PoolBuffer::pendingCounts);
  const int64_t heads = shape_.keyHeads;
  std::vector<int32_t> counts(static_cast<size_t>(numSlots() * heads));
  std::fill_n(pending, count, uint8_t{0});
  for (const uint8_t *layer : buffer.layers) {
    if (Status status = device_->read(counts.data(), layer,
                                      counts.size() * sizeof(int32_t));
        !status.isOk())
      return status;
    for (size_t i = 0; i < count; ++i) {
      if (SlotTable::isPadding(slots[i]))
        continue;
      const int32_t *own = counts.data() + slots[i] * heads;
      pending[i] |= std::any_of(own, own + heads,
                                [](int32_t tokens) { return tokens != 0; });
    }
  }
  return {};
}
