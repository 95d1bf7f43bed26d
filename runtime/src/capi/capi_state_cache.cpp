// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of state caches.

#include "serving_handles.h"

#include "gdn-c/state_cache.h"
#include "gdnrt/state_cache.h"

using namespace gdnrt;

struct gdnrt_state_cache {
  /// These end after the cache, which frees its slots in them.
  std::shared_ptr<StatePool> pool;
  std::shared_ptr<HostTier> tier;
  std::unique_ptr<StateCache> cache;
};

/// What a caller gave as tokens.
static Status readTokens(const gdnrt_cache_tokens *given, CacheNamespace &space,
                         TokenSpan &tokens) {
  gdnrt_cache_tokens known;
  if (Status s = readStruct("tokens", given, known); !s.isOk())
    return s;
  if (known.token_bytes != 4 && known.token_bytes != 8)
    return invalid("state_cache: token_bytes: expected 4 or 8, got ",
                   known.token_bytes);
  if (!known.tokens && known.count > 0)
    return nullPointer("tokens");
  if (known.count > size_t{1} << 40)
    return invalid("state_cache: count: expected at most 2^40, got ",
                   known.count);
  if (known.salt_bytes > kMaxSaltBytes)
    return invalid("state_cache: salt_bytes: expected 0 to ", kMaxSaltBytes,
                   ", got ", known.salt_bytes);
  if (!known.salt && known.salt_bytes > 0)
    return nullPointer("salt");
  space = {known.adapter, known.salt, known.salt_bytes};
  tokens = {known.tokens, static_cast<int64_t>(known.count),
            known.token_bytes == 8};
  return {};
}

static CacheLock fromLock(const gdnrt_cache_lock &lock) {
  return {lock.node, lock.slot, lock.num_accepted, lock.on_host != 0};
}
static void toLock(const CacheLock &lock, gdnrt_cache_lock *filled) {
  gdnrt_cache_lock made = gdnrt_cache_lock_default();
  made.node = lock.node;
  made.slot = lock.slot;
  made.num_accepted = lock.accepted;
  made.on_host = lock.isOnHost;
  writeStruct(made, filled);
}

gdnrt_status gdnrt_state_cache_create(gdnrt_state_pool *pool,
                                      const gdnrt_state_cache_options *options,
                                      gdnrt_state_cache **cache,
                                      gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!pool)
      return nullPointer("pool");
    if (!cache)
      return nullPointer("cache");
    gdnrt_state_cache_options known;
    if (Status s = readStruct("options", options, known); !s.isOk())
      return s;
    if (known.slot_kind != GDNRT_SLOT_REQUEST &&
        known.slot_kind != GDNRT_SLOT_TRACK)
      return invalid("state_cache: slot_kind: expected 0 (request) or 1 "
                     "(track), got ",
                     known.slot_kind);
    StateCacheOptions made;
    made.pageTokens = known.page_tokens;
    made.maxNodes = known.max_nodes;
    made.maxTokens = known.max_tokens;
    made.hasPages = known.has_pages != 0;
    made.slotKind = known.slot_kind == GDNRT_SLOT_TRACK ? SlotKind::track
                                                        : SlotKind::request;
    made.stream = known.stream;
    made.evicted = known.evicted;
    made.moved = known.moved;
    made.context = known.context;
    std::shared_ptr<HostTier> tier;
    if (known.host_tier) {
      tier = known.host_tier->tier;
      made.tier = tier.get();
      made.hostBytes = known.host_bytes;
      made.hostMinTokens = known.host_min_tokens;
    }
    auto created = StateCache::make(*pool->pool, made);
    if (created.isOk())
      *cache = new gdnrt_state_cache{pool->pool, std::move(tier),
                                     std::move(*created)};
    return created.status();
  });
}

void gdnrt_state_cache_destroy(gdnrt_state_cache *cache) { delete cache; }

