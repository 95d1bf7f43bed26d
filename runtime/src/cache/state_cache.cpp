// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Insertion and eviction. After each change of a node `settle` puts it
// where its locks, children and checkpoint say.

#include "gdnrt/state_cache.h"

#include <algorithm>
#include <limits>

using namespace gdnrt;

Result<std::unique_ptr<StateCache>>
StateCache::make(StatePool &pool, const StateCacheOptions &options) {
  struct Bound {
    const char *name;
    int64_t value, least, most;
  };
  for (const Bound &bound :
       {Bound{"page_tokens", options.pageTokens, 1, 4096},
        Bound{"max_nodes", options.maxNodes, 2, int64_t{1} << 30},
        Bound{"max_tokens", options.maxTokens, 1, int64_t{1} << 36}})
    if (bound.value < bound.least || bound.value > bound.most)
      return invalid("state_cache: ", bound.name, ": expected ", bound.least,
                     " to ", bound.most, ", got ", bound.value);
  if (options.maxTokens / 64 + options.maxNodes >
      std::numeric_limits<int32_t>::max())
    return invalid("state_cache: max_tokens: expected at most 64 * (2^31 - 1 - "
                   "max_nodes), got ",
                   options.maxTokens);
  if (options.slotKind == SlotKind::request && pool.options().foreignRequests)
    return invalid("state_cache: slot_kind: expected track slots, since the "
                   "pool's requests are the caller's, got slots for requests");
  if (!options.tier)
    return std::unique_ptr<StateCache>(new StateCache(pool, options));
  if (&options.tier->pool() != &pool)
    return invalid("state_cache: host_tier: expected one of the cache's pool, "
                   "got one of another pool");
  if (options.hostMinTokens < 0)
    return invalid("state_cache: host_min_tokens: expected 0 or more, got ",
                   options.hostMinTokens);
  if (options.hostBytes > 0 && options.hostBytes < options.tier->slotBytes())
    return invalid("state_cache: host_bytes: expected 0 or the ",
                   options.tier->slotBytes(),
                   " bytes of a host slot or more, got ", options.hostBytes);
  return std::unique_ptr<StateCache>(new StateCache(pool, options));
}

StateCache::StateCache(StatePool &pool, const StateCacheOptions &options)
    : pool_(pool), options_(options),
      tree_(options.pageTokens, options.maxNodes, options.maxTokens,
            options.hasPages),
      leaves_(tree_, HeapKind::leaves, options.maxNodes),
      checkpoints_(tree_, HeapKind::checkpoints, options.maxNodes),
      copies_(tree_, HeapKind::copies, options.tier ? options.maxNodes : 0),
      owners_(static_cast<size_t>(pool.numSlots()), kNoNode) {
  if (!options.tier)
    return;
  maxCopies_ = options.tier->numSlots();
  if (options.hostBytes > 0)
    maxCopies_ = static_cast<int64_t>(
        std::min<uint64_t>(static_cast<uint64_t>(maxCopies_),
                           options.hostBytes / options.tier->slotBytes()));
  unfreed_.reserve(static_cast<size_t>(options.tier->numSlots()));
  scratch_.reserve(owners_.size());
}

StateCache::~StateCache() {
  for (size_t slot = 0; slot < owners_.size(); ++slot)
    if (owners_[slot] != kNoNode) {
      const auto freed = static_cast<int32_t>(slot);
      pool_.freeAnyway(&freed, 1, options_.stream);
    }
  for (int32_t node = 0; node < tree_.maxNodes() && numCopies_ > 0; ++node)
    if (tree_[node].isUsed)
      dropCopy(node);
  for (int32_t slot : unfreed_)
    options_.tier->leave(slot);
}

Result<int32_t> StateCache::find(uint64_t id) const {
  const int32_t node = tree_.find(id);
  if (node == kNoNode)
    return invalid("state_cache: node: expected a node of the cache, got ", id,
                   id == 0 ? "" : ", which was evicted or never was one");
  return node;
}

CacheMatch StateCache::match(const CacheNamespace &space,
                             const TokenSpan &tokens) const {
  CacheMatch found;
  int32_t best = kNoNode;
  Descent known = tree_.descend(space, tokens, tokens.size, [&](int32_t node) {
    if (tree_[node].hasCheckpoint())
      best = node;
  });
  if (best != kNoNode) {
    const PrefixNode &node = tree_[best];
    found.tokens = node.end();
    found.node = tree_.idOf(best);
    found.slot = node.slot;
    found.accepted = node.accepted;
    found.isOnHost = node.slot == 0;
  }
  found.knownTokens = known.tokens;
  if (known.tokens > 0)
    found.knownNode = tree_.idOf(known.node);
  return found;
}

