// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The debug check: counts of skipped ids, and rows that race.

#include "arrays.h"
#include "gdnrt/slot_check.h"
#include "schemas.h"

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

using Ids = std::vector<int32_t>;

/// Checks ids against a pool of 8 slots with null slot 0.
std::string check(Ids slots, Ids writes = {}, SlotReport *report = nullptr,
                  int64_t stride = 1) {
  bool hasWrites = !writes.empty();
  auto entry = makeEntry([&](EntryBuilder builder) {
    builder.tensor("slots", fb::Access::read, fb::DType::i32, {"N"});
    if (hasWrites)
      builder.tensor("write_slots", fb::Access::read, fb::DType::i32, {"N"});
    builder.pool("state_pool", fb::DType::f32, {"P", "2"})
        .pool("conv_pool", fb::DType::f32, {"Q", "2"})
        .code("code", {});
  });
  int64_t rows = static_cast<int64_t>(slots.size()) / stride;
  std::vector<Array> arrays = {
      Array(slots.data(), DType::i32, {rows}, {stride})};
  if (hasWrites)
    arrays.push_back(Array(writes.data(), DType::i32, {rows}, {stride}));
  arrays.push_back(Array(address(0x1000), DType::f32, {9, 2}));
  arrays.push_back(Array(address(0x2000), DType::f32, {8, 2}));
  std::vector<Argument> args = toArguments(arrays);
  auto binding = Binding::make(entry, {}, args.data(), args.size());
  EXPECT_TRUE(binding.isOk()) << binding.status().toString();
  auto result = checkSlots(**binding);
  if (result.isOk() && report)
    *report = *result;
  return result.status().toString();
}

} // namespace

TEST(SlotCheck, CountsAgainstTheSmallestPool) {
  SlotReport report;
  EXPECT_EQ(check({3, -1, 0, 7, 8, 0, -5, 100}, {}, &report), "OK");
  EXPECT_EQ(report.live, 2);
  EXPECT_EQ(report.skippedNegative, 2);
  EXPECT_EQ(report.skippedNull, 2);
  EXPECT_EQ(report.skippedPastEnd, 2);
}

TEST(SlotCheck, DuplicateLiveIds) {
  EXPECT_EQ(check({3, 0, 5, 0, 3}), "INVALID_ARGUMENT: slots: rows 0 and 4 "
                                    "both write slot 3 of state_pool");
  EXPECT_EQ(check({-1, -1, 0, 0, 99, 99}), "OK");
}

TEST(SlotCheck, StridedIds) {
  SlotReport report;
  EXPECT_EQ(check({3, 3, 4, 4}, {}, &report, 2), "OK");
  EXPECT_EQ(report.live, 2);
}

TEST(SlotCheck, WriteSlots) {
  // Rows may read one slot together, for a fork.
  EXPECT_EQ(check({3, 3}, {4, 5}), "OK");
  EXPECT_EQ(check({3, 4}, {3, 4}), "OK");
  EXPECT_EQ(check({3, 4}, {5, 5}), "INVALID_ARGUMENT: write_slots: rows 0 and "
                                   "1 both write slot 5 of state_pool");
  EXPECT_EQ(check({3, 4}, {4, 6}), "INVALID_ARGUMENT: slots: row 1 reads slot "
                                   "4 of state_pool, which row 0 writes");
}

TEST(SlotCheck, NoSlotsOrNoPool) {
  auto entry = makeEntry([](EntryBuilder builder) {
    builder.tensor("x", fb::Access::read, fb::DType::f32, {"N"}).code("c", {});
  });
  Argument arg = Array(nullptr, DType::f32, {});
  int64_t zero = 0;
  arg.rank = 1;
  arg.sizes = &zero;
  auto binding = Binding::make(entry, {}, &arg, 1);
  ASSERT_TRUE(binding.isOk());
  auto report = checkSlots(**binding);
  ASSERT_TRUE(report.isOk());
  EXPECT_EQ(report->live, 0);
}

TEST(SlotCheck, WideIds) {
  auto entry = makeEntry([](EntryBuilder builder) {
    builder.tensor("slots", fb::Access::read, fb::DType::i64, {"N", "S"})
        .pool("pool", fb::DType::f32, {"P"})
        .code("code", {});
  });
  std::vector<int64_t> ids = {1, 2, 3, int64_t{1} << 40};
  Array slots(ids.data(), DType::i64, {2, 2});
  Array pool(address(0x1000), DType::f32, {9});
  Argument args[] = {slots, pool};
  auto binding = Binding::make(entry, {}, args, 2);
  ASSERT_TRUE(binding.isOk());
  auto report = checkSlots(**binding);
  ASSERT_TRUE(report.isOk());
  EXPECT_EQ(report->live, 3);
  EXPECT_EQ(report->skippedPastEnd, 1);
}
