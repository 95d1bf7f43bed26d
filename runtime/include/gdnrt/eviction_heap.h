// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In which order a state cache evicts: a heap of nodes that are not locked,
// with their indices in the nodes. There is one of leaves and one of
// checkpoints. It allocates nothing after it is made.

#ifndef GDNRT_EVICTION_HEAP_H
#define GDNRT_EVICTION_HEAP_H

#include "gdnrt/prefix_tree.h"

namespace gdnrt {

enum class HeapKind {
  /// First leaves without a checkpoint, behind whose tokens nobody can start;
  /// then by priority and the last use of a token.
  leaves,
  /// By priority and the last use of the checkpoint.
  checkpoints,
};

class EvictionHeap {
public:
  EvictionHeap(PrefixTree &tree, HeapKind kind);
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
    return kind_ == HeapKind::leaves ? tree_[node].leafIndex
                                     : tree_[node].slotIndex;
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
