// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Metadata of steps where slots count tokens that their states lack: whatever
// prefill reads or writes is committed ahead of it, and nothing else is.

#include "metadata_test.h"

using namespace gdnrt;
using namespace gdnrt::test;

static MetadataOptions deferred(int64_t drafts, bool graphs = false) {
  MetadataOptions o = options(drafts, graphs);
  o.deferred_writes = 1;
  o.verify_states = drafts > 0 ? GDNRT_VERIFY_LAZY : GDNRT_VERIFY_SLOTS;
  return o;
}

// A prompt that begins, one that goes on, and a row without tokens.
TEST(DeferredSteps, AllRowsOfPrefillCommit) {
  auto builder = makeBuilder(deferred(0));
  Step step;
  step.seqLens = {20, 30, 7, 40, 5};
  step.queryLens = {1, 1, 7, 3, 0};
  step.columns = 1;
  GDNMetadata m = build(*builder, step);
  EXPECT_EQ(kinds(m),
            (Ints{GDNRT_RUN_COMMIT, GDNRT_RUN_DECODE, GDNRT_RUN_PREFILL}));
  EXPECT_EQ(m.deferred_writes, 1);
  EXPECT_EQ(m.verify_states, GDNRT_VERIFY_LAZY);
  EXPECT_EQ(ints(m.commit_slots), (Ints{0, 0, 30, 40}));
  EXPECT_EQ(ints(m.commit_num_accepted), (Ints{0, 0, 0, 0}));
  // What kernels read of it is uploaded.
  const auto *end = static_cast<const char *>(m.arena) + m.device_bytes;
  EXPECT_LE(reinterpret_cast<const char *>(m.commit_num_accepted.data + 4),
            end);
}

TEST(DeferredSteps, DecodesCommitNothing) {
  for (bool graphs : {false, true}) {
    auto builder = makeBuilder(deferred(0, graphs));
    Step step;
    step.seqLens = {20, 30};
    step.queryLens = {1, 1};
    step.columns = 1;
    step.paddedReqs = graphs ? 4 : 0;
    GDNMetadata m = build(*builder, step);
    EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_DECODE}));
    EXPECT_EQ(m.runs[0].num_rows, graphs ? 4 : 2);
    EXPECT_EQ(ints(m.non_spec_read_indices).back(), graphs ? 0 : 20);
  }
}

// Rows of one token are decoded only where a step has them in front.
TEST(DeferredSteps, SingleTokensOfPrefillCommit) {
  auto builder = makeBuilder(deferred(0));
  Step step;
  step.seqLens = {20, 30, 1, 9};
  step.queryLens = {1, 4, 1, 1};
  step.columns = 1;
  GDNMetadata m = build(*builder, step);
  EXPECT_EQ(kinds(m),
            (Ints{GDNRT_RUN_COMMIT, GDNRT_RUN_DECODE, GDNRT_RUN_PREFILL}));
  EXPECT_EQ(ints(m.commit_slots), (Ints{0, 20, 30, 40}));
  // A row without tokens between them makes prefills of all.
  step.seqLens = {20, 30, 40};
  step.queryLens = {1, 0, 1};
  m = build(*builder, step);
  EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_COMMIT, GDNRT_RUN_PREFILL}));
  EXPECT_EQ(ints(m.commit_slots), (Ints{10, 30}));
  // First tokens are prefills, next to tokens that are not.
  step.seqLens = {20, 1, 40};
  step.queryLens = {1, 1, 1};
  m = build(*builder, step);
  EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_COMMIT, GDNRT_RUN_DECODE,
                            GDNRT_RUN_PREFILL, GDNRT_RUN_DECODE}));
  EXPECT_EQ(ints(m.commit_slots), (Ints{0, 20, 0}));
}

// Verify takes its own tokens in; all other rows are prefills.
TEST(DeferredSteps, RowsBesideVerifiedOnesCommit) {
  for (bool mixed : {false, true}) {
    MetadataOptions o = deferred(2);
    o.mixed_batch = mixed;
    auto builder = makeBuilder(o);
    Step step;
    step.seqLens = {20, 30, 40, 5, 50};
    step.queryLens = {3, 1, 1, 5, 1};
    step.drafts = {2, -1, 0, -1, -1};
    step.accepted = {3, 2, 0, 1, 4};
    step.columns = 1;
    GDNMetadata m = build(*builder, step);
    EXPECT_EQ(kinds(m).front(), GDNRT_RUN_COMMIT);
    // A request that begins has no step before; a count out of range commits
    // nothing, and its row is skipped.
    EXPECT_EQ(ints(m.commit_slots), (Ints{0, 20, 0, 40, 0}));
    EXPECT_EQ(ints(m.commit_num_accepted), (Ints{0, 2, 0, 0, 0}));
  }
}

