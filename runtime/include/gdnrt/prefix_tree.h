// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tree of a state cache: nodes, their tokens, and a table that finds the
// child of a node by its first page. It knows nothing of locks and eviction;
// the fields for those are in the nodes and are the cache's. See
// docs/design/20261128-state-cache.md. Nothing is allocated after make.

#ifndef GDNRT_PREFIX_TREE_H
#define GDNRT_PREFIX_TREE_H

#include "gdnrt/token_blocks.h"

#include <vector>

namespace gdnrt {

constexpr int32_t kNoNode = -1;
constexpr int32_t kNoHostSlot = -1;

/// What keeps prefixes of two requests apart.
struct CacheNamespace {
  uint64_t adapter = 0;
  const void *salt = nullptr;
  size_t saltBytes = 0;
};
constexpr size_t kMaxSaltBytes = 240;

/// What a descent reads is in the first 64 bytes.
struct alignas(64) PrefixNode {
  /// The tokens between the parent and this node. Of a root the words of its
  /// namespace, which are not tokens.
  TokenRun run;
  /// The tokens ahead of the run.
  int64_t start = 0;
  /// kNoNode for a root; of a free node the next free one.
  int32_t parent = kNoNode;
  int32_t numChildren = 0;
  /// Of the first page, in the table of children; and what the hashes of
  /// children begin with.
  uint32_t hash = 0;
  uint64_t seed = 0;
  /// Grows each time that the node is freed, so that old ids are seen.
  uint32_t generation = 0;
  bool isUsed = false, isRoot = false;
  /// Whether there is a host slot.
  bool hasCopy = false;
  /// The copy was made ahead of an eviction, and nobody used the checkpoint
  /// since.
  bool isAhead = false;

  // The cache's.
  int32_t slot = 0, accepted = 0;
  /// Locks of this node and of all behind it, and of its slot.
  int32_t pathLocks = 0, slotLocks = 0;
  /// When any of its tokens were used, and when its checkpoint was.
  uint64_t lastUse = 0, slotUse = 0;
  double priority = 0;
  /// In the heaps of leaves, checkpoints and copies, -1 if it is not in there.
  int32_t leafIndex = -1, slotIndex = -1, copyIndex = -1;
  int32_t hostSlot = kNoHostSlot;

  int64_t end() const { return isRoot ? 0 : start + run.length; }
  bool hasCheckpoint() const { return slot != 0 || hasCopy; }
};

/// How far a prompt is known.
struct Descent {
  int32_t root = kNoNode;
  /// The last node that has tokens of the prompt, or the root.
  int32_t node = kNoNode;
  /// The tokens that are known, and how many of them are the node's.
  int64_t tokens = 0, inNode = 0;
};

/// The hashes of the next pages of a prompt, whose nodes are brought into the
/// processor's cache before they are asked for.
struct PagesAhead {
  static constexpr int64_t size = 16;
  uint64_t hashes[size];
  uint64_t last = 0;
  /// The pages that have a hash, and those whose node and tokens were asked
  /// for.
  int64_t hashed = 0, nodes = 0, tokens = 0;
};

class PrefixTree {
public:
  PrefixTree(int64_t pageTokens, int64_t maxNodes, int64_t maxTokens,
             bool hasPages);

  const PrefixNode &operator[](int32_t node) const {
    return nodes_[static_cast<size_t>(node)];
  }
  PrefixNode &operator[](int32_t node) {
    return nodes_[static_cast<size_t>(node)];
  }
  const TokenBlocks &blocks() const { return blocks_; }
  int64_t pageTokens() const { return pageTokens_; }
  int64_t numNodes() const { return numNodes_; }
  int64_t numTokens() const { return numTokens_; }
  int64_t maxNodes() const { return static_cast<int64_t>(nodes_.size()); }
  int64_t maxTokens() const { return maxTokens_; }
  uint64_t memoryBytes() const;

