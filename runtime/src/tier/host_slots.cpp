// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A ring of free ids, and checks of what callers name.

#include "gdnrt/host_slots.h"

#include <algorithm>

using namespace gdnrt;

void HostSlots::make(size_t count) {
  slots_.resize(count);
  marks_.resize(count);
  ring_.resize(count);
  numFree_ = count;
  for (size_t slot = 0; slot < count; ++slot)
    ring_[slot] = static_cast<int32_t>(slot);
}

bool HostSlots::take(size_t count, int32_t *slots) {
  if (count > numFree_)
    return false;
  for (size_t i = 0; i < count; ++i) {
    slots[i] = ring_[head_];
    head_ = head_ + 1 == ring_.size() ? 0 : head_ + 1;
    (*this)[slots[i]].isTaken = true;
    (*this)[slots[i]].isFull = false;
  }
  numFree_ -= count;
  return true;
}

void HostSlots::give(const int32_t *slots, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    (*this)[slots[i]].isTaken = false;
    ring_[(head_ + numFree_++) % ring_.size()] = slots[i];
  }
}

Status HostSlots::check(const int32_t *slots, size_t count, bool distinct) {
  if (++mark_ == 0) {
    std::fill(marks_.begin(), marks_.end(), 0);
    mark_ = 1;
  }
  for (size_t i = 0; i < count; ++i) {
    if (slots[i] < 0 || slots[i] >= size())
      return invalid("host_tier: host slot: expected 0 to ", size() - 1,
                     ", got ", slots[i]);
    if (!(*this)[slots[i]].isTaken)
      return invalid("host_tier: host slot ", slots[i], " is free");
    uint32_t &seen = marks_[static_cast<size_t>(slots[i])];
    if (distinct && seen == mark_)
      return invalid("host_tier: host slot ", slots[i], " occurs twice");
    seen = mark_;
  }
  return {};
}

Status HostSlots::checkFiles(const int32_t *slots, size_t count, bool writes) {
  for (size_t i = 0; i < count; ++i)
    if (const int32_t files = (*this)[slots[i]].files;
        files < 0 || (writes && files > 0))
      return invalid("host_tier: host slot ", slots[i],
                     " is busy: expected no file that it is ",
                     files < 0 ? "read from" : "written to", ", got one");
  return {};
}

Status HostSlots::checkFull(const int32_t *slots, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (!(*this)[slots[i]].isFull)
      return invalid("host_tier: host slot ", slots[i],
                     " is empty: expected one that a state was stored to or "
                     "read into");
  return {};
}