Status StateCache::pages(uint64_t id, int64_t tokens, int64_t *pages,
                         size_t capacity) const {
  if (!options_.hasPages)
    return invalid("state_cache: pages: expected a cache with pages, got one "
                   "without");
  auto node = find(id);
  if (!node.isOk())
    return node.status();
  const int64_t end = tree_[*node].end();
  if (tokens < 0 || tokens > end || tokens % options_.pageTokens != 0)
    return invalid("state_cache: num_tokens: expected a multiple of ",
                   options_.pageTokens, " from 0 to the node's ", end, ", got ",
                   tokens);
  if (static_cast<size_t>(tokens / options_.pageTokens) > capacity)
    return invalid("state_cache: capacity: expected ",
                   tokens / options_.pageTokens, " or more, got ", capacity);
  tree_.readPages(*node, tokens, pages);
  return {};
}

void StateCache::settle(int32_t node) {
  while (node != kNoNode) {
    const PrefixNode &settled = tree_[node];
    if (settled.numChildren > 0 || settled.pathLocks > 0)
      return;
    if (!settled.isRoot && (options_.hasPages || settled.hasCheckpoint())) {
      leaves_.put(node);
      return;
    }
    leaves_.remove(node);
    node = tree_.remove(node);
  }
}

Status StateCache::checkInsert(const TokenSpan &tokens, const CacheEntry &entry,
                               const int64_t *freePages,
                               size_t capacity) const {
  const auto pages =
      options_.hasPages ? static_cast<size_t>(tokens.size / options_.pageTokens)
                        : 0;
  if (entry.numPages != pages)
    return invalid("state_cache: num_pages: expected ", pages, " for ",
                   tokens.size, " tokens, got ", entry.numPages);
  if (pages > 0 && !entry.pages)
    return invalid("state_cache: pages: expected a pointer, got null");
  if (capacity < pages || (pages > 0 && !freePages))
    return invalid("state_cache: free_pages: expected room for ", pages,
                   ", got ", freePages ? capacity : 0);
  if (entry.slot == 0) {
    if (!options_.hasPages)
      return invalid("state_cache: slot: expected a slot, since the cache has "
                     "no pages, got 0");
    return {};
  }
  if (tokens.size == 0 || tokens.size % options_.pageTokens != 0)
    return invalid("state_cache: count: expected a positive multiple of ",
                   options_.pageTokens, " tokens with a slot, got ",
                   tokens.size);
  const int64_t requests = pool_.shape().numRequests;
  const bool isRequest = entry.slot <= requests;
  if (!pool_.isInUse(entry.slot) ||
      isRequest != (options_.slotKind == SlotKind::request))
    return invalid("state_cache: slot: expected a ",
                   isRequest == (options_.slotKind == SlotKind::request)
                       ? "slot in use"
                   : isRequest ? "track slot"
                               : "slot for requests",
                   ", got ", entry.slot);
  if (const int32_t owner = owners_[static_cast<size_t>(entry.slot)];
      owner != kNoNode)
    return invalid("state_cache: slot: expected one of the caller's, got ",
                   entry.slot, ", the checkpoint of ", tree_[owner].end(),
                   " tokens");
  return {};
}

Result<CacheInserted> StateCache::insert(const CacheNamespace &space,
                                         const TokenSpan &tokens,
                                         const CacheEntry &entry,
                                         int64_t *freePages, size_t capacity) {
  if (Status s = checkInsert(tokens, entry, freePages, capacity); !s.isOk())
    return s;
  CacheInserted inserted;
  const int64_t page = options_.pageTokens;
  const int64_t count = tokens.size / page * page;
  if (count == 0)
    return inserted;
  Descent known = tree_.descend(space, tokens, count, [](int32_t) {});
  const int64_t fresh = count - known.tokens;
  for (int64_t i = known.tokens; tokens.isWide && i < count; ++i)
    if (tokens[i] != static_cast<int32_t>(tokens[i]))
      return invalid("state_cache: tokens: expected ids of 32 bits, got ",
                     tokens[i], " at ", i);

  const bool cuts = known.node != known.root &&
                    known.inNode < tree_[known.node].run.length &&
                    (fresh > 0 || entry.slot != 0);
  const int64_t nodes = (known.root == kNoNode) + cuts + (fresh > 0);
  const auto knownPages =
      static_cast<size_t>(options_.hasPages ? known.tokens / page : 0);
  ++now_;
  if (known.node != kNoNode)
    lockPath(known.node);
  inserted.isFull =
      !makeRoom(nodes, fresh, freePages, capacity - knownPages, inserted);
  inserted.numFreePages = inserted.numEvictedPages;
  if (inserted.isFull) {
    if (known.node != kNoNode)
      unlockPath(known.node);
    return inserted;
  }

  int32_t node = known.root == kNoNode ? tree_.addRoot(space) : known.node;
  if (cuts) {
    node = tree_.split(node, known.inNode);
    tree_[node].pathLocks = tree_[known.node].pathLocks;
    tree_[node].lastUse = now_;
  }
  if (fresh > 0) {
    node = tree_.addChild(node, tokens, known.tokens, fresh,
                          entry.pages + known.tokens / page *
                                            (options_.hasPages ? 1 : 0));
    tree_[node].lastUse = now_;
  }
  if (entry.slot != 0 && tree_[node].slot == 0) {
    attach(node, entry);
    inserted.slotTaken = true;
  } else if (entry.slot != 0) {
    use(node);
  }
  settle(node);
  if (known.node != kNoNode)
    unlockPath(known.node);
  inserted.node = tree_.idOf(node);
  inserted.knownTokens = known.tokens;
  if (options_.hasPages)
    inserted.numFreePages += reportDuplicates(
        node, known.tokens, entry.pages, freePages + inserted.numEvictedPages);
  return inserted;
}