  /// Follows the first `limit` tokens. Calls `visit` with each node that they
  /// have to the end, roots not included.
  template <typename Visit>
  Descent descend(const CacheNamespace &space, const TokenSpan &tokens,
                  int64_t limit, Visit &&visit) const {
    Descent found;
    found.root = found.node = findRoot(space);
    if (found.root == kNoNode)
      return found;
    TokenSpan limited = tokens;
    limited.size = limit;
    PagesAhead ahead;
    ahead.last = (*this)[found.root].seed;
    while (limit - found.tokens >= pageTokens_) {
      const int32_t child =
          hasChains_ ? findNext(found.node, limited, found.tokens, ahead)
                     : findChild(found.node, limited, found.tokens);
      if (child == kNoNode)
        break;
      const TokenRun &run = (*this)[child].run;
      found.inNode = blocks_.match(run, limited, found.tokens);
      found.inNode -= found.inNode % pageTokens_;
      found.node = child;
      found.tokens += found.inNode;
      if (found.inNode < run.length)
        break;
      visit(child);
    }
    return found;
  }

  /// An id for callers, never 0.
  uint64_t idOf(int32_t node) const {
    return static_cast<uint64_t>((*this)[node].generation) << 32 |
           static_cast<uint32_t>(node + 1);
  }
  /// kNoNode for an id of no node, or of one that is gone.
  int32_t find(uint64_t id) const;
  int32_t findRoot(const CacheNamespace &space) const;
  int32_t findChild(int32_t parent, const TokenSpan &tokens, int64_t at) const;
  /// Copies the page ids of the first `tokens` tokens of the path to a node.
  void readPages(int32_t node, int64_t tokens, int64_t *pages) const;

  /// These need room: see maxNodes and maxTokens.
  int32_t addRoot(const CacheNamespace &space);
  int32_t addChild(int32_t parent, const TokenSpan &tokens, int64_t from,
                   int64_t count, const int64_t *pages);
  /// Cuts a node after `length` of its tokens. Returns the new node with these,
  /// the parent of the old one.
  int32_t split(int32_t node, int64_t length);
  /// Forgets the tokens of a leaf behind the first `length`.
  void trim(int32_t node, int64_t length);
  /// Removes a node without children; returns its parent.
  int32_t remove(int32_t node);

private:
  /// Of the table: a node, and the hash of its first page and parent.
  struct Entry {
    uint32_t hash;
    int32_t node;
  };
  size_t mask() const { return table_.size() - 1; }
  /// findChild for a descent, with hashes that do not depend on nodes.
  int32_t findNext(int32_t parent, const TokenSpan &tokens, int64_t at,
                   PagesAhead &ahead) const;
  void lookAhead(const TokenSpan &tokens, int64_t page,
                 PagesAhead &ahead) const;
  int32_t findHashed(uint32_t hash, int32_t parent, const TokenSpan &tokens,
                     int64_t at) const;
  /// Brings the entry of a child into the cache.
  void prefetchChild(int32_t parent, const TokenSpan &tokens, int64_t at) const;
  /// The hash of tokens of a run, a page at a time.
  uint64_t chain(const TokenSpan &tokens, int64_t from, int64_t count,
                 uint64_t seed) const;
  int32_t take();
  void enter(int32_t node);
  void leave(int32_t node);
  Entry &entryOf(int32_t node);

  /// A node's hash is of all pages from the beginning to its first one, so that
  /// those of the next pages are known before their nodes are. For small pages
  /// that takes longer than it saves: the hash is of the parent and a page.
  bool hasChains_;
  int64_t pageTokens_, maxTokens_, numTokens_ = 0, numNodes_ = 0;
  std::vector<PrefixNode> nodes_;
  int32_t firstFree_ = kNoNode;
  std::vector<Entry> table_;
  TokenBlocks blocks_;
};

} // namespace gdnrt

#endif // GDNRT_PREFIX_TREE_H