gdnrt_status gdnrt_state_cache_match(const gdnrt_state_cache *cache,
                                     const gdnrt_cache_tokens *tokens,
                                     gdnrt_cache_match *match,
                                     gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!cache)
      return nullPointer("cache");
    if (Status s = checkStruct("match", match); !s.isOk())
      return s;
    CacheNamespace space;
    TokenSpan span;
    if (Status s = readTokens(tokens, space, span); !s.isOk())
      return s;
    const CacheMatch found = cache->cache->match(space, span);
    gdnrt_cache_match filled = gdnrt_cache_match_default();
    filled.tokens = found.tokens;
    filled.node = found.node;
    filled.slot = found.slot;
    filled.num_accepted = found.accepted;
    filled.on_host = found.isOnHost;
    filled.known_tokens = found.knownTokens;
    filled.known_node = found.knownNode;
    writeStruct(filled, match);
    return {};
  });
}

gdnrt_status gdnrt_state_cache_pages(const gdnrt_state_cache *cache,
                                     uint64_t node, int64_t num_tokens,
                                     int64_t *pages, size_t capacity,
                                     gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!cache)
      return nullPointer("cache");
    if (!pages && num_tokens > 0)
      return nullPointer("pages");
    return cache->cache->pages(node, num_tokens, pages, capacity);
  });
}

gdnrt_status gdnrt_state_cache_lock(gdnrt_state_cache *cache, uint64_t node,
                                    gdnrt_cache_lock *lock,
                                    gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!cache)
      return nullPointer("cache");
    if (Status s = checkStruct("lock", lock); !s.isOk())
      return s;
    auto locked = cache->cache->lock(node);
    if (locked.isOk())
      toLock(*locked, lock);
    return locked.status();
  });
}

/// Gives up a part of a lock, or all of it.
static gdnrt_status giveUp(gdnrt_state_cache *cache, gdnrt_cache_lock *lock,
                           Status (StateCache::*give)(CacheLock &),
                           gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!cache)
      return nullPointer("cache");
    gdnrt_cache_lock known;
    if (Status s = readStruct("lock", lock, known); !s.isOk())
      return s;
    CacheLock held = fromLock(known);
    Status status = ((*cache->cache).*give)(held);
    if (status.isOk())
      toLock(held, lock);
    return status;
  });
}

gdnrt_status gdnrt_state_cache_unlock_slot(gdnrt_state_cache *cache,
                                           gdnrt_cache_lock *lock,
                                           gdnrt_error *error) {
  return giveUp(cache, lock, &StateCache::unlockSlot, error);
}

gdnrt_status gdnrt_state_cache_unlock(gdnrt_state_cache *cache,
                                      gdnrt_cache_lock *lock,
                                      gdnrt_error *error) {
  return giveUp(cache, lock, &StateCache::unlock, error);
}

gdnrt_status gdnrt_state_cache_fetch(gdnrt_state_cache *cache,
                                     gdnrt_cache_lock *lock, int32_t *fetched,
                                     gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!cache)
      return nullPointer("cache");
    if (!fetched)
      return nullPointer("fetched");
    gdnrt_cache_lock known;
    if (Status s = readStruct("lock", lock, known); !s.isOk())
      return s;
    CacheLock held = fromLock(known);
    auto done = cache->cache->fetch(held);
    if (!done.isOk())
      return done.status();
    *fetched = *done;
    toLock(held, lock);
    return {};
  });
}

gdnrt_status gdnrt_state_cache_insert(gdnrt_state_cache *cache,
                                      const gdnrt_cache_tokens *tokens,
                                      const gdnrt_cache_entry *entry,
                                      int64_t *free_pages, size_t capacity,
                                      gdnrt_cache_inserted *inserted,
                                      gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!cache)
      return nullPointer("cache");
    if (Status s = checkStruct("inserted", inserted); !s.isOk())
      return s;
    gdnrt_cache_entry known;
    if (Status s = readStruct("entry", entry, known); !s.isOk())
      return s;
    CacheNamespace space;
    TokenSpan span;
    if (Status s = readTokens(tokens, space, span); !s.isOk())
      return s;
    const CacheEntry made{known.pages, known.num_pages, known.slot,
                          known.num_accepted};
    auto done = cache->cache->insert(space, span, made, free_pages, capacity);
    if (!done.isOk())
      return done.status();
    gdnrt_cache_inserted filled = gdnrt_cache_inserted_default();
    filled.node = done->node;
    filled.known_tokens = done->knownTokens;
    filled.slot_taken = done->slotTaken;
    filled.is_full = done->isFull;
    filled.num_free_pages = done->numFreePages;
    filled.num_evicted_pages = done->numEvictedPages;
    filled.num_evicted_checkpoints = done->numEvictedCheckpoints;
    writeStruct(filled, inserted);
    return {};
  });
}

