// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States after every token: which state a row starts from, where states go, and
// that refused tokens leave no trace.

#include "suite.h"

using namespace gdnrt::cts;

class VerifyCases : public EntryTest {
protected:
  void SetUp() override {
    EntryTest::SetUp();
    size_t index;
    for (const char *name : {"num_accepted", "token_slots"})
      if (!IsSkipped() && gdnrt_entry_find_param(kernel.entry(), name, &index,
                                                 nullptr) != GDNRT_OK)
        GTEST_SKIP() << "the entry takes no " << name;
  }
  Problem make(std::vector<int64_t> lengths, std::vector<int64_t> accepted,
               std::vector<std::vector<int64_t>> tokenSlots) {
    return Problem(kernel.entry(), {std::move(lengths),
                                    {},
                                    0,
                                    {},
                                    std::move(tokenSlots),
                                    std::move(accepted)});
  }
};
GDNRT_CTS_VERIFY(VerifyCases);

/// Expects slot `slot` of all pools to hold the same bits in both.
static void expectSameSlot(const Problem &a, const Problem &b, int64_t slot) {
  for (const std::string &pool : a.pools())
    EXPECT_TRUE(a.slotOf(pool, slot) == b.slotOf(pool, slot))
        << pool << ", slot " << slot;
}

// What follows a token changes nothing of what it left.
TEST_P(VerifyCases, LaterTokensLeaveNoTrace) {
  Problem whole = make({4, 1}, {2, 1}, {{1, 2, 3, 4}, {5, 6, 7, 8}});
  const Problem before = whole;
  kernel.run(whole);
  for (int64_t length = 1; length <= 3; ++length) {
    Problem part = make({length}, {2}, {{1, 2, 3, 4}});
    kernel.run(part);
    for (int64_t slot = 1; slot <= 4; ++slot) {
      if (slot <= length)
        expectSameSlot(part, whole, slot);
      else
        expectSameSlot(part, before, slot);
    }
  }
  for (const std::string &pool : whole.pools())
    EXPECT_FALSE(whole.slotOf(pool, 3) == whole.slotOf(pool, 4)) << pool;
}

// A step after k accepted tokens does not know how many were refused.
TEST_P(VerifyCases, RollsBack) {
  for (int64_t accepted = 1; accepted <= 4; ++accepted) {
    Problem all = make({4}, {1}, {{1, 2, 3, 4}});
    Problem some = make({accepted}, {1}, {{1, 2, 3, 4}});
    kernel.run(all);
    kernel.run(some);
    Problem afterAll = make({3}, {accepted}, {{1, 2, 3, 4}});
    Problem afterSome = afterAll;
    for (const std::string &pool : all.pools()) {
      afterAll[pool] = all[pool];
      afterSome[pool] = some[pool];
    }
    kernel.run(afterAll);
    kernel.run(afterSome);
    expectSameOutputs(afterAll, afterSome);
    for (int64_t slot = 1; slot <= 3; ++slot)
      expectSameSlot(afterAll, afterSome, slot);
  }
}

TEST_P(VerifyCases, CountsOutOfRangeSkipTheRow) {
  Problem problem = make({2, 1, 2, 2}, {0, 3, -1, INT32_MAX},
                         {{1, 2}, {3, 4}, {5, 6}, {7, 8}});
  const Problem before = problem;
  kernel.run(problem);
  for (int64_t row = 0; row < problem.numRows(); ++row)
    expectZeroRow(problem, row);
  expectSamePools(problem, before);
}

// Skipped ids, rows without tokens, and NaN in every slot that is not read.
TEST_P(VerifyCases, WhatIsSkippedIsNotTouched) {
  Problem problem = make({3, 0, 2, 2}, {2, 1, 1, 2},
                         {{-1, 2, 0}, {3, 4, 5}, {0, 6, 7}, {9, 8, kNumSlots}});
  for (const std::string &pool : problem.pools())
    for (int64_t slot = 0; slot < kNumSlots; ++slot)
      if (slot != 2 && slot != 8)
        problem.poisonSlot(pool, slot);
  const Problem before = problem;
  kernel.run(problem);
  expectZeroRow(problem, 2); // it reads the null slot
  for (int64_t slot : {0, 1, 3, 4, 5, 6, 7, 10, 11})
    expectSameSlot(problem, before, slot);
  for (const std::string &pool : problem.pools())
    for (int64_t slot : {2, 8, 9})
      EXPECT_FALSE(problem.slotOf(pool, slot) == before.slotOf(pool, slot));
  expectPaddingIntact(problem);
}
