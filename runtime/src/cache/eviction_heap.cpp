// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A binary heap whose nodes know their index.

#include "gdnrt/eviction_heap.h"

#include <utility>

using namespace gdnrt;

EvictionHeap::EvictionHeap(PrefixTree &tree, HeapKind kind, int64_t capacity)
    : tree_(tree), kind_(kind), ids_(static_cast<size_t>(capacity)) {}

/// The later, the more is lost with a copy.
static int rankOf(const PrefixNode &node) {
  return node.slot == 0 ? 1 : node.isAhead ? 2 : 0;
}

bool EvictionHeap::isBefore(int32_t a, int32_t b) const {
  const PrefixNode &first = tree_[a], &second = tree_[b];
  if (kind_ == HeapKind::leaves) {
    if (first.hasCheckpoint() != second.hasCheckpoint())
      return second.hasCheckpoint();
    if (first.hasCheckpoint() && first.priority != second.priority)
      return first.priority < second.priority;
    return first.lastUse < second.lastUse;
  }
  if (kind_ == HeapKind::copies && rankOf(first) != rankOf(second))
    return rankOf(first) < rankOf(second);
  if (first.priority != second.priority)
    return first.priority < second.priority;
  return first.slotUse < second.slotUse;
}

void EvictionHeap::set(int64_t index, int32_t node) {
  ids_[static_cast<size_t>(index)] = node;
  indexOf(node) = static_cast<int32_t>(index);
}

int64_t EvictionHeap::siftUp(int64_t index) {
  const int32_t node = at(index);
  while (index > 0 && isBefore(node, at((index - 1) / 2))) {
    set(index, at((index - 1) / 2));
    index = (index - 1) / 2;
  }
  set(index, node);
  return index;
}

void EvictionHeap::siftDown(int64_t index) {
  const int32_t node = at(index);
  for (int64_t child = 2 * index + 1; child < size_; child = 2 * index + 1) {
    if (child + 1 < size_ && isBefore(at(child + 1), at(child)))
      ++child;
    if (!isBefore(at(child), node))
      break;
    set(index, at(child));
    index = child;
  }
  set(index, node);
}

void EvictionHeap::put(int32_t node) {
  int64_t index = indexOf(node);
  if (index < 0) {
    index = size_++;
    ids_[static_cast<size_t>(index)] = node;
  }
  siftDown(siftUp(index));
}

void EvictionHeap::remove(int32_t node) {
  const int64_t index = indexOf(node);
  if (index < 0)
    return;
  indexOf(node) = -1;
  const int32_t last = at(--size_);
  if (last == node)
    return;
  set(index, last);
  siftDown(siftUp(index));
}
