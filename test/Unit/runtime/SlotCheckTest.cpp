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

/// Checks ids against a pool of 8 slots with null slot 0. An entry without an
/// output only moves slots.
std::string check(Ids slots, Ids writes = {}, SlotReport *report = nullptr,
                  int64_t stride = 1, bool hasOutput = true) {
  bool hasWrites = !writes.empty();
  auto entry = makeEntry([&](EntryBuilder builder) {
    builder.tensor("slots", fb::Access::read, fb::DType::i32, {"N"});
    if (hasWrites)
      builder.tensor("write_slots", fb::Access::read, fb::DType::i32, {"N"});
    builder.pool("state_pool", fb::DType::f32, {"P", "2"})
        .pool("conv_pool", fb::DType::f32, {"Q", "2"});
    if (hasOutput)
      builder.tensor("out", fb::Access::write, fb::DType::f32, {"N"});
    builder.code("code", {});
  });
  int64_t rows = static_cast<int64_t>(slots.size()) / stride;
  std::vector<Array> arrays = {
      Array(slots.data(), DType::i32, {rows}, {stride})};
  if (hasWrites)
    arrays.push_back(Array(writes.data(), DType::i32, {rows}, {stride}));
  arrays.push_back(Array(address(0x1000), DType::f32, {9, 2}));
  arrays.push_back(Array(address(0x2000), DType::f32, {8, 2}));
  if (hasOutput)
    arrays.push_back(Array(address(0x3000), DType::f32, {rows}));
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

TEST(SlotCheck, StartsInOrder) {
  auto entry = makeEntry([](EntryBuilder builder) {
    builder.tensor("x", fb::Access::read, fb::DType::f32, {"T"})
        .tensor("cu_seqlens", fb::Access::read, fb::DType::i32, {"N + 1"})
        .tensor("slots", fb::Access::read, fb::DType::i32, {"N"})
        .pool("state_pool", fb::DType::f32, {"P", "2"})
        .code("code", {});
  });
  const auto check = [&](Ids starts) {
    Ids slots = {1, 2};
    std::vector<Array> arrays = {Array(address(0x1000), DType::f32, {9}),
                                 Array(starts.data(), DType::i32, {3}),
                                 Array(slots.data(), DType::i32, {2}),
                                 Array(address(0x2000), DType::f32, {8, 2})};
    std::vector<Argument> args = toArguments(arrays);
    auto binding = Binding::make(entry, {}, args.data(), args.size());
    EXPECT_TRUE(binding.isOk()) << binding.status().toString();
    return checkSlots(**binding).status().toString();
  };
  const std::string refusal = "INVALID_ARGUMENT: cu_seqlens: expected element ";
  EXPECT_EQ(check({0, 4, 9}), "OK");
  EXPECT_EQ(check({2, 2, 5}), "OK");
  EXPECT_EQ(check({0, 4, 10}), refusal + "2 from 4 to 9, got 10");
  EXPECT_EQ(check({0, 5, 3}), refusal + "2 from 5 to 9, got 3");
  EXPECT_EQ(check({-1, 4, 9}), refusal + "0 from 0 to 9, got -1");
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

TEST(SlotCheck, SkippedRowsWriteNothing) {
  EXPECT_EQ(check({-1, 3}, {5, 5}), "OK");
  EXPECT_EQ(check({0, 3}, {3, 4}), "OK");
}

TEST(SlotCheck, AMoveToNowhereReadsNothing) {
  EXPECT_EQ(check({3, 4}, {0, 3}), "INVALID_ARGUMENT: slots: row 0 reads slot "
                                   "3 of state_pool, which row 1 writes");
  EXPECT_EQ(check({3, 4}, {0, 3}, nullptr, 1, /*hasOutput=*/false), "OK");
}

namespace {
/// Two rows of 200 and 64 tokens in slots 3 and 4, the first with the
/// checkpoints 64 and 128, the second with 64, to the slots `ids`.
struct CheckpointCall {
  Ids slots = {3, 4}, into = {}, cu = {0, 200, 264}, bounds = {0, 2, 3},
      tokens = {64, 128, 64}, ids = {5, 6, 7};

  std::string check() {
    auto entry = makeEntry([&](EntryBuilder builder) {
      auto ints = [&](const char *name, const char *size) {
        builder.tensor(name, fb::Access::read, fb::DType::i32, {size});
      };
      ints("slots", "N");
      if (!into.empty())
        ints("write_slots", "N");
      ints("cu_seqlens", "N + 1");
      ints("cu_checkpoints", "N + 1");
      ints("checkpoint_tokens", "C");
      ints("checkpoint_slots", "C");
      builder.pool("state_pool", fb::DType::f32, {"P", "2"}).code("code", {});
    });
    std::vector<Array> arrays;
    for (Ids *list : {&slots, &into, &cu, &bounds, &tokens, &ids})
      if (list != &into || !into.empty())
        arrays.push_back(Array(list->data(), DType::i32,
                               {static_cast<int64_t>(list->size())}));
    arrays.push_back(Array(address(0x1000), DType::f32, {9, 2}));
    std::vector<Argument> args = toArguments(arrays);
    auto binding = Binding::make(entry, {}, args.data(), args.size());
    EXPECT_TRUE(binding.isOk()) << binding.status().toString();
    return checkSlots(**binding).status().toString();
  }
};
} // namespace

TEST(SlotCheck, Checkpoints) {
  const std::string error = "INVALID_ARGUMENT: checkpoint_slots: checkpoint";
  CheckpointCall call;
  EXPECT_EQ(call.check(), "OK");
  call.ids = {5, 6, 5};
  EXPECT_EQ(call.check(), error + "s 0 and 2 both write slot 5 of state_pool");
  call.ids = {5, 4, 7};
  EXPECT_EQ(call.check(),
            error + " 1 writes slot 4 of state_pool, which row 1 writes");
  call.into = {1, 2};
  EXPECT_EQ(call.check(),
            error + " 1 writes slot 4 of state_pool, which row 1 reads");
  call.ids = {5, 2, 7};
  EXPECT_EQ(call.check(),
            error + " 1 writes slot 2 of state_pool, which row 1 writes");
}

// What writes nothing races with nothing: skipped ids and rows, counts that
// are no checkpoint, entries of no row.
TEST(SlotCheck, CheckpointsThatWriteNothing) {
  CheckpointCall call;
  call.ids = {0, 0, -1};
  EXPECT_EQ(call.check(), "OK");
  call.ids = {5, 5, 5};
  EXPECT_NE(call.check(), "OK");
  call.tokens = {65, 256, 64};
  EXPECT_EQ(call.check(), "OK");
  call.tokens = {0, -64, 64};
  EXPECT_EQ(call.check(), "OK");
  call.tokens = {128, 64, 64};
  call.ids = {0, 5, 5}; // the second falls
  EXPECT_EQ(call.check(), "OK");
  call.ids = {5, 5, 5};
  call.tokens = {64, 128, 64};
  call.bounds = {1, 2, 2};
  EXPECT_EQ(call.check(), "OK");
  call.bounds = {-9, 1, 100}; // clamped
  EXPECT_NE(call.check(), "OK");
  call.bounds = {0, 1, 1};
  call.slots = {0, 5};
  EXPECT_EQ(call.check(), "OK");
}

namespace {
/// Two rows with tables of three slots; the first row reads slot 2.
struct TokenSlotsCall {
  Ids cu = {0, 3, 5}, table = {1, 2, 3, 4, 5, 6}, accepted = {2, 1};
  Ids slots = {}; ///< with parents, in place of counts
  /// Of a mixed batch, if there are any.
  std::vector<uint8_t> isPrefill = {};

  std::string check(SlotReport *report = nullptr) {
    auto entry = makeEntry([&](EntryBuilder builder) {
      builder.tensor("cu_seqlens", fb::Access::read, fb::DType::i32, {"N + 1"});
      builder.tensor("token_slots", fb::Access::read, fb::DType::i32,
                     {"N", "S"});
      if (slots.empty()) {
        builder.tensor("num_accepted", fb::Access::read, fb::DType::i32, {"N"});
      } else {
        builder.tensor("slots", fb::Access::read, fb::DType::i32, {"N"});
        builder.tensor("parents", fb::Access::read, fb::DType::i32, {"N", "S"});
      }
      if (!isPrefill.empty())
        builder.tensor("is_prefill", fb::Access::read, fb::DType::i1, {"N"});
      builder.pool("state_pool", fb::DType::f32, {"P", "2"}).code("code", {});
    });
    Ids &rows = slots.empty() ? accepted : slots;
    std::vector<Array> arrays = {Array(cu.data(), DType::i32, {3}),
                                 Array(table.data(), DType::i32, {2, 3}),
                                 Array(rows.data(), DType::i32, {2})};
    if (!slots.empty())
      arrays.push_back(Array(table.data(), DType::i32, {2, 3}));
    if (!isPrefill.empty())
      arrays.push_back(Array(isPrefill.data(), DType::i1, {2}));
    arrays.push_back(Array(address(0x1000), DType::f32, {9, 2}));
    std::vector<Argument> args = toArguments(arrays);
    auto binding = Binding::make(entry, {}, args.data(), args.size());
    EXPECT_TRUE(binding.isOk()) << binding.status().toString();
    auto result = checkSlots(**binding);
    if (result.isOk() && report)
      *report = *result;
    return result.status().toString();
  }
};
} // namespace

TEST(SlotCheck, TokenSlots) {
  const std::string error = "INVALID_ARGUMENT: ";
  SlotReport report;
  TokenSlotsCall call;
  EXPECT_EQ(call.check(&report), "OK");
  EXPECT_EQ(report.live, 2);
  call.table = {1, 2, 3, 3, 5, 6};
  EXPECT_EQ(call.check(),
            error +
                "token_slots: rows 0 and 1 both write slot 3 of state_pool");
  call.table = {1, 2, 3, 4, 5, 3}; // row 1 has two tokens
  EXPECT_EQ(call.check(), "OK");
  call.accepted = {2, 3};
  EXPECT_EQ(call.check(),
            error +
                "slots: row 1 reads slot 3 of state_pool, which row 0 writes");
  call.accepted = {4, 3}; // the first row is skipped and writes nothing
  EXPECT_EQ(call.check(&report), "OK");
  EXPECT_EQ(report.live, 1);
  EXPECT_EQ(report.skippedNegative, 1);
  call.table = {1, 1, 3, 4, 5, 6};
  call.accepted = {3, 1};
  EXPECT_EQ(call.check(),
            error +
                "token_slots: rows 0 and 0 both write slot 1 of state_pool");
}

// Padding and sequences of prefill, as an engine leaves them in its arrays.
TEST(SlotCheck, RowsThatVerifyDoesNotTake) {
  SlotReport report;
  TokenSlotsCall call;
  call.table = {1, 2, 3, 3, 5, 6};
  call.cu = {0, 3, 3}; // row 1 would read what row 0 writes
  EXPECT_EQ(call.check(&report), "OK");
  EXPECT_EQ(report.live, 1);
  call.cu = {0, 3, 2};
  EXPECT_EQ(call.check(), "OK");
  call.cu = {0, 3, 5};
  call.isPrefill = {0, 1};
  EXPECT_EQ(call.check(), "OK");
  call.isPrefill = {1, 0};
  EXPECT_EQ(call.check(), "OK");
  call.isPrefill = {0, 0};
  EXPECT_EQ(call.check(), "INVALID_ARGUMENT: token_slots: rows 0 and 1 both "
                          "write slot 3 of state_pool");
}

TEST(SlotCheck, SlotsOfTrees) {
  TokenSlotsCall call;
  call.slots = {7, 8};
  EXPECT_EQ(call.check(), "OK");
  call.slots = {7, 5};
  EXPECT_EQ(call.check(),
            "INVALID_ARGUMENT: slots: row 1 reads slot 5 of state_pool, which "
            "it also writes, and has parents");
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
