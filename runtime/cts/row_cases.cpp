// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ragged rows: empty ones anywhere, empty batches, tokens that belong to no
// row, and rows of one token, which are decode steps.

#include "suite.h"

using namespace gdnrt::cts;

using RowCases = EntryTest;
GDNRT_CTS_ENTRIES(RowCases);

// Rows of decode always have one token.
using RaggedCases = EntryTest;
GDNRT_CTS_PREFILL(RaggedCases);

TEST_P(RowCases, NoRowsAndNoTokens) {
  Problem problem(kernel.entry(), {});
  Problem before = problem;
  kernel.run(problem);
  expectSamePools(problem, before);
}

TEST_P(RaggedCases, EmptyRowsTouchNothing) {
  // First, middle, two in a row, last.
  Problem problem(kernel.entry(), {{0, 3, 0, 0, 2, 0}, {}});
  Problem before = problem;
  Problem first = problem.alone(1), second = problem.alone(4);
  kernel.run(problem);
  kernel.run(first);
  kernel.run(second);
  for (const std::string &pool : problem.pools())
    for (int64_t slot : {1, 3, 4, 6})
      EXPECT_TRUE(problem.slotOf(pool, slot) == before.slotOf(pool, slot));
  for (const std::string &output : problem.outputs()) {
    EXPECT_TRUE(problem.outputOfRow(output, 1) == first.outputOfRow(output, 0));
    EXPECT_TRUE(problem.outputOfRow(output, 4) ==
                second.outputOfRow(output, 0));
  }
}

TEST_P(RaggedCases, OnlyEmptyRows) {
  Problem problem(kernel.entry(), {{0, 0, 0}, {}});
  Problem before = problem;
  kernel.run(problem);
  expectSamePools(problem, before);
}

TEST_P(RaggedCases, TokensOfNoRowAreZero) {
  Rows rows = {{2, 1}, {}};
  Problem exact(kernel.entry(), rows);
  rows.paddingTokens = 3;
  Problem padded(kernel.entry(), rows);
  kernel.run(exact);
  kernel.run(padded);
  for (const std::string &output : padded.outputs()) {
    const HostArray &array = padded[output];
    int64_t width = array.count() / padded.numTokens();
    for (int64_t i = padded.firstToken(2) * width; i < array.count(); ++i)
      ASSERT_TRUE(array.isZero(i)) << output << ", element " << i;
    for (int64_t row : {0, 1})
      EXPECT_TRUE(padded.outputOfRow(output, row) ==
                  exact.outputOfRow(output, row));
  }
  expectSamePools(exact, padded);
}

TEST_P(RaggedCases, OneTokenIsADecodeStep) {
  Kernel decode(EntryKind::decode, std::get<1>(GetParam()));
  if (!decode.exists())
    GTEST_SKIP() << "the image has no decode";
  const char *from = gdnrt_entry_attribute(kernel.entry(), "chunk_from");
  if (from && std::string(from) == "1")
    GTEST_SKIP() << "a row of one token takes the chunk form";
  Rows rows = {{1, 1, 1}, {7, 0, 3}};
  Problem extend(kernel.entry(), rows), step(decode.entry(), rows);
  if (step.has("pending_counts"))
    GTEST_SKIP() << "decode leaves its token pending";
  kernel.run(extend);
  decode.run(step);
  // Code for GPUs works in chunks whatever their length, with other roundings.
  if (suiteOptions.device != "cpu")
    return expectNear(extend, step, 5e-3);
  expectSameOutputs(extend, step);
  expectSamePools(extend, step);
}
