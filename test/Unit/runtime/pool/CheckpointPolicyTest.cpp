// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which checkpoints a cache proposes to take, and that it finds them in a time
// that grows with the prompt.

#include "cache_test.h"

#include <chrono>
#include <random>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

using Positions = std::vector<int64_t>;
using CheckpointPolicyTest = CacheTest;

TEST_F(CheckpointPolicyTest, TheEndOfAPrompt) {
  make(8);
  // One token is left, so that the same prompt can start there.
  EXPECT_EQ(take64(count(0, 65), 0, 65), (Positions{64}));
  EXPECT_EQ(take64(count(0, 64), 0, 64), (Positions{}));
  EXPECT_EQ(take64(count(0, 1000), 0, 1000), (Positions{960}));
  EXPECT_EQ(take64(count(0, 1), 0, 1), (Positions{}));
  EXPECT_EQ(take64({}, 0, 0), (Positions{}));
  policy.atEnd = false;
  EXPECT_EQ(take64(count(0, 1000), 0, 1000), (Positions{}));
}

TEST_F(CheckpointPolicyTest, PositionsCountFromWhereThePieceBegins) {
  make(8);
  EXPECT_EQ(take64(count(0, 1000), 10, 990), (Positions{970}));
  EXPECT_EQ(take64(count(0, 1000), 0, 959), (Positions{}));
  EXPECT_EQ(take64(count(0, 1000), 512, 448), (Positions{960}));
}

TEST_F(CheckpointPolicyTest, PositionsHaveWholePages) {
  make(8, 64, 4096, /*pageTokens=*/48);
  EXPECT_EQ(take64(count(0, 1000), 0, 1000), (Positions{960}));
  EXPECT_EQ(take64(count(0, 900), 0, 900), (Positions{768}));
  EXPECT_EQ(take64(count(0, 900), 48, 852), (Positions{816}));
  // 7 + 64 k is no multiple of 48.
  EXPECT_EQ(take64(count(0, 900), 7, 893), (Positions{}));
  make(8, 64, 4096, /*pageTokens=*/256);
  EXPECT_EQ(take64(count(0, 1000), 0, 1000), (Positions{768}));
}

TEST_F(CheckpointPolicyTest, WhereThePromptLeavesWhatIsKnown) {
  make(8);
  insert(count(0, 500), false);
  Tokens prompt = count(0, 300);
  Tokens more = count(1000, 300);
  prompt.insert(prompt.end(), more.begin(), more.end());
  EXPECT_EQ(take64(prompt, 0, 600), (Positions{256, 576}));
  // Once it is there, it is not taken again.
  insert(count(0, 256));
  EXPECT_EQ(match(prompt).tokens, 256);
  EXPECT_EQ(take64(prompt, 256, 344), (Positions{576}));
  EXPECT_EQ(take64(prompt, 0, 600), (Positions{576}));
  policy.atBranches = false;
  cache->drop(match(prompt).node).isOk();
  EXPECT_EQ(take64(prompt, 0, 600), (Positions{576}));
}

TEST_F(CheckpointPolicyTest, WhereOthersLeftBefore) {
  make(8, 64, 8192);
  Tokens trunk = count(0, 1000);
  insert(trunk, false);
  for (int64_t at : {200, 600}) {
    Tokens branch(trunk.begin(), trunk.begin() + at);
    branch.push_back(-1);
    insert(branch, false);
  }
  EXPECT_EQ(take64(count(0, 2000), 0, 2000), (Positions{192, 576, 960, 1984}));
  // A smaller budget takes the end, then the last branches.
  policy.maxCheckpoints = 2;
  EXPECT_EQ(take64(count(0, 2000), 0, 2000), (Positions{960, 1984}));
  EXPECT_EQ(take64(count(0, 2000), 0, 2000, /*taken=*/1), (Positions{1984}));
  EXPECT_EQ(take64(count(0, 2000), 0, 2000, /*taken=*/5), (Positions{}));
  policy.maxCheckpoints = 3;
  EXPECT_EQ(take64(count(0, 2000), 0, 700), (Positions{576}));
}

TEST_F(CheckpointPolicyTest, ATombstoneIsNoBranch) {
  make(8);
  insert(count(0, 256));
  insert(count(0, 512));
  evictCheckpoints(1);
  EXPECT_EQ(match(count(0, 256)).tokens, 0);
  EXPECT_EQ(take64(count(0, 513), 0, 513), (Positions{}));
  EXPECT_EQ(take64(count(0, 700), 0, 700), (Positions{640}));
}

