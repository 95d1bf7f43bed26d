// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Metadata of steps: the cases of vLLM's suite for its builder, by letter, and
// what the design of serving adds.

#include "metadata_test.h"

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

struct Case {
  const char *name;
  Ints seqLens, queryLens, drafts;
  int64_t numSpec, decodes, prefills, prefillTokens, spec;
};

class Classification : public ::testing::TestWithParam<Case> {};

} // namespace

TEST_P(Classification, Counts) {
  const Case &c = GetParam();
  auto builder = makeBuilder(options(c.numSpec));
  GDNMetadata m = build(*builder, {c.seqLens, c.queryLens, c.drafts, {}});
  EXPECT_EQ(m.num_decodes, c.decodes);
  EXPECT_EQ(m.num_prefills, c.prefills);
  EXPECT_EQ(m.num_prefill_tokens, c.prefillTokens);
  EXPECT_EQ(m.num_spec_decodes, c.spec);
  EXPECT_FALSE(m.num_decodes > 0 && m.num_spec_decodes > 0);
  int64_t tokens = std::accumulate(c.queryLens.begin(), c.queryLens.end(), 0);
  EXPECT_EQ(m.num_decode_tokens + m.num_prefill_tokens +
                m.num_spec_decode_tokens,
            tokens);
  // Runs cover every token once, in order.
  int64_t next = 0;
  for (int64_t i = 0; i < m.num_runs; ++i) {
    EXPECT_EQ(m.runs[i].first_token, next);
    next += m.runs[i].num_tokens;
    if (m.runs[i].kind == GDNRT_RUN_DECODE) {
      EXPECT_EQ(m.runs[i].num_rows, m.runs[i].num_tokens);
      continue;
    }
    EXPECT_EQ(m.runs[i].query_start_loc[0], 0);
    EXPECT_EQ(m.runs[i].query_start_loc[m.runs[i].num_rows],
              m.runs[i].num_tokens);
  }
  EXPECT_EQ(next, tokens);
}

INSTANTIATE_TEST_SUITE_P(
    MetadataBuilder, Classification,
    ::testing::Values(
        Case{"a", {65, 20}, {1, 3}, {-1, 2}, 2, 0, 1, 1, 1},
        Case{"b", {50, 30}, {3, 3}, {2, 2}, 2, 0, 0, 0, 2},
        Case{"c", {40, 30, 20}, {1, 1, 1}, {}, 0, 3, 0, 0, 0},
        Case{"d", {100, 20}, {50, 3}, {-1, 2}, 2, 0, 1, 50, 1},
        Case{"e", {100, 65, 20}, {50, 1, 3}, {-1, -1, 2}, 2, 0, 2, 51, 1},
        Case{"f",
             {40, 50, 60, 20},
             {1, 1, 1, 3},
             {-1, -1, -1, 2},
             2,
             0,
             3,
             3,
             1},
        Case{"g", {16, 65, 20}, {0, 1, 3}, {-1, -1, 2}, 2, 0, 1, 1, 1},
        // No drafts at all: verified rows of one token are plain decodes.
        Case{"noDrafts", {65, 20}, {1, 1}, {0, 0}, 2, 2, 0, 0, 0},
        // One row has none, but it is verified like the others.
        Case{"zeroDrafts", {65, 20}, {1, 3}, {0, 2}, 2, 0, 0, 0, 2},
        Case{"noSpec", {65, 20}, {1, 1}, {1, 1}, 0, 2, 0, 0, 0},
        Case{"split", {9, 8, 7, 6}, {1, 1, 5, 1}, {}, 0, 2, 2, 6, 0}),
    [](const auto &info) { return info.param.name; });

TEST(MetadataBuilder, PlainStep) {
  auto builder = makeBuilder(options(0));
  GDNMetadata m = build(*builder, {{40, 30, 20}, {1, 1, 1}, {}, {}});
  EXPECT_EQ(ints(m.non_spec_state_indices), (Ints{10, 20, 30}));
  EXPECT_EQ(ints(m.non_spec_query_start_loc), (Ints{0, 1, 2, 3}));
  for (const gdnrt_i32_array *none :
       {&m.spec_query_start_loc, &m.spec_state_indices, &m.spec_token_indx,
        &m.non_spec_token_indx, &m.num_accepted_tokens, &m.chunk_indices,
        &m.chunk_offsets, &m.batch_ptr, &m.spec_decode_src_indices})
    EXPECT_EQ(none->data, nullptr);
  EXPECT_EQ(m.has_initial_state.data, nullptr);
  EXPECT_EQ(m.spec_sequence_masks.data, nullptr);
  EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_DECODE}));
}

