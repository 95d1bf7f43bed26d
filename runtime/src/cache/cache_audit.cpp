// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What must hold of a cache between calls, computed again from nothing: the
// tree, owners of blocks, locks, both heaps, slots and counts.

#include "gdnrt/state_cache.h"

#include <algorithm>

namespace gdnrt {

class CacheAudit {
public:
  explicit CacheAudit(const StateCache &cache)
      : cache_(cache), tree_(cache.tree_) {}

  Status run() {
    for (Status (CacheAudit::*check)() :
         {&CacheAudit::checkNodes, &CacheAudit::checkBlocks,
          &CacheAudit::checkSlots, &CacheAudit::checkHeaps,
          &CacheAudit::checkCounts})
      if (Status status = (this->*check)(); !status.isOk())
        return status;
    return {};
  }

private:
  template <typename... Pieces> Status wrong(const Pieces &...pieces) const {
    return failure(StatusCode::internal, "state_cache: ", pieces...);
  }
  template <typename Visit> Status forEachNode(Visit &&visit) const {
    for (int32_t node = 0; node < tree_.maxNodes(); ++node)
      if (tree_[node].isUsed)
        if (Status status = visit(node, tree_[node]); !status.isOk())
          return status;
    return {};
  }

  Status checkNodes() {
    const auto all = static_cast<size_t>(tree_.maxNodes());
    std::vector<int32_t> children(all), locks(all);
    Status status = forEachNode([&](int32_t id, const PrefixNode &node) {
      if (node.isRoot)
        return node.parent == kNoNode ? Status()
                                      : wrong("root ", id, " has a parent");
      if (node.parent < 0 || !tree_[node.parent].isUsed)
        return wrong("node ", id, " has no parent");
      ++children[static_cast<size_t>(node.parent)];
      locks[static_cast<size_t>(node.parent)] += node.pathLocks;
      if (node.start != tree_[node.parent].end())
        return wrong("node ", id, " begins at ", node.start, ", its parent ",
                     node.parent, " ends at ", tree_[node.parent].end());
      if (node.run.length <= 0 || node.run.length % tree_.pageTokens() != 0)
        return wrong("node ", id, " has ", node.run.length, " tokens");
      return Status();
    });
    if (!status.isOk())
      return status;
    return forEachNode([&](int32_t id, const PrefixNode &node) {
      const int32_t behind = locks[static_cast<size_t>(id)];
      if (node.numChildren != children[static_cast<size_t>(id)])
        return wrong("node ", id, " has ", children[static_cast<size_t>(id)],
                     " children and counts ", node.numChildren);
      if (node.pathLocks < behind || node.slotLocks < 0 ||
          node.slotLocks > node.pathLocks - behind)
        return wrong("node ", id, " has ", node.pathLocks, " locks, ", behind,
                     " of them behind it, and ", node.slotLocks,
                     " of its checkpoint");
      const bool carries = cache_.options_.hasPages && !node.isRoot;
      if (node.numChildren == 0 && node.pathLocks == 0 &&
          !node.hasCheckpoint() && !carries)
        return wrong("node ", id, " carries nothing");
      return checkPath(id);
    });
  }

  /// Every node is found by its tokens, and only it.
  Status checkPath(int32_t id) {
    const PrefixNode &node = tree_[id];
    if (node.isRoot)
      return {};
    const TokenSpan span{tree_.blocks().tokens(node.run), tree_.pageTokens(),
                         /*isWide=*/false};
    const int32_t found = tree_.findChild(node.parent, span, 0);
    return found == id ? Status() : wrong("node ", id, " is found as ", found);
  }

  Status checkBlocks() {
    std::vector<int32_t> owners(
        static_cast<size_t>(tree_.blocks().numBlocks()));
    (void)forEachNode([&](int32_t, const PrefixNode &node) {
      tree_.blocks().forEachBlock(node.run, [&](int32_t block) {
        ++owners[static_cast<size_t>(block)];
      });
      return Status();
    });
    int64_t free = 0;
    for (size_t block = 0; block < owners.size(); ++block) {
      const int32_t counted =
          tree_.blocks().numOwners(static_cast<int32_t>(block));
      free += owners[block] == 0;
      if (counted != owners[block])
        return wrong("block ", block, " is in ", owners[block],
                     " nodes and counts ", counted);
    }
    if (free != tree_.blocks().numFree())
      return wrong(free, " blocks are free, and ", tree_.blocks().numFree(),
                   " are counted");
    return {};
  }

  Status checkSlots() {
    std::vector<int32_t> owners(cache_.owners_.size(), kNoNode);
    Status status = forEachNode([&](int32_t id, const PrefixNode &node) {
      if (node.hasCopy != (node.hostSlot != kNoHostSlot))
        return wrong("node ", id, " has host slot ", node.hostSlot);
      if (node.isAhead && (node.slot == 0 || !node.hasCopy))
        return wrong("node ", id, " has no copy ahead of an eviction");
      if (node.slot == 0)
        return node.slotLocks == 0 || node.hasCopy
                   ? Status()
                   : wrong("node ", id, " locks a checkpoint it has not");
      if (!cache_.pool_.isInUse(node.slot))
        return wrong("slot ", node.slot, " of node ", id, " is free");
      int32_t &owner = owners[static_cast<size_t>(node.slot)];
      if (owner != kNoNode)
        return wrong("slot ", node.slot, " is of nodes ", owner, " and ", id);
      owner = id;
      return Status();
    });
    if (status.isOk() && owners != cache_.owners_)
      return wrong("owners of slots are not the nodes that have them");
    return status.isOk() ? checkHostSlots() : status;
  }

