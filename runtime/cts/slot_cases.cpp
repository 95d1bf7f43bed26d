// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The contract of slots: a skipped id gives zero rows and touches no pool; NaN
// in what a launch does not use never comes out.

#include "suite.h"

using namespace gdnrt::cts;

using SlotCases = EntryTest;
GDNRT_CTS_ENTRIES(SlotCases);

TEST_P(SlotCases, SkippedRowsAreZeroAndTouchNothing) {
  // Null, negative, just past the end, far past the end.
  Problem problem(kernel.entry(),
                  {{2, 1, 3, 1}, {0, -1, kNumSlots, INT32_MAX}});
  Problem before = problem;
  kernel.run(problem);
  for (int64_t row = 0; row < problem.numRows(); ++row)
    expectZeroRow(problem, row);
  expectSamePools(problem, before);
}

TEST_P(SlotCases, LiveRowsDoNotNoticeSkippedOnes) {
  Problem mixed(kernel.entry(), {{2, 3, 2, 4}, {-7, 5, 0, 2}});
  Problem start = mixed;
  Problem first = mixed.alone(1), second = mixed.alone(3);
  kernel.run(mixed);
  kernel.run(first);
  kernel.run(second);
  expectZeroRow(mixed, 0);
  expectZeroRow(mixed, 2);
  for (const std::string &output : mixed.outputs()) {
    EXPECT_TRUE(mixed.outputOfRow(output, 1) == first.outputOfRow(output, 0));
    EXPECT_TRUE(mixed.outputOfRow(output, 3) == second.outputOfRow(output, 0));
  }
  for (const std::string &pool : mixed.pools())
    for (int64_t slot = 0; slot < kNumSlots; ++slot) {
      const Problem &expected = slot == 5 ? first : slot == 2 ? second : start;
      EXPECT_TRUE(mixed.slotOf(pool, slot) == expected.slotOf(pool, slot))
          << pool << ", slot " << slot;
    }
}

TEST_P(SlotCases, OtherNullSlot) {
  // With null slot 3, slot 0 is like any other.
  Problem problem(kernel.entry(), {{2, 2}, {3, 0}});
  for (const std::string &pool : problem.pools())
    problem[pool].nullSlot = 3;
  Problem before = problem;
  kernel.run(problem);
  expectZeroRow(problem, 0);
  for (const std::string &pool : problem.pools()) {
    EXPECT_TRUE(problem.slotOf(pool, 3) == before.slotOf(pool, 3));
    // A token may be pending beside a state that stays as it is.
    if (!problem.has("pending_counts"))
      EXPECT_FALSE(problem.slotOf(pool, 0) == before.slotOf(pool, 0));
  }
  if (problem.has("pending_counts"))
    EXPECT_FALSE(problem.slotOf("pending_keys", 0) ==
                 before.slotOf("pending_keys", 0));
}

TEST_P(SlotCases, RowsFromZerosDoNotReadTheirSlots) {
  Problem zeros(kernel.entry(), {{2, 1, 3}, {4, 2, 6}});
  if (!zeros.has("has_initial"))
    GTEST_SKIP() << "rows of the entry start from their slots";
  Problem told = zeros;
  for (int64_t row : {0, 2})
    told["has_initial"].setInteger(row, 0);
  for (const std::string &pool : zeros.pools())
    for (int64_t slot : {4, 6}) {
      const int64_t width = zeros[pool].count() / kNumSlots;
      for (int64_t i = 0; i < width; ++i)
        zeros[pool].setNumber(slot * width + i, 0);
      told.poisonSlot(pool, slot);
    }
  kernel.run(zeros);
  kernel.run(told);
  expectSameOutputs(zeros, told);
  for (const std::string &pool : zeros.pools())
    for (int64_t slot : {2, 4, 6})
      EXPECT_TRUE(zeros.slotOf(pool, slot) == told.slotOf(pool, slot))
          << pool << ", slot " << slot;
}

TEST_P(SlotCases, NanInUnusedSlotsStaysThere) {
  Rows rows = {{2, 3, 1}, {4, 0, 6}};
  Problem clean(kernel.entry(), rows), poisoned(kernel.entry(), rows);
  for (const std::string &pool : poisoned.pools())
    for (int64_t slot = 0; slot < kNumSlots; ++slot)
      if (slot != 4 && slot != 6)
        poisoned.poisonSlot(pool, slot);
  kernel.run(clean);
  kernel.run(poisoned);
  expectSameOutputs(clean, poisoned);
  for (const std::string &pool : clean.pools())
    for (int64_t slot : {4, 6})
      EXPECT_TRUE(clean.slotOf(pool, slot) == poisoned.slotOf(pool, slot));
}

TEST_P(SlotCases, NanInSkippedRowsStaysThere) {
  Problem clean(kernel.entry(), {{2, 3, 1}, {4, 0, 6}});
  Problem poisoned = clean;
  for (const char *name : {"qkvz", "ba", "qkv", "q", "k", "v", "z", "b", "a"}) {
    if (!poisoned.has(name))
      continue;
    HostArray &array = poisoned[name];
    int64_t width = array.count() / poisoned.numTokens();
    for (int64_t i = poisoned.firstToken(1) * width;
         i < poisoned.firstToken(2) * width; ++i)
      array.setNan(i);
  }
  kernel.run(clean);
  kernel.run(poisoned);
  expectZeroRow(poisoned, 1);
  expectSameOutputs(clean, poisoned);
  expectSamePools(clean, poisoned);
}
