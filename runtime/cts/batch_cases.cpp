// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Batch invariance: with the switch of a binding a row's outputs and states are
// the same bits alone, beside other rows, in any order and in any launch. The
// rows are such that their sizes call for different variants.

#include "suite.h"

#include <numeric>

using namespace gdnrt::cts;

namespace {

class BatchCases : public EntryTest {
protected:
  void SetUp() override {
    EntryTest::SetUp();
    kernel.setBatchInvariant(true);
  }

  /// One row so long that a launch of it alone would cut it, and short ones.
  /// All of one value head, so that few rows leave multiprocessors idle.
  static Rows rows() {
    Rows rows = {{3, kLong, 66, 1}, {4, 1, 3, 2}};
    rows.valueHeads = 1;
    return rows;
  }

  /// Decays near 1, so that a row remembers its first token: where nothing is
  /// left of it, a cut in between changes no bit.
  static void remember(Problem &problem) {
    if (problem.has("log_decay"))
      for (int64_t i = 0; i < problem["log_decay"].count(); ++i)
        problem["log_decay"].setNumber(i,
                                       problem["log_decay"].number(i) / 4096.0);
    if (problem.has("A_log"))
      for (int64_t i = 0; i < problem["A_log"].count(); ++i)
        problem["A_log"].setNumber(i, -9);
  }

  /// Rows `order` of `whole`, with the inputs that they have there.
  Problem pick(const Problem &whole, const std::vector<int64_t> &order) const {
    const Rows all = rows();
    Rows some = all;
    some.lengths.clear();
    some.slots.clear();
    for (int64_t row : order) {
      some.lengths.push_back(all.lengths[static_cast<size_t>(row)]);
      some.slots.push_back(all.slots[static_cast<size_t>(row)]);
    }
    Problem picked(kernel.entry(), some);
    remember(picked); // A_log is of no row
    for (size_t i = 0; i < order.size(); ++i)
      picked.takeRow(static_cast<int64_t>(i), whole, order[i]);
    return picked;
  }

  /// Expects of the rows `order` what they got in `whole`.
  void expectSameRows(const Problem &picked, const Problem &whole,
                      const std::vector<int64_t> &order) const {
    for (size_t i = 0; i < order.size(); ++i) {
      const int64_t slot = rows().slots[static_cast<size_t>(order[i])];
      for (const std::string &output : whole.outputs())
        EXPECT_TRUE(picked.outputOfRow(output, static_cast<int64_t>(i)) ==
                    whole.outputOfRow(output, order[i]))
            << output << ", row " << order[i];
      for (const std::string &pool : whole.pools())
        EXPECT_TRUE(picked.slotOf(pool, slot) == whole.slotOf(pool, slot))
            << pool << ", row " << order[i];
    }
  }

  static constexpr int64_t kLong = 4100;
};
GDNRT_CTS_ENTRIES(BatchCases);

} // namespace

TEST_P(BatchCases, AnyOrderAndAnyLaunchGivesTheSameBits) {
  Problem before(kernel.entry(), rows());
  remember(before);
  Problem whole = before;
  kernel.run(whole);
  for (const std::vector<int64_t> &order :
       {std::vector<int64_t>{2, 1, 3, 0}, {1}, {1, 3}, {2, 0}}) {
    Problem picked = pick(before, order);
    kernel.run(picked);
    expectSameRows(picked, whole, order);
  }
}
