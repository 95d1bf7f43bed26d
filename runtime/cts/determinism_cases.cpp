// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A result depends on its row alone: not on the batch around it, not on the
// number of workers, not on the run.

#include "suite.h"

using namespace gdnrt::cts;

using DeterminismCases = EntryTest;
GDNRT_CTS_ENTRIES(DeterminismCases);

TEST_P(DeterminismCases, NeighboursDoNotMatter) {
  // Rows of less than a chunk take the same variant alone and in a batch;
  // longer ones do where launches are batch invariant, which BatchCases has.
  Problem batch(kernel.entry(), {{5, 17, 1, 60, 2}, {3, 1, 9, 2, 8}});
  std::vector<Problem> rows;
  for (int64_t row = 0; row < batch.numRows(); ++row)
    rows.push_back(batch.alone(row));
  kernel.run(batch);
  const int64_t slots[] = {3, 1, 9, 2, 8};
  for (int64_t row = 0; row < batch.numRows(); ++row) {
    Problem &one = rows[static_cast<size_t>(row)];
    kernel.run(one);
    for (const std::string &output : batch.outputs())
      EXPECT_TRUE(batch.outputOfRow(output, row) == one.outputOfRow(output, 0))
          << output << ", row " << row;
    for (const std::string &pool : batch.pools())
      EXPECT_TRUE(batch.slotOf(pool, slots[row]) ==
                  one.slotOf(pool, slots[row]))
          << pool << ", row " << row;
  }
}

TEST_P(DeterminismCases, WorkersDoNotMatter) {
  Kernel other(std::get<0>(GetParam()), 3 - std::get<1>(GetParam()));
  Rows rows = {{1, 40, 3, 3, 9, 2}, {}};
  Problem here(kernel.entry(), rows), there(kernel.entry(), rows);
  kernel.run(here);
  other.run(there);
  expectSameOutputs(here, there);
  expectSamePools(here, there);
}

TEST_P(DeterminismCases, RunsAreEqual) {
  Problem first(kernel.entry(), {{9, 4, 33}, {}});
  Problem second = first;
  kernel.run(first);
  kernel.run(second);
  expectSameOutputs(first, second);
  expectSamePools(first, second);
}

TEST_P(DeterminismCases, LiveRowsGiveFiniteNumbers) {
  // The other cases compare bits, which NaN would pass: here a run that turned
  // everything into NaN or zero, or wrote nothing, is caught.
  Problem problem(kernel.entry(), {{9, 4, 33}, {}});
  kernel.run(problem);
  for (const std::string &output : problem.outputs()) {
    int64_t zeros = 0;
    for (int64_t i = 0; i < problem[output].count(); ++i) {
      ASSERT_TRUE(problem[output].isFinite(i)) << output << ", element " << i;
      zeros += problem[output].isZero(i);
    }
    EXPECT_LT(zeros, problem[output].count() / 100) << output;
  }
  for (const std::string &pool : problem.pools())
    for (int64_t i = 0; i < problem[pool].count(); ++i)
      ASSERT_TRUE(problem[pool].isFinite(i)) << pool << ", element " << i;
}
