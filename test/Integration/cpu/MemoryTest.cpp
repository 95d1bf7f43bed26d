// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How callers keep arrays: windows into wider ones, slots with gaps, both
// layouts of states and of convolution states, pools larger than 2^31 elements;
// and that nothing beyond the arrays is touched, whatever the sequence bounds
// say.
#include "Call.h"

#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;

namespace {
struct Case {
  const char *name;
  Memory memory;
};

class Arrays : public ::testing::TestWithParam<std::tuple<Case, InputLayout>> {
};
} // namespace

static const Case cases[] = {
    {"RowsOfAWiderArray", {Placement::heap, 24}},
    {"OddRowStride", {Placement::heap, 1}},
    {"SlotsWithGaps", {Placement::heap, 0, 40}},
    {"OddSlotStride", {Placement::heap, 0, 3}},
    {"HeadsOfAWiderArray", {Placement::heap, 0, 0, 24}},
    {"ConvChannelsLast", {Placement::heap, 0, 0, 0, true}},
    {"EverythingStrided", {Placement::heap, 7, 9, 5, true}},
    {"GuardAfter", {Placement::guardAfter}},
    {"GuardBefore", {Placement::guardBefore}},
    {"GuardAfterStrided", {Placement::guardAfter, 7, 9, 1}},
};

/// Heads whose rows are no multiple of a vector.
static Config configOf(InputLayout layout) {
  Config config(40, 24);
  config.layout = layout;
  config.options.io = FloatKind::bf16;
  return config;
}

static Batch raggedBatch() {
  Batch batch;
  batch.lengths = {17, 0, 5, 33};
  batch.nullSlot = 0;
  batch.ids = {3, 2, 0, 5};
  batch.slots = 6;
  batch.keyHeads = 2;
  batch.ratio = 3;
  batch.padding = 2;
  return batch;
}

TEST_P(Arrays, Prefill) {
  const auto &[c, layout] = GetParam();
  Call(configOf(layout), "prefill", raggedBatch(), c.memory).runAndCheck();
}

TEST_P(Arrays, Decode) {
  const auto &[c, layout] = GetParam();
  Batch batch = raggedBatch();
  batch.lengths = {1, 1, 1, 1};
  batch.padding = 0;
  Call(configOf(layout), "decode", batch, c.memory).runAndCheck();
}

INSTANTIATE_TEST_SUITE_P(
    Cpu, Arrays,
    ::testing::Combine(::testing::ValuesIn(cases),
                       ::testing::Values(InputLayout::interleaved,
                                         InputLayout::flat, InputLayout::split,
                                         InputLayout::separate)),
    [](const auto &info) {
      return std::string(std::get<0>(info.param).name) + "_" +
             stringify(std::get<1>(info.param)).str();
    });

// Strides do not change a bit.
TEST(ConvStates, BothLayoutsGiveTheSameBits) {
  for (const char *entry : {"prefill", "decode"}) {
    Batch batch = raggedBatch();
    if (entry[0] == 'd') {
      batch.lengths = {1, 1, 1, 1};
      batch.padding = 0;
    }
    const Config config = configOf(InputLayout::flat);
    Call dense(config, entry, batch);
    Call other(config, entry, batch, {Placement::heap, 5, 11, 3, true});
    dense.run();
    other.run();
    for (const char *name : {"core", "out", "conv_pool", "state_pool"})
      for (int64_t i = 0; i < dense[name].dim(0); ++i)
        EXPECT_TRUE(dense[name].sameRow(i, other[name]))
            << entry << ": " << name << " row " << i;
  }
}

