// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Locks, copies of checkpoints on the host, and what a cache says of itself.
// Slots of both levels are freed while copies are under way: the pool and the
// tier put what follows behind them.

#include "gdnrt/state_cache.h"

#include <algorithm>

using namespace gdnrt;

//===----------------------------------------------------------------------===//
// Locks
//===----------------------------------------------------------------------===//

Result<CacheLock> StateCache::lock(uint64_t id) {
  CacheLock lock;
  if (id == 0)
    return lock;
  auto node = find(id);
  if (!node.isOk())
    return node.status();
  ++now_;
  lockPath(*node);
  lock.node = id;
  PrefixNode &locked = tree_[*node];
  if (locked.hasCheckpoint()) {
    ++locked.slotLocks;
    arrange(*node);
    lock.slot = locked.slot;
    lock.accepted = locked.accepted;
    lock.isOnHost = locked.slot == 0;
  }
  return lock;
}

Status StateCache::unlockSlot(CacheLock &lock) {
  if (!lock.holdsCheckpoint())
    return {};
  auto node = find(lock.node);
  if (!node.isOk())
    return node.status();
  PrefixNode &locked = tree_[*node];
  if ((!lock.isOnHost && locked.slot != lock.slot) || locked.slotLocks == 0)
    return invalid("state_cache: lock: expected one that holds slot ",
                   lock.slot, ", got one that was given back");
  ++now_;
  --locked.slotLocks;
  use(*node);
  lock.slot = 0;
  lock.accepted = 0;
  lock.isOnHost = false;
  return {};
}

Status StateCache::unlock(CacheLock &lock) {
  if (lock.node == 0)
    return {};
  auto node = find(lock.node);
  if (!node.isOk())
    return node.status();
  if (tree_[*node].pathLocks == 0)
    return invalid("state_cache: lock: expected one that holds node ",
                   lock.node, ", got one that was given back");
  if (Status status = unlockSlot(lock); !status.isOk())
    return status;
  ++now_;
  unlockPath(*node);
  lock = CacheLock();
  return {};
}

void StateCache::lockPath(int32_t node) {
  leaves_.remove(node);
  for (; node != kNoNode; node = tree_[node].parent) {
    PrefixNode &locked = tree_[node];
    locked.lastUse = now_;
    if (locked.pathLocks++ == 0 && !locked.isRoot)
      lockedTokens_ += locked.run.length;
  }
}

void StateCache::unlockPath(int32_t node) {
  for (int32_t at = node; at != kNoNode; at = tree_[at].parent) {
    PrefixNode &locked = tree_[at];
    locked.lastUse = now_;
    if (--locked.pathLocks == 0 && !locked.isRoot)
      lockedTokens_ -= locked.run.length;
  }
  settle(node);
}

//===----------------------------------------------------------------------===//
// Copies on the host
//===----------------------------------------------------------------------===//

bool StateCache::pays(int32_t node) const {
  const PrefixNode &kept = tree_[node];
  int32_t at = kept.parent;
  // Not far up: each node has a token or more.
  while (at != kNoNode && !tree_[at].hasCheckpoint() &&
         kept.end() - tree_[at].end() < options_.hostMinTokens)
    at = tree_[at].parent;
  return kept.end() - (at == kNoNode ? 0 : tree_[at].end()) >=
         options_.hostMinTokens;
}

void StateCache::freeHostSlot(int32_t slot) {
  unfreed_.push_back(slot);
  freeUnfreed();
}

void StateCache::freeUnfreed() {
  // Each that a file is written from stays.
  unfreed_.erase(std::remove_if(unfreed_.begin(), unfreed_.end(),
                                [&](int32_t each) {
                                  return options_.tier->free(&each, 1).isOk();
                                }),
                 unfreed_.end());
}

void StateCache::dropCopy(int32_t node) {
  PrefixNode &owner = tree_[node];
  if (!owner.hasCopy)
    return;
  freeHostSlot(owner.hostSlot);
  owner.hostSlot = kNoHostSlot;
  owner.hasCopy = owner.isAhead = false;
  --numCopies_;
  arrange(node);
}

void StateCache::evictFirstCopy() {
  const int32_t node = copies_.first();
  if (tree_[node].slot != 0) {
    dropCopy(node);
    return;
  }
  dropCheckpoint(node);
  settle(node);
}

Result<int32_t> StateCache::takeHostSlot(int32_t node) {
  int32_t slot = kNoHostSlot;
  freeUnfreed();
  for (;;) {
    if (numCopies_ + static_cast<int64_t>(unfreed_.size()) < maxCopies_) {
      auto taken = options_.tier->allocate(1, &slot);
      if (!taken.isOk())
        return taken.status();
      if (*taken)
        return slot;
    }
    // Nothing goes for what is worth less.
    if (copies_.isEmpty())
      return kNoHostSlot;
    const int32_t first = copies_.first();
    if (tree_[first].isAhead ||
        (tree_[first].slot == 0 && checkpoints_.isBefore(node, first)))
      return kNoHostSlot;
    evictFirstCopy();
  }
}

