// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Block tables: which slots a step reads, writes and keeps in mode all, and
// where the state of a request is between steps.

#include "metadata_test.h"

using namespace gdnrt;
using namespace gdnrt::test;

TEST(BlockTable, ModeAll) {
  MetadataOptions o = options(0);
  o.mamba_cache_mode = GDNRT_CACHE_ALL;
  o.block_size = 64;
  auto builder = makeBuilder(o);
  // A decode that stays, one that enters a block, a prompt, a continuation.
  GDNMetadata m =
      build(*builder, {{70, 65, 200, 256}, {1, 1, 200, 128}, {}, {}});
  EXPECT_EQ(ints(m.non_spec_read_indices), (Ints{11, 20, 33, 41}));
  EXPECT_EQ(ints(m.non_spec_state_indices), (Ints{11, 21, 33, 43}));
  EXPECT_EQ(bools(m.has_initial_state), (std::vector<int>{1, 1, 0, 1}));
  EXPECT_EQ(ints(m.cu_checkpoints), (Ints{0, 0, 0, 3, 4}));
  EXPECT_EQ(ints(m.checkpoint_tokens), (Ints{64, 128, 192, 64}));
  EXPECT_EQ(ints(m.checkpoint_slots), (Ints{30, 31, 32, 42}));
  EXPECT_EQ(ints(m.non_spec_rows), kNone);
}

// A row that starts inside a block and crosses its end is two sequences, and
// the second is in a launch behind the first.
TEST(BlockTable, PartsInsideBlocks) {
  MetadataOptions o = options(0);
  o.mamba_cache_mode = GDNRT_CACHE_ALL;
  o.block_size = 64;
  auto builder = makeBuilder(o);
  // A decode; 50 to 200; 0 to 100; 127 to 129; 64 to 70; 70 to 128; nothing.
  GDNMetadata m = build(
      *builder,
      {{130, 200, 100, 129, 70, 128, 9}, {1, 150, 100, 2, 6, 58, 0}, {}, {}});
  EXPECT_EQ(ints(m.non_spec_rows), (Ints{0, 1, 1, 2, 3, 3, 4, 5, 6}));
  EXPECT_EQ(ints(m.non_spec_query_start_loc),
            (Ints{0, 1, 15, 151, 251, 252, 253, 259, 317, 317}));
  EXPECT_EQ(ints(m.non_spec_read_indices),
            (Ints{12, 20, 20, 31, 41, 41, 50, 61, 0}));
  EXPECT_EQ(ints(m.non_spec_state_indices),
            (Ints{12, 20, 23, 31, 41, 42, 51, 61, 0}));
  EXPECT_EQ(bools(m.has_initial_state),
            (std::vector<int>{1, 1, 1, 0, 1, 1, 1, 1, 1}));
  EXPECT_EQ(ints(m.cu_checkpoints), (Ints{0, 0, 0, 2, 3, 3, 3, 3, 3, 3}));
  EXPECT_EQ(ints(m.checkpoint_tokens), (Ints{64, 128, 64}));
  EXPECT_EQ(ints(m.checkpoint_slots), (Ints{21, 22, 30}));
  EXPECT_EQ(m.num_decodes, 1);
  EXPECT_EQ(m.num_prefills, 8);
  EXPECT_EQ(m.num_prefill_tokens, 316);
  EXPECT_EQ(ints(m.prefill_query_start_loc),
            (Ints{0, 14, 150, 250, 251, 252, 258, 316, 316}));
  using Runs = std::vector<std::vector<int64_t>>;
  auto runs = [](const GDNMetadata &m) {
    Runs all;
    for (int64_t i = 0; i < m.num_runs; ++i)
      all.push_back({m.runs[i].kind, m.runs[i].first_token,
                     m.runs[i].num_tokens, m.runs[i].first_row,
                     m.runs[i].num_rows});
    return all;
  };
  EXPECT_EQ(runs(m), (Runs{{GDNRT_RUN_DECODE, 0, 1, 0, 1},
                           {GDNRT_RUN_PREFILL, 1, 14, 1, 1},
                           {GDNRT_RUN_PREFILL, 15, 237, 2, 3},
                           {GDNRT_RUN_PREFILL, 252, 65, 5, 4}}));
  EXPECT_EQ(Ints(m.runs[2].query_start_loc, m.runs[2].query_start_loc + 4),
            (Ints{0, 136, 236, 237}));
  // Two tokens on both sides of the end of a block are no decodes.
  m = build(*builder, {{65}, {2}, {}, {}});
  EXPECT_EQ(m.num_decodes, 0);
  EXPECT_EQ(runs(m), (Runs{{GDNRT_RUN_PREFILL, 0, 1, 0, 1},
                           {GDNRT_RUN_PREFILL, 1, 1, 1, 1}}));
  // The next step has none of that, and as many rows as there are may have.
  m = build(*builder, {{66}, {1}, {}, {}});
  EXPECT_EQ(ints(m.non_spec_rows), kNone);
  EXPECT_EQ(kinds(m), (Ints{GDNRT_RUN_DECODE}));
  m = build(*builder, {Ints(16, 65), Ints(16, 2), {}, {}});
  EXPECT_EQ(m.num_prefills, 32);
  EXPECT_EQ(m.num_runs, 17);
  EXPECT_EQ(m.run_has_initial.size, 32);
}