TEST(MetadataBuilder, DecodesAreAheadOfPrefills) {
  auto builder = makeBuilder(options(0));
  GDNMetadata m = build(*builder, {{9, 8, 130, 66}, {1, 1, 130, 1}, {}, {}});
  EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_DECODE, GDNRT_RUN_PREFILL}));
  EXPECT_EQ(bools(m.has_initial_state), (std::vector<int>{1, 1, 0, 1}));
  EXPECT_EQ(ints(m.prefill_query_start_loc), (Ints{0, 130, 131}));
  EXPECT_EQ(ints(m.prefill_state_indices), (Ints{30, 40}));
  EXPECT_EQ(bools(m.prefill_has_initial_state), (std::vector<int>{0, 1}));
  EXPECT_EQ(m.runs[1].first_row, 2);
  EXPECT_EQ(m.runs[1].reads_state, 1);
  EXPECT_EQ(Ints(m.runs[1].query_start_loc, m.runs[1].query_start_loc + 3),
            (Ints{0, 130, 131}));
  // Chunks and blocks are those of all rows.
  EXPECT_EQ(ints(m.chunk_indices), (Ints{0, 0, 1, 0, 2, 0, 2, 1, 2, 2, 3, 0}));
  EXPECT_EQ(ints(m.chunk_offsets), (Ints{0, 1, 2, 5, 6}));
}

TEST(MetadataBuilder, ChunksOfRowsWithoutTokens) {
  // D6: counting chunks that are the first shifts what stands behind.
  auto builder = makeBuilder(options(2));
  GDNMetadata m =
      build(*builder, {{16, 65, 20, 70}, {0, 1, 3, 65}, {-1, -1, 2, -1}, {}});
  EXPECT_EQ(ints(m.non_spec_query_start_loc), (Ints{0, 0, 1, 66}));
  EXPECT_EQ(ints(m.chunk_indices), (Ints{1, 0, 2, 0, 2, 1}));
  EXPECT_EQ(ints(m.chunk_offsets), (Ints{0, 0, 1, 3}));
  EXPECT_EQ(ints(m.conv_nums), (Ints{0, 1, 9}));
  EXPECT_EQ(m.conv_total, 10);
  ASSERT_EQ(m.batch_ptr.size, 2048);
  ASSERT_EQ(m.token_chunk_offset_ptr.size, 2048);
  Ints rows = ints(m.batch_ptr), blocks = ints(m.token_chunk_offset_ptr);
  EXPECT_EQ(Ints(rows.begin(), rows.begin() + 11),
            (Ints{1, 2, 2, 2, 2, 2, 2, 2, 2, 2, -1}));
  EXPECT_EQ(Ints(blocks.begin(), blocks.begin() + 11),
            (Ints{0, 0, 1, 2, 3, 4, 5, 6, 7, 8, -1}));
  EXPECT_EQ(rows.back(), -1);
}

TEST(MetadataBuilder, ManyConvBlocks) {
  MetadataOptions o = options(0);
  o.max_num_tokens = 20000;
  auto builder = makeBuilder(o);
  GDNMetadata m = build(*builder, {{16001}, {16001}, {}, {}});
  EXPECT_EQ(m.conv_total, 2001);
  EXPECT_EQ(m.batch_ptr.size, 4002);
}

TEST(MetadataBuilder, PureSpec) {
  auto builder = makeBuilder(options(2));
  GDNMetadata m =
      build(*builder, {{50, 30, 7}, {3, 2, 0}, {2, 2, -1}, {3, 1, 1}});
  EXPECT_EQ(ints(m.spec_token_indx), (Ints{0, 1, 2, 3, 4}));
  EXPECT_EQ(ints(m.non_spec_token_indx), Ints{});
  EXPECT_EQ(ints(m.spec_state_indices), (Ints{10, 11, 12, 20, 21, 22}));
  EXPECT_EQ(ints(m.spec_query_start_loc), (Ints{0, 3, 5}));
  EXPECT_EQ(ints(m.num_accepted_tokens), (Ints{3, 1}));
  EXPECT_EQ(ints(m.non_spec_state_indices), kNone);
  EXPECT_EQ(ints(m.non_spec_query_start_loc), kNone);
  EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_VERIFY}));
}

