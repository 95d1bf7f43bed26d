// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tokens that a commit, or the next step, takes into the states: pending ones,
// and states in a buffer of their own. Whatever was accepted, a sequence goes
// on as if decode had run on those tokens alone: with its bits, but for pending
// tokens on a GPU, which takes those of a step at once, and those of several
// steps: they are summed in another order.

#include "suite.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace gdnrt::cts;

namespace {
/// The columns of a window, those of the entry `decode`.
constexpr int64_t kWindow = 3;
constexpr int64_t kSteps = 4;
} // namespace

class CommitCases : public EntryTest {
protected:
  CommitCases()
      : commit(EntryKind::commit, std::get<1>(GetParam())),
        decode(EntryKind::decode, std::get<1>(GetParam())) {}
  void SetUp() override {
    EntryTest::SetUp();
    if (!IsSkipped() && (!commit.exists() || !decode.exists()))
      GTEST_SKIP() << "the image has no entry commit";
  }
  static bool takes(const Kernel &kernel, const char *name) {
    size_t index;
    return gdnrt_entry_find_param(kernel.entry(), name, &index, nullptr) ==
           GDNRT_OK;
  }
  /// A decode step on slot `slot`, of token `token` of `whole`.
  Problem step(const Problem &whole, int64_t token, int64_t slot,
               const Problem &pools) {
    Rows rows;
    rows.lengths = {1};
    rows.slots = {slot};
    Problem one(decode.entry(), rows);
    one.takeTokens(whole, token);
    one.takePools(pools);
    decode.run(one);
    return one;
  }
  Kernel commit, decode;
};

class PendingCases : public CommitCases {
protected:
  void SetUp() override {
    CommitCases::SetUp();
    if (!IsSkipped() && !takes(kernel, "pending_keys"))
      GTEST_SKIP() << "the entry leaves no token pending";
  }
  /// Whether slots count tokens that are pending over several steps.
  bool isDeferred() const { return takes(kernel, "pending_counts"); }
  bool hasBitsOfDecode() const {
    return suiteOptions.device == "cpu" && !isDeferred();
  }
  /// Sets what a step with `accepted` tokens of the one before does not read in
  /// slot `slot` to NaN: inputs of others, and pending tokens behind these and
  /// those that the slot counts.
  void poisonUnread(Problem &problem, int64_t slot, int64_t accepted) {
    problem.poisonColumns("conv_pool", slot, kSteps, accepted);
    for (const char *pool : {"pending_keys", "pending_deltas", "pending_decays",
                             "pending_scales"}) {
      if (!problem.has(pool))
        continue;
      int32_t counted = 0;
      if (isDeferred()) // of its one key head
        std::memcpy(&counted, problem.slotOf("pending_counts", slot).data(),
                    sizeof(counted));
      problem.poisonColumns(pool, slot, problem[pool].sizes()[2],
                            counted + accepted);
    }
  }
  Problem make(const Kernel &entry, std::vector<int64_t> lengths,
               std::vector<int64_t> accepted, std::vector<int64_t> slots = {}) {
    Rows rows;
    rows.lengths = std::move(lengths);
    rows.accepted = std::move(accepted);
    rows.slots = std::move(slots);
    rows.steps = kSteps;
    return Problem(entry.entry(), rows);
  }
  /// `accepted` tokens of each slot into the states of `pools`.
  Problem commitTo(const Problem &pools, std::vector<int64_t> accepted,
                   std::vector<int64_t> slots) {
    std::vector<int64_t> lengths(slots.size(), 1);
    Problem problem =
        make(commit, std::move(lengths), std::move(accepted), std::move(slots));
    problem.takePools(pools);
    commit.run(problem);
    return problem;
  }
};
GDNRT_CTS_VERIFY(PendingCases);