gdnrt_status gdnrt_state_cache_evict_pages(gdnrt_state_cache *cache,
                                           int64_t count, int64_t *pages,
                                           size_t capacity, size_t *num_pages,
                                           gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!cache)
      return nullPointer("cache");
    if (!num_pages)
      return nullPointer("num_pages");
    auto evicted = cache->cache->evictPages(count, pages, capacity);
    if (evicted.isOk())
      *num_pages = *evicted;
    return evicted.status();
  });
}

/// Calls a function of a cache that takes a count and returns one.
static gdnrt_status countWith(gdnrt_state_cache *cache, int64_t count,
                              const char *name, int64_t *result,
                              Result<int64_t> (StateCache::*function)(int64_t),
                              gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!cache)
      return nullPointer("cache");
    if (!result)
      return nullPointer(name);
    auto found = ((*cache->cache).*function)(count);
    if (found.isOk())
      *result = *found;
    return found.status();
  });
}

gdnrt_status gdnrt_state_cache_evict_checkpoints(gdnrt_state_cache *cache,
                                                 int64_t count,
                                                 int64_t *evicted,
                                                 gdnrt_error *error) {
  return countWith(cache, count, "evicted", evicted,
                   &StateCache::evictCheckpoints, error);
}

gdnrt_status gdnrt_state_cache_copy_ahead(gdnrt_state_cache *cache,
                                          int64_t count, int64_t *copied,
                                          gdnrt_error *error) {
  return countWith(cache, count, "copied", copied, &StateCache::copyAhead,
                   error);
}

gdnrt_status gdnrt_state_cache_evict_host(gdnrt_state_cache *cache,
                                          int64_t count, int64_t *evicted,
                                          gdnrt_error *error) {
  return countWith(cache, count, "evicted", evicted, &StateCache::evictHost,
                   error);
}

gdnrt_status gdnrt_state_cache_drop(gdnrt_state_cache *cache, uint64_t node,
                                    gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    return cache ? cache->cache->drop(node) : nullPointer("cache");
  });
}

gdnrt_status gdnrt_state_cache_set_priority(gdnrt_state_cache *cache,
                                            uint64_t node, double priority,
                                            gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    return cache ? cache->cache->setPriority(node, priority)
                 : nullPointer("cache");
  });
}

gdnrt_status gdnrt_state_cache_take_slots(gdnrt_state_cache *cache,
                                          size_t count, int32_t zero,
                                          int32_t *slots, int32_t *taken,
                                          gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!cache)
      return nullPointer("cache");
    if (!slots && count > 0)
      return nullPointer("slots");
    if (!taken)
      return nullPointer("taken");
    auto got = cache->cache->takeSlots(count, slots, zero != 0);
    if (got.isOk())
      *taken = *got ? 1 : 0;
    return got.status();
  });
}

gdnrt_status
gdnrt_state_cache_policy_recommended(gdnrt_state_cache_policy *policy,
                                     gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (Status s = checkStruct("policy", policy); !s.isOk())
      return s;
    const StateCachePolicy recommended;
    gdnrt_state_cache_policy filled = gdnrt_state_cache_policy_default();
    filled.max_checkpoints = recommended.maxCheckpoints;
    filled.reserve_slots = recommended.reserveSlots;
    filled.min_gap = recommended.minGap;
    filled.block_tokens = recommended.blockTokens;
    filled.at_end = recommended.atEnd;
    filled.at_branches = recommended.atBranches;
    writeStruct(filled, policy);
    return {};
  });
}

