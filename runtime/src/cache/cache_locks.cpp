// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Locks of a state cache: of the path to a node, whose pages stay, and of its
// checkpoint, in a slot or on the host.

#include "gdnrt/state_cache.h"

using namespace gdnrt;

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
    locked.isAhead = false;
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