bool StateCache::makeRoom(int64_t nodes, int64_t tokens, int64_t *pages,
                          size_t capacity, CacheInserted &inserted) {
  auto lacksNodes = [&] { return tree_.numNodes() + nodes > tree_.maxNodes(); };
  auto lacksTokens = [&] {
    return tree_.numTokens() + tokens > tree_.maxTokens();
  };
  // Nothing is evicted for what can never fit.
  if (lockedTokens_ + tokens > tree_.maxTokens())
    return false;
  const int64_t before = numCheckpoints_;
  while ((lacksNodes() || lacksTokens()) && !leaves_.isEmpty()) {
    if (!options_.hasPages) {
      evictLeaf(nullptr, 0);
      continue;
    }
    const size_t left = capacity - inserted.numEvictedPages;
    if (left == 0)
      break;
    inserted.numEvictedPages +=
        evictLeaf(pages + inserted.numEvictedPages, left);
  }
  inserted.numEvictedCheckpoints = before - numCheckpoints_;
  return !lacksNodes() && !lacksTokens();
}

size_t StateCache::evictLeaf(int64_t *pages, size_t capacity) {
  const int32_t node = leaves_.first();
  const int64_t page = options_.pageTokens;
  if (tree_[node].hasCheckpoint())
    dropCheckpoint(node);
  const PrefixNode &leaf = tree_[node];
  const int64_t all = leaf.run.length / page;
  const int64_t some = options_.hasPages && capacity < static_cast<size_t>(all)
                           ? static_cast<int64_t>(capacity)
                           : all;
  if (options_.hasPages)
    tree_.blocks().readPages(leaf.run, all - some, some, pages);
  if (some < all) {
    tree_.trim(node, leaf.run.length - some * page);
    leaves_.put(node);
  } else {
    leaves_.remove(node);
    settle(tree_.remove(node));
  }
  return static_cast<size_t>(some);
}

void StateCache::attach(int32_t node, const CacheEntry &entry) {
  PrefixNode &owner = tree_[node];
  if (owner.hasCopy) {
    --numOnHost_;
    // The copy may have fewer bits, or wait for another commit.
    if (owner.accepted != entry.accepted || options_.tier->record().isNarrowed)
      dropCopy(node);
  } else {
    owner.priority = 0;
  }
  owner.slot = entry.slot;
  owner.accepted = entry.accepted;
  owners_[static_cast<size_t>(entry.slot)] = node;
  ++numCheckpoints_;
  use(node);
}

void StateCache::use(int32_t node) {
  tree_[node].slotUse = now_;
  tree_[node].isAhead = false;
  arrange(node);
}

void StateCache::arrange(int32_t node) {
  const PrefixNode &moved = tree_[node];
  if (moved.slot != 0 && moved.slotLocks == 0)
    checkpoints_.put(node);
  else
    checkpoints_.remove(node);
  if (moved.hasCopy && (moved.slotLocks == 0 || moved.slot != 0))
    copies_.put(node);
  else
    copies_.remove(node);
}

void StateCache::tellEvicted(int32_t node) {
  if (options_.evicted)
    options_.evicted(options_.context, tree_.idOf(node), tree_[node].end(),
                     tree_[node].slot);
}

void StateCache::freeSlot(int32_t node) {
  PrefixNode &owner = tree_[node];
  owners_[static_cast<size_t>(owner.slot)] = kNoNode;
  pool_.freeAnyway(&owner.slot, 1, options_.stream);
  owner.slot = 0;
  owner.isAhead = false;
  --numCheckpoints_;
  arrange(node);
}