TEST(MetadataBuilder, MixedSpec) {
  auto builder = makeBuilder(options(2));
  GDNMetadata m = build(
      *builder, {{5, 65, 20, 9}, {2, 1, 3, 3}, {1, -1, 2, -1}, {2, 3, 1, 1}});
  EXPECT_EQ(ints(m.spec_token_indx), (Ints{0, 1, 3, 4, 5}));
  EXPECT_EQ(ints(m.non_spec_token_indx), (Ints{2, 6, 7, 8}));
  EXPECT_EQ(ints(m.spec_query_start_loc), (Ints{0, 2, 5}));
  EXPECT_EQ(ints(m.non_spec_query_start_loc), (Ints{0, 1, 4}));
  EXPECT_EQ(ints(m.spec_state_indices), (Ints{10, 11, 12, 30, 31, 32}));
  EXPECT_EQ(ints(m.non_spec_state_indices), (Ints{20, 40}));
  EXPECT_EQ(ints(m.num_accepted_tokens), (Ints{2, 1}));
  EXPECT_EQ(bools(m.spec_sequence_masks), (std::vector<int>{1, 0, 1, 0}));
  EXPECT_EQ(bools(m.has_initial_state), (std::vector<int>{1, 1}));
  EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_VERIFY, GDNRT_RUN_PREFILL,
                            GDNRT_RUN_VERIFY, GDNRT_RUN_PREFILL}));
  // The second run of a kind has rows and tokens of its own.
  EXPECT_EQ(m.runs[2].first_row, 1);
  EXPECT_EQ(m.runs[2].query_start_loc[1], 3);
  EXPECT_EQ(m.runs[3].first_token, 6);
  EXPECT_EQ(m.runs[3].query_start_loc[1], 3);
}

TEST(MetadataBuilder, InitialStateAfterReclassification) {
  auto builder = makeBuilder(options(2));
  GDNMetadata m = build(*builder, {{65, 20}, {1, 3}, {-1, 2}, {}});
  EXPECT_GT(m.num_prefills, 0);
  EXPECT_EQ(bools(m.has_initial_state), (std::vector<int>{1}));
}

TEST(MetadataBuilder, RestoredSource) {
  // D2: verified in the step before, decoded now.
  auto builder = makeBuilder(options(2));
  GDNMetadata m = build(*builder, {{65}, {1}, {}, {3}});
  EXPECT_EQ(ints(m.spec_decode_src_indices), (Ints{12}));
  EXPECT_EQ(ints(m.non_spec_state_indices), (Ints{10}));
  EXPECT_EQ(ints(m.num_accepted_tokens), (Ints{3}));

  m = build(*builder, {{65, 20}, {1, 3}, {-1, 2}, {3, 2}});
  EXPECT_EQ(ints(m.non_spec_state_indices), (Ints{10}));
  EXPECT_EQ(ints(m.spec_decode_src_indices), (Ints{12}));
  EXPECT_EQ(ints(m.non_spec_num_accepted), (Ints{3}));
  EXPECT_EQ(ints(m.num_accepted_tokens), (Ints{2}));

  for (bool specFirst : {false, true})
    for (int32_t accepted : {1, 2, 3}) {
      Step step = {{65, 65, 65}, {1, 1, 3}, {-1, -1, 2}, {accepted, 1, 3}};
      if (specFirst)
        step = {{65, 65, 65}, {3, 1, 1}, {2, -1, -1}, {3, accepted, 1}};
      m = build(*builder, step);
      EXPECT_EQ(ints(m.non_spec_num_accepted), (Ints{accepted, 1}));
      EXPECT_EQ(ints(m.num_accepted_tokens), (Ints{3}));
    }
}

