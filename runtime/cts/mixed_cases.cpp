// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A mixed batch: verify and prefill take the same arrays, each its own rows,
// and leave the rows of the other as they are.

#include "suite.h"

#include <algorithm>

using namespace gdnrt::cts;

namespace {

class MixedCases : public EntryTest {
protected:
  void SetUp() override {
    EntryTest::SetUp();
    size_t index;
    if (!IsSkipped() && gdnrt_entry_find_param(kernel.entry(), "is_prefill",
                                               &index, nullptr) != GDNRT_OK)
      GTEST_SKIP() << "the entry takes all rows";
  }
  static bool isVerify() {
    return std::get<0>(GetParam()) == EntryKind::verify;
  }
  /// Short and long rows of both, in any order, and padding.
  static Rows rows() {
    Rows some;
    some.lengths = {3, 9, 0, 70, 8, 1};
    some.isPrefill = {0, 1, 0, 1, 0, 1};
    some.slots = {1, 2, 0, 4, 5, 3};
    some.paddingTokens = 2;
    // A tree writes no slot that it reads.
    some.tokenSlots = {{6, 7}, {8, -1}, {-1, -1}, {9, -1}, {10, 11}, {-1, -1}};
    some.accepted = {1, 1, 1, 1, 2, 1};
    some.parents.assign(some.lengths.size(), {-1, 0});
    return some;
  }
  static bool takes(const Rows &some, size_t row) {
    return (some.isPrefill[row] == 0) == isVerify();
  }
  Problem make(const Rows &some) const { return {kernel.entry(), some}; }
};
INSTANTIATE_TEST_SUITE_P(
    Cts, MixedCases,
    ::testing::Combine(::testing::Values(EntryKind::verify, EntryKind::prefill),
                       ::testing::Values(1, 2)),
    nameOf);

/// The slots that belong to a row, whoever takes it.
std::vector<int64_t> slotsOf(const Rows &rows, size_t row) {
  std::vector<int64_t> slots = rows.tokenSlots[row];
  slots.push_back(rows.slots[row]);
  slots.erase(std::remove_if(slots.begin(), slots.end(),
                             [](int64_t slot) { return slot <= 0; }),
              slots.end());
  return slots;
}

/// Row `row` of `rows` by itself, with the same inputs, states and slots.
Problem aloneOf(const gdnrt_entry *entry, const Rows &rows, size_t row,
                const Problem &all) {
  Rows one;
  one.lengths = {rows.lengths[row]};
  one.slots = {rows.slots[row]};
  one.tokenSlots = {rows.tokenSlots[row]};
  one.accepted = {rows.accepted[row]};
  one.parents = {rows.parents[row]};
  one.isPrefill = {rows.isPrefill[row]};
  Problem alone(entry, one);
  alone.takeRow(0, all, static_cast<int64_t>(row));
  alone.takePools(all);
  return alone;
}

} // namespace

TEST_P(MixedCases, EachTakesItsRowsAndLeavesTheOthers) {
  const Rows some = rows();
  Problem batch = make(some);
  // What belongs to the other is NaN, and stays so.
  for (size_t row = 0; row < some.lengths.size(); ++row)
    if (!takes(some, row))
      for (const std::string &pool : batch.pools())
        for (int64_t slot : slotsOf(some, row))
          batch.poisonSlot(pool, slot);
  const Problem before = batch;
  kernel.run(batch);
  for (size_t row = 0; row < some.lengths.size(); ++row) {
    SCOPED_TRACE("row " + std::to_string(row));
    const auto at = static_cast<int64_t>(row);
    if (!takes(some, row)) {
      for (const std::string &output : batch.outputs())
        EXPECT_TRUE(batch.outputOfRow(output, at) ==
                    before.outputOfRow(output, at))
            << output;
      for (const std::string &pool : batch.pools())
        for (int64_t slot : slotsOf(some, row))
          EXPECT_TRUE(batch.slotOf(pool, slot) == before.slotOf(pool, slot))
              << pool << ", slot " << slot;
      continue;
    }
    Problem alone = aloneOf(kernel.entry(), some, row, before);
    kernel.run(alone);
    for (const std::string &output : batch.outputs()) {
      EXPECT_TRUE(batch.outputOfRow(output, at) == alone.outputOfRow(output, 0))
          << output;
      EXPECT_TRUE(batch.isFiniteRow(output, at)) << output;
    }
    for (const std::string &pool : batch.pools())
      for (int64_t slot : slotsOf(some, row))
        EXPECT_TRUE(batch.slotOf(pool, slot) == alone.slotOf(pool, slot))
            << pool << ", slot " << slot;
  }
  for (const std::string &output : batch.outputs()) {
    const HostArray &array = batch[output];
    const int64_t width = array.count() / batch.numTokens();
    for (int64_t i = batch.firstToken(batch.numRows()) * width;
         i < array.count(); ++i)
      ASSERT_TRUE(array.isZero(i)) << output << ", element " << i;
  }
  expectPaddingIntact(batch);
}

// A row whose slot is skipped is still a row of one of them alone.
TEST_P(MixedCases, SkippedRowsAreZeroedByTheirEntry) {
  Rows some = rows();
  some.slots.assign(some.slots.size(), 0);
  for (std::vector<int64_t> &slots : some.tokenSlots)
    slots.assign(slots.size(), -1);
  Problem batch = make(some);
  const Problem before = batch;
  kernel.run(batch);
  for (size_t row = 0; row < some.lengths.size(); ++row) {
    const auto at = static_cast<int64_t>(row);
    if (takes(some, row))
      expectZeroRow(batch, at);
    else
      for (const std::string &output : batch.outputs())
        EXPECT_TRUE(batch.outputOfRow(output, at) ==
                    before.outputOfRow(output, at))
            << output << ", row " << row;
  }
  expectSamePools(batch, before);
}

// Verify, then prefill over the same arrays: every row is whole.
TEST_P(MixedCases, TogetherTheyTakeAllRows) {
  if (!isVerify())
    GTEST_SKIP() << "the case runs both entries";
  Kernel prefill(EntryKind::prefill, kernel);
  if (!prefill.exists())
    GTEST_SKIP() << prefill.refusal();
  const Rows some = rows();
  Problem verified = make(some), whole(prefill.entry(), some);
  whole.takeTokens(verified, 0);
  whole.takePools(verified);
  kernel.run(verified);
  for (const std::string &output : whole.outputs())
    whole[output] = verified[output];
  prefill.run(whole);
  for (const std::string &output : whole.outputs())
    for (int64_t row = 0; row < whole.numRows(); ++row) {
      EXPECT_TRUE(whole.isFiniteRow(output, row)) << output << ", row " << row;
      if (takes(some, static_cast<size_t>(row)))
        EXPECT_TRUE(whole.outputOfRow(output, row) ==
                    verified.outputOfRow(output, row))
            << output << ", row " << row;
    }
}