gdnrt_status gdnrt_state_cache_checkpoints_to_take(
    const gdnrt_state_cache *cache, const gdnrt_cache_tokens *tokens,
    const gdnrt_state_cache_policy *policy, const gdnrt_cache_piece *piece,
    int64_t *positions, size_t capacity, size_t *num_positions,
    gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!cache)
      return nullPointer("cache");
    if (!positions && capacity > 0)
      return nullPointer("positions");
    if (!num_positions)
      return nullPointer("num_positions");
    CacheNamespace space;
    TokenSpan span;
    if (Status s = readTokens(tokens, space, span); !s.isOk())
      return s;
    gdnrt_state_cache_policy given;
    if (Status s = readStruct("policy", policy, given); !s.isOk())
      return s;
    gdnrt_cache_piece part;
    if (Status s = readStruct("piece", piece, part); !s.isOk())
      return s;
    StateCachePolicy made;
    made.maxCheckpoints = given.max_checkpoints;
    made.reserveSlots = given.reserve_slots;
    made.minGap = given.min_gap;
    made.blockTokens = given.block_tokens;
    made.atEnd = given.at_end != 0;
    made.atBranches = given.at_branches != 0;
    auto count = cache->cache->checkpointsToTake(
        space, span, made, {part.done, part.count, part.taken}, positions,
        capacity);
    if (count.isOk())
      *num_positions = *count;
    return count.status();
  });
}

gdnrt_status gdnrt_state_cache_node(const gdnrt_state_cache *cache,
                                    uint64_t node, gdnrt_cache_node_info *info,
                                    gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!cache)
      return nullPointer("cache");
    if (Status s = checkStruct("info", info); !s.isOk())
      return s;
    auto found = cache->cache->node(node);
    if (!found.isOk())
      return found.status();
    gdnrt_cache_node_info filled = gdnrt_cache_node_info_default();
    filled.tokens = found->tokens;
    filled.tokens_above = found->tokensAbove;
    filled.slot = found->slot;
    filled.num_accepted = found->accepted;
    filled.priority = found->priority;
    filled.num_children = found->numChildren;
    filled.num_locks = found->numLocks;
    filled.num_slot_locks = found->numSlotLocks;
    filled.host_slot = found->hostSlot;
    writeStruct(filled, info);
    return {};
  });
}

gdnrt_status gdnrt_state_cache_describe(const gdnrt_state_cache *cache,
                                        gdnrt_state_cache_info *info,
                                        gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!cache)
      return nullPointer("cache");
    if (Status s = checkStruct("info", info); !s.isOk())
      return s;
    const StateCacheInfo found = cache->cache->describe();
    gdnrt_state_cache_info filled = gdnrt_state_cache_info_default();
    filled.num_nodes = found.numNodes;
    filled.num_tokens = found.numTokens;
    filled.locked_tokens = found.lockedTokens;
    filled.num_checkpoints = found.numCheckpoints;
    filled.locked_checkpoints = found.lockedCheckpoints;
    filled.max_nodes = found.maxNodes;
    filled.max_tokens = found.maxTokens;
    filled.bytes = found.bytes;
    filled.num_host_copies = found.numHostCopies;
    filled.num_on_host = found.numOnHost;
    filled.num_stored = found.numStored;
    filled.num_fetched = found.numFetched;
    filled.host_bytes = found.hostBytes;
    writeStruct(filled, info);
    return {};
  });
}

gdnrt_status gdnrt_state_cache_check_writes(const gdnrt_state_cache *cache,
                                            const int32_t *write_slots,
                                            size_t count, gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    if (!cache)
      return nullPointer("cache");
    if (!write_slots && count > 0)
      return nullPointer("write_slots");
    return cache->cache->checkWrites(write_slots, count);
  });
}

gdnrt_status gdnrt_state_cache_audit(const gdnrt_state_cache *cache,
                                     gdnrt_error *error) {
  return guarded(error, [&]() -> Status {
    return cache ? auditCache(*cache->cache) : nullPointer("cache");
  });
}