// States as [dk, dv]: the same numbers, whatever lies between slots, heads and
// columns; of f32 in one program token by token they are the same bits.
TEST(StateOrder, BothOrdersGiveTheSameBits) {
  for (const char *entry : {"prefill", "decode"}) {
    Batch batch = raggedBatch();
    if (entry[0] == 'd') {
      batch.lengths = {1, 1, 1, 1};
      batch.padding = 0;
    }
    Config rows = configOf(InputLayout::flat), columns = rows;
    columns.options.stateLayout = StateLayout::kv;
    Call dense(rows, entry, batch), other(columns, entry, batch);
    Call gaps(columns, entry, batch, {Placement::heap, 5, 11, 3});
    for (Call *call : {&dense, &other, &gaps})
      call->run();
    for (const char *name : {"core", "out", "conv_pool", "state_pool"})
      for (int64_t i = 0; i < dense[name].dim(0); ++i) {
        EXPECT_TRUE(dense[name].sameRow(i, other[name]))
            << entry << ": " << name << " row " << i;
        EXPECT_TRUE(dense[name].sameRow(i, gaps[name]))
            << entry << ": " << name << " row " << i << " with gaps";
      }
  }
}

TEST(StateOrder, NarrowStatesAndInitialFlags) {
  for (FloatKind state : {FloatKind::bf16, FloatKind::f16}) {
    Config config = configOf(InputLayout::separate);
    config.options.stateLayout = StateLayout::kv;
    config.options.state = state;
    config.options.hasInitial = true;
    Batch batch = raggedBatch();
    batch.initial = {true, false, true, false};
    Call(config, "prefill", batch).runAndCheck();
  }
}

// Slots 1.2e9 elements apart, in memory of which few pages exist.
TEST(LargePools, OffsetsBeyond31Bits) {
  for (const char *entry : {"prefill", "decode"}) {
    Batch batch;
    batch.lengths = {1, 1, 1};
    batch.slots = 5;
    batch.ids = {4, 0, 2};
    const Config config(40, 24);
    Memory sparse;
    sparse.placement = Placement::sparse;
    sparse.slotGap = 1200000000;
    Call dense(config, entry, batch), large(config, entry, batch, sparse);
    dense.run();
    large.run();
    for (const char *name : {"core", "out"})
      EXPECT_TRUE(large[name].sameMemory(dense[name])) << entry << ": " << name;
    for (const char *name : {"conv_pool", "state_pool"})
      for (int64_t slot : batch.ids)
        EXPECT_TRUE(large[name].sameRow(slot, dense[name]))
            << entry << ": " << name << " slot " << slot;
  }
}

// Sequence bounds that fall, are negative or pass T: results are anything, but
// only the arrays are touched, which lie between guard pages, and only slots
// named.
TEST(RowBounds, MalformedStayWithinTheArrays) {
  constexpr double most = 2147483647.0;
  const std::vector<double> bounds[] = {
      {0, 30, 10, 40},      {0, -5, 10, 40},      {-20, 10, 20, 40},
      {0, 10, 20, 41},      {0, 10, 20, most},    {most, most, most, most},
      {-most, most, 0, 40}, {40, 30, 20, 10},     {0, most, -most, most},
      {-most - 1, 0, 0, 0}, {0, 0, 0, -most - 1}, {50, 60, 70, 80},
      {-10, -8, -6, -4},
  };
  for (Placement placement : {Placement::guardAfter, Placement::guardBefore})
    for (const std::vector<double> &cu : bounds)
      for (int workers : {1, 2}) {
        SCOPED_TRACE(::testing::PrintToString(cu));
        Batch batch;
        batch.lengths = {10, 10, 20};
        batch.ids = {1, 2, 3};
        batch.slots = 5;
        batch.nullSlot = 0;
        Memory memory;
        memory.placement = placement;
        Call call(configOf(InputLayout::flat), "prefill", batch, memory,
                  workers);
        call["cu_seqlens"].assign(cu);
        Buffer conv = call["conv_pool"].clone();
        Buffer state = call["state_pool"].clone();
        call.run();
        for (int64_t slot : {0, 4}) {
          EXPECT_TRUE(call["conv_pool"].sameRow(slot, conv));
          EXPECT_TRUE(call["state_pool"].sameRow(slot, state));
        }
      }
}
