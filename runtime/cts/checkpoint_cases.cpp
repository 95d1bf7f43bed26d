// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States inside rows: where they go, what they are made of, and what writes
// nothing.

#include "suite.h"

using namespace gdnrt::cts;

class CheckpointCases : public EntryTest {
protected:
  void SetUp() override {
    EntryTest::SetUp();
    size_t index;
    if (!IsSkipped() && gdnrt_entry_find_param(kernel.entry(), "cu_checkpoints",
                                               &index, nullptr) != GDNRT_OK)
      GTEST_SKIP() << "the entry takes no checkpoints";
  }
};
GDNRT_CTS_PREFILL(CheckpointCases);

TEST_P(CheckpointCases, AtTheEndIsTheLastState) {
  Problem problem(kernel.entry(),
                  {{128, 70}, {3, 4}, 0, {{{128, 8}}, {{64, 9}}}});
  kernel.run(problem);
  for (const std::string &pool : problem.pools()) {
    EXPECT_TRUE(problem.slotOf(pool, 8) == problem.slotOf(pool, 3)) << pool;
    EXPECT_FALSE(problem.slotOf(pool, 9) == problem.slotOf(pool, 4)) << pool;
  }
}

// What a row has inside is what a row has that ends there, bit for bit: of the
// same tokens, which the first row of both batches has.
TEST_P(CheckpointCases, InsideIsTheEndOfAShorterRow) {
  Problem whole(kernel.entry(), {{200}, {3}, 0, {{{64, 8}, {192, 9}}}});
  Problem ending(kernel.entry(), {{64}, {3}});
  kernel.run(whole);
  kernel.run(ending);
  for (const std::string &pool : whole.pools()) {
    EXPECT_TRUE(whole.slotOf(pool, 8) == ending.slotOf(pool, 3)) << pool;
    EXPECT_FALSE(whole.slotOf(pool, 8) == whole.slotOf(pool, 9)) << pool;
  }
}

// Counts that are no checkpoint, skipped ids and rows, and NaN in the slots.
TEST_P(CheckpointCases, WhatWritesNothingChangesNothing) {
  Rows rows = {{130, 0, 64, 63}, {3, 4, 0, 5}};
  Problem plain(kernel.entry(), rows);
  rows.checkpoints = {{{-64, 8},
                       {0, 8},
                       {65, 8},
                       {64, 0},
                       {128, -1},
                       {64, 8},
                       {128, 8},
                       {192, 8}},
                      {{0, 8}, {64, 8}},
                      {{64, 8}},
                      {{64, 8}, {63, 8}}};
  Problem problem(kernel.entry(), rows);
  for (Problem *each : {&plain, &problem})
    for (const std::string &pool : each->pools())
      each->poisonSlot(pool, 8);
  kernel.run(plain);
  kernel.run(problem);
  expectSameOutputs(plain, problem);
  expectSamePools(plain, problem);
}