void StateCache::dropCheckpoint(int32_t node) {
  tellEvicted(node);
  if (tree_[node].slot != 0)
    freeSlot(node);
  else
    --numOnHost_;
  dropCopy(node);
  tree_[node].accepted = 0;
}

size_t StateCache::reportDuplicates(int32_t node, int64_t known,
                                    const int64_t *given,
                                    int64_t *freePages) const {
  const auto count = static_cast<size_t>(known / options_.pageTokens);
  tree_.readPages(node, known, freePages);
  size_t found = 0;
  for (size_t i = 0; i < count; ++i)
    if (freePages[i] != given[i])
      freePages[found++] = given[i];
  return found;
}

Result<size_t> StateCache::evictPages(int64_t count, int64_t *pages,
                                      size_t capacity) {
  if (count < 0 ||
      (options_.hasPages && static_cast<uint64_t>(count) > capacity))
    return invalid("state_cache: count: expected 0 to the capacity of pages, ",
                   capacity, ", got ", count);
  if (options_.hasPages && !pages && count > 0)
    return invalid("state_cache: pages: expected a pointer, got null");
  size_t evicted = 0;
  while (evicted < static_cast<size_t>(count) && !leaves_.isEmpty())
    evicted += options_.hasPages
                   ? evictLeaf(pages + evicted, capacity - evicted)
                   : evictLeaf(nullptr, 0);
  return evicted;
}

Result<int64_t> StateCache::evictCheckpoints(int64_t count) {
  if (count < 0)
    return invalid("state_cache: count: expected 0 or more, got ", count);
  int64_t evicted = 0;
  for (; evicted < count && !checkpoints_.isEmpty(); ++evicted) {
    const int32_t node = checkpoints_.first();
    auto isKept = copyToHost(node);
    if (!isKept.isOk())
      return isKept.status();
    if (!*isKept) {
      dropCheckpoint(node);
      settle(node);
      continue;
    }
    const PrefixNode &moved = tree_[node];
    if (options_.moved)
      options_.moved(options_.context, tree_.idOf(node), moved.end(),
                     moved.slot, moved.hostSlot);
    freeSlot(node);
    ++numOnHost_;
  }
  return evicted;
}

Status StateCache::drop(uint64_t id) {
  auto node = find(id);
  if (!node.isOk())
    return node.status();
  const PrefixNode &owner = tree_[*node];
  if (!owner.hasCheckpoint() || owner.slotLocks > 0)
    return invalid(
        "state_cache: node: expected one with a checkpoint that is "
        "not locked, got node ",
        id, owner.hasCheckpoint() ? " with a locked one" : " without one");
  dropCheckpoint(*node);
  settle(*node);
  return {};
}

Status StateCache::setPriority(uint64_t id, double priority) {
  auto node = find(id);
  if (!node.isOk())
    return node.status();
  if (!(priority - priority == 0))
    return invalid("state_cache: priority: expected a finite number, got an "
                   "infinity or NaN");
  PrefixNode &owner = tree_[*node];
  if (!owner.hasCheckpoint())
    return invalid("state_cache: node: expected one with a checkpoint, got "
                   "node ",
                   id, " without one");
  owner.priority = priority;
  arrange(*node);
  if (owner.leafIndex >= 0)
    leaves_.put(*node);
  return {};
}

Result<bool> StateCache::takeSlots(size_t count, int32_t *slots, bool zero) {
  const auto free = static_cast<uint64_t>(pool_.numFree(options_.slotKind));
  if (count > free) {
    if (count - free > static_cast<uint64_t>(checkpoints_.size()))
      return false;
    if (auto evicted = evictCheckpoints(static_cast<int64_t>(count - free));
        !evicted.isOk())
      return evicted.status();
  }
  return pool_.allocate(options_.slotKind, count, slots, zero, options_.stream);
}

Status StateCache::checkWrites(const int32_t *slots, size_t count) const {
  for (size_t i = 0; i < count; ++i)
    if (slots[i] > 0 && static_cast<size_t>(slots[i]) < owners_.size() &&
        owners_[static_cast<size_t>(slots[i])] != kNoNode)
      return invalid("state_cache: write_slots: expected slots of sequences, "
                     "got ",
                     slots[i], " at ", i, ", the checkpoint of ",
                     tree_[owners_[static_cast<size_t>(slots[i])]].end(),
                     " tokens");
  return {};
}

Result<size_t> StateCache::checkpointsToTake(const CacheNamespace &space,
                                             const TokenSpan &tokens,
                                             const StateCachePolicy &policy,
                                             const CachePiece &piece,
                                             int64_t *positions,
                                             size_t capacity) const {
  return chooseCheckpoints(tree_, space, tokens, policy, piece,
                           pool_.numFree(options_.slotKind) +
                               checkpoints_.size(),
                           positions, capacity);
}