TEST(MetadataBuilder, AcceptedOutOfRangeReadsNothing) {
  // D5: no column is that far; the row is skipped.
  auto builder = makeBuilder(options(2));
  GDNMetadata m = build(*builder, {{65, 65}, {1, 1}, {}, {0, 4}});
  EXPECT_EQ(ints(m.non_spec_read_indices), (Ints{-1, -1}));
  // A new request has no state before it, whatever the count says.
  m = build(*builder, {{5, 9}, {5, 1}, {}, {4, 2}});
  EXPECT_EQ(ints(m.non_spec_read_indices), (Ints{10, 21}));
}

TEST(MetadataBuilder, FullGraphSpec) {
  // Arrays of requests are padded to requests, not to tokens.
  auto builder = makeBuilder(options(3, true));
  Step step = {{80, 96}, {4, 4}, {3, 3}, {2, 4}};
  GDNMetadata m = build(*builder, step);
  EXPECT_EQ(m.num_spec_decodes, 2);
  EXPECT_EQ(m.num_spec_decode_tokens, 8);
  EXPECT_EQ(m.spec_state_indices.size, 2 * 4);
  EXPECT_EQ(m.spec_sequence_masks.size, 2);
  EXPECT_EQ(m.spec_query_start_loc.size, 3);
  EXPECT_EQ(m.num_accepted_tokens.size, 2);

  step.paddedReqs = 4;
  step.actualTokens = 16;
  GDNMetadata padded = build(*builder, step);
  EXPECT_EQ(ints(padded.spec_state_indices),
            (Ints{10, 11, 12, 13, 20, 21, 22, 23, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(ints(padded.spec_query_start_loc), (Ints{0, 4, 8, 8, 8}));
  EXPECT_EQ(ints(padded.num_accepted_tokens), (Ints{2, 4, 1, 1}));
  EXPECT_EQ(bools(padded.spec_sequence_masks), (std::vector<int>{1, 1, 0, 0}));
  EXPECT_EQ(padded.spec_token_indx.size, 8);
  EXPECT_EQ(padded.runs[0].num_rows, 4);
  EXPECT_EQ(padded.runs[0].num_tokens, 16);
  // What a graph captured stays where it was.
  EXPECT_EQ(padded.spec_state_indices.data, m.spec_state_indices.data);
  EXPECT_EQ(padded.num_accepted_tokens.data, m.num_accepted_tokens.data);
  EXPECT_EQ(padded.spec_query_start_loc.data, m.spec_query_start_loc.data);
}

TEST(MetadataBuilder, FullGraphDecode) {
  for (auto [decodes, batch] : {std::pair(1, 4), {3, 8}, {4, 4}}) {
    auto builder = makeBuilder(options(2, true));
    Step step;
    for (int row = 0; row < batch; ++row) {
      step.seqLens.push_back(row < decodes ? 65 : 0);
      step.queryLens.push_back(row < decodes);
      step.accepted.push_back(row < decodes ? 3 : 1);
    }
    step.actualTokens = batch;
    GDNMetadata m = build(*builder, step);
    EXPECT_EQ(m.num_decodes, batch);
    EXPECT_EQ(ints(m.num_accepted_tokens), step.accepted);
    Ints from, to;
    for (int row = 0; row < batch; ++row) {
      from.push_back(row < decodes ? 10 * row + 12 : 0);
      to.push_back(row < decodes ? 10 * row + 10 : 0);
    }
    EXPECT_EQ(ints(m.spec_decode_src_indices), from);
    EXPECT_EQ(ints(m.non_spec_state_indices), to);
    EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_DECODE}));
    EXPECT_EQ(m.runs[0].num_rows, batch);

    // The same with rows that the builder adds.
    step = {{65}, {1}, {}, {2}};
    step.paddedReqs = step.actualTokens = batch;
    m = build(*builder, step);
    EXPECT_EQ(m.non_spec_state_indices.size, batch);
    EXPECT_EQ(m.non_spec_query_start_loc.size, batch + 1);
    EXPECT_EQ(ints(m.non_spec_query_start_loc).back(), 1);
    EXPECT_EQ(m.runs[0].num_rows, batch);
  }
}