TEST_F(CheckpointPolicyTest, MultiplesOfABlock) {
  make(16);
  policy.blockTokens = 256;
  policy.maxCheckpoints = 16;
  EXPECT_EQ(take64(count(0, 1100), 0, 1100),
            (Positions{256, 512, 768, 1024, 1088}));
  policy.minGap = 65;
  EXPECT_EQ(take64(count(0, 1100), 0, 1100), (Positions{256, 512, 768, 1088}));
  // Fewer of them are spread over the prompt.
  policy.maxCheckpoints = 3;
  EXPECT_EQ(take64(count(0, 1200), 0, 1200), (Positions{512, 1024, 1152}));
  // What is left where one is the end goes to the last ones.
  EXPECT_EQ(take64(count(0, 1050), 0, 1050), (Positions{512, 768, 1024}));
}

TEST_F(CheckpointPolicyTest, NoMoreThanThereAreSlots) {
  make(3);
  policy.blockTokens = 64;
  policy.maxCheckpoints = 8;
  EXPECT_EQ(take64(count(0, 1000), 0, 1000).size(), 3u);
  policy.reserveSlots = 2;
  EXPECT_EQ(take64(count(0, 1000), 0, 1000), (Positions{960}));
  // Checkpoints that can be evicted make room, locked ones do not.
  const uint64_t node = insert({-1}).node;
  EXPECT_EQ(take64(count(0, 1000), 0, 1000), (Positions{960}));
  CacheLock held = lock(node);
  EXPECT_EQ(take64(count(0, 1000), 0, 1000), (Positions{}));
  EXPECT_EQ(unlock(held), "OK");
}

TEST_F(CheckpointPolicyTest, AGapBehindTheStart) {
  make(8);
  insert(count(0, 512));
  policy.minGap = 256;
  EXPECT_EQ(take64(count(0, 700), 512, 188), (Positions{}));
  EXPECT_EQ(take64(count(0, 800), 512, 288), (Positions{768}));
}

TEST_F(CheckpointPolicyTest, WhatIsRefused) {
  make(1);
  auto error = [&](const CachePiece &piece) {
    const Tokens tokens = count(0, 10);
    int64_t position;
    return cache
        ->checkpointsToTake(space, span(tokens), policy, piece, &position, 1)
        .status()
        .message();
  };
  EXPECT_EQ(error({4, 7, 0}), "state_cache: count: expected at most the 6 "
                              "tokens behind done, got 7");
  EXPECT_EQ(error({11, 0, 0}), "state_cache: count: expected at most the 0 "
                               "tokens behind done, got 0");
  EXPECT_EQ(error({-1, 0, 0}), "state_cache: done: expected 0 or more, got -1");
  policy.maxCheckpoints = 65;
  EXPECT_EQ(error({0, 1, 0}),
            "state_cache: max_checkpoints: expected 0 to 64, got 65");
}

/// Inserts whole pages, as a cache does.
void grow(PrefixTree &tree, const Tokens &tokens, bool withState) {
  const TokenSpan span = {tokens.data(), static_cast<int64_t>(tokens.size()),
                          false};
  const int64_t count = span.size / tree.pageTokens() * tree.pageTokens();
  if (count == 0)
    return;
  const Descent known = tree.descend({}, span, count, [](int32_t) {});
  int32_t node = known.root == kNoNode ? tree.addRoot({}) : known.node;
  if (known.node != known.root && known.inNode < tree[node].run.length)
    node = tree.split(node, known.inNode);
  if (known.tokens < count)
    node = tree.addChild(node, span, known.tokens, count - known.tokens,
                         /*pages=*/nullptr);
  if (withState)
    tree[node].slot = 1;
}

/// The same by asking of each token, and of each block, in turn.
Positions searched(const PrefixTree &tree, const TokenSpan &tokens,
                   const StateCachePolicy &policy, const CachePiece &piece,
                   int64_t numSlots) {
  const int64_t limit = std::max<int64_t>(
      0, std::min({numSlots - policy.reserveSlots,
                   policy.maxCheckpoints - piece.taken, kMaxCheckpoints}));
  int64_t above = 0;
  Positions branches, kept, chosen, found;
  const Descent known =
      tree.descend({}, tokens, tokens.size, [&](int32_t node) {
        const PrefixNode &passed = tree[node];
        if (passed.hasCheckpoint()) {
          kept.push_back(passed.end());
          if (passed.end() <= piece.done)
            above = passed.end();
        } else if (passed.numChildren > 1 && passed.end() > piece.done) {
          branches.push_back(passed.end());
        }
      });
  auto choose = [&](int64_t token) {
    int64_t at = token;
    while (at > piece.done &&
           ((at - piece.done) % 64 != 0 || at % tree.pageTokens() != 0))
      --at;
    bool isFar = at > piece.done && (above == 0 || at - above >= policy.minGap);
    for (int64_t other : chosen)
      isFar &= at != other && std::abs(at - other) >= policy.minGap;
    if (isFar && static_cast<int64_t>(chosen.size()) < limit)
      chosen.push_back(at);
  };
  const int64_t last = tokens.size - 1, block = policy.blockTokens;
  if (policy.atEnd)
    choose(last);
  if (policy.atBranches && known.tokens > piece.done && known.tokens < last)
    choose(known.tokens);
  for (size_t i = 1; policy.atBranches &&
                     i <= std::min<size_t>(branches.size(), kMaxCheckpoints);
       ++i)
    choose(branches[branches.size() - i]);
  const int64_t left = limit - static_cast<int64_t>(chosen.size());
  if (block > 0 && left > 0) {
    const int64_t first = piece.done / block + 1, end = last / block;
    const int64_t step = (end - first + left) / left;
    for (int64_t i = end; step > 0 && i >= first; i -= step)
      choose(i * block);
    for (int64_t i = end; i >= first; --i)
      choose(i * block);
  }
  for (int64_t at : chosen)
    if (at <= piece.done + piece.count &&
        std::find(kept.begin(), kept.end(), at) == kept.end())
      found.push_back(at);
  std::sort(found.begin(), found.end());
  return found;
}