// Tokens of the verify ahead of it wait, and no others.
TEST(DeferredSteps, DecodesBehindAVerifyCommit) {
  auto builder = makeBuilder(deferred(2));
  Step step;
  step.seqLens = {20, 30};
  step.queryLens = {1, 1};
  step.accepted = {0, 3};
  step.columns = 1;
  GDNMetadata m = build(*builder, step);
  EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_COMMIT, GDNRT_RUN_DECODE}));
  EXPECT_EQ(ints(m.commit_slots), (Ints{0, 20}));
  EXPECT_EQ(ints(m.commit_num_accepted), (Ints{0, 3}));
  step.accepted = {0, 0};
  EXPECT_EQ(kinds(build(*builder, step)), (Ints{GDNRT_RUN_DECODE}));
}

TEST(DeferredSteps, GraphsOfVerifyHaveNoCommit) {
  auto builder = makeBuilder(deferred(2, /*graphs=*/true));
  Step step;
  step.seqLens = {20, 30};
  step.queryLens = {3, 1};
  step.drafts = {2, 0};
  step.accepted = {0, 2};
  step.columns = 1;
  step.paddedReqs = 4;
  step.actualTokens = 12;
  GDNMetadata m = build(*builder, step);
  EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_VERIFY}));
  EXPECT_EQ(ints(m.spec_slots), (Ints{10, 20, 0, 0}));
  EXPECT_EQ(ints(m.num_accepted_tokens), (Ints{0, 2, 0, 0}));
}

TEST(DeferredSteps, ACommitOfSlots) {
  auto builder = makeBuilder(deferred(2));
  const Ints slots = {4, 0, 7}, accepted = {3, 0, 0};
  GDNMetadata m = {};
  ASSERT_TRUE(builder->buildCommit(slots.data(), accepted.data(), 3, m).isOk());
  EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_COMMIT}));
  EXPECT_EQ(m.runs[0].num_rows, 3);
  EXPECT_EQ(m.num_run_tokens, 0);
  EXPECT_EQ(ints(m.commit_slots), slots);
  EXPECT_EQ(ints(m.commit_num_accepted), accepted);
  ASSERT_TRUE(builder->buildCommit(slots.data(), nullptr, 2, m).isOk());
  EXPECT_EQ(ints(m.commit_num_accepted), (Ints{0, 0}));
  // Nothing of it is left behind the rows of a step.
  Step step;
  step.seqLens = {20};
  step.queryLens = {2};
  step.accepted = {1};
  step.columns = 1;
  m = build(*builder, step);
  EXPECT_EQ(ints(m.commit_slots), (Ints{10}));
  EXPECT_EQ(m.commit_slots.data[1], 0);
  EXPECT_TRUE(builder->buildCommit(nullptr, nullptr, 0, m).isOk());
  EXPECT_EQ(m.num_runs, 0);
}

TEST(DeferredSteps, Refusals) {
  MetadataOptions o = deferred(2);
  for (int32_t states :
       {GDNRT_VERIFY_SLOTS, GDNRT_VERIFY_TREE, GDNRT_VERIFY_BUFFER}) {
    o.verify_states = states;
    EXPECT_EQ(MetadataBuilder::make(o).status().code(),
              StatusCode::unsupported);
  }
  EXPECT_EQ(MetadataBuilder::make(o).status().message(),
            "verify_states: expected lazy with deferred_writes, got buffer");
  o = deferred(0);
  o.mamba_cache_mode = GDNRT_CACHE_ALL;
  o.block_size = 64;
  EXPECT_EQ(MetadataBuilder::make(o).status().message(),
            "deferred_writes: expected 0 with the cache mode all, whose "
            "sequences write another slot than they read, got 1");
  o.deferred_writes = 2;
  EXPECT_EQ(MetadataBuilder::make(o).status().message(),
            "deferred_writes: expected 0 to 1, got 2");
  auto builder = makeBuilder(deferred(2));
  const Ints slots = {4}, accepted = {4};
  GDNMetadata m = {};
  EXPECT_EQ(builder->buildCommit(slots.data(), accepted.data(), 1, m).message(),
            "num_accepted: expected 0 to 3 for slot 4, got 4");
  EXPECT_EQ(builder->buildCommit(slots.data(), nullptr, 17, m).message(),
            "count: expected 0 to 16, got 17");
  const Ints twice = {5, 0, 4, -1, 0, -1, 4};
  EXPECT_EQ(builder->buildCommit(twice.data(), nullptr, 7, m).message(),
            "slots: expected each slot once, got 4 twice");
  EXPECT_EQ(m.num_runs, 0);
  ASSERT_TRUE(builder->buildCommit(twice.data(), nullptr, 6, m).isOk());
  EXPECT_EQ(m.commit_slots.size, 6);
  MetadataOptions buffer = options(2);
  buffer.verify_states = GDNRT_VERIFY_BUFFER;
  EXPECT_EQ(
      makeBuilder(buffer)->buildCommit(slots.data(), nullptr, 1, m).message(),
      "build_commit: expected a builder with the verify states lazy or "
      "with deferred_writes, got one with buffer");
}
