// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Batch invariance: with the switch of a binding or a layer a row's outputs and
// states are the same bits alone, beside other rows, in any order and in any
// launch. The rows are such that their sizes call for different variants.

#include "layer_test.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace gdnrt::cts;

namespace {

/// One row so long that a launch of it alone would cut it, and short ones. All
/// of one value head, so that few rows leave multiprocessors idle.
Rows allRows() {
  Rows rows = {{3, 4100, 66, 1}, {4, 1, 3, 2}};
  rows.valueHeads = 1;
  return rows;
}

Rows pickRows(const std::vector<int64_t> &order) {
  const Rows all = allRows();
  Rows some = all;
  some.lengths.clear();
  some.slots.clear();
  for (int64_t row : order) {
    some.lengths.push_back(all.lengths[static_cast<size_t>(row)]);
    some.slots.push_back(all.slots[static_cast<size_t>(row)]);
  }
  return some;
}

/// Decays near 1, so that a row remembers its first token: where nothing is
/// left of it, a cut in between changes no bit.
void remember(Problem &problem) {
  if (problem.has("log_decay"))
    for (int64_t i = 0; i < problem["log_decay"].count(); ++i)
      problem["log_decay"].setNumber(i,
                                     problem["log_decay"].number(i) / 4096.0);
  if (problem.has("A_log"))
    for (int64_t i = 0; i < problem["A_log"].count(); ++i)
      problem["A_log"].setNumber(i, -9);
}

/// Rows `order` of `whole`, with the inputs that they have there.
Problem pickProblem(const gdnrt_entry *entry, const Problem &whole,
                    const std::vector<int64_t> &order) {
  Problem picked(entry, pickRows(order));
  remember(picked); // A_log is of no row
  for (size_t i = 0; i < order.size(); ++i)
    picked.takeRow(static_cast<int64_t>(i), whole, order[i]);
  return picked;
}

/// Expects of the rows `order` what they got in `whole`.
void expectSameRows(const Problem &picked, const Problem &whole,
                    const std::vector<int64_t> &order) {
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t slot = allRows().slots[static_cast<size_t>(order[i])];
    for (const std::string &output : whole.outputs())
      EXPECT_TRUE(picked.outputOfRow(output, static_cast<int64_t>(i)) ==
                  whole.outputOfRow(output, order[i]))
          << output << ", row " << order[i];
    for (const std::string &pool : whole.pools())
      EXPECT_TRUE(picked.slotOf(pool, slot) == whole.slotOf(pool, slot))
          << pool << ", row " << order[i];
  }
}

class BatchCases : public EntryTest {
protected:
  void SetUp() override {
    if (!suiteOptions.variant.empty())
      GTEST_SKIP() << "a variant that is forced goes before the switch";
    EntryTest::SetUp();
  }
};
GDNRT_CTS_ENTRIES(BatchCases);

class LayerBatchCases : public LayerTest {
protected:
  void SetUp() override {
    if (!suiteOptions.variant.empty())
      GTEST_SKIP() << "kernels alone have a variant forced, layers have not";
    LayerTest::SetUp();
  }
};
GDNRT_CTS_PREFILL(LayerBatchCases);

} // namespace

TEST_P(BatchCases, AnyOrderAndAnyLaunchGivesTheSameBits) {
  kernel.setBatchInvariant(true);
  Problem before(kernel.entry(), allRows());
  remember(before);
  Problem whole = before;
  kernel.run(whole);
  for (const std::vector<int64_t> &order :
       {std::vector<int64_t>{2, 1, 3, 0}, {1}, {1, 3}, {2, 0}}) {
    Problem picked = pickProblem(kernel.entry(), before, order);
    kernel.run(picked);
    expectSameRows(picked, whole, order);
  }
}

TEST_P(LayerBatchCases, LayersHaveTheSwitch) {
  kernel.setBatchInvariant(true);
  Problem before(kernel.entry(), allRows());
  remember(before);
  Problem whole = before;
  kernel.run(whole);
  const std::vector<int64_t> longest = {1};
  Problem alone = pickProblem(kernel.entry(), before, longest);
  gdnrt_gdn_metadata metadata = build(kind, pickRows(longest));
  kernel.onDevice(alone, [&](const auto &args) {
    makeLayer(args);
    ASSERT_EQ(gdnrt_gdn_layer_set_batch_invariant(layer, 1, &error), GDNRT_OK);
    step(args, &metadata);
  });
  expectSameRows(alone, whole, longest);
}

// What the switch relies on.
TEST_P(BatchCases, VariantsOfTheSameBitsGiveThem) {
  Rows rows = {{130, 0, 1, 66}, {4, 1, 3, 2}, /*paddingTokens=*/3};
  Problem before(kernel.entry(), rows);
  remember(before);
  const size_t code = gdnrt_kernel_code(kernel.handle());
  std::map<std::string, std::unique_ptr<Problem>> first; // by bits
  for (size_t i = 0; i < gdnrt_entry_variant_count(kernel.entry(), code); ++i) {
    gdnrt_variant_info info = gdnrt_variant_info_default();
    gdnrt_error error;
    ASSERT_EQ(gdnrt_entry_variant(kernel.entry(), code, i, &info, &error),
              GDNRT_OK);
    suiteOptions.variant = info.name;
    auto result = std::make_unique<Problem>(before);
    if (suiteOptions.variant.find("aligned") != std::string::npos)
      result->layOutByPosition();
    kernel.run(*result);
    const auto [known, isNew] = first.try_emplace(info.bits, std::move(result));
    if (isNew)
      continue;
    SCOPED_TRACE(std::string(info.name) + ", whose bits are " + info.bits);
    expectSameOutputs(*result, *known->second);
    expectSamePools(*result, *known->second);
  }
  suiteOptions.variant.clear();
}
