// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A prefix cache whose nodes own slots of a state pool. gdn-c/state_cache.h
// says what the functions promise; docs/design/20261128-state-cache.md why.
//
// Threads. One thread at a time calls what is not const. Const functions may
// run beside each other.
//
// Memory. Nothing is allocated after make, except for errors.

#ifndef GDNRT_STATE_CACHE_H
#define GDNRT_STATE_CACHE_H

#include "gdnrt/checkpoint_policy.h"
#include "gdnrt/eviction_heap.h"
#include "gdnrt/host_tier.h"
#include "gdnrt/prefix_tree.h"
#include "gdnrt/state_pool.h"

namespace gdnrt {

struct StateCacheOptions {
  int64_t pageTokens = 1, maxNodes = 0, maxTokens = 0;
  bool hasPages = true;
  SlotKind slotKind = SlotKind::request;
  /// Of the pool's free, and of the tier's copies.
  void *stream = nullptr;
  /// Where checkpoints go that lose their slots; null: nowhere. It must outlive
  /// the cache, and be of the cache's pool.
  HostTier *tier = nullptr;
  /// The most bytes of host slots; 0: as many as the tier has.
  uint64_t hostBytes = 0;
  /// Only checkpoints go to the host that are so many tokens behind the next
  /// one ahead.
  int64_t hostMinTokens = 64;
  /// Called for each checkpoint that is gone, unless it is null. Slot 0: it was
  /// on the host.
  void (*evicted)(void *context, uint64_t node, int64_t tokens,
                  int32_t slot) = nullptr;
  /// Called for each checkpoint that lost its slot and is on the host now.
  void (*moved)(void *context, uint64_t node, int64_t tokens, int32_t slot,
                int32_t hostSlot) = nullptr;
  void *context = nullptr;
};

struct CacheMatch {
  /// The longest prefix that ends at a checkpoint; node 0 if there is none.
  int64_t tokens = 0;
  uint64_t node = 0;
  int32_t slot = 0, accepted = 0;
  /// The checkpoint has no slot, and has to be fetched.
  bool isOnHost = false;
  /// The longest prefix.
  int64_t knownTokens = 0;
  uint64_t knownNode = 0;
};

struct CacheLock {
  uint64_t node = 0;
  int32_t slot = 0, accepted = 0;
  /// It holds a checkpoint that had no slot when it was locked.
  bool isOnHost = false;
  bool holdsCheckpoint() const { return slot != 0 || isOnHost; }
};

/// What is inserted with tokens.
struct CacheEntry {
  const int64_t *pages = nullptr;
  size_t numPages = 0;
  int32_t slot = 0, accepted = 0;
};

struct CacheInserted {
  uint64_t node = 0;
  int64_t knownTokens = 0;
  bool slotTaken = false, isFull = false;
  size_t numFreePages = 0, numEvictedPages = 0;
  int64_t numEvictedCheckpoints = 0;
};

struct CacheNodeInfo {
  int64_t tokens = 0, tokensAbove = 0;
  int32_t slot = 0, accepted = 0;
  double priority = 0;
  int64_t numChildren = 0;
  int32_t numLocks = 0, numSlotLocks = 0;
  /// kNoHostSlot if there is no copy on the host.
  int32_t hostSlot = kNoHostSlot;
};

struct StateCacheInfo {
  int64_t numNodes = 0, numTokens = 0, lockedTokens = 0;
  int64_t numCheckpoints = 0, lockedCheckpoints = 0;
  /// With a copy on the host, and those of them without a slot.
  int64_t numHostCopies = 0, numOnHost = 0;
  /// Copies to the host and back, since the cache was made.
  uint64_t numStored = 0, numFetched = 0;
  uint64_t hostBytes = 0;
  int64_t maxNodes = 0, maxTokens = 0;
  uint64_t bytes = 0;
};

class StateCache {
public:
  /// The pool must outlive the cache.
  static Result<std::unique_ptr<StateCache>> make(StatePool &pool,
                                                  const StateCacheOptions &);
  /// Frees the slots of all checkpoints, and those on the host; one that a file
  /// is written from is free when that has ended.
  ~StateCache();
  StateCache(const StateCache &) = delete;
  StateCache &operator=(const StateCache &) = delete;

