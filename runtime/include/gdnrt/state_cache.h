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

#include "gdnrt/eviction_heap.h"
#include "gdnrt/prefix_tree.h"
#include "gdnrt/state_pool.h"

namespace gdnrt {

struct StateCacheOptions {
  int64_t pageTokens = 1, maxNodes = 0, maxTokens = 0;
  bool hasPages = true;
  SlotKind slotKind = SlotKind::request;
  /// Of the pool's free.
  void *stream = nullptr;
  /// Called for each checkpoint that is evicted, unless it is null.
  void (*evicted)(void *context, uint64_t node, int64_t tokens,
                  int32_t slot) = nullptr;
  void *context = nullptr;
};

struct CacheMatch {
  /// The longest prefix that ends at a checkpoint; node 0 if there is none.
  int64_t tokens = 0;
  uint64_t node = 0;
  int32_t slot = 0, accepted = 0;
  /// The longest prefix.
  int64_t knownTokens = 0;
  uint64_t knownNode = 0;
};

struct CacheLock {
  uint64_t node = 0;
  int32_t slot = 0, accepted = 0;
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

/// Where prefill writes checkpoints; the values are the recommended ones.
struct StateCachePolicy {
  int64_t maxCheckpoints = 4;
  int64_t reserveSlots = 0;
  int64_t minGap = 64;
  int64_t blockTokens = 0;
  bool atEnd = true, atBranches = true;
};
constexpr int64_t kMaxCheckpoints = 64;

/// The part of a prompt that the next call of prefill computes.
struct CachePiece {
  int64_t done = 0, count = 0, taken = 0;
};

struct CacheNodeInfo {
  int64_t tokens = 0, tokensAbove = 0;
  int32_t slot = 0, accepted = 0;
  double priority = 0;
  int64_t numChildren = 0;
  int32_t numLocks = 0, numSlotLocks = 0;
};

struct StateCacheInfo {
  int64_t numNodes = 0, numTokens = 0, lockedTokens = 0;
  int64_t numCheckpoints = 0, lockedCheckpoints = 0;
  int64_t maxNodes = 0, maxTokens = 0;
  uint64_t bytes = 0;
};

class StateCache {
public:
  /// The pool must outlive the cache.
  static Result<std::unique_ptr<StateCache>> make(StatePool &pool,
                                                  const StateCacheOptions &);
  /// Frees the slots of all checkpoints.
  ~StateCache();
  StateCache(const StateCache &) = delete;
  StateCache &operator=(const StateCache &) = delete;

  CacheMatch match(const CacheNamespace &space, const TokenSpan &tokens) const;
  Status pages(uint64_t node, int64_t tokens, int64_t *pages,
               size_t capacity) const;
  Result<CacheLock> lock(uint64_t node);
  Status unlockSlot(CacheLock &lock);
  Status unlock(CacheLock &lock);
  Result<CacheInserted> insert(const CacheNamespace &space,
                               const TokenSpan &tokens, const CacheEntry &entry,
                               int64_t *freePages, size_t capacity);
  /// Returns the number of pages.
  Result<size_t> evictPages(int64_t count, int64_t *pages, size_t capacity);
  /// Returns the number of checkpoints.
  Result<int64_t> evictCheckpoints(int64_t count);
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
  /// Frees the slot of a checkpoint that is not locked.
  void dropCheckpoint(int32_t node);
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
  /// Leaves and checkpoints that are not locked.
  EvictionHeap leaves_, checkpoints_;
  /// The node that has a slot, or kNoNode.
  std::vector<int32_t> owners_;
  uint64_t now_ = 0;
  int64_t numCheckpoints_ = 0, lockedTokens_ = 0;
};

/// Fails with what contradicts itself in a cache.
Status auditCache(const StateCache &cache);

} // namespace gdnrt

#endif // GDNRT_STATE_CACHE_H
