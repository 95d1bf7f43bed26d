// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The owners of host slots, and what each slot holds: the life cycle of ids,
// without the memory. It has no lock, and allocates nothing after it is made.

#ifndef GDNRT_HOST_SLOTS_H
#define GDNRT_HOST_SLOTS_H

#include "gdnrt/host_link.h"
#include "gdnrt/status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace gdnrt {

struct HostSlot {
  bool isTaken = false, isFull = false;
  /// The files that it is written to now; -1: it is read from one.
  int32_t files = 0;
  /// Its owner has gone; it is free when its files have ended.
  bool isLeft = false;
  /// Over when its last copy has ended.
  std::shared_ptr<StreamEvent> copied;
};

class HostSlots {
public:
  /// Takes memory for slots 0 to count - 1, which are free.
  void make(size_t count);

  int64_t size() const { return static_cast<int64_t>(slots_.size()); }
  int64_t numFree() const { return static_cast<int64_t>(numFree_); }
  HostSlot &operator[](int32_t slot) {
    return slots_[static_cast<size_t>(slot)];
  }
  std::vector<HostSlot>::iterator begin() { return slots_.begin(); }
  std::vector<HostSlot>::iterator end() { return slots_.end(); }

  /// Takes `count` slots, which are empty then, the ones that were freed first,
  /// and returns true. Takes none and returns false if fewer are free.
  bool take(size_t count, int32_t *slots);
  /// Frees slots that are in use, whatever they hold.
  void give(const int32_t *slots, size_t count);

  /// Fails for a slot that is free, and with `distinct` for one that occurs
  /// twice.
  Status check(const int32_t *slots, size_t count, bool distinct);
  /// Fails for slots that are read from a file, and with `writes` for those
  /// that are written to one.
  Status checkFiles(const int32_t *slots, size_t count, bool writes);
  /// Fails for slots that are empty.
  Status checkFull(const int32_t *slots, size_t count);

private:
  std::vector<HostSlot> slots_;
  /// The free ones, from `head_` on.
  std::vector<int32_t> ring_;
  size_t head_ = 0, numFree_ = 0;
  /// `check` gives each slot that it has seen the current mark.
  std::vector<uint32_t> marks_;
  uint32_t mark_ = 0;
};

} // namespace gdnrt

#endif // GDNRT_HOST_SLOTS_H