TEST(MetadataBuilder, PadSlotOfOlderEngines) {
  MetadataOptions o = options(0, true);
  o.pad_slot = GDNRT_PAD_SLOT_ID;
  auto builder = makeBuilder(o);
  Step step = {{65}, {1}, {}, {}};
  step.paddedReqs = step.actualTokens = 3;
  EXPECT_EQ(ints(build(*builder, step).non_spec_state_indices),
            (Ints{10, -1, -1}));
}

TEST(MetadataBuilder, RowsOfPaddingOwnNoSlot) {
  // D8: the table still has the slots of whoever was there before.
  auto builder = makeBuilder(options(0));
  GDNMetadata m = build(*builder, {{65, 9, 9}, {1, 0, 0}, {}, {}});
  EXPECT_EQ(ints(m.non_spec_state_indices), (Ints{10, 0, 0}));
  EXPECT_EQ(m.runs[0].num_rows, 1);
  // In front of a token it would shift rows against tokens: no decode.
  m = build(*builder, {{65, 9, 9}, {1, 0, 1}, {}, {}});
  EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_PREFILL}));
  EXPECT_EQ(m.num_decodes, 3);
}

TEST(MetadataBuilder, Capture) {
  auto builder = makeBuilder(options(2, true));
  EXPECT_EQ(builder->reorderBatchThreshold(), 3);
  EXPECT_EQ(builder->decodeCudagraphMaxBs(), 48);
  GDNMetadata m = {};
  Step decode = {{1, 1}, {1, 1}, {}, {}};
  ASSERT_TRUE(builder->buildForCudagraphCapture(decode.common(), m).isOk());
  EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_DECODE}));
  Step verify = {{3, 3}, {3, 3}, {}, {}};
  ASSERT_TRUE(builder->buildForCudagraphCapture(verify.common(), m).isOk());
  EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_VERIFY}));
  EXPECT_EQ(ints(m.num_accepted_tokens), (Ints{3, 3}));

  MetadataOptions small = options(2, true);
  small.max_cudagraph_capture_size = 4;
  builder = makeBuilder(small);
  EXPECT_EQ(builder->decodeCudagraphMaxBs(), 4);
  EXPECT_EQ(builder->buildForCudagraphCapture(verify.common(), m).message(),
            "capture: graphs are of decode and verify only; expected at most 4 "
            "rows and as many tokens, got 2 rows and 6 tokens");
}

TEST(MetadataBuilder, StepsTooLargeForGraphsAreNotPadded) {
  MetadataOptions o = options(0, true);
  o.max_cudagraph_capture_size = 2;
  auto builder = makeBuilder(o);
  Step step = {{5, 5, 5}, {1, 1, 1}, {}, {}};
  step.paddedReqs = 8;
  EXPECT_EQ(build(*builder, step).non_spec_state_indices.size, 3);
}

TEST(MetadataBuilder, ModeAlign) {
  MetadataOptions o = options(2);
  o.mamba_cache_mode = GDNRT_CACHE_ALIGN;
  o.block_size = 16;
  auto builder = makeBuilder(o);
  // (seq_len - 1) / 16 is the first column: 1, 2 and 0.
  GDNMetadata m = build(*builder, {{32, 33, 4}, {1, 3, 4}, {-1, 2, -1}, {}});
  EXPECT_EQ(ints(m.non_spec_state_indices), (Ints{11, 30}));
  EXPECT_EQ(ints(m.spec_state_indices), (Ints{22, 23, 24}));
  Step step = {{33}, {1}, {}, {}};
  step.columns = 4;
  EXPECT_EQ(failure(*builder, step),
            "block_table: expected at least 5 columns for row 0 of 33 tokens, "
            "got 4");
}