TEST(BlockTable, StateColumns) {
  auto columns = [](const MetadataOptions &o, const Ints &tokens,
                    const Ints &starts, const Ints &accepted) {
    Ints found(tokens.size(), -9);
    Status s = makeBuilder(o)->stateColumns(
        tokens.data(), starts.empty() ? nullptr : starts.data(),
        accepted.empty() ? nullptr : accepted.data(),
        static_cast<int64_t>(tokens.size()), found.data());
    return std::pair(s.toString(), found);
  };
  using Found = std::pair<std::string, Ints>;
  MetadataOptions o = options(0);
  EXPECT_EQ(columns(o, {0, 1, 500}, {}, {}), Found("OK", {-1, 0, 0}));
  o.mamba_cache_mode = GDNRT_CACHE_ALL;
  o.block_size = 64;
  EXPECT_EQ(columns(o, {0, 1, 64, 65, 128, 129}, {}, {}),
            Found("OK", {-1, 0, 0, 1, 1, 2}));
  o = options(2);
  EXPECT_EQ(columns(o, {0, 5, 9}, {}, {0, 1, 3}), Found("OK", {-1, 0, 2}));
  o.mamba_cache_mode = GDNRT_CACHE_ALIGN;
  o.block_size = 16;
  // Where the last step had its last draft, then so many tokens on; not known.
  EXPECT_EQ(columns(o, {17, 16, 33}, {1, 1, -1}, {1, 2, 1}),
            Found("OK", {1, 2, 2}));
  const Ints same(1, -9);
  EXPECT_EQ(columns(o, {5}, {}, {1}),
            Found("INVALID_ARGUMENT: starts: expected an array with the cache "
                  "mode, got null",
                  same));
  EXPECT_EQ(
      columns(o, {5}, {0}, {}),
      Found("INVALID_ARGUMENT: accepted: expected counts, got null", same));
  EXPECT_EQ(columns(o, {5}, {0}, {4}),
            Found("INVALID_ARGUMENT: accepted: expected 1 to 3 of request 0, "
                  "got 4",
                  same));
  o = options(2);
  EXPECT_EQ(columns(o, {-1}, {}, {1}),
            Found("INVALID_ARGUMENT: num_tokens: expected 0 or more of request "
                  "0, got -1",
                  same));
  EXPECT_EQ(columns(o, {1}, {1}, {1}),
            Found("INVALID_ARGUMENT: starts: expected null with the cache "
                  "mode, got an array",
                  same));
  o.verify_states = GDNRT_VERIFY_LAZY;
  EXPECT_EQ(columns(o, {7}, {}, {3}), Found("OK", {0}));
  o.verify_states = GDNRT_VERIFY_BUFFER;
  EXPECT_EQ(columns(o, {7}, {}, {0}), Found("OK", {0}));
  EXPECT_EQ(columns(o, {7}, {}, {2}),
            Found("INVALID_ARGUMENT: accepted: expected 0 of request 0, whose "
                  "state has all tokens behind a commit, got 2",
                  same));
}
