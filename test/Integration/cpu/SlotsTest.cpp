// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which slots a call reads and writes. `Call::check` expects for each case:
// outputs of skipped sequences and padding are zero, whatever lies in their
// inputs and slots (NaN); every slot that no sequence writes keeps its bits.
#include "Call.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;

namespace {
struct Case {
  const char *name;
  std::vector<int64_t> lengths, ids, writeIds;
  std::vector<bool> initial;
  int64_t nullSlot, padding, leading = 0;
};

std::ostream &operator<<(std::ostream &os, const Case &c) {
  return os << c.name;
}

class Slots : public ::testing::TestWithParam<std::tuple<Case, bool>> {};
} // namespace

constexpr int64_t numSlots = 6;
constexpr int64_t far = int64_t(1) << 31; // -far and far - 1: the ends of i32

static const Case cases[] = {
    {"NullSlot", {5, 20, 3}, {1, 0, 2}, {}, {}, 0, 0},
    {"NullSlotInTheMiddle", {5, 20, 3}, {1, 3, 0}, {}, {}, 3, 0},
    {"SlotZeroIsASlot", {5, 20}, {0, 5}, {}, {}, -1, 0},
    {"NegativeSlots", {5, 20, 3}, {-1, 2, -far}, {}, {}, -1, 0},
    {"PastTheEnd", {5, 20, 3}, {6, 2, far - 1}, {}, {}, 0, 0},
    {"AllSkipped", {5, 20, 3}, {-1, 0, 6}, {}, {}, 0, 2},
    {"SkippedTwice", {5, 20, 3, 1}, {-1, 0, 0, -1}, {}, {}, 0, 0},
    {"Padding", {5, 17}, {1, 2}, {}, {}, 0, 19},
    {"PaddingInFront", {5, 17}, {1, 2}, {}, {}, 0, 3, 19},
    {"PaddingInFrontOnly", {}, {}, {}, {}, 0, 3, 5},
    {"PaddingOnly", {}, {}, {}, {}, 0, 19},
    {"NoTokensNoRows", {}, {}, {}, {}, 0, 0},
    {"NoTokens", {0, 0, 0}, {1, 2, 3}, {}, {}, 0, 0},
    {"EmptyFirst", {0, 7, 18}, {1, 2, 3}, {}, {}, 0, 0},
    {"EmptyMiddle", {7, 0, 18}, {1, 2, 3}, {}, {}, 0, 0},
    {"EmptyLast", {7, 18, 0}, {1, 2, 3}, {}, {}, 0, 1},
    {"EmptyStartsFromZeros", {7, 0}, {1, 2}, {}, {true, false}, 0, 0},
    {"EmptySharesASlot", {7, 0, 0}, {1, 1, 1}, {}, {}, 0, 0},
    {"SomeFromZeros", {7, 18, 1}, {1, 2, 3}, {}, {true, false, false}, 0, 0},
    {"AllFromZeros", {7, 18}, {1, 2}, {}, {false, false}, 0, 0},
    {"WriteElsewhere", {7, 18, 1}, {1, 2, 3}, {4, 5, 3}, {}, 0, 0},
    {"ReadOneWriteMany", {7, 18, 1}, {1, 1, 1}, {2, 3, 4}, {}, 0, 0},
    {"WritesSkipped", {7, 18, 1, 3}, {1, 2, 3, 4}, {0, -1, 6, 4}, {}, 0, 0},
    {"ReadSkippedWriteLive", {7, 18}, {0, 2}, {3, 2}, {}, 0, 0},
    {"FromZerosElsewhere", {7, 18}, {1, 2}, {4, 5}, {false, true}, 0, 0},
};

/// i64 ids where `wide`, else i32.
static Config configOf(bool wide) {
  Config config(40, 24);
  config.options.slots64 = wide;
  config.options.hasInitial = config.options.writeSlots = true;
  return config;
}