  CacheMatch match(const CacheNamespace &space, const TokenSpan &tokens) const;
  Status pages(uint64_t node, int64_t tokens, int64_t *pages,
               size_t capacity) const;
  Result<CacheLock> lock(uint64_t node);
  /// Brings a checkpoint of the host back into a slot of the pool, and returns
  /// true. The step that uses the slot waits with HostTier::wait. False: no
  /// slot is free, and nothing was done. Does nothing for a lock that has a
  /// slot, or none to fetch.
  Result<bool> fetch(CacheLock &lock);
  Status unlockSlot(CacheLock &lock);
  Status unlock(CacheLock &lock);
  Result<CacheInserted> insert(const CacheNamespace &space,
                               const TokenSpan &tokens, const CacheEntry &entry,
                               int64_t *freePages, size_t capacity);
  /// Returns the number of pages.
  Result<size_t> evictPages(int64_t count, int64_t *pages, size_t capacity);
  /// Returns the number of checkpoints.
  Result<int64_t> evictCheckpoints(int64_t count);
  /// Copies those of the next `count` checkpoints in the order of eviction to
  /// the host that pay and have no copy. Returns the number of copies.
  Result<int64_t> copyAhead(int64_t count);
  /// Evicts `count` copies on the host; returns their number.
  Result<int64_t> evictHost(int64_t count);
  Status drop(uint64_t node);
  Status setPriority(uint64_t node, double priority);
  /// False: there are too few.
  Result<bool> takeSlots(size_t count, int32_t *slots, bool zero);
  /// Returns the number of positions.
  Result<size_t> checkpointsToTake(const CacheNamespace &space,
                                   const TokenSpan &tokens,
                                   const StateCachePolicy &policy,
                                   const CachePiece &piece, int64_t *positions,
                                   size_t capacity) const;
  Result<CacheNodeInfo> node(uint64_t node) const;
  StateCacheInfo describe() const;
  Status checkWrites(const int32_t *slots, size_t count) const;

private:
  friend class CacheAudit;
  StateCache(StatePool &pool, const StateCacheOptions &options);

  Status checkInsert(const TokenSpan &tokens, const CacheEntry &entry,
                     const int64_t *freePages, size_t capacity) const;
  Result<int32_t> find(uint64_t id) const;
  /// Whether so many nodes and tokens fit, after leaves were evicted as far as
  /// their page ids fit in `pages`.
  bool makeRoom(int64_t nodes, int64_t tokens, int64_t *pages, size_t capacity,
                CacheInserted &inserted);
  /// Evicts the first leaf, or as many of its last pages as fit; returns their
  /// number.
  size_t evictLeaf(int64_t *pages, size_t capacity);
  void attach(int32_t node, const CacheEntry &entry);
  /// Puts a node in the orders of checkpoints, as its locks and slots say.
  void arrange(int32_t node);
  /// A checkpoint was used as a start, or found again.
  void use(int32_t node);
  /// Frees the slot of a node. It must have one.
  void freeSlot(int32_t node);
  /// Gives up a checkpoint that is not locked, on both levels.
  void dropCheckpoint(int32_t node);
  void tellEvicted(int32_t node);

  // Host slots: cache_levels.cpp.
  /// Whether a checkpoint should go to the host, had that room.
  bool pays(int32_t node) const;
  /// Gives a node with a slot a copy on the host. False: there is no room, or
  /// it does not pay.
  Result<bool> copyToHost(int32_t node);
  /// Takes a host slot for the checkpoint of a node; kNoHostSlot if there is
  /// none, and none that is worth less.
  Result<int32_t> takeHostSlot(int32_t node);
  /// Evicts the first of the copies on the host.
  void evictFirstCopy();
  /// Gives up the copy of a node, if it has one.
  void dropCopy(int32_t node);
  void freeHostSlot(int32_t slot);
  void freeUnfreed();
  void lockPath(int32_t node);
  void unlockPath(int32_t node);
  /// Puts a node that may be a leaf now in its order, or removes it and nodes
  /// ahead of it that carry nothing.
  void settle(int32_t node);
  size_t reportDuplicates(int32_t node, int64_t known, const int64_t *given,
                          int64_t *freePages) const;

  StatePool &pool_;
  StateCacheOptions options_;
  PrefixTree tree_;
  /// Leaves, checkpoints in slots, and copies on the host, if nobody holds
  /// them.
  EvictionHeap leaves_, checkpoints_, copies_;
  /// The node that has a slot, or kNoNode.
  std::vector<int32_t> owners_;
  uint64_t now_ = 0;
  int64_t numCheckpoints_ = 0, lockedTokens_ = 0;
  /// The host slots that the cache may have, has, and has for checkpoints
  /// without a slot.
  int64_t maxCopies_ = 0, numCopies_ = 0, numOnHost_ = 0;
  uint64_t numStored_ = 0, numFetched_ = 0;
  /// Host slots that could not be freed yet, since a file is written from them.
  std::vector<int32_t> unfreed_;
  /// For copyAhead, as many as there are slots.
  std::vector<int32_t> scratch_;
};

/// Fails with what contradicts itself in a cache.
Status auditCache(const StateCache &cache);

} // namespace gdnrt

#endif // GDNRT_STATE_CACHE_H