/// Expects the bytes of every slot but some to be equal.
static void expectOthersKept(const Problem &a, const Problem &b,
                             std::vector<int64_t> slots) {
  for (const std::string &pool : a.pools())
    for (int64_t slot = 0; slot < kNumSlots; ++slot)
      if (std::find(slots.begin(), slots.end(), slot) == slots.end())
        EXPECT_TRUE(a.slotOf(pool, slot) == b.slotOf(pool, slot))
            << pool << ", slot " << slot;
}

/// Expects f32 states of pending tokens to be those of decode, `exactly` or but
/// for the order of sums.
static void expectStateOfDecode(const Bytes &got, const Bytes &want,
                                bool exactly) {
  ASSERT_EQ(got.size(), want.size());
  if (exactly) {
    EXPECT_TRUE(got == want);
    return;
  }
  double differences = 0, squares = 0;
  for (size_t i = 0; i + sizeof(float) <= want.size(); i += sizeof(float)) {
    float a, b;
    std::memcpy(&a, got.data() + i, sizeof(a));
    std::memcpy(&b, want.data() + i, sizeof(b));
    differences += (double(a) - b) * (double(a) - b);
    squares += double(b) * b;
  }
  EXPECT_LE(std::sqrt(differences / std::max(squares, 1e-30)), 1e-6);
}

/// Expects the output of token `token` of a step to be that of a decode step.
static void expectOutputOfDecode(const Problem &step, int64_t token,
                                 const Problem &decoded, bool exactly) {
  const std::string &name = decoded.outputs()[0];
  const HostArray &got = step[name], &want = decoded[name];
  double differences = 0, squares = 0;
  for (int64_t i = 0; i < want.count(); ++i) {
    const double a = got.number(token * want.count() + i), b = want.number(i);
    differences += (a - b) * (a - b);
    squares += b * b;
  }
  // Outputs are rounded: where sums differ, some fall to the other side.
  const double limit = exactly ? 0 : 1e-3;
  EXPECT_LE(std::sqrt(differences / std::max(squares, 1e-30)), limit)
      << "token " << token;
}

// Steps of all lengths, of which all numbers of tokens are accepted; beside
// them decode steps on what was accepted. At the end a commit, and one step
// more. With deferred writes decode has pending tokens of its own.
TEST_P(PendingCases, AsIfDecodeHadRunOnWhatWasAccepted) {
  Problem pools = make(kernel, {1}, {0});
  if (pools["state_pool"].arg().dtype != GDNRT_F32)
    GTEST_SKIP() << "a narrow pool is rounded at every decode step";
  // Pairs of tokens in a step and how many of them are accepted.
  const int64_t trace[][2] = {{4, 2}, {3, 0}, {1, 1}, {4, 4},
                              {2, 1}, {3, 3}, {4, 0}, {4, 3}};
  Rows first;
  first.lengths = {1};
  Problem plain(decode.entry(), first);
  plain.takePools(pools);
  int64_t accepted = 0;
  Problem whole = make(kernel, {19, 4}, {0, 0}); // inputs of other tokens
  for (auto [length, next] : trace) {
    Problem part = make(kernel, {length}, {accepted});
    part.takeTokens(whole, 7 + next);
    part.takePools(pools);
    kernel.run(part);
    pools.takePools(part);
    // The slot holds what is accepted, and nothing of this step.
    if (!isDeferred())
      expectStateOfDecode(pools.slotOf("state_pool", 1),
                          plain.slotOf("state_pool", 1), hasBitsOfDecode());
    EXPECT_TRUE(pools.windowOf(1, kWindow) == plain.windowOf(1, kWindow));
    for (int64_t t = 0; t < next; ++t) {
      Problem one = step(part, t, 1, plain);
      plain.takePools(one);
      expectOutputOfDecode(part, t, one, hasBitsOfDecode());
    }
    accepted = next;
  }
  pools.takePools(commitTo(pools, {accepted}, {1}));
  if (isDeferred())
    plain.takePools(commitTo(plain, {0}, {1}));
  expectStateOfDecode(pools.slotOf("state_pool", 1),
                      plain.slotOf("state_pool", 1), hasBitsOfDecode());
  EXPECT_TRUE(pools.windowOf(1, kWindow) == plain.windowOf(1, kWindow));
  expectOutputOfDecode(step(whole, 3, 1, pools), 0, step(whole, 3, 1, plain),
                       hasBitsOfDecode());
}

