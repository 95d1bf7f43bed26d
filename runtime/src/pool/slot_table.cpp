// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two rings of free ids and a state for each slot.

#include "gdnrt/slot_table.h"

#include <algorithm>

using namespace gdnrt;

SlotTable::SlotTable(int64_t numRequests, int64_t numTrack)
    : states_(static_cast<size_t>(1 + numRequests + numTrack), State::free),
      marks_(states_.size()), numRequests_(numRequests) {
  states_[kNullSlot] = State::none;
  ring(SlotKind::request).ids.resize(static_cast<size_t>(numRequests));
  ring(SlotKind::track).ids.resize(static_cast<size_t>(numTrack));
  for (size_t slot = 1; slot < states_.size(); ++slot)
    push(static_cast<int32_t>(slot));
}

void SlotTable::push(int32_t slot) {
  Ring &free = ring(slot <= numRequests_ ? SlotKind::request : SlotKind::track);
  const auto size = static_cast<int64_t>(free.ids.size());
  int64_t end = free.head + free.count;
  free.ids[static_cast<size_t>(end < size ? end : end - size)] = slot;
  ++free.count;
}

bool SlotTable::allocate(SlotKind kind, size_t count, int32_t *slots) {
  Ring &free = ring(kind);
  if (count > static_cast<size_t>(free.count))
    return false;
  for (size_t i = 0; i < count; ++i) {
    slots[i] = free.ids[static_cast<size_t>(free.head)];
    states_[static_cast<size_t>(slots[i])] = State::inUse;
    if (++free.head == static_cast<int64_t>(free.ids.size()))
      free.head = 0;
  }
  free.count -= static_cast<int64_t>(count);
  return true;
}

Status SlotTable::pastEnd(int32_t slot) const {
  return invalid("state_pool: slot ", slot, " is past the pool's ", numSlots(),
                 " slots");
}

uint32_t SlotTable::newMark() {
  if (++mark_ == 0) {
    std::fill(marks_.begin(), marks_.end(), 0);
    mark_ = 1;
  }
  return mark_;
}

Status SlotTable::checkFree(const int32_t *slots, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (isPadding(slots[i]))
      return invalid("state_pool: slot ", slots[i],
                     " is padding and cannot be freed");
  return check(slots, count, /*inUse=*/true, /*distinct=*/true);
}

Status SlotTable::free(const int32_t *slots, size_t count) {
  if (Status status = checkFree(slots, count); !status.isOk())
    return status;
  for (size_t i = 0; i < count; ++i) {
    states_[static_cast<size_t>(slots[i])] = State::free;
    push(slots[i]);
  }
  return {};
}

Status SlotTable::check(const int32_t *slots, size_t count, bool inUse,
                        bool distinct) {
  const uint32_t mark = newMark();
  for (size_t i = 0; i < count; ++i) {
    if (isPadding(slots[i]))
      continue;
    if (slots[i] >= numSlots())
      return pastEnd(slots[i]);
    const auto slot = static_cast<size_t>(slots[i]);
    if (inUse && states_[slot] != State::inUse)
      return invalid("state_pool: slot ", slots[i], " is free");
    if (distinct && marks_[slot] == mark)
      return invalid("state_pool: slot ", slots[i], " occurs twice");
    marks_[slot] = mark;
  }
  return {};
}

Status SlotTable::checkCopy(const int32_t *from, const int32_t *to,
                            size_t count, bool inUse) {
  if (Status status = check(from, count, inUse, /*distinct=*/false);
      !status.isOk())
    return status;
  if (Status status = check(to, count, inUse, /*distinct=*/false);
      !status.isOk())
    return status;
  auto isPassedOver = [&](size_t i) {
    return isPadding(from[i]) || isPadding(to[i]) || from[i] == to[i];
  };
  const uint32_t mark = newMark();
  for (size_t i = 0; i < count; ++i) {
    if (isPassedOver(i))
      continue;
    uint32_t &seen = marks_[static_cast<size_t>(to[i])];
    if (seen == mark)
      return invalid("state_pool: slot ", to[i],
                     " is the target of two copies");
    seen = mark;
  }
  for (size_t i = 0; i < count; ++i)
    if (!isPassedOver(i) && marks_[static_cast<size_t>(from[i])] == mark)
      return invalid("state_pool: slot ", from[i],
                     " is the source of one copy and the target of another");
  return {};
}