static Batch batchOf(const Case &c) {
  Batch batch;
  batch.lengths = c.lengths;
  batch.ids = c.ids;
  batch.writeIds = c.writeIds;
  batch.initial = c.initial;
  batch.nullSlot = c.nullSlot;
  batch.padding = c.padding;
  batch.leading = c.leading;
  batch.slots = numSlots;
  batch.keyHeads = 2;
  return batch;
}

TEST_P(Slots, Prefill) {
  const auto &[c, wide] = GetParam();
  Call(configOf(wide), "prefill", batchOf(c)).runAndCheck();
}

// The same sequences with one token each; those without tokens are left out.
// Sequences that start from zeros do so in decodes that are asked to say it.
TEST_P(Slots, Decode) {
  const auto &[c, wide] = GetParam();
  Case rows = c;
  rows.ids.clear();
  rows.writeIds.clear();
  rows.initial.clear();
  for (size_t n = 0; n < c.lengths.size(); ++n) {
    if (c.lengths[n] == 0)
      continue;
    rows.ids.push_back(c.ids[n]);
    if (!c.initial.empty())
      rows.initial.push_back(c.initial[n]);
    if (!c.writeIds.empty())
      rows.writeIds.push_back(c.writeIds[n]);
  }
  rows.lengths.assign(rows.ids.size(), 1);
  rows.padding = rows.leading = 0;
  Config config = configOf(wide);
  config.options.decodeInitial = !c.initial.empty();
  Call(config, "decode", batchOf(rows)).runAndCheck();
}

INSTANTIATE_TEST_SUITE_P(Cpu, Slots,
                         ::testing::Combine(::testing::ValuesIn(cases),
                                            ::testing::Bool()),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param).name) +
                                  (std::get<1>(info.param) ? "I64" : "");
                         });

// An id that is a slot in its low 32 bits only.
TEST(WideSlots, HighBitsCount) {
  Batch batch;
  batch.lengths = {5, 20, 3};
  batch.ids = {1, (int64_t(1) << 32) + 2, -(int64_t(1) << 32) + 3};
  batch.slots = numSlots;
  Call(configOf(true), "prefill", batch).runAndCheck();
}

// A NaN in a live sequence reaches that sequence's results and nothing else; no
// rounding turns it into a number.
TEST(NaNInARow, StaysInItsRow) {
  for (FloatKind io : {FloatKind::f32, FloatKind::bf16, FloatKind::f16}) {
    Config config(40, 72);
    config.options.io = io;
    Batch batch;
    batch.lengths = {9, 20, 30};
    Call clean(config, "prefill", batch), dirty(config, "prefill", batch);
    dirty["qkvz"].copyRow(9,
                          Buffer(dirty["qkvz"].dtype(), dirty["qkvz"].shape()));
    clean.run();
    dirty.run();
    for (const char *name : {"core", "out"})
      for (int64_t t = 0; t < clean[name].dim(0); ++t) {
        if (t < 9 || t >= 29) {
          EXPECT_TRUE(dirty[name].sameRow(t, clean[name])) << name << t;
          continue;
        }
        for (double value : dirty[name].row(t))
          ASSERT_TRUE(std::isnan(value)) << name << " of token " << t;
      }
    for (double value : dirty["state_pool"].row(dirty.writtenSlot(1)))
      ASSERT_TRUE(std::isnan(value));
  }
}

// What the delta rule alone does with sequences; its pool is the only one.
TEST(PlainRows, SkippedPaddedAndEmpty) {
  for (Form form : {Form::plain, Form::plainPerChannel}) {
    Config config(40, 24);
    config.form = form;
    Batch batch;
    batch.lengths = {5, 0, 20, 3};
    batch.ids = {1, 2, 0, 3};
    batch.nullSlot = 0;
    batch.padding = 18;
    batch.ratio = 3;
    Call(config, "prefill", batch).runAndCheck();
  }
}
