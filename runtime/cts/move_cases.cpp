// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entries that move slots: copies are bit for bit, whatever the layout; a
// skipped id on either side leaves the row alone; nothing else is touched.

#include "suite.h"

using namespace gdnrt::cts;

using CopyCases = EntryTest;
using ZeroCases = EntryTest;
GDNRT_CTS_MOVES(CopyCases, copy);
GDNRT_CTS_MOVES(ZeroCases, zero);

/// As many rows as `from` has, from there to `to`.
static Rows makeRows(std::vector<int64_t> from, std::vector<int64_t> to) {
  Rows rows;
  rows.lengths.assign(from.size(), 1);
  rows.slots = std::move(from);
  rows.writeSlots = std::move(to);
  return rows;
}

/// Every slot of `after` is the slot of `before` that `sourceOf` names for it,
/// or its own.
static void expectMoved(const Problem &before, const Problem &after,
                        const std::map<int64_t, int64_t> &sourceOf) {
  for (const std::string &pool : after.pools())
    for (int64_t slot = 0; slot < kNumSlots; ++slot) {
      auto moved = sourceOf.find(slot);
      int64_t source = moved == sourceOf.end() ? slot : moved->second;
      EXPECT_TRUE(after.slotOf(pool, slot) == before.slotOf(pool, source))
          << pool << ", slot " << slot;
    }
}

static void padPools(Problem &problem, bool convByPosition) {
  for (const std::string &pool : problem.pools()) {
    HostArray &array = problem[pool];
    const Sizes sizes = array.sizes();
    int64_t count = 1;
    Sizes strides(sizes.size());
    for (size_t d = sizes.size(); d-- > 0; count *= sizes[d])
      strides[d] = count;
    if (convByPosition && pool == "conv_pool")
      strides = {0, 1, sizes[1]};
    strides[0] = count / sizes[0] + 48;
    array.relayout(strides);
  }
}

TEST_P(CopyCases, CopiesAndForks) {
  // One slot to two others, one onto itself.
  Problem problem(kernel.entry(), makeRows({3, 3, 7, 9}, {5, 1, 2, 9}));
  Problem before = problem;
  kernel.run(problem);
  expectMoved(before, problem, {{5, 3}, {1, 3}, {2, 7}});
}

TEST_P(CopyCases, SkippedIdsLeaveTheRowAlone) {
  // Null, negative, just past the end, far past the end: either side.
  Problem problem(kernel.entry(),
                  makeRows({0, -1, kNumSlots, INT32_MAX, 1, 2, 3, 4, 0, 5},
                           {6, 7, 8, 9, 0, -3, kNumSlots, INT32_MAX, -1, 10}));
  Problem before = problem;
  kernel.run(problem);
  expectMoved(before, problem, {{10, 5}});
}

TEST_P(CopyCases, OtherNullSlot) {
  Problem problem(kernel.entry(), makeRows({0, 3, 4}, {5, 6, 3}));
  for (const std::string &pool : problem.pools())
    problem[pool].nullSlot = 3;
  Problem before = problem;
  kernel.run(problem);
  expectMoved(before, problem, {{5, 0}});
}

TEST_P(CopyCases, NanIsCopiedAndStays) {
  Problem problem(kernel.entry(), makeRows({3, 4}, {5, 6}));
  for (const std::string &pool : problem.pools())
    for (int64_t slot : {3, 8})
      problem.poisonSlot(pool, slot);
  Problem before = problem;
  kernel.run(problem);
  expectMoved(before, problem, {{5, 3}, {6, 4}});
}

TEST_P(CopyCases, Layouts) {
  for (bool convByPosition : {false, true}) {
    Problem problem(kernel.entry(), makeRows({1, 2, 3}, {10, 11, 0}));
    padPools(problem, convByPosition);
    Problem before = problem;
    kernel.run(problem);
    expectMoved(before, problem, {{10, 1}, {11, 2}});
    expectPaddingIntact(problem);
  }
}

TEST_P(CopyCases, NoRows) {
  Problem problem(kernel.entry(), makeRows({}, {}));
  Problem before = problem;
  kernel.run(problem);
  expectSamePools(before, problem);
}

TEST_P(ZeroCases, ZeroesLiveSlotsAlone) {
  const std::vector<int64_t> slots = {4,         0,  -1,        7,
                                      kNumSlots, 11, INT32_MAX, -9};
  for (bool convByPosition : {false, true}) {
    Problem problem(kernel.entry(), makeRows(slots, {}));
    for (const std::string &pool : problem.pools())
      problem.poisonSlot(pool, 7);
    padPools(problem, convByPosition);
    Problem before = problem;
    kernel.run(problem);
    for (const std::string &pool : problem.pools())
      for (int64_t slot = 0; slot < kNumSlots; ++slot) {
        const bool isZeroed = slot == 4 || slot == 7 || slot == 11;
        Bytes bytes = problem.slotOf(pool, slot);
        EXPECT_TRUE(bytes == (isZeroed ? Bytes(bytes.size(), 0)
                                       : before.slotOf(pool, slot)))
            << pool << ", slot " << slot;
      }
    expectPaddingIntact(problem);
  }
}

TEST_P(ZeroCases, OtherNullSlot) {
  Problem problem(kernel.entry(), makeRows({0, 3}, {}));
  for (const std::string &pool : problem.pools())
    problem[pool].nullSlot = 3;
  Problem before = problem;
  kernel.run(problem);
  for (const std::string &pool : problem.pools()) {
    Bytes bytes = problem.slotOf(pool, 0);
    EXPECT_TRUE(bytes == Bytes(bytes.size(), 0)) << pool;
    EXPECT_TRUE(problem.slotOf(pool, 3) == before.slotOf(pool, 3)) << pool;
  }
}
