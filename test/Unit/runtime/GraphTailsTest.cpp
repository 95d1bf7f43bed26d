// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What graphs and steps get from metadata whatever a caller leaves out: tails
// of padding, first tokens, counts, and rows without drafts.

#include "metadata_test.h"

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

/// What a graph of `rows` rows that was captured with `m` reads there now.
Ints slotsOfGraph(const GDNMetadata &m, int64_t rows) {
  const int32_t *slots = m.non_spec_state_indices.data;
  return {slots, slots + rows};
}

GDNMetadata capture(MetadataBuilder &builder, int rows, int32_t length) {
  Step step = {Ints(static_cast<size_t>(rows), length),
               Ints(static_cast<size_t>(rows), length),
               {},
               {}};
  GDNMetadata m = {};
  Status s = builder.buildForCudagraphCapture(step.common(), m);
  EXPECT_TRUE(s.isOk()) << s.message();
  return m;
}

const Ints kZeros8(8, 0);

} // namespace

// Rows behind those of a step are padding to the end of the arrays, whether or
// not the caller says how many rows its graph has.
TEST(GraphTails, DecodeRowsBehindTheStepArePadding) {
  auto builder = makeBuilder(options(0, true));
  const GDNMetadata graph = capture(*builder, 8, 1);
  build(*builder, {Ints(8, 65), Ints(8, 1), {}, {}});
  EXPECT_EQ(slotsOfGraph(graph, 8), (Ints{10, 20, 30, 40, 50, 60, 70, 80}));
  Step step = {Ints(5, 65), Ints(5, 1), {}, {}};
  step.actualTokens = 8;
  GDNMetadata m = build(*builder, step);
  EXPECT_EQ(slotsOfGraph(graph, 8), (Ints{10, 20, 30, 40, 50, 0, 0, 0}));
  EXPECT_EQ(m.non_spec_state_indices.size, 8);
  EXPECT_EQ(m.runs[0].num_rows, 8);
  EXPECT_EQ(
      Ints(m.non_spec_read_indices.data, m.non_spec_read_indices.data + 8),
      (Ints{10, 20, 30, 40, 50, 0, 0, 0}));
  // Nor does it matter how many the caller names.
  build(*builder, {Ints(8, 65), Ints(8, 1), {}, {}});
  step.paddedReqs = 6;
  build(*builder, step);
  EXPECT_EQ(slotsOfGraph(graph, 8), (Ints{10, 20, 30, 40, 50, 0, 0, 0}));
}

TEST(GraphTails, VerifyRowsBehindTheStepArePadding) {
  auto builder = makeBuilder(options(2, true));
  const GDNMetadata graph = capture(*builder, 4, 3);
  build(*builder, {Ints(4, 65), Ints(4, 3), Ints(4, 2), {}});
  Step step = {Ints(2, 65), Ints(2, 3), Ints(2, 2), {3, 2}};
  step.actualTokens = 12;
  build(*builder, step);
  const int32_t *slots = graph.spec_state_indices.data;
  EXPECT_EQ(Ints(slots, slots + 12),
            (Ints{10, 11, 12, 20, 21, 22, 0, 0, 0, 0, 0, 0}));
  const int32_t *starts = graph.spec_query_start_loc.data;
  EXPECT_EQ(Ints(starts, starts + 5), (Ints{0, 3, 6, 6, 6}));
  const int32_t *accepted = graph.num_accepted_tokens.data;
  EXPECT_EQ(Ints(accepted, accepted + 4), (Ints{3, 2, 1, 1}));
}

// An idle rank replays the graph that the others replay.
TEST(GraphTails, IdleRanksHaveRowsOfPaddingAlone) {
  auto builder = makeBuilder(options(2, true));
  const GDNMetadata decode = capture(*builder, 8, 1);
  const GDNMetadata verify = capture(*builder, 2, 3);
  build(*builder, {Ints(8, 65), Ints(8, 1), {}, Ints(8, 1)});
  build(*builder, {Ints(2, 65), Ints(2, 3), Ints(2, 2), {}});
  // The step of verify has no rows of the other kind.
  EXPECT_EQ(slotsOfGraph(decode, 8), kZeros8);
  build(*builder, {Ints(8, 65), Ints(8, 1), {}, Ints(8, 1)});
  Step idle;
  idle.paddedReqs = 8;
  GDNMetadata m = build(*builder, idle);
  EXPECT_EQ(slotsOfGraph(decode, 8), kZeros8);
  const int32_t *slots = verify.spec_state_indices.data;
  EXPECT_EQ(Ints(slots, slots + 6), Ints(6, 0));
  EXPECT_EQ(m.num_runs, 0);
  EXPECT_EQ(m.num_run_tokens, 0);
}

// A step that is refused leaves no rows behind.
TEST(GraphTails, RefusedStepsLeavePadding) {
  auto builder = makeBuilder(options(2, true));
  const GDNMetadata graph = capture(*builder, 8, 1);
  build(*builder, {Ints(8, 65), Ints(8, 1), {}, Ints(8, 1)});
  EXPECT_NE(failure(*builder, {{9, 9}, {3, 4}, {2, 2}, {}}), "");
  build(*builder, {{65}, {1}, {}, {1}});
  EXPECT_EQ(slotsOfGraph(graph, 8), (Ints{10, 0, 0, 0, 0, 0, 0, 0}));
}

