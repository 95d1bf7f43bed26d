// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tokens and page ids of the edges of a prefix tree, in blocks of fixed size.
// Two edges may have parts of one block, so an edge is split without a copy.
// A store allocates nothing after it is made.

#ifndef GDNRT_TOKEN_BLOCKS_H
#define GDNRT_TOKEN_BLOCKS_H

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gdnrt {

/// Token ids of a caller.
struct TokenSpan {
  const void *data = nullptr;
  int64_t size = 0;
  /// Ids are int64_t, otherwise int32_t.
  bool isWide = false;

  int64_t operator[](int64_t i) const {
    return isWide ? static_cast<const int64_t *>(data)[i]
                  : static_cast<const int32_t *>(data)[i];
  }
};

/// A run of tokens in a store.
struct TokenRun {
  int32_t block = -1;
  /// Where it begins in the block.
  int32_t offset = 0;
  int64_t length = 0;
};

/// Asks the system for large pages of memory, where an array is large enough
/// for them: a lookup in a large tree then misses fewer translations.
void preferLargePages(void *data, size_t bytes);

/// A hash of tokens, the same for int32_t and int64_t.
uint64_t hashTokens(const TokenSpan &tokens, int64_t from, int64_t count,
                    uint64_t seed);

class TokenBlocks {
public:
  /// Has room for maxTokens tokens in maxRuns runs, however they come and go.
  /// Runs have whole pages.
  TokenBlocks(int64_t pageTokens, int64_t maxTokens, int64_t maxRuns,
              bool hasPages);

  /// The tokens of a block, 64 or more.
  int64_t blockTokens() const { return blockTokens_; }
  int64_t numBlocks() const { return numBlocks_; }
  int64_t numFree() const { return numFree_; }
  uint64_t memoryBytes() const;

  /// Brings the beginning of a run into the processor's cache.
  void prefetch(const TokenRun &run) const {
    const int32_t *kept = tokens(run);
    for (int64_t i = 0; i < 64; i += 16)
      __builtin_prefetch(kept + i);
  }
  /// How many tokens of the run are those of `tokens` from `at` on.
  int64_t match(const TokenRun &run, const TokenSpan &tokens, int64_t at) const;
  /// The hash of the first page, and of all pages one after the other.
  uint64_t hash(const TokenRun &run, uint64_t seed) const;
  uint64_t chain(const TokenRun &run, uint64_t seed) const;
  /// Copies the ids of `count` pages from page `first` on.
  void readPages(const TokenRun &run, int64_t first, int64_t count,
                 int64_t *pages) const;

  /// Makes a run of tokens; `pages` has the first page's id.
  TokenRun write(const TokenSpan &tokens, int64_t from, int64_t count,
                 const int64_t *pages);
  /// Cuts a run in two: it keeps what is behind `length` tokens, which are
  /// returned.
  TokenRun splitOff(TokenRun &run, int64_t length);
  /// Frees what is behind `length` tokens.
  void trim(TokenRun &run, int64_t length);
  void free(const TokenRun &run) { release(run.block, run.offset, run.length); }

  /// Calls `visit` with each block of a run; for audits.
  template <typename Visit>
  void forEachBlock(const TokenRun &run, Visit &&visit) const {
    int32_t block = run.block;
    for (int64_t left = run.length + run.offset; left > 0;
         left -= blockTokens_, block = next_[block])
      visit(block);
  }
  int32_t numOwners(int32_t block) const { return owners_[block]; }
  /// The first tokens of a run, as many as are in its first block; a page at
  /// least.
  const int32_t *tokens(const TokenRun &run) const {
    return &tokens_[run.block * blockTokens_ + run.offset];
  }

private:
  int32_t take();
  void release(int32_t block, int64_t offset, int64_t length);
  int64_t pagesOfBlock() const { return blockTokens_ / pageTokens_; }

  int64_t pageTokens_, blockTokens_, numBlocks_, numFree_;
  std::unique_ptr<int32_t[]> tokens_;
  /// Null without pages.
  std::unique_ptr<int64_t[]> pages_;
  /// The next block of a run, or the next free one.
  std::unique_ptr<int32_t[]> next_;
  /// The runs that have tokens of a block.
  std::unique_ptr<int32_t[]> owners_;
  int32_t firstFree_ = -1;
};

} // namespace gdnrt

#endif // GDNRT_TOKEN_BLOCKS_H