// Pages that chunks meet at once, late or never, blocks of any length, and
// trees with branches and states.
TEST(CheckpointPolicy, RandomPromptsAsBySearch) {
  size_t numFound = 0;
  for (uint32_t seed = 0; seed < 6000; ++seed) {
    std::mt19937 random(seed);
    auto pick = [&](std::initializer_list<int64_t> from) {
      return from.begin()[random() % from.size()];
    };
    const int64_t page = pick({1, 1, 2, 3, 7, 16, 48, 64, 100, 256, 1000});
    PrefixTree tree(page, /*maxNodes=*/64, /*maxTokens=*/1 << 16,
                    /*hasPages=*/false);
    const int64_t size = random() % pick({2, 70, 400, 3000, 3000});
    const Tokens prompt = count(0, size);
    for (auto turns = random() % 6; turns > 0; --turns) {
      Tokens known(prompt.begin(), prompt.begin() + static_cast<int64_t>(
                                                        random() % (size + 1)));
      if (random() % 2)
        known.resize(known.size() + random() % 300, -1);
      grow(tree, known, random() % 2);
    }
    StateCachePolicy policy;
    policy.maxCheckpoints = pick({0, 1, 2, 4, 16, 64});
    policy.reserveSlots = random() % 3;
    policy.minGap = pick({0, 1, 64, 65, 128, 500});
    policy.blockTokens =
        pick({0, 1, 1, 2, 5, 63, 64, 65, 100, 256, 700, int64_t{1} << 62});
    policy.atEnd = random() % 4 != 0;
    policy.atBranches = random() % 4 != 0;
    CachePiece piece;
    const auto at = static_cast<int64_t>(random() % (size + 1));
    piece.done = pick({0, 0, at, at / 64 * 64});
    piece.count = random() % (size - piece.done + 1);
    if (random() % 2)
      piece.count = size - piece.done;
    piece.taken = random() % 3;
    const auto numSlots = static_cast<int64_t>(random() % 70);
    const TokenSpan span = {prompt.data(), size, false};
    Positions found(kMaxCheckpoints);
    auto number = chooseCheckpoints(tree, {}, span, policy, piece, numSlots,
                                    found.data(), found.size());
    ASSERT_TRUE(number.isOk()) << number.status().toString();
    found.resize(*number);
    ASSERT_EQ(found, searched(tree, span, policy, piece, numSlots))
        << "seed " << seed;
    numFound += found.size();
  }
  EXPECT_GT(numFound, 3000u);
}

// Blocks of one token, and pages that no chunk ends with: asking for each token
// of each page would be ten thousand million questions.
TEST(CheckpointPolicy, ALongPromptInBlocksOfOneToken) {
  constexpr int64_t size = 3 << 20;
  const Tokens prompt = count(0, size);
  StateCachePolicy policy;
  policy.blockTokens = 1;
  policy.maxCheckpoints = kMaxCheckpoints;
  policy.minGap = size / 2 + 1;
  for (auto [page, expected] : {std::pair(4096, 0), {4095, 2}, {1, 2}}) {
    const PrefixTree tree(page, 64, 1024, /*hasPages=*/false);
    Positions found(kMaxCheckpoints);
    const auto begin = std::chrono::steady_clock::now();
    auto number = chooseCheckpoints(tree, {}, {prompt.data(), size, false},
                                    policy, {1, size - 1, 0}, kMaxCheckpoints,
                                    found.data(), found.size());
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - begin;
    ASSERT_TRUE(number.isOk());
    EXPECT_EQ(*number, static_cast<size_t>(expected)) << page;
    EXPECT_LT(seconds.count(), 2) << page;
  }
}

} // namespace
