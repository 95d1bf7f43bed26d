// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Metadata of steps where verify keeps states otherwise than in slots of the
// row: tables, parents, and the commit in front.

#include "metadata_test.h"

using namespace gdnrt;
using namespace gdnrt::test;

// One slot per row, tokens in it: rows that are not verified commit first.
TEST(VerifyStates, LazyCommitsRowsThatAreNotVerified) {
  MetadataOptions o = options(2);
  o.verify_states = GDNRT_VERIFY_LAZY;
  auto builder = makeBuilder(o);
  Step step;
  step.seqLens = {20, 30, 40, 5, 50};
  step.queryLens = {3, 1, 2, 5, 0};
  step.drafts = {2, -1, 1, -1, -1};
  step.accepted = {3, 2, 0, 0, 1};
  step.columns = 1;
  GDNMetadata m = build(*builder, step);
  EXPECT_EQ(kinds(m),
            (Ints{GDNRT_RUN_COMMIT, GDNRT_RUN_VERIFY, GDNRT_RUN_PREFILL,
                  GDNRT_RUN_VERIFY, GDNRT_RUN_PREFILL}));
  EXPECT_EQ(m.verify_states, GDNRT_VERIFY_LAZY);
  EXPECT_EQ(ints(m.spec_slots), (Ints{10, 30}));
  EXPECT_EQ(ints(m.spec_state_indices), kNone);
  EXPECT_EQ(ints(m.num_accepted_tokens), (Ints{3, 0}));
  // The last row has no tokens: what waits there goes on waiting.
  EXPECT_EQ(ints(m.commit_slots), (Ints{0, 20, 0, 0}));
  EXPECT_EQ(ints(m.commit_num_accepted), (Ints{0, 2, 0, 0}));
  EXPECT_EQ(ints(m.commit_token_slots), kNone);
  step.accepted = {3, 0, 0, 0, 1};
  EXPECT_EQ(kinds(build(*builder, step)).front(), GDNRT_RUN_VERIFY);
}

TEST(VerifyStates, NoMoreThanEightTokensArePending) {
  MetadataOptions o = options(8);
  o.verify_states = GDNRT_VERIFY_LAZY;
  EXPECT_EQ(MetadataBuilder::make(o).status().message(),
            "num_speculative_tokens: expected 0 to 7, got 8");
  o.verify_states = GDNRT_VERIFY_SLOTS;
  EXPECT_TRUE(MetadataBuilder::make(o).isOk());
}

// Every row commits before its slots of the buffer are written again.
TEST(VerifyStates, BufferCommitsAllRows) {
  MetadataOptions o = options(1, /*graphs=*/true);
  o.verify_states = GDNRT_VERIFY_BUFFER;
  auto builder = makeBuilder(o);
  Step step;
  step.seqLens = {20, 30, 40};
  step.queryLens = {2, 2, 1};
  step.drafts = {1, 1, 0};
  step.accepted = {2, 3, 0};
  step.columns = 1;
  step.paddedReqs = 5;
  Ints slots = {1, 2, 3, 4, 5, 6};
  CommonMetadata common = step.common();
  GDNMetadata m = {};
  EXPECT_EQ(builder->build(common, m).message(),
            "token_slots: expected those of the step before, of which row 0 "
            "has 2 tokens to commit, got null");
  common.token_slots = slots.data();
  common.token_slots_stride = 2;
  Status s = builder->build(common, m);
  ASSERT_TRUE(s.isOk()) << s.message();
  EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_COMMIT, GDNRT_RUN_VERIFY}));
  EXPECT_EQ(m.runs[0].num_rows, 5);
  // A count out of range commits nothing, and its row is skipped.
  EXPECT_EQ(ints(m.commit_slots), (Ints{10, 0, 0, 0, 0}));
  EXPECT_EQ(ints(m.commit_num_accepted), (Ints{2, 0, 0, 0, 0}));
  EXPECT_EQ(ints(m.commit_token_slots), (Ints{1, 2, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(ints(m.spec_slots), (Ints{10, -1, 30, 0, 0}));
  EXPECT_EQ(ints(m.spec_state_indices), (Ints{1, 2, 3, 4, 5, 6, 0, 0, 0, 0}));
}

TEST(VerifyStates, TreesHaveParentsAndNoCounts) {
  MetadataOptions o = options(1);
  o.verify_states = GDNRT_VERIFY_TREE;
  auto builder = makeBuilder(o);
  Step step;
  step.seqLens = {20, 30};
  step.queryLens = {2, 2};
  step.drafts = {1, 1};
  step.columns = 1;
  Ints slots = {1, 2, 3, 4}, parents = {-1, 0, -1, -1};
  CommonMetadata common = step.common();
  common.num_accepted_tokens = nullptr;
  common.token_slots = slots.data();
  common.token_slots_stride = 2;
  GDNMetadata m = {};
  EXPECT_EQ(builder->build(common, m).message(),
            "parents: expected an array for a step that verifies trees, got "
            "null");
  common.parents = parents.data();
  Status s = builder->build(common, m);
  ASSERT_TRUE(s.isOk()) << s.message();
  EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_VERIFY}));
  EXPECT_EQ(ints(m.spec_slots), (Ints{10, 20}));
  EXPECT_EQ(ints(m.spec_state_indices), slots);
  EXPECT_EQ(ints(m.spec_parents), parents);
  EXPECT_EQ(ints(m.commit_slots), kNone);
}

TEST(VerifyStates, GraphsOfDecodesCommitAlways) {
  MetadataOptions o = options(2, /*graphs=*/true);
  o.verify_states = GDNRT_VERIFY_LAZY;
  auto builder = makeBuilder(o);
  Step step;
  step.seqLens = {20, 30};
  step.queryLens = {1, 1};
  step.accepted = {0, 0};
  step.columns = 1;
  step.paddedReqs = 4;
  GDNMetadata m = build(*builder, step);
  EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_COMMIT, GDNRT_RUN_DECODE}));
  EXPECT_EQ(ints(m.commit_slots), (Ints{0, 0, 0, 0}));
  step.accepted = {0, 3};
  m = build(*builder, step);
  EXPECT_EQ(ints(m.commit_slots), (Ints{0, 20, 0, 0}));
  EXPECT_EQ(ints(m.commit_num_accepted), (Ints{0, 3, 0, 0}));
  CommonMetadata common = step.common();
  Status s = builder->buildForCudagraphCapture(common, m);
  ASSERT_TRUE(s.isOk()) << s.message();
  EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_COMMIT, GDNRT_RUN_DECODE}));
  EXPECT_EQ(ints(m.commit_num_accepted), (Ints{0, 0, 0, 0}));
}
