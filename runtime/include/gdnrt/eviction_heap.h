// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In which order a state cache evicts: a heap of nodes that are not locked,
// with their indices in the nodes. There is one of leaves, one of checkpoints
// and one of their copies on the host. It allocates nothing after it is made.

#ifndef GDNRT_EVICTION_HEAP_H
#define GDNRT_EVICTION_HEAP_H

#include "gdnrt/prefix_tree.h"

namespace gdnrt {

enum class HeapKind {
  /// First leaves without a checkpoint, behind whose tokens nobody can start;
  /// then by priority and the last use of a token.
  leaves,
  /// Checkpoints in slots, by priority and their last use.
  checkpoints,
  /// Copies on the host: first those of what is in a slot, too; then those of
  /// what is not, by the same; last those that were made ahead.
  copies,
};

class EvictionHeap {
public:
  /// Has room for `capacity` nodes.
  EvictionHeap(PrefixTree &tree, HeapKind kind, int64_t capacity);
  bool isEmpty() const { return size_ == 0; }
  int64_t size() const { return size_; }
  int32_t first() const { return ids_[0]; }
  /// The node at an index; for audits.
  int32_t at(int64_t index) const { return ids_[static_cast<size_t>(index)]; }
  /// Adds a node, or moves one whose order has changed.
  void put(int32_t node);
  /// No effect on a node that is not in there.
  void remove(int32_t node);
  /// Whether `a` goes before `b`.
  bool isBefore(int32_t a, int32_t b) const;

private:
  int32_t &indexOf(int32_t node) const {
    PrefixNode &of = tree_[node];
    return kind_ == HeapKind::leaves        ? of.leafIndex
           : kind_ == HeapKind::checkpoints ? of.slotIndex
                                            : of.copyIndex;
  }
  void set(int64_t index, int32_t node);
  int64_t siftUp(int64_t index);
  void siftDown(int64_t index);

  PrefixTree &tree_;
  HeapKind kind_;
  std::vector<int32_t> ids_;
  int64_t size_ = 0;
};

} // namespace gdnrt

#endif // GDNRT_EVICTION_HEAP_H