// With slots, and in mode all, a later step may read another slot than it
// writes: a graph has to be able to.
TEST(GraphTails, MovingStatesAreKnownAtCapture) {
  EXPECT_EQ(capture(*makeBuilder(options(2, true)), 2, 1).moves_states, 1);
  EXPECT_EQ(capture(*makeBuilder(options(0, true)), 2, 1).moves_states, 0);
  MetadataOptions o = options(2, true);
  o.verify_states = GDNRT_VERIFY_LAZY;
  EXPECT_EQ(capture(*makeBuilder(o), 2, 1).moves_states, 0);
  o = options(0, true);
  o.mamba_cache_mode = GDNRT_CACHE_ALL;
  o.block_size = 64;
  EXPECT_EQ(capture(*makeBuilder(o), 2, 1).moves_states, 1);
}

// The first token of a request has no state: its slot is another's still.
TEST(GraphTails, TheFirstTokenOfARequestIsAPrefill) {
  for (bool graphs : {false, true}) {
    auto builder = makeBuilder(options(0, graphs));
    GDNMetadata m = build(*builder, {{17, 1, 9}, {1, 1, 1}, {}, {}});
    EXPECT_EQ(m.num_decodes, 1);
    EXPECT_EQ(m.num_prefills, 2);
    EXPECT_EQ(m.num_decode_tokens, 1);
    EXPECT_EQ(m.num_prefill_tokens, 2);
    EXPECT_EQ(bools(m.has_initial_state), (std::vector<int>{1, 0, 1}));
    EXPECT_EQ(kinds(m),
              (Ints{GDNRT_RUN_DECODE, GDNRT_RUN_PREFILL, GDNRT_RUN_DECODE}));
    EXPECT_EQ(m.runs[1].reads_state, 0);
    // A graph that is replayed all the same has the rows in their places, with
    // the flag that says so.
    EXPECT_EQ(ints(m.non_spec_state_indices), (Ints{10, 20, 30}));
    EXPECT_EQ(m.run_has_initial.data[1], 0);
    EXPECT_EQ(m.run_has_initial.data[3], 1);
  }
}

TEST(GraphTails, CapturesAreDecodesWhateverLengthsTheyHave) {
  auto builder = makeBuilder(options(0, true));
  EXPECT_EQ(kinds(capture(*builder, 2, 1)), (Ints{GDNRT_RUN_DECODE}));
}

// Whatever is taken for a count that is missing is wrong for some row.
TEST(GraphTails, CountsAreNotMadeUp) {
  for (int32_t states : {GDNRT_VERIFY_SLOTS, GDNRT_VERIFY_LAZY,
                         GDNRT_VERIFY_BUFFER, GDNRT_VERIFY_TREE}) {
    MetadataOptions o = options(2);
    o.verify_states = states;
    auto builder = makeBuilder(o);
    EXPECT_EQ(failure(*builder, {{5, 65}, {5, 1}, {}, {}}),
              states == GDNRT_VERIFY_TREE
                  ? ""
                  : "num_accepted_tokens: expected counts, for row 1 goes on "
                    "behind 64 tokens, got null");
    // Verified rows have a count, whatever is before them.
    if (states != GDNRT_VERIFY_TREE && states != GDNRT_VERIFY_BUFFER) {
      Step first = {{3}, {3}, {2}, {}};
      CommonMetadata common = first.common();
      common.num_accepted_tokens = nullptr;
      GDNMetadata m = {};
      EXPECT_EQ(builder->build(common, m).message(),
                "num_accepted_tokens: expected counts for a step that verifies "
                "rows, got null");
    }
    // Nothing was verified before the first tokens of a request.
    EXPECT_EQ(failure(*builder, {{5, 7}, {5, 7}, {}, {}}), "");
    EXPECT_EQ(failure(*builder, {{5, 7}, {5, 0}, {}, {}}), "");
  }
}

// A row says by itself whether it is verified, so that an engine knows which
// count follows without looking at the other rows.
TEST(GraphTails, RowsWithoutDraftsAreVerifiedWhateverTheOthersAre) {
  for (int32_t states :
       {GDNRT_VERIFY_LAZY, GDNRT_VERIFY_BUFFER, GDNRT_VERIFY_TREE}) {
    MetadataOptions o = options(1);
    o.verify_states = states;
    auto builder = makeBuilder(o);
    Step step = {{20, 30}, {1, 1}, {0, 0}, {0, 0}};
    Ints slots = {1, 2, 3, 4}, parents = {-1, -1, -1, -1};
    CommonMetadata common = step.common();
    common.token_slots = slots.data();
    common.parents = parents.data();
    common.token_slots_stride = 2;
    GDNMetadata m = {};
    Status s = builder->build(common, m);
    ASSERT_TRUE(s.isOk()) << s.message();
    EXPECT_EQ(m.num_spec_decodes, 2);
    EXPECT_EQ(m.num_decodes, 0);
    EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_VERIFY}));
    // One that is not verified does not change what the other is.
    step.drafts = {0, -1};
    common = step.common();
    common.token_slots = slots.data();
    common.parents = parents.data();
    common.token_slots_stride = 2;
    s = builder->build(common, m);
    ASSERT_TRUE(s.isOk()) << s.message();
    EXPECT_EQ(m.num_spec_decodes, 1);
  }
  // With slots both ways leave the same states.
  auto builder = makeBuilder(options(1));
  EXPECT_EQ(build(*builder, {{20, 30}, {1, 1}, {0, 0}, {}}).num_decodes, 2);
}
