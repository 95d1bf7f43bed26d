// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which checkpoints a cache proposes to take.

#include "cache_test.h"

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

} // namespace
