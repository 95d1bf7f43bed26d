// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Owners of slots: all or nothing, first freed first reused, and every way to
// give back what one does not have.

#include "gdnrt/slot_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace gdnrt;

using Ids = std::vector<int32_t>;

static Ids take(SlotTable &table, size_t count,
                SlotKind kind = SlotKind::request) {
  Ids slots(count, -7);
  EXPECT_TRUE(table.allocate(kind, count, slots.data()));
  return slots;
}

static std::string give(SlotTable &table, const Ids &slots) {
  return table.free(slots.data(), slots.size()).toString();
}

TEST(SlotTable, KindsHaveTheirOwnRanges) {
  SlotTable table(3, 2);
  EXPECT_EQ(table.numSlots(), 6);
  EXPECT_EQ(take(table, 3), (Ids{1, 2, 3}));
  EXPECT_EQ(take(table, 2, SlotKind::track), (Ids{4, 5}));
  EXPECT_EQ(table.numFree(SlotKind::request), 0);
  EXPECT_EQ(table.numInUse(SlotKind::track), 2);
  // Given back together, each goes to its own kind.
  EXPECT_EQ(give(table, {5, 2}), "OK");
  EXPECT_EQ(take(table, 1), (Ids{2}));
  EXPECT_EQ(take(table, 1, SlotKind::track), (Ids{5}));
}

TEST(SlotTable, AllOrNothing) {
  SlotTable table(3, 0);
  Ids slots(4, -7);
  EXPECT_FALSE(table.allocate(SlotKind::request, 4, slots.data()));
  EXPECT_EQ(slots, (Ids(4, -7)));
  EXPECT_EQ(table.numFree(SlotKind::request), 3);
  EXPECT_FALSE(table.allocate(SlotKind::track, 1, slots.data()));
  EXPECT_TRUE(table.allocate(SlotKind::track, 0, nullptr));
  EXPECT_TRUE(table.allocate(SlotKind::request, 3, slots.data()));
}

TEST(SlotTable, WhatIsFreedFirstIsReusedFirst) {
  SlotTable table(4, 0);
  take(table, 3);
  EXPECT_EQ(give(table, {2, 1}), "OK");
  EXPECT_EQ(take(table, 3), (Ids{4, 2, 1}));
}

TEST(SlotTable, RefusesToFree) {
  SlotTable table(3, 1);
  take(table, 2);
  EXPECT_EQ(give(table, {3}), "INVALID_ARGUMENT: state_pool: slot 3 is free");
  EXPECT_EQ(give(table, {1, 1}),
            "INVALID_ARGUMENT: state_pool: slot 1 occurs twice");
  EXPECT_EQ(
      give(table, {0}),
      "INVALID_ARGUMENT: state_pool: slot 0 is padding and cannot be freed");
  EXPECT_EQ(
      give(table, {-1}),
      "INVALID_ARGUMENT: state_pool: slot -1 is padding and cannot be freed");
  EXPECT_EQ(give(table, {2, 5}),
            "INVALID_ARGUMENT: state_pool: slot 5 is past the pool's 5 slots");
  // None of the others was freed along.
  EXPECT_TRUE(table.isInUse(1));
  EXPECT_TRUE(table.isInUse(2));
  EXPECT_EQ(give(table, {1, 2}), "OK");
  EXPECT_EQ(give(table, {1}), "INVALID_ARGUMENT: state_pool: slot 1 is free");
}

TEST(SlotTable, ChecksBatches) {
  SlotTable table(4, 0);
  take(table, 2);
  auto check = [&](const Ids &slots, bool inUse, bool distinct) {
    return table.check(slots.data(), slots.size(), inUse, distinct).toString();
  };
  EXPECT_EQ(check({-1, 2, 0, 0, -1, 1}, true, true), "OK");
  EXPECT_EQ(check({2, 2}, true, false), "OK");
  EXPECT_EQ(check({2, 2}, true, true),
            "INVALID_ARGUMENT: state_pool: slot 2 occurs twice");
  EXPECT_EQ(check({3}, false, true), "OK");
  EXPECT_EQ(check({3}, true, true),
            "INVALID_ARGUMENT: state_pool: slot 3 is free");
  EXPECT_EQ(check({5}, false, false),
            "INVALID_ARGUMENT: state_pool: slot 5 is past the pool's 5 slots");
}

TEST(SlotTable, ChecksCopies) {
  SlotTable table(4, 0);
  take(table, 3);
  auto check = [&](const Ids &from, const Ids &to) {
    return table.checkCopy(from.data(), to.data(), from.size(), true)
        .toString();
  };
  EXPECT_EQ(check({1, 1}, {2, 3}), "OK");
  EXPECT_EQ(check({1, 2}, {3, 3}),
            "INVALID_ARGUMENT: state_pool: slot 3 is the target of two copies");
  EXPECT_EQ(check({1, 2}, {2, 3}),
            "INVALID_ARGUMENT: state_pool: slot 2 is the source of one copy "
            "and the target of another");
  // Passed over: one slot twice, and padding.
  EXPECT_EQ(check({1, 2, 0, 3}, {1, 1, 1, -1}), "OK");
  EXPECT_EQ(check({1}, {4}), "INVALID_ARGUMENT: state_pool: slot 4 is free");
  EXPECT_EQ(check({4}, {1}), "INVALID_ARGUMENT: state_pool: slot 4 is free");
}

TEST(SlotTable, MarksSurviveManyChecks) {
  SlotTable table(2, 0);
  take(table, 2);
  const Ids once = {1, 2}, twice = {1, 1};
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(table.check(once.data(), 2, true, true).isOk());
    ASSERT_FALSE(table.check(twice.data(), 2, true, true).isOk());
  }
}

TEST(SlotTable, NoSlotIsUsedTwice) {
  // A way through many states against a set of who has what.
  SlotTable table(7, 3);
  std::set<int32_t> owned;
  uint32_t random = 1;
  auto next = [&](uint32_t bound) {
    random = random * 1664525u + 1013904223u;
    return (random >> 16) % bound;
  };
  for (int step = 0; step < 5000; ++step) {
    auto kind = next(2) ? SlotKind::request : SlotKind::track;
    if (next(2)) {
      Ids slots(next(4));
      auto before = table.numFree(kind);
      bool taken = table.allocate(kind, slots.size(), slots.data());
      ASSERT_EQ(taken, static_cast<int64_t>(slots.size()) <= before);
      if (taken)
        for (int32_t slot : slots) {
          ASSERT_EQ(slot > 7, kind == SlotKind::track);
          ASSERT_TRUE(slot > 0 && owned.insert(slot).second) << slot;
        }
    } else if (!owned.empty()) {
      auto found = std::next(owned.begin(), next(uint32_t(owned.size())));
      ASSERT_EQ(give(table, {*found}), "OK");
      owned.erase(found);
    }
    ASSERT_EQ(table.numInUse(SlotKind::request) +
                  table.numInUse(SlotKind::track),
              static_cast<int64_t>(owned.size()));
  }
}
