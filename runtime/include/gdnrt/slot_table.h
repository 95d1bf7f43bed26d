// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The owners of the slots of a pool: the life cycle of ids, without the memory.
//
//   null slot 0       nobody owns it, and it is never given out
//   1 .. R            for requests: free -> in use -> free
//   R+1 .. R+K        track slots, for states that a cache keeps: the same
//
// Slots are given out in the order in which they were freed. The table
// allocates nothing after it is made, and has no lock.

#ifndef GDNRT_SLOT_TABLE_H
#define GDNRT_SLOT_TABLE_H

#include "gdnrt/status.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gdnrt {

/// The null slot of every pool.
constexpr int32_t kNullSlot = 0;

enum class SlotKind { request, track };

class SlotTable {
public:
  /// Both counts are 0 or more, and their sum is below 2^31 - 1.
  SlotTable(int64_t numRequests, int64_t numTrack);

  /// The number of slots of the pool, the null slot included.
  int64_t numSlots() const { return static_cast<int64_t>(states_.size()); }
  int64_t numFree(SlotKind kind) const { return ring(kind).count; }
  int64_t numInUse(SlotKind kind) const {
    return static_cast<int64_t>(ring(kind).ids.size()) - ring(kind).count;
  }
  /// Whether kernels skip the id in every pool: it is negative or the null
  /// slot. (Kernels also skip ids past the end, but for a caller these are
  /// errors.)
  static bool isPadding(int32_t slot) { return slot <= kNullSlot; }
  bool isInUse(int32_t slot) const {
    return slot >= 0 && slot < numSlots() && states_[slot] == State::inUse;
  }

  /// Takes `count` slots, writes their ids and returns true. Takes none and
  /// returns false if fewer are free.
  bool allocate(SlotKind kind, size_t count, int32_t *slots);
  /// Frees slots. If one of them is not in use, past the end, padding or named
  /// twice, none is freed (INVALID_ARGUMENT).
  Status free(const int32_t *slots, size_t count);
  /// Whether `free` would free them; changes nothing.
  Status checkFree(const int32_t *slots, size_t count);

  /// Fails for an id past the end. With `inUse` also for an id that is free,
  /// with `distinct` also for an id that occurs twice. Ignores padding.
  Status check(const int32_t *slots, size_t count, bool inUse, bool distinct);
  /// Fails for ids past the end, and for a target that is also a source or the
  /// target of another pair. Ignores pairs with padding and pairs of the same
  /// id. With `inUse` also fails for ids that are free.
  Status checkCopy(const int32_t *from, const int32_t *to, size_t count,
                   bool inUse);

private:
  enum class State : uint8_t { none, free, inUse };
  /// The free ids, in the order in which they were freed.
  struct Ring {
    std::vector<int32_t> ids;
    int64_t head = 0, count = 0;
  };
  const Ring &ring(SlotKind kind) const { return rings_[int(kind)]; }
  Ring &ring(SlotKind kind) { return rings_[int(kind)]; }
  void push(int32_t slot);
  Status pastEnd(int32_t slot) const;
  /// Returns a mark that no slot has yet.
  uint32_t newMark();

  std::vector<State> states_;
  /// The marks of slots. `check` gives each slot that it has seen the current
  /// mark.
  std::vector<uint32_t> marks_;
  uint32_t mark_ = 0;
  int64_t numRequests_;
  Ring rings_[2];
};

} // namespace gdnrt

#endif // GDNRT_SLOT_TABLE_H