Result<bool> StateCache::copyToHost(int32_t node) {
  if (!options_.tier)
    return false;
  if (tree_[node].hasCopy)
    return true;
  if (!pays(node))
    return false;
  auto taken = takeHostSlot(node);
  if (!taken.isOk())
    return taken.status();
  const int32_t hostSlot = *taken;
  if (hostSlot == kNoHostSlot)
    return false;
  PrefixNode &owner = tree_[node];
  if (Status s =
          options_.tier->store(&owner.slot, &hostSlot, 1, options_.stream);
      !s.isOk()) {
    freeHostSlot(hostSlot);
    return s;
  }
  owner.hostSlot = hostSlot;
  owner.hasCopy = true;
  ++numCopies_;
  ++numStored_;
  arrange(node);
  return true;
}

Result<int64_t> StateCache::copyAhead(int64_t count) {
  if (count < 0)
    return invalid("state_cache: count: expected 0 or more, got ", count);
  if (!options_.tier)
    return invalid("state_cache: copy_ahead: expected a cache with a host "
                   "tier, got one without");
  // What is next is taken out of the order, and put back.
  scratch_.clear();
  int64_t copied = 0;
  Status status;
  while (static_cast<int64_t>(scratch_.size()) < count &&
         !checkpoints_.isEmpty() && status.isOk()) {
    const int32_t node = checkpoints_.first();
    checkpoints_.remove(node);
    scratch_.push_back(node);
    const uint64_t before = numStored_;
    auto isKept = copyToHost(node);
    status = isKept.status();
    copied += static_cast<int64_t>(numStored_ - before);
    tree_[node].isAhead = tree_[node].hasCopy;
    arrange(node);
    checkpoints_.remove(node);
  }
  for (int32_t node : scratch_)
    arrange(node);
  if (!status.isOk())
    return status;
  return copied;
}

Result<int64_t> StateCache::evictHost(int64_t count) {
  if (count < 0)
    return invalid("state_cache: count: expected 0 or more, got ", count);
  int64_t evicted = 0;
  for (; evicted < count && !copies_.isEmpty(); ++evicted)
    evictFirstCopy();
  return evicted;
}

Result<bool> StateCache::fetch(CacheLock &lock) {
  if (!lock.isOnHost)
    return true;
  auto node = find(lock.node);
  if (!node.isOk())
    return node.status();
  if (!tree_[*node].hasCheckpoint() || tree_[*node].slotLocks == 0)
    return invalid("state_cache: lock: expected one that holds node ",
                   lock.node, ", got one that was given back");
  if (tree_[*node].slot == 0) {
    int32_t slot = 0;
    auto taken = takeSlots(1, &slot, /*zero=*/false);
    if (!taken.isOk() || !*taken)
      return taken;
    PrefixNode &owner = tree_[*node];
    if (Status s =
            options_.tier->load(&owner.hostSlot, &slot, 1, options_.stream);
        !s.isOk()) {
      pool_.freeAnyway(&slot, 1, options_.stream);
      return s;
    }
    owner.slot = slot;
    owners_[static_cast<size_t>(slot)] = *node;
    ++numCheckpoints_;
    ++numFetched_;
    --numOnHost_;
    ++now_;
    use(*node);
  }
  lock.slot = tree_[*node].slot;
  lock.accepted = tree_[*node].accepted;
  lock.isOnHost = false;
  return true;
}

//===----------------------------------------------------------------------===//
// What there is
//===----------------------------------------------------------------------===//

Result<CacheNodeInfo> StateCache::node(uint64_t id) const {
  auto found = find(id);
  if (!found.isOk())
    return found.status();
  const PrefixNode &node = tree_[*found];
  CacheNodeInfo info;
  info.tokens = node.end();
  info.slot = node.slot;
  info.accepted = node.accepted;
  info.priority = node.priority;
  info.numChildren = node.numChildren;
  info.numLocks = node.pathLocks;
  info.numSlotLocks = node.slotLocks;
  info.hostSlot = node.hostSlot;
  for (int32_t at = node.parent; at != kNoNode; at = tree_[at].parent)
    if (tree_[at].hasCheckpoint()) {
      info.tokensAbove = tree_[at].end();
      break;
    }
  return info;
}

StateCacheInfo StateCache::describe() const {
  StateCacheInfo info;
  info.numNodes = tree_.numNodes();
  info.numTokens = tree_.numTokens();
  info.lockedTokens = lockedTokens_;
  info.numCheckpoints = numCheckpoints_;
  info.lockedCheckpoints = numCheckpoints_ - checkpoints_.size();
  info.numHostCopies = numCopies_;
  info.numOnHost = numOnHost_;
  info.numStored = numStored_;
  info.numFetched = numFetched_;
  if (options_.tier)
    info.hostBytes =
        static_cast<uint64_t>(numCopies_) * options_.tier->slotBytes();
  info.maxNodes = tree_.maxNodes();
  info.maxTokens = tree_.maxTokens();
  const auto indices =
      static_cast<uint64_t>((options_.tier ? 3 : 2) * tree_.maxNodes()) +
      owners_.size() + unfreed_.capacity() + scratch_.capacity();
  info.bytes = tree_.memoryBytes() + indices * sizeof(int32_t);
  return info;
}