  Status checkHostSlots() {
    std::vector<int32_t> taken = cache_.unfreed_;
    Status status = forEachNode([&](int32_t id, const PrefixNode &node) {
      if (!node.hasCopy)
        return Status();
      if (std::find(taken.begin(), taken.end(), node.hostSlot) != taken.end())
        return wrong("host slot ", node.hostSlot, " of node ", id,
                     " is of two");
      taken.push_back(node.hostSlot);
      return Status();
    });
    const auto all = static_cast<int64_t>(taken.size());
    if (status.isOk() && all > cache_.maxCopies_)
      return wrong("there are ", all, " host slots where ", cache_.maxCopies_,
                   " are allowed");
    if (status.isOk() && all > 0 &&
        cache_.options_.tier->numSlots() - cache_.options_.tier->numFree() <
            all)
      return wrong("a host slot of a node is free");
    return status;
  }

  Status checkHeap(const EvictionHeap &heap, const char *name) {
    for (int64_t i = 1; i < heap.size(); ++i)
      if (heap.isBefore(heap.at(i), heap.at((i - 1) / 2)))
        return wrong("the heap of ", name, " is not in order at ", i);
    return {};
  }

  Status checkHeaps() {
    int64_t leaves = 0, checkpoints = 0, copies = 0;
    const EvictionHeap &heap = cache_.leaves_, &slots = cache_.checkpoints_,
                       &hosts = cache_.copies_;
    Status status = forEachNode([&](int32_t id, const PrefixNode &node) {
      const bool isLeaf =
          !node.isRoot && node.numChildren == 0 && node.pathLocks == 0;
      const bool isFree = node.slot != 0 && node.slotLocks == 0;
      leaves += isLeaf;
      checkpoints += isFree;
      if (isLeaf != (node.leafIndex >= 0) ||
          (isLeaf && heap.at(node.leafIndex) != id))
        return wrong("node ", id, " is in the wrong order of leaves");
      if (isFree != (node.slotIndex >= 0) ||
          (isFree && slots.at(node.slotIndex) != id))
        return wrong("node ", id, " is in the wrong order of checkpoints");
      const bool mayGo =
          node.hasCopy && (node.slotLocks == 0 || node.slot != 0);
      copies += mayGo;
      if (mayGo != (node.copyIndex >= 0) ||
          (mayGo && hosts.at(node.copyIndex) != id))
        return wrong("node ", id, " is in the wrong order of copies");
      return Status();
    });
    if (!status.isOk())
      return status;
    if (leaves != heap.size() || checkpoints != slots.size() ||
        copies != hosts.size())
      return wrong("the heaps have ", heap.size(), " leaves, ", slots.size(),
                   " checkpoints and ", hosts.size(), " copies, the tree ",
                   leaves, ", ", checkpoints, " and ", copies);
    if (status = checkHeap(heap, "leaves"); !status.isOk())
      return status;
    if (status = checkHeap(slots, "checkpoints"); !status.isOk())
      return status;
    return checkHeap(hosts, "copies");
  }

  Status checkCounts() {
    int64_t nodes = 0, tokens = 0, locked = 0, checkpoints = 0;
    int64_t copies = 0, onHost = 0;
    (void)forEachNode([&](int32_t, const PrefixNode &node) {
      ++nodes;
      tokens += node.isRoot ? 0 : node.run.length;
      locked += node.isRoot || node.pathLocks == 0 ? 0 : node.run.length;
      checkpoints += node.slot != 0;
      copies += node.hasCopy;
      onHost += node.hasCopy && node.slot == 0;
      return Status();
    });
    const StateCacheInfo info = cache_.describe();
    if (nodes != info.numNodes || tokens != info.numTokens ||
        locked != info.lockedTokens || checkpoints != info.numCheckpoints)
      return wrong("there are ", nodes, " nodes, ", tokens, " tokens, ", locked,
                   " of them locked, and ", checkpoints,
                   " checkpoints; counted are ", info.numNodes, ", ",
                   info.numTokens, ", ", info.lockedTokens, " and ",
                   info.numCheckpoints);
    if (copies != info.numHostCopies || onHost != info.numOnHost)
      return wrong("there are ", copies, " copies on the host, ", onHost,
                   " of them alone; counted are ", info.numHostCopies, " and ",
                   info.numOnHost);
    return {};
  }

  const StateCache &cache_;
  const PrefixTree &tree_;
};

} // namespace gdnrt

gdnrt::Status gdnrt::auditCache(const StateCache &cache) {
  return CacheAudit(cache).run();
}
