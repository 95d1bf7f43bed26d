// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks of tokens: comparing, writing, and sharing between runs. Hashes take
// 64 tokens at a time, so that wide ids need no memory but a small array.

#include "gdnrt/token_blocks.h"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

using namespace gdnrt;

/// Blocks have at least so many tokens, and hashes take so many at once.
static constexpr int64_t kLeastTokens = 64;
/// Tokens of a line of the processor's cache.
static constexpr int64_t kLine = 16;

void gdnrt::preferLargePages(void *data, size_t bytes) {
  constexpr uintptr_t size = 2 << 20;
  const auto begin =
      (reinterpret_cast<uintptr_t>(data) + size - 1) & ~(size - 1);
  const auto end = (reinterpret_cast<uintptr_t>(data) + bytes) & ~(size - 1);
  // A wish: without it all is as before.
  if (begin < end)
    (void)madvise(reinterpret_cast<void *>(begin), end - begin, MADV_HUGEPAGE);
}

static uint64_t hashNarrow(const int32_t *tokens, int64_t count,
                           uint64_t seed) {
  for (int64_t i = 0; i < count; i += kLeastTokens) {
    auto size = static_cast<size_t>(std::min(count - i, kLeastTokens));
    seed = XXH3_64bits_withSeed(tokens + i, size * sizeof(int32_t), seed);
  }
  return seed;
}

uint64_t gdnrt::hashTokens(const TokenSpan &tokens, int64_t from, int64_t count,
                           uint64_t seed) {
  if (!tokens.isWide)
    return hashNarrow(static_cast<const int32_t *>(tokens.data) + from, count,
                      seed);
  const int64_t *wide = static_cast<const int64_t *>(tokens.data) + from;
  int32_t narrow[kLeastTokens];
  for (int64_t i = 0; i < count; i += kLeastTokens) {
    const int64_t size = std::min(count - i, kLeastTokens);
    for (int64_t t = 0; t < size; ++t)
      narrow[t] = static_cast<int32_t>(wide[i + t]);
    seed = hashNarrow(narrow, size, seed);
  }
  return seed;
}

/// How many ids at the beginning are equal.
static int64_t countEqual(const int32_t *kept, const int32_t *given,
                          int64_t count) {
  if (std::memcmp(kept, given, static_cast<size_t>(count) * sizeof(*kept)) == 0)
    return count;
  return std::mismatch(kept, kept + count, given).first - kept;
}
static int64_t countEqual(const int32_t *kept, const int64_t *given,
                          int64_t count) {
  // In groups, whose comparison is a few vector instructions.
  constexpr int64_t group = 16;
  int64_t at = 0;
  for (; at + group <= count; at += group) {
    int64_t differs = 0;
    for (int64_t i = at; i < at + group; ++i)
      differs |= kept[i] ^ given[i];
    if (differs)
      break;
  }
  while (at < count && kept[at] == given[at])
    ++at;
  return at;
}

TokenBlocks::TokenBlocks(int64_t pageTokens, int64_t maxTokens, int64_t maxRuns,
                         bool hasPages)
    : pageTokens_(pageTokens),
      blockTokens_((kLeastTokens + pageTokens - 1) / pageTokens * pageTokens),
      // A run begins in a block of its own or in one that another run has.
      numBlocks_(maxTokens / blockTokens_ + maxRuns), numFree_(numBlocks_) {
  const auto blocks = static_cast<size_t>(numBlocks_);
  // What is not used yet is not touched.
  tokens_.reset(new int32_t[blocks * static_cast<size_t>(blockTokens_)]);
  if (hasPages)
    pages_.reset(new int64_t[blocks * static_cast<size_t>(pagesOfBlock())]);
  preferLargePages(tokens_.get(), blocks * static_cast<size_t>(blockTokens_) *
                                      sizeof(int32_t));
  next_.reset(new int32_t[blocks]);
  owners_.reset(new int32_t[blocks]());
  for (int64_t block = numBlocks_; block-- > 0;) {
    next_[block] = firstFree_;
    firstFree_ = static_cast<int32_t>(block);
  }
}

uint64_t TokenBlocks::memoryBytes() const {
  auto bytes = static_cast<uint64_t>(blockTokens_) * sizeof(int32_t);
  if (pages_)
    bytes += static_cast<uint64_t>(pagesOfBlock()) * sizeof(int64_t);
  return static_cast<uint64_t>(numBlocks_) * (bytes + 2 * sizeof(int32_t));
}

