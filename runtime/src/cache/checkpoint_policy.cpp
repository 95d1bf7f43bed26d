// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Positions are chosen in the order of importance, into arrays of fixed size.

#include "gdnrt/checkpoint_policy.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

using namespace gdnrt;

/// Prefill writes states after multiples of so many tokens of a call.
static constexpr int64_t kChunk = 64;

namespace {

/// The positions that have been chosen, and what each must keep to.
class Positions {
public:
  Positions(int64_t done, int64_t pageTokens, int64_t minGap, int64_t limit,
            int64_t above)
      : minGap_(minGap), limit_(limit), above_(above) {
    // Chunks are counted from `done` on, pages from the first token. Where both
    // end they do so again after `step_`, or they never do.
    const int64_t chunks = pageTokens / std::gcd(pageTokens, kChunk);
    step_ = chunks * kChunk;
    for (int64_t chunk = 1; chunk <= chunks && first_ == 0; ++chunk)
      if ((done % pageTokens + chunk * kChunk) % pageTokens == 0)
        first_ = done + chunk * kChunk;
  }

  bool isFull() const { return size_ == limit_; }
  int64_t limit() const { return limit_; }
  int64_t size() const { return size_; }
  int64_t operator[](int64_t i) const { return chosen_[size_t(i)]; }

  /// The last position up to `token` that a call can write, or 0.
  int64_t align(int64_t token) const {
    if (first_ == 0 || token < first_)
      return 0;
    return token - (token - first_) % step_;
  }
  /// Chooses the last position up to `token`, if it is far from others.
  void choose(int64_t token) {
    const int64_t at = align(token);
    if (at == 0 || isFull() || (above_ > 0 && at - above_ < minGap_))
      return;
    for (int64_t i = 0; i < size_; ++i)
      if (at == chosen_[size_t(i)] ||
          std::abs(at - chosen_[size_t(i)]) < minGap_)
        return;
    chosen_[size_t(size_++)] = at;
  }
  /// Takes one out that the cache has.
  void remove(int64_t token) {
    auto end = chosen_.begin() + size_;
    size_ = std::remove(chosen_.begin(), end, token) - chosen_.begin();
  }
  void sort() { std::sort(chosen_.begin(), chosen_.begin() + size_); }

private:
  int64_t minGap_, limit_, above_;
  /// The first position that a call can write, or 0, and the tokens from one to
  /// the next.
  int64_t first_ = 0, step_ = 0;
  std::array<int64_t, kMaxCheckpoints> chosen_ = {};
  int64_t size_ = 0;
};

/// The last branch points of a path.
class Branches {
public:
  void add(int64_t token) {
    tokens_[size_t(count_++ % kMaxCheckpoints)] = token;
  }
  template <typename Visit> void forEachFromLast(Visit &&visit) const {
    for (int64_t i = 1; i <= std::min(count_, kMaxCheckpoints); ++i)
      visit(tokens_[size_t((count_ - i) % kMaxCheckpoints)]);
  }

private:
  std::array<int64_t, kMaxCheckpoints> tokens_ = {};
  int64_t count_ = 0;
};

} // namespace

static Status checkPlan(const TokenSpan &tokens, const StateCachePolicy &policy,
                        const CachePiece &piece) {
  if (policy.maxCheckpoints < 0 || policy.maxCheckpoints > kMaxCheckpoints)
    return invalid("state_cache: max_checkpoints: expected 0 to ",
                   kMaxCheckpoints, ", got ", policy.maxCheckpoints);
  struct Amount {
    const char *name;
    int64_t value;
  };
  for (const Amount &amount : {Amount{"reserve_slots", policy.reserveSlots},
                               {"min_gap", policy.minGap},
                               {"block_tokens", policy.blockTokens},
                               {"done", piece.done},
                               {"count", piece.count},
                               {"taken", piece.taken}})
    if (amount.value < 0)
      return invalid("state_cache: ", amount.name, ": expected 0 or more, got ",
                     amount.value);
  if (piece.done > tokens.size || piece.count > tokens.size - piece.done)
    return invalid("state_cache: count: expected at most the ",
                   tokens.size - std::min(piece.done, tokens.size),
                   " tokens behind done, got ", piece.count);
  return {};
}

Result<size_t> gdnrt::chooseCheckpoints(const PrefixTree &tree,
                                        const CacheNamespace &space,
                                        const TokenSpan &tokens,
                                        const StateCachePolicy &policy,
                                        const CachePiece &piece,
                                        int64_t numSlots, int64_t *positions,
                                        size_t capacity) {
  if (Status status = checkPlan(tokens, policy, piece); !status.isOk())
    return status;
  const int64_t limit =
      std::max<int64_t>(0, std::min({numSlots - policy.reserveSlots,
                                     policy.maxCheckpoints - piece.taken,
                                     static_cast<int64_t>(std::min<uint64_t>(
                                         capacity, kMaxCheckpoints))}));
  Branches branches;
  int64_t above = 0;
  const Descent known =
      tree.descend(space, tokens, tokens.size, [&](int32_t node) {
        const PrefixNode &passed = tree[node];
        if (passed.hasCheckpoint() && passed.end() <= piece.done)
          above = passed.end();
        if (passed.numChildren > 1 && !passed.hasCheckpoint() &&
            passed.end() > piece.done)
          branches.add(passed.end());
      });
  const int64_t last = tokens.size - 1;
  Positions chosen(piece.done, tree.pageTokens(), policy.minGap, limit, above);
  if (policy.atEnd)
    chosen.choose(last);
  if (policy.atBranches) {
    if (known.tokens > piece.done && known.tokens < last)
      chosen.choose(known.tokens);
    branches.forEachFromLast([&](int64_t token) { chosen.choose(token); });
  }
  const int64_t block = policy.blockTokens;
  if (const int64_t left = limit - chosen.size(); block > 0 && left > 0) {
    const int64_t first = piece.done / block + 1;
    const int64_t blocks = last / block - first + 1;
    const int64_t step = (blocks + left - 1) / left;
    for (int64_t i = first + blocks - 1; step > 0 && i >= first; i -= step)
      chosen.choose(i * block);
    // Blocks that end between two positions say the same as the first of them.
    for (int64_t i = first + blocks - 1; i >= first && !chosen.isFull();) {
      const int64_t at = chosen.align(i * block);
      if (at == 0)
        break;
      chosen.choose(at);
      i = (at - 1) / block;
    }
  }
  tree.descend(space, tokens, tokens.size, [&](int32_t node) {
    if (tree[node].hasCheckpoint())
      chosen.remove(tree[node].end());
  });
  chosen.sort();
  size_t count = 0;
  for (int64_t i = 0; i < chosen.size(); ++i)
    if (chosen[i] <= piece.done + piece.count)
      positions[count++] = chosen[i];
  return count;
}
