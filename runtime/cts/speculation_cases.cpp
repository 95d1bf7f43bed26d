// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps one after another through a layer whose verify leaves something to
// commit: each has the bits of the kernels alone, called as the guide says.

#include "layer_test.h"

using namespace gdnrt::cts;

namespace {

class SpeculationCases : public LayerTest {
protected:
  void SetUp() override {
    LayerTest::SetUp();
    if (!IsSkipped() && !hasCommits())
      GTEST_SKIP() << "verify leaves nothing to commit";
    if (!IsSkipped() && (!commit.exists() || !decode.exists()))
      GTEST_SKIP() << commit.refusal() << decode.refusal();
  }

  Rows rowsOf(std::vector<int64_t> lengths, std::vector<int64_t> accepted) {
    Rows rows;
    rows.lengths = std::move(lengths);
    rows.accepted = std::move(accepted);
    rows.slots = {4, 2, 7};
    rows.steps = 1 + kDrafts;
    if (states() == GDNRT_VERIFY_BUFFER)
      rows.tokenSlots = {{4, 5, 6}, {1, 2, 3}, {7, 8, 9}};
    return rows;
  }

  /// `accepted` tokens of the rows' last step into the states of `pools`.
  void commitAlone(Problem &pools, const std::vector<int64_t> &accepted) {
    Problem problem(commit.entry(), rowsOf({1, 1, 1}, accepted));
    problem.takePools(pools);
    commit.run(problem);
    pools.takePools(problem);
  }

  /// A step with the kernels alone, from and to `pools`; `problem` gets the
  /// outputs.
  void runAlone(const Kernel &of, Problem &problem, Problem &pools,
                const std::vector<int64_t> &accepted) {
    if (of.handle() == decode.handle() || states() == GDNRT_VERIFY_BUFFER)
      commitAlone(pools, accepted);
    problem.takePools(pools);
    of.run(problem);
    pools.takePools(problem);
  }

  struct Step {
    EntryKind kind;
    std::vector<int64_t> lengths, accepted;
  };
  void expectSteps(const std::vector<Step> &steps) {
    const Rows first = rowsOf({3, 2, 1}, {0, 0, 0});
    Problem alone(verify.entry(), first), layered = alone;
    Problem whole(verify.entry(), rowsOf({30, 1, 1}, {0, 0, 0}));
    verify.onDevice(layered, [&](const auto &fixed) {
      makeLayer(fixed, /*whole=*/true);
      int64_t shift = 0;
      for (const Step &each : steps) {
        const Kernel &of = each.kind == EntryKind::decode ? decode : verify;
        const Rows rows = rowsOf(each.lengths, each.accepted);
        Problem one(of.entry(), rows);
        if (of.handle() == verify.handle())
          one.takeTokens(whole, shift++);
        Problem two = one;
        runAlone(of, one, alone, each.accepted);
        gdnrt_gdn_metadata metadata = build(each.kind, rows);
        of.onDevice(two, [&](const auto &args) { step(args, &metadata); });
        expectSameOutputs(two, one);
      }
    });
    expectSamePools(layered, alone);
  }
};
GDNRT_CTS_VERIFY(SpeculationCases);

} // namespace

TEST_P(SpeculationCases, VerifiedRowsGoOnFromWhatWasAccepted) {
  expectSteps({{EntryKind::verify, {3, 2, 1}, {0, 0, 0}},
               {EntryKind::verify, {2, 3, 1}, {2, 1, 0}},
               {EntryKind::verify, {1, 3, 2}, {2, 3, 1}},
               {EntryKind::verify, {3, 3, 3}, {1, 2, 2}}});
}

// A row that was verified and is not now starts from what was right (D2).
TEST_P(SpeculationCases, DecodesCommitFirst) {
  if (takes(decode, "pending_counts"))
    GTEST_SKIP() << "the kernels alone would write states earlier";
  expectSteps({{EntryKind::verify, {3, 2, 1}, {0, 0, 0}},
               {EntryKind::decode, {1, 1, 1}, {3, 0, 1}},
               {EntryKind::decode, {1, 1, 1}, {0, 0, 0}},
               {EntryKind::verify, {2, 3, 1}, {0, 0, 0}},
               {EntryKind::decode, {1, 1, 1}, {1, 2, 1}}});
}

// A row without tokens keeps what waits for a commit, and its count.
TEST_P(SpeculationCases, RowsWithoutTokensKeepWhatWaits) {
  const Rows first = rowsOf({3, 2, 1}, {0, 0, 0});
  Problem start(verify.entry(), first);
  verify.run(start);
  const Rows idle = rowsOf({0, 3, 0}, {2, 2, 1});
  Problem layered(verify.entry(), idle);
  layered.takePools(start);
  const Problem before = layered;
  gdnrt_gdn_metadata metadata = build(EntryKind::verify, idle);
  verify.onDevice(layered, [&](const auto &args) {
    makeLayer(args, /*whole=*/true);
    step(args, &metadata);
  });
  for (const std::string &pool : layered.pools())
    for (int64_t slot : {4, 7})
      EXPECT_TRUE(layered.slotOf(pool, slot) == before.slotOf(pool, slot))
          << pool;
  const char *written =
      takes(verify, "pending_counts") ? "pending_keys" : "state_pool";
  EXPECT_FALSE(layered.slotOf(written, 2) == before.slotOf(written, 2));
}

TEST_P(SpeculationCases, CountsOutOfRangeSkipTheRow) {
  for (EntryKind of : {EntryKind::verify, EntryKind::decode}) {
    const Rows rows = rowsOf({1, 1, 1}, {4, -1, INT32_MAX});
    Problem problem((of == EntryKind::decode ? decode : verify).entry(), rows);
    Problem pools(verify.entry(), rows);
    const Problem before = pools;
    gdnrt_gdn_metadata metadata = build(of, rows);
    verify.onDevice(pools, [&](const auto &fixed) {
      makeLayer(fixed, /*whole=*/true);
      (of == EntryKind::decode ? decode : verify)
          .onDevice(problem, [&](const auto &args) { step(args, &metadata); });
    });
    for (int64_t row = 0; row < problem.numRows(); ++row)
      expectZeroRow(problem, row);
    expectSamePools(pools, before);
  }
}

// What the layer cannot do is said before anything is launched.
TEST_P(SpeculationCases, Refusals) {
  const Rows rows = rowsOf({1, 1, 1}, {1, 0, 0});
  Problem problem(verify.entry(), rows);
  const Problem before = problem;
  gdnrt_gdn_metadata metadata = build(EntryKind::verify, rows);
  metadata.verify_states = GDNRT_VERIFY_SLOTS;
  verify.onDevice(problem, [&](const auto &args) {
    makeLayer(args, /*whole=*/true);
    std::vector<gdnrt_named_arg> tokens = pick(args, false);
    EXPECT_EQ(gdnrt_gdn_layer_forward(layer, &metadata, upload(metadata),
                                      tokens.data(), tokens.size(), nullptr,
                                      &error),
              GDNRT_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.message).find("metadata: expected the verify"),
              std::string::npos)
        << error.message;
  });
  expectSamePools(problem, before);
}