TEST_P(PendingCases, CountsOutOfRangeSkipTheRow) {
  Problem problem = make(kernel, {2, 1, 2, 2}, {5, -1, INT32_MIN, INT32_MAX});
  const Problem before = problem;
  kernel.run(problem);
  for (int64_t row = 0; row < problem.numRows(); ++row)
    expectZeroRow(problem, row);
  expectSamePools(problem, before);
  Problem none =
      commitTo(before, {5, -1, INT32_MIN, INT32_MAX, 0}, {1, 2, 3, 4, 5});
  // Slots that count tokens have them to put into their states.
  expectOthersKept(none, before,
                   isDeferred() ? std::vector<int64_t>{5}
                                : std::vector<int64_t>());
}

// The entry takes rows of up to eight tokens; beside a longer one the others
// run.
TEST_P(PendingCases, LongRowsAreSkipped) {
  Problem problem = make(kernel, {9, 8, 40, 1}, {0, 2, 1, 0});
  const Problem before = problem;
  kernel.run(problem);
  for (int64_t row : {0, 2})
    expectZeroRow(problem, row);
  for (int64_t row : {1, 3})
    for (const std::string &output : problem.outputs())
      EXPECT_TRUE(problem.isFiniteRow(output, row)) << output << row;
  expectOthersKept(problem, before, {2, 4});
  expectPaddingIntact(problem);
}

// Skipped slots, rows without tokens, and NaN wherever nothing is read: other
// slots, and places of tokens that are not accepted.
TEST_P(PendingCases, WhatIsSkippedIsNotTouched) {
  const std::vector<int64_t> slots = {-1, 2, 0, 4, kNumSlots, 6};
  Problem problem = make(kernel, {1, 3, 2, 0, 1, 4}, {1, 2, 0, 3, 1, 0}, slots);
  for (const std::string &pool : problem.pools())
    for (int64_t slot = 0; slot < kNumSlots; ++slot)
      if (slot != 2 && slot != 6)
        problem.poisonSlot(pool, slot);
  poisonUnread(problem, 2, 2);
  poisonUnread(problem, 6, 0);
  const Problem before = problem;
  kernel.run(problem);
  for (int64_t row : {0, 2, 4})
    expectZeroRow(problem, row);
  for (int64_t row : {1, 5})
    for (const std::string &output : problem.outputs())
      EXPECT_TRUE(problem.isFiniteRow(output, row)) << output << row;
  expectOthersKept(problem, before, {2, 6});
  expectPaddingIntact(problem);
  Problem committed =
      commitTo(before, {1, 2, 1, 1, 0}, {-1, 2, 0, kNumSlots, 6});
  expectOthersKept(committed, before,
                   isDeferred() ? std::vector<int64_t>{2, 6}
                                : std::vector<int64_t>{2});
  EXPECT_FALSE(committed.slotOf("state_pool", 2) ==
               before.slotOf("state_pool", 2));
}

