// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States of a pool in memory of the host: host slots with owners, and copies to
// and from slots of the pool on a copy stream. See
// docs/design/20261128-host-tier.md.
//
// Threads. Any number of threads may call any method at once.
//
// Memory. A tier allocates nothing after it is made, but for files and errors,
// and what oneTBB does for several rounding threads.

#ifndef GDNRT_HOST_TIER_H
#define GDNRT_HOST_TIER_H

#include "gdnrt/host_link.h"
#include "gdnrt/host_slots.h"
#include "gdnrt/state_file.h"
#include "gdnrt/state_pool.h"
#include "gdnrt/state_record.h"
#include "gdnrt/state_rounder.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace gdnrt {

struct HostTierOptions {
  int64_t numSlots = 0;
  /// What states are kept as; none: as the pool has them. Another format than
  /// the pool's is for pools with states of f32.
  std::optional<StateFormat> format;
  /// The stream of all copies; none: one of the tier's own.
  std::optional<void *> copyStream;
  /// Which heads the pool has of the whole model, for files. 0 heads: as many
  /// for each rank as the pool has.
  RankShare share;
  /// The threads that round states to `format` and back.
  int64_t roundingThreads = 1;
};

class HostTier {
public:
  static Result<std::unique_ptr<HostTier>> make(std::shared_ptr<StatePool> pool,
                                                const HostTierOptions &options);
  /// Waits for all copies. If the device cannot say that they are over, the
  /// memory of host slots is not freed.
  ~HostTier();
  HostTier(const HostTier &) = delete;
  HostTier &operator=(const HostTier &) = delete;

  int64_t numSlots() const { return slots_.size(); }
  int64_t numFree() const;
  /// The bytes of one host slot, without gaps, and of all memory of the tier.
  uint64_t slotBytes() const;
  uint64_t memoryBytes() const { return bytes_; }
  const StateRecord &record() const { return record_; }
  const StatePool &pool() const { return pool_; }

  /// Takes `count` host slots, which are empty, and returns true. Takes none
  /// and returns false if fewer are free.
  Result<bool> allocate(size_t count, int32_t *slots);
  /// Frees host slots. If one is free, named twice, or read or written by a
  /// file, none is freed. Copies may be under way.
  Status free(const int32_t *slots, size_t count);
  /// Frees a host slot that its owner forgets: at once, or when files that read
  /// or write it have ended. Ignores one that is free.
  void leave(int32_t slot);

  /// Copies slot from[i] of the pool to host slot to[i], after what was
  /// launched on `stream`. Until `wait`, the slots of the pool may be read and
  /// freed, and not written.
  Status store(const int32_t *from, const int32_t *to, size_t count,
               void *stream);
  /// Copies host slot from[i] to slot to[i] of the pool, after what was
  /// launched on `stream`. Until `wait`, the slots of the pool may be freed,
  /// and neither read nor written. A host slot that is empty is an error.
  Status load(const int32_t *from, const int32_t *to, size_t count,
              void *stream);
  /// Makes `stream` wait for copies of slots of the pool.
  Status wait(const int32_t *poolSlots, size_t count, void *stream);

  /// Takes host slots, stores to them, and frees the slots of the pool. If host
  /// slots are missing, nothing is done and the result is false.
  Result<bool> swapOut(const int32_t *poolSlots, size_t count, void *stream,
                       int32_t *hostSlots);
  /// Takes slots for requests, loads them, makes `stream` wait, and frees the
  /// host slots. If slots are missing, nothing is done and the result is false.
  Result<bool> swapIn(const int32_t *hostSlots, size_t count, void *stream,
                      int32_t *poolSlots);

  /// Says for each host slot whether no copy of it is under way.
  Status isOver(const int32_t *slots, size_t count, uint8_t *over);
  /// Returns when no copy of the host slots is under way.
  Status synchronize(const int32_t *slots, size_t count);

  /// Writes a host slot that is full. Waits for its copies.
  Status write(int32_t slot, const StateTags &tags, ByteWriter &writer);
  /// Fills a host slot from parts; see readRecord. It is empty after a failure.
  Status read(int32_t slot, ByteReader *const *parts, size_t count,
              const StateTags *expected, StateTags *found);

private:
  /// One rounding of one layer, by a function that the copy stream calls.
  struct Rounding {
    HostTier *tier;
    int32_t slot;
    int32_t layer;
  };

  HostTier(std::shared_ptr<StatePool> pool, std::unique_ptr<HostLink> link,
           StateRecord record, const RankShare &share)
      : owner_(std::move(pool)), pool_(*owner_), link_(std::move(link)),
        record_(std::move(record)), share_(share) {}
  Status takeMemory(const HostTierOptions &options);
  uint8_t *at(int32_t slot) const {
    return memory_ + static_cast<uint64_t>(slot) * stride_;
  }
  Status begin(const int32_t *poolSlots, size_t count, void *stream);
  void endFile(int32_t slot, bool isFull);
  Status copyToHost(int32_t from, int32_t to);
  Status copyToPool(int32_t from, int32_t to);
  Status noteCopies(const HostSlot &slot, int32_t poolSlot, Status status);
  Status storeLocked(const int32_t *from, const int32_t *to, size_t count,
                     void *stream);
  Status loadLocked(const int32_t *from, const int32_t *to, size_t count,
                    void *stream);
  static void narrow(void *rounding);
  static void widen(void *rounding);

  std::shared_ptr<StatePool> owner_;
  StatePool &pool_;
  std::unique_ptr<HostLink> link_;
  StateRecord record_;
  RankShare share_;
  void *copyStream_ = nullptr;
  uint8_t *memory_ = nullptr;
  /// The state of a layer as f32, between a copy and a rounding.
  uint8_t *staging_ = nullptr;
  uint64_t stride_ = 0, bytes_ = 0;
  std::vector<Rounding> roundings_;
  std::unique_ptr<StateRounder> rounder_;
  std::shared_ptr<StreamEvent> launched_;
  /// Copies may be under way that no event knows.
  bool isAdrift_ = false;

  mutable std::mutex lock_;
  HostSlots slots_;
  /// What a swap has taken so far; not more than there are host slots.
  std::vector<int32_t> scratch_;
};

} // namespace gdnrt

#endif // GDNRT_HOST_TIER_H