int64_t TokenBlocks::match(const TokenRun &run, const TokenSpan &tokens,
                           int64_t at) const {
  const int64_t limit = std::min(run.length, tokens.size - at);
  int64_t common = 0, offset = run.offset;
  for (int32_t block = run.block; common < limit; block = next_[block]) {
    const int64_t count = std::min(blockTokens_ - offset, limit - common);
    const int32_t *kept = &tokens_[block * blockTokens_ + offset];
    for (int64_t line = kLine; line < count; line += kLine)
      __builtin_prefetch(kept + line);
    if (common + count < limit)
      __builtin_prefetch(&tokens_[next_[block] * blockTokens_]);
    const int64_t equal =
        tokens.isWide
            ? countEqual(
                  kept, static_cast<const int64_t *>(tokens.data) + at + common,
                  count)
            : countEqual(
                  kept, static_cast<const int32_t *>(tokens.data) + at + common,
                  count);
    common += equal;
    if (equal < count)
      break;
    offset = 0;
  }
  return common;
}

uint64_t TokenBlocks::hash(const TokenRun &run, uint64_t seed) const {
  return hashNarrow(tokens(run), pageTokens_, seed);
}

uint64_t TokenBlocks::chain(const TokenRun &run, uint64_t seed) const {
  int32_t block = run.block;
  int64_t offset = run.offset;
  for (int64_t left = run.length; left > 0; left -= pageTokens_) {
    seed =
        hashNarrow(&tokens_[block * blockTokens_ + offset], pageTokens_, seed);
    offset += pageTokens_;
    if (offset == blockTokens_) {
      offset = 0;
      block = next_[block];
    }
  }
  return seed;
}

void TokenBlocks::readPages(const TokenRun &run, int64_t first, int64_t count,
                            int64_t *pages) const {
  int64_t at = run.offset / pageTokens_ + first;
  int32_t block = run.block;
  for (; at >= pagesOfBlock(); at -= pagesOfBlock())
    block = next_[block];
  while (count > 0) {
    const int64_t some = std::min(count, pagesOfBlock() - at);
    std::copy_n(&pages_[block * pagesOfBlock() + at], some, pages);
    pages += some;
    count -= some;
    at = 0;
    block = next_[block];
  }
}

int32_t TokenBlocks::take() {
  const int32_t block = firstFree_;
  firstFree_ = next_[block];
  next_[block] = -1;
  owners_[block] = 1;
  --numFree_;
  return block;
}

TokenRun TokenBlocks::write(const TokenSpan &tokens, int64_t from,
                            int64_t count, const int64_t *pages) {
  TokenRun run;
  run.length = count;
  int32_t last = -1;
  for (int64_t done = 0; done < count; done += blockTokens_) {
    const int32_t block = take();
    if (last < 0)
      run.block = block;
    else
      next_[last] = block;
    last = block;
    const int64_t some = std::min(count - done, blockTokens_);
    int32_t *kept = &tokens_[block * blockTokens_];
    for (int64_t i = 0; i < some; ++i)
      kept[i] = static_cast<int32_t>(tokens[from + done + i]);
    if (pages_ && pages)
      std::copy_n(pages + done / pageTokens_, some / pageTokens_,
                  &pages_[block * pagesOfBlock()]);
  }
  return run;
}

TokenRun TokenBlocks::splitOff(TokenRun &run, int64_t length) {
  TokenRun first = run;
  first.length = length;
  int64_t offset = run.offset + length;
  for (; offset >= blockTokens_; offset -= blockTokens_)
    run.block = next_[run.block];
  run.offset = static_cast<int32_t>(offset);
  run.length -= length;
  if (offset > 0)
    ++owners_[run.block];
  return first;
}

void TokenBlocks::release(int32_t block, int64_t offset, int64_t length) {
  for (int64_t left = offset + length; left > 0; left -= blockTokens_) {
    const int32_t next = next_[block];
    if (--owners_[block] == 0) {
      next_[block] = firstFree_;
      firstFree_ = block;
      ++numFree_;
    }
    block = next;
  }
}

void TokenBlocks::trim(TokenRun &run, int64_t length) {
  int64_t left = run.offset + length;
  int32_t block = run.block;
  for (; left > blockTokens_; left -= blockTokens_)
    block = next_[block];
  const int64_t rest = run.offset + run.length;
  const int64_t kept =
      (run.offset + length + blockTokens_ - 1) / blockTokens_ * blockTokens_;
  if (rest > kept) {
    release(next_[block], 0, rest - kept);
    next_[block] = -1;
  }
  run.length = length;
}
