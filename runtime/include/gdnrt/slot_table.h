// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Who owns the slots of a pool: the life cycle of ids, without any memory.
//
//   null slot 0       belongs to nobody, is never given out
//   1 .. R            for requests: free -> in use -> free
//   R+1 .. R+K        track slots, for states that a cache keeps: likewise
//
// A slot that is freed is given out again after all that were free before it.
// Nothing is allocated after the table is made. Not synchronised.

#ifndef GDNRT_SLOT_TABLE_H
#define GDNRT_SLOT_TABLE_H

#include "gdnrt/status.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gdnrt {

/// The slot that counts as none in every pool.
constexpr int32_t kNullSlot = 0;

enum class SlotKind { request, track };

class SlotTable {
public:
  /// Needs counts of at least 0 whose sum is below 2^31 - 1.
  SlotTable(int64_t numRequests, int64_t numTrack);

  /// Slots of the pool, the null slot included.
  int64_t numSlots() const { return static_cast<int64_t>(states_.size()); }
  int64_t numFree(SlotKind kind) const { return ring(kind).count; }
  int64_t numInUse(SlotKind kind) const {
    return static_cast<int64_t>(ring(kind).ids.size()) - ring(kind).count;
  }
  /// Negative, the null slot: what kernels skip in every pool. (They skip ids
  /// past the end too, but no caller means that.)
  static bool isPadding(int32_t slot) { return slot <= kNullSlot; }
  bool isInUse(int32_t slot) const {
    return slot >= 0 && slot < numSlots() && states_[slot] == State::inUse;
  }

  /// Takes `count` slots and writes their ids, or takes none and returns false.
  bool allocate(SlotKind kind, size_t count, int32_t *slots);
  /// Gives slots back, all or, where one of them is not in use, past the end,
  /// padding or named twice, none.
  Status free(const int32_t *slots, size_t count);

  /// Fails on an id past the end; on one that is free if `inUse`; on one that
  /// occurs twice if `distinct`. Padding is passed over.
  Status check(const int32_t *slots, size_t count, bool inUse, bool distinct);
  /// Fails on ids past the end, and on a target that is also a source or
  /// another target; pairs with padding or of one slot twice are passed over.
  Status checkCopy(const int32_t *from, const int32_t *to, size_t count,
                   bool inUse);

private:
  enum class State : uint8_t { none, free, inUse };
  /// Free ids, the one freed first in front.
  struct Ring {
    std::vector<int32_t> ids;
    int64_t head = 0, count = 0;
  };
  const Ring &ring(SlotKind kind) const { return rings_[int(kind)]; }
  Ring &ring(SlotKind kind) { return rings_[int(kind)]; }
  void push(int32_t slot);
  Status pastEnd(int32_t slot) const;
  /// A mark that no slot has yet.
  uint32_t newMark();

  std::vector<State> states_;
  /// What `check` has seen: slots that carry the current mark.
  std::vector<uint32_t> marks_;
  uint32_t mark_ = 0;
  int64_t numRequests_;
  Ring rings_[2];
};

} // namespace gdnrt

#endif // GDNRT_SLOT_TABLE_H
