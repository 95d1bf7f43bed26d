// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nodes of a prefix tree and the table of children: open addressing with linear
// probing, at most half full, in which removal moves entries back.

#include "gdnrt/prefix_tree.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

using namespace gdnrt;

static_assert(offsetof(PrefixNode, accepted) + sizeof(PrefixNode::accepted) <=
                  64,
              "what a descent reads is in one line of the cache");

namespace {

/// The words of a namespace, as a root keeps them.
class SpaceWords {
public:
  explicit SpaceWords(const CacheNamespace &space) {
    words_[0] = static_cast<int32_t>(space.saltBytes);
    std::memcpy(&words_[1], &space.adapter, sizeof(space.adapter));
    if (space.saltBytes > 0)
      std::memcpy(&words_[3], space.salt, space.saltBytes);
  }
  TokenSpan span() const { return {words_, size(), /*isWide=*/false}; }
  int64_t size() const { return 3 + (words_[0] + 3) / 4; }

private:
  int32_t words_[3 + kMaxSaltBytes / sizeof(int32_t)] = {};
};

} // namespace

static size_t tableSize(int64_t nodes) {
  size_t size = 4;
  while (size < 2 * static_cast<size_t>(nodes))
    size *= 2;
  return size;
}

PrefixTree::PrefixTree(int64_t pageTokens, int64_t maxNodes, int64_t maxTokens,
                       bool hasPages)
    : hasChains_(pageTokens >= 16), pageTokens_(pageTokens),
      maxTokens_(maxTokens), nodes_(static_cast<size_t>(maxNodes)),
      table_(tableSize(maxNodes), Entry{0, kNoNode}),
      blocks_(pageTokens, maxTokens, maxNodes, hasPages) {
  preferLargePages(nodes_.data(), nodes_.size() * sizeof(PrefixNode));
  preferLargePages(table_.data(), table_.size() * sizeof(Entry));
  for (int64_t node = maxNodes; node-- > 0;) {
    nodes_[static_cast<size_t>(node)].parent = firstFree_;
    firstFree_ = static_cast<int32_t>(node);
  }
}

uint64_t PrefixTree::memoryBytes() const {
  return nodes_.size() * sizeof(PrefixNode) + table_.size() * sizeof(Entry) +
         blocks_.memoryBytes();
}

/// The lower bits are those of the table's index.
static uint32_t fold(uint64_t hash) {
  return static_cast<uint32_t>(hash ^ hash >> 32);
}

uint64_t PrefixTree::chain(const TokenSpan &tokens, int64_t from, int64_t count,
                           uint64_t seed) const {
  for (int64_t at = from; at < from + count; at += pageTokens_)
    seed = hashTokens(tokens, at, pageTokens_, seed);
  return seed;
}

int32_t PrefixTree::find(uint64_t id) const {
  const auto index = static_cast<int64_t>(id & 0xffffffff) - 1;
  if (index < 0 || index >= maxNodes())
    return kNoNode;
  const PrefixNode &node = nodes_[static_cast<size_t>(index)];
  return node.isUsed && !node.isRoot && node.generation == id >> 32
             ? static_cast<int32_t>(index)
             : kNoNode;
}

int32_t PrefixTree::findRoot(const CacheNamespace &space) const {
  const SpaceWords words(space);
  const uint32_t hash = fold(hashTokens(words.span(), 0, words.size(), 0));
  for (size_t at = hash & mask(); table_[at].node != kNoNode;
       at = (at + 1) & mask()) {
    if (table_[at].hash != hash)
      continue;
    const PrefixNode &node = (*this)[table_[at].node];
    if (node.isRoot && node.run.length == words.size() &&
        blocks_.match(node.run, words.span(), 0) == words.size())
      return table_[at].node;
  }
  return kNoNode;
}

int32_t PrefixTree::findHashed(uint32_t hash, int32_t parent,
                               const TokenSpan &tokens, int64_t at) const {
  TokenSpan page = tokens;
  page.size = at + pageTokens_;
  for (size_t entry = hash & mask(); table_[entry].node != kNoNode;
       entry = (entry + 1) & mask()) {
    if (table_[entry].hash != hash)
      continue;
    const int32_t child = table_[entry].node;
    const PrefixNode &node = (*this)[child];
    if (node.parent != parent || node.isRoot)
      continue;
    if (!hasChains_)
      prefetchChild(child, tokens, at + node.run.length);
    if (blocks_.match(node.run, page, at) == pageTokens_)
      return child;
  }
  return kNoNode;
}

int32_t PrefixTree::findChild(int32_t parent, const TokenSpan &tokens,
                              int64_t at) const {
  const uint64_t seed = (*this)[parent].seed;
  return findHashed(fold(hashTokens(tokens, at, pageTokens_, seed)), parent,
                    tokens, at);
}

void PrefixTree::prefetchChild(int32_t parent, const TokenSpan &tokens,
                               int64_t at) const {
  if (tokens.size - at < pageTokens_)
    return;
  const uint64_t seed = (*this)[parent].seed;
  const uint32_t hash = fold(hashTokens(tokens, at, pageTokens_, seed));
  __builtin_prefetch(&table_[hash & mask()]);
}

int32_t PrefixTree::findNext(int32_t parent, const TokenSpan &tokens,
                             int64_t at, PagesAhead &ahead) const {
  const int64_t page = at / pageTokens_;
  lookAhead(tokens, page, ahead);
  return findHashed(fold(ahead.hashes[page % PagesAhead::size]), parent, tokens,
                    at);
}