TEST(MetadataBuilder, Refusals) {
  MetadataOptions o = options(0);
  o.max_num_seqs = 0;
  EXPECT_EQ(MetadataBuilder::make(o).status().message(),
            "max_num_seqs: expected 1 to 8388607, got 0");
  o = options(2);
  o.mamba_cache_mode = GDNRT_CACHE_ALL;
  o.block_size = 64;
  EXPECT_EQ(MetadataBuilder::make(o).status().code(), StatusCode::unsupported);
  o = options(0);
  o.pad_slot = 7;
  EXPECT_EQ(MetadataBuilder::make(o).status().message(),
            "pad_slot: expected 0 or -1, got 7");

  auto builder = makeBuilder(options(2));
  EXPECT_EQ(failure(*builder, {Ints(17, 5), Ints(17, 1), {}, {}}),
            "num_reqs: expected 0 to 16, got 17");
  EXPECT_EQ(failure(*builder, {{5, 5}, {3, -1}, {}, {}}),
            "query_start_loc: expected element 2 to be at least 3, got 2");
  EXPECT_EQ(failure(*builder, {{2}, {3}, {}, {}}),
            "seq_lens: expected at least 3 in row 0, the tokens of the step, "
            "got 2");
  EXPECT_EQ(failure(*builder, {{9}, {4}, {2}, {}}),
            "query_start_loc: expected at most 3 tokens in row 0, which is "
            "verified, got 4");
  Step step = {{9}, {3}, {2}, {}};
  CommonMetadata common = step.common();
  common.num_accepted_tokens = nullptr;
  GDNMetadata m = {};
  EXPECT_EQ(builder->build(common, m).message(),
            "num_accepted_tokens: expected counts, for row 0 goes on behind 6 "
            "tokens, got null");
  builder = makeBuilder(options(0, true));
  step = {{9, 9}, {1, 1}, {}, {}};
  step.paddedReqs = 1;
  EXPECT_EQ(failure(*builder, step),
            "num_padded_reqs: expected 2 to 16, got 1");
  EXPECT_EQ(failure(*builder, {{9, 0, 9}, {1, 0, 1}, {}, {}}),
            "query_start_loc: expected the rows without tokens of a graph "
            "behind all others");
}

TEST(MetadataBuilder, EmptyStep) {
  auto builder = makeBuilder(options(2, true));
  GDNMetadata m = build(*builder, {});
  EXPECT_EQ(m.num_runs, 0);
  EXPECT_EQ(m.num_decodes, 0);
}

// What a copy to the device has to have, and nothing behind it: all that graphs
// of decode and verify read, and with a prefill what that reads.
TEST(MetadataBuilder, BytesOfTheDevice) {
  for (int64_t drafts : {0, 3}) {
    auto builder = makeBuilder(options(drafts));
    auto isInside = [](const GDNMetadata &m, const void *data, size_t bytes) {
      const char *first = static_cast<const char *>(m.arena);
      const char *begin = static_cast<const char *>(data);
      return begin >= first && begin + bytes <= first + m.device_bytes;
    };
    auto hasRows = [&](const GDNMetadata &m) {
      return isInside(m, m.non_spec_read_indices.data, 16 * 4) &&
             isInside(m, m.non_spec_state_indices.data, 16 * 4) &&
             isInside(m, m.run_has_initial.data, 16);
    };
    const Ints counts = drafts ? Ints{1, 1} : Ints{};
    GDNMetadata decode = build(*builder, {{5, 7}, {1, 1}, {}, counts});
    EXPECT_TRUE(hasRows(decode));
    EXPECT_FALSE(isInside(decode, decode.zeros.data, 17 * 4));
    GDNMetadata mixed = build(*builder, {{5, 70}, {1, 7}, {}, counts});
    EXPECT_TRUE(hasRows(mixed));
    EXPECT_TRUE(isInside(mixed, mixed.zeros.data, 17 * 4));
    EXPECT_TRUE(isInside(mixed, mixed.runs[1].query_start_loc, 2 * 4));
    EXPECT_LT(decode.device_bytes, mixed.device_bytes);
    EXPECT_LT(mixed.device_bytes, mixed.arena_bytes);
    if (drafts == 0)
      continue;
    GDNMetadata verify = build(*builder, {{9, 9}, {4, 4}, {3, 3}, {1, 2}});
    EXPECT_EQ(verify.device_bytes, decode.device_bytes);
    // With rows up to a graph's bound.
    EXPECT_TRUE(isInside(verify, verify.spec_state_indices.data, 64 * 4));
    EXPECT_TRUE(isInside(verify, verify.spec_query_start_loc.data, 17 * 4));
    EXPECT_TRUE(isInside(verify, verify.num_accepted_tokens.data, 16 * 4));
  }
}