// A fork is a commit and a copy.
TEST_P(PendingCases, ForksGoOnAlike) {
  Kernel copy(EntryKind::copy, std::get<1>(GetParam()));
  if (!copy.exists())
    GTEST_SKIP() << "the image has no entry copy_slots";
  Problem start = make(kernel, {3}, {0});
  kernel.run(start);
  // What the other slot counts is gone by then.
  start.takePools(commitTo(start, {2, 0}, {1, 5}));
  Rows rows;
  rows.lengths = {1};
  rows.slots = {1};
  rows.writeSlots = {5};
  Problem moved(copy.entry(), rows);
  moved.takePools(start);
  copy.run(moved);
  start.takePools(moved);
  Problem one = make(kernel, {2}, {0}), other = make(kernel, {2}, {0}, {5});
  one.takePools(start);
  other.takePools(start);
  kernel.run(one);
  kernel.run(other);
  expectSameOutputs(one, other);
  one.takePools(commitTo(one, {2}, {1}));
  other.takePools(commitTo(other, {2}, {5}));
  EXPECT_TRUE(one.slotOf("state_pool", 1) == other.slotOf("state_pool", 5));
}

class BufferCases : public CommitCases {
protected:
  void SetUp() override {
    CommitCases::SetUp();
    if (!IsSkipped() && !takes(kernel, "token_state_pool"))
      GTEST_SKIP() << "the entry has no pools for states after tokens";
  }
  Problem make(const Kernel &entry, std::vector<int64_t> lengths,
               std::vector<std::vector<int64_t>> tokenSlots,
               std::vector<int64_t> accepted, std::vector<int64_t> slots = {}) {
    Rows rows;
    rows.lengths = std::move(lengths);
    rows.slots = std::move(slots);
    rows.tokenSlots = std::move(tokenSlots);
    rows.accepted = std::move(accepted);
    return Problem(entry.entry(), rows);
  }
};
GDNRT_CTS_VERIFY(BufferCases);

// A step leaves the rows' states alone; each accepted one comes back, and
// leaves the bits of decode steps.
TEST_P(BufferCases, AcceptedStatesComeBack) {
  const std::vector<std::vector<int64_t>> table = {
      {1, 2, 3}, {4, 5, 6}, {7, 0, 8}, {9, 10, 11}};
  Problem problem = make(kernel, {3, 2, 3, 1}, table, {}, {4, 3, 2, -1});
  const Problem before = problem;
  kernel.run(problem);
  expectZeroRow(problem, 3);
  for (const char *pool : {"conv_pool", "state_pool"})
    EXPECT_TRUE(problem[pool].elements() == before[pool].elements()) << pool;
  for (int64_t slot : {0, 6, 9, 10, 11})
    for (const char *pool : {"token_conv_pool", "token_state_pool"})
      EXPECT_TRUE(problem.slotOf(pool, slot) == before.slotOf(pool, slot));
  for (int64_t accepted = 1; accepted <= 3; ++accepted) {
    Problem after =
        make(commit, {1, 1, 1, 1}, table, {accepted, 0, 2, 1}, {4, 3, 2, -1});
    after.takePools(problem);
    commit.run(after);
    for (const char *pool : {"conv_pool", "state_pool"}) {
      EXPECT_TRUE(after.slotOf(pool, 4) ==
                  problem.slotOf(std::string("token_") + pool, accepted));
      // Nothing is accepted of one row; the other's slot is null.
      for (int64_t slot = 0; slot < kNumSlots; ++slot)
        if (slot != 4)
          EXPECT_TRUE(after.slotOf(pool, slot) == before.slotOf(pool, slot));
    }
    if (before["state_pool"].arg().dtype != GDNRT_F32)
      continue;
    Problem plain = before;
    for (int64_t t = 0; t < accepted; ++t)
      plain.takePools(step(problem, t, 4, plain));
    for (const char *pool : {"conv_pool", "state_pool"})
      EXPECT_TRUE(after.slotOf(pool, 4) == plain.slotOf(pool, 4)) << pool;
  }
}

TEST_P(BufferCases, CountsOutOfRangeCopyNothing) {
  Problem problem = make(commit, {1, 1, 1, 1}, {{1}, {2}, {3}, {4}},
                         {2, -1, INT32_MIN, INT32_MAX});
  const Problem before = problem;
  commit.run(problem);
  expectSamePools(problem, before);
}
