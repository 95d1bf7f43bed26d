// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An event stays until it is over: several streams may have to wait for it.

#include "slot_transfers.h"

using namespace gdnrt;

void SlotTransfers::expect(int64_t numSlots) {
  std::lock_guard<std::mutex> guard(lock_);
  events_.resize(static_cast<size_t>(numSlots));
  isUsed_ = true;
}

void SlotTransfers::note(const int32_t *slots, size_t count,
                         const std::shared_ptr<StreamEvent> &event) {
  std::lock_guard<std::mutex> guard(lock_);
  for (size_t i = 0; i < count; ++i)
    events_[static_cast<size_t>(slots[i])] = event;
}

Status SlotTransfers::orderAfter(Device &device, const int32_t *slots,
                                 size_t count, void *stream) {
  if (!isUsed_)
    return {};
  std::lock_guard<std::mutex> guard(lock_);
  const auto numSlots = static_cast<int64_t>(events_.size());
  for (size_t i = 0; i < count; ++i) {
    if (slots[i] < 0 || slots[i] >= numSlots)
      continue;
    std::shared_ptr<StreamEvent> &event =
        events_[static_cast<size_t>(slots[i])];
    if (!event)
      continue;
    auto isOver = event->isOver();
    if (!isOver.isOk())
      return isOver.status();
    if (*isOver) {
      event = nullptr;
      continue;
    }
    // A graph cannot wait for what is outside of it.
    if (Status s = refuseCapture(device, stream, "copies of a host tier");
        !s.isOk())
      return s;
    if (Status s = event->orderAfter(stream); !s.isOk())
      return s;
  }
  return {};
}