void PrefixTree::lookAhead(const TokenSpan &tokens, int64_t page,
                           PagesAhead &ahead) const {
  // Entries, nodes and tokens are asked for so many pages ahead.
  constexpr int64_t entries = 14, nodes = 9, runs = 4;
  const int64_t pages = tokens.size / pageTokens_;
  auto entryOf = [&](int64_t of) -> const Entry & {
    return table_[fold(ahead.hashes[of % PagesAhead::size]) & mask()];
  };
  for (; ahead.hashed < std::min(page + entries, pages); ++ahead.hashed) {
    ahead.last =
        hashTokens(tokens, ahead.hashed * pageTokens_, pageTokens_, ahead.last);
    ahead.hashes[ahead.hashed % PagesAhead::size] = ahead.last;
    if (ahead.hashed > page)
      __builtin_prefetch(&entryOf(ahead.hashed));
  }
  for (ahead.nodes = std::max(ahead.nodes, page + 1);
       ahead.nodes < std::min(page + nodes, pages); ++ahead.nodes)
    if (const Entry &entry = entryOf(ahead.nodes); entry.node != kNoNode)
      __builtin_prefetch(&(*this)[entry.node]);
  for (ahead.tokens = std::max(ahead.tokens, page + 1);
       ahead.tokens < std::min(page + runs, pages); ++ahead.tokens)
    if (const Entry &entry = entryOf(ahead.tokens); entry.node != kNoNode)
      blocks_.prefetch((*this)[entry.node].run);
}

void PrefixTree::readPages(int32_t node, int64_t tokens, int64_t *pages) const {
  for (; !(*this)[node].isRoot; node = (*this)[node].parent) {
    const PrefixNode &from = (*this)[node];
    const int64_t count = std::min(tokens - from.start, from.run.length);
    if (count > 0)
      blocks_.readPages(from.run, 0, count / pageTokens_,
                        pages + from.start / pageTokens_);
  }
}

void PrefixTree::enter(int32_t node) {
  const uint32_t hash = (*this)[node].hash;
  size_t at = hash & mask();
  while (table_[at].node != kNoNode)
    at = (at + 1) & mask();
  table_[at] = {hash, node};
}

PrefixTree::Entry &PrefixTree::entryOf(int32_t node) {
  size_t at = (*this)[node].hash & mask();
  while (table_[at].node != node)
    at = (at + 1) & mask();
  return table_[at];
}

void PrefixTree::leave(int32_t node) {
  auto hole = static_cast<size_t>(&entryOf(node) - table_.data());
  for (size_t at = (hole + 1) & mask(); table_[at].node != kNoNode;
       at = (at + 1) & mask()) {
    // An entry may move back as far as where its search begins.
    const size_t home = table_[at].hash & mask();
    if (((at - home) & mask()) < ((at - hole) & mask()))
      continue;
    table_[hole] = table_[at];
    hole = at;
  }
  table_[hole].node = kNoNode;
}

int32_t PrefixTree::take() {
  const int32_t node = firstFree_;
  PrefixNode &taken = (*this)[node];
  firstFree_ = taken.parent;
  const uint32_t generation = taken.generation;
  taken = PrefixNode();
  taken.generation = generation;
  taken.isUsed = true;
  ++numNodes_;
  return node;
}

int32_t PrefixTree::addRoot(const CacheNamespace &space) {
  const SpaceWords words(space);
  const int32_t root = take();
  PrefixNode &node = (*this)[root];
  node.isRoot = true;
  node.run = blocks_.write(words.span(), 0, words.size(), nullptr);
  node.seed = hashTokens(words.span(), 0, words.size(), 0);
  node.hash = fold(node.seed);
  enter(root);
  return root;
}

int32_t PrefixTree::addChild(int32_t parent, const TokenSpan &tokens,
                             int64_t from, int64_t count,
                             const int64_t *pages) {
  const int32_t child = take();
  PrefixNode &node = (*this)[child];
  node.parent = parent;
  node.start = (*this)[parent].end();
  node.run = blocks_.write(tokens, from, count, pages);
  const uint64_t seed = (*this)[parent].seed;
  node.hash = fold(hashTokens(tokens, from, pageTokens_, seed));
  node.seed = hasChains_ ? chain(tokens, from, count, seed)
                         : static_cast<uint64_t>(child + 1);
  ++(*this)[parent].numChildren;
  numTokens_ += count;
  enter(child);
  return child;
}

int32_t PrefixTree::split(int32_t node, int64_t length) {
  const int32_t upper = take();
  PrefixNode &first = (*this)[upper], &second = (*this)[node];
  first.parent = second.parent;
  first.start = second.start;
  first.numChildren = 1;
  first.hash = second.hash;
  entryOf(node).node = upper;
  first.run = blocks_.splitOff(second.run, length);
  second.parent = upper;
  second.start += length;
  first.seed = hasChains_ ? blocks_.chain(first.run, (*this)[first.parent].seed)
                          : static_cast<uint64_t>(upper + 1);
  second.hash = fold(blocks_.hash(second.run, first.seed));
  enter(node);
  return upper;
}

void PrefixTree::trim(int32_t node, int64_t length) {
  PrefixNode &cut = (*this)[node];
  numTokens_ -= cut.run.length - length;
  blocks_.trim(cut.run, length);
  if (hasChains_)
    cut.seed = blocks_.chain(cut.run, (*this)[cut.parent].seed);
}

int32_t PrefixTree::remove(int32_t node) {
  PrefixNode &removed = (*this)[node];
  const int32_t parent = removed.parent;
  leave(node);
  blocks_.free(removed.run);
  if (!removed.isRoot) {
    numTokens_ -= removed.run.length;
    --(*this)[parent].numChildren;
  }
  removed.isUsed = false;
  ++removed.generation;
  removed.parent = firstFree_;
  firstFree_ = node;
  --numNodes_;
  return parent;
}
