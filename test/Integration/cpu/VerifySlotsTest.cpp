// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entry `verify` with a slot for the state after each token: what sequences
// start from, what they write, and that any number of accepted tokens leaves
// the bits of as many decode steps. Slots that nobody reads hold NaN.
#include "Call.h"

#include "gdn/Data/Compare.h"

#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;

namespace {
struct Case {
  const char *name;
  FloatKind io, state;
  int64_t ratio = 2;
  bool perChannel = false, wideIds = false;
  int64_t convWidth = 4;
  std::optional<double> decayBound = std::nullopt;
};

std::ostream &operator<<(std::ostream &os, const Case &c) {
  return os << c.name;
}

class VerifySlots : public ::testing::TestWithParam<Case> {
protected:
  static Config config() {
    const Case &c = GetParam();
    Config config(40, 72);
    config.convWidth = c.convWidth;
    config.options.io = c.io;
    config.options.state = c.state;
    config.options.verify = VerifyStates::slots;
    config.options.slots64 = c.wideIds;
    config.perChannelDecay = c.perChannel;
    config.decayBound = c.decayBound;
    if (c.perChannel)
      config.layout = InputLayout::separate;
    return config;
  }
  static Batch batchOf(std::vector<int64_t> lengths,
                       std::vector<std::vector<int64_t>> tokenSlots,
                       std::vector<int64_t> accepted) {
    Batch batch;
    batch.lengths = std::move(lengths);
    batch.tokenSlots = std::move(tokenSlots);
    batch.accepted = std::move(accepted);
    batch.slots = 40;
    batch.nullSlot = 0;
    batch.ratio = GetParam().ratio;
    batch.leading = 2;
    batch.padding = 3;
    return batch;
  }
};
} // namespace

/// `rows` rows of `steps` slots of their own, from slot 1 on.
static std::vector<std::vector<int64_t>> tableOf(int64_t rows, int64_t steps) {
  std::vector<std::vector<int64_t>> table(rows);
  for (int64_t n = 0; n < rows; ++n)
    for (int64_t t = 0; t < steps; ++t)
      table[n].push_back(1 + n * steps + t);
  return table;
}

TEST_P(VerifySlots, OfRaggedRows) {
  Call(config(), "verify",
       batchOf({4, 0, 1, 8, 3}, tableOf(5, 7), {1, 2, 7, 4, 3}))
      .runAndCheck();
}

// Every number of tokens, from every state.
TEST_P(VerifySlots, FromEveryState) {
  for (int64_t length = 0; length <= 8; ++length)
    for (int64_t accepted : {1, 5, 8}) {
      SCOPED_TRACE(std::to_string(length) + " after " +
                   std::to_string(accepted));
      Call(config(), "verify", batchOf({length}, tableOf(1, 8), {accepted}))
          .runAndCheck();
    }
}

// A count that is no number of tokens skips its sequence: zeros, no byte
// written.
TEST_P(VerifySlots, OfCountsOutOfRange) {
  constexpr int64_t far = int64_t(1) << 31;
  Call call(config(), "verify",
            batchOf({3, 3, 3, 3, 3, 3, 3}, tableOf(7, 4),
                    {0, 5, -1, -far, far - 1, 4, 1}));
  for (int64_t n = 0; n < 5; ++n)
    EXPECT_FALSE(call.isLive(n)) << n;
  EXPECT_TRUE(call.isLive(5) && call.isLive(6));
  call.runAndCheck();
}

// Ids that are skipped write nothing and change nothing else.
TEST_P(VerifySlots, ThatAreSkipped) {
  auto table = tableOf(4, 4);
  const Batch all = batchOf({4, 4, 2, 4}, table, {1, 2, 3, 4});
  table[0][1] = 0;             // null, on the way
  table[1][3] = -1;            // the last
  table[2][0] = 40;            // past the end
  table[3] = {-1, -1, -1, 16}; // only the state that is read
  const Batch some = batchOf({4, 4, 2, 3}, table, {1, 2, 3, 4});
  Call call(config(), "verify", some);
  call.runAndCheck();
  Call whole(config(), "verify", all);
  whole.run();
  for (const auto &[n, t] : {std::pair(0, 0), {0, 2}, {0, 3}, {1, 0}, {1, 2}})
    EXPECT_TRUE(
        call["state_pool"].sameRow(all.tokenSlots[n][t], whole["state_pool"]));
  // A sequence that reads a skipped slot is skipped.
  table[0][0] = 0;
  table[1][1] = 40;
  Call(config(), "verify", batchOf({4, 4, 2, 3}, table, {1, 2, 3, 4}))
      .runAndCheck();
}

namespace {
/// Two pools that go from call to call.
struct Pools {
  Buffer conv, state;

  static Pools of(Call &call) {
    return {call["conv_pool"], call["state_pool"]};
  }
  Pools clone() const { return {conv.clone(), state.clone()}; }
  void put(Call &call) const {
    call.replace("conv_pool", conv);
    call.replace("state_pool", state);
  }
};
} // namespace

/// Gives `call` the weights of `other`.
static void takeWeights(Call &call, Call &other) {
  for (const Parameter &parameter : call.parameters())
    if (!parameter.isPool && !parameter.isPerToken() && !parameter.isOutput &&
        data::isFloat(parameter.dtype))
      call.replace(parameter.name, other[parameter.name]);
}

/// A decode step of token `t` of `whole`, on `slot` of `pools`.
static Call decode(Call &whole, int64_t t, const Pools &pools, int64_t slot) {
  Batch batch = whole.batch;
  batch.lengths = {1};
  batch.ids = {slot};
  batch.tokenSlots.clear();
  batch.accepted.clear();
  batch.leading = batch.padding = 0;
  Call call(whole.config, "decode", batch);
  takeWeights(call, whole);
  for (const Parameter &parameter : call.parameters())
    if (parameter.isPerToken() && !parameter.isOutput)
      call[parameter.name].assign(whole[parameter.name].rows(t, 1));
  pools.put(call);
  call.run();
  return call;
}

// Steps with random lengths and random counts of accepted tokens, and beside
// them one decode step after another of the tokens that were accepted.
TEST_P(VerifySlots, RollBackToTheBitsOfDecode) {
  const bool isExact = GetParam().state == FloatKind::f32;
  constexpr int64_t rows = 3, steps = 8;
  const data::RandomStream stream(7, "rollback");
  uint64_t draws = 0;
  std::vector<int64_t> accepted(rows, 1);
  Call first(config(), "verify",
             batchOf({0, 0, 0}, tableOf(rows, steps), accepted));
  Pools pools = Pools::of(first);
  Pools plain = pools.clone(); // sequence n in its first slot
  for (int64_t step = 0; step < 6; ++step) {
    SCOPED_TRACE(step);
    std::vector<int64_t> lengths;
    for (int64_t n = 0; n < rows; ++n)
      lengths.push_back(stream.below(draws++, steps + 1));
    Batch batch = batchOf(lengths, tableOf(rows, steps), accepted);
    batch.inputs.seed = step + 1;
    Call call(config(), "verify", batch);
    takeWeights(call, first);
    pools.put(call);
    call.run();
    int64_t t = batch.leading;
    for (int64_t n = 0; n < rows; ++n) {
      const int64_t slot = batch.tokenSlots[n][0];
      if (lengths[n] == 0)
        continue; // its state is where it was
      accepted[n] = 1 + stream.below(draws++, lengths[n]);
      Pools kept;
      for (int64_t i = 0; i < lengths[n]; ++i, ++t) {
        Call one = decode(call, t, plain, slot);
        const int64_t at = batch.tokenSlots[n][i];
        if (isExact) {
          for (const char *name : {"core", "out"})
            EXPECT_TRUE(data::bitEqual(call[name].row(t), one[name].row(0)))
                << name << " of token " << i;
          EXPECT_TRUE(
              data::bitEqual(pools.state.row(at), plain.state.row(slot)));
        } else {
          EXPECT_LE(data::compare(pools.state.row(at), plain.state.row(slot))
                        .relativeRMSE,
                    oneCall.state + 8 * roundingOf(GetParam().state));
        }
        EXPECT_TRUE(data::bitEqual(pools.conv.row(at), plain.conv.row(slot)));
        if (i + 1 == accepted[n])
          kept = plain.clone();
      }
      // A narrow pool rounds at each decode step: start again from one state.
      plain = kept;
      if (!isExact)
        plain.state.assignRows(
            slot, pools.state.row(batch.tokenSlots[n][accepted[n] - 1]));
    }
  }
}

TEST_P(VerifySlots, WorkersDoNotMatter) {
  const Batch batch = batchOf({4, 0, 1, 6, 3}, tableOf(5, 7), {1, 2, 7, 4, 3});
  Call one(config(), "verify", batch);
  one.run();
  Call many(config(), "verify", batch, {}, 0);
  many.run();
  for (const char *name : {"core", "out", "conv_pool", "state_pool"})
    EXPECT_TRUE(many[name].sameMemory(one[name])) << name;
}

// A sequence's result is bit-equal whatever the batch.
TEST_P(VerifySlots, OtherRowsDoNotMatter) {
  Batch batch = batchOf({4, 2, 6, 3}, tableOf(4, 6), {1, 2, 6, 4});
  Call whole(config(), "verify", batch);
  Pools before = Pools::of(whole).clone();
  whole.run();
  batch.lengths = {6};
  batch.tokenSlots = {batch.tokenSlots[2]};
  batch.accepted = {6};
  batch.leading = batch.padding = 0;
  Call alone(config(), "verify", batch);
  takeWeights(alone, whole);
  for (const Parameter &parameter : alone.parameters())
    if (parameter.isPerToken() && !parameter.isOutput)
      alone[parameter.name].assign(whole[parameter.name].rows(8, 6));
  before.put(alone);
  alone.run();
  EXPECT_TRUE(data::bitEqual(alone["out"].values(), whole["out"].rows(8, 6)));
  for (int64_t slot : batch.tokenSlots[0])
    EXPECT_TRUE(data::bitEqual(alone["state_pool"].row(slot),
                               whole["state_pool"].row(slot)));
}

// What is read of the tables lies within them, whatever counts and bounds say:
// the byte behind each buffer cannot be accessed.
TEST_P(VerifySlots, TablesAreReadInside) {
  for (Placement placement : {Placement::guardAfter, Placement::guardBefore}) {
    Memory memory;
    memory.placement = placement;
    Call(config(), "verify", batchOf({8, 1, 5}, tableOf(3, 3), {3, 4, 0}),
         memory)
        .runAndCheck();
  }
}

static const Case cases[] = {
    {"F32", FloatKind::f32, FloatKind::f32},
    {"BF16", FloatKind::bf16, FloatKind::f32, 1},
    {"StatesBF16", FloatKind::bf16, FloatKind::bf16, 3},
    {"StatesF16", FloatKind::f16, FloatKind::f16},
    {"PerChannel", FloatKind::f32, FloatKind::f32, 2, true, true},
    {"PerChannelBounded", FloatKind::f32, FloatKind::f32, 1, true, false, 4,
     -5},
    {"WideWindows", FloatKind::bf16, FloatKind::f32, 2, false, true, 8},
    {"NarrowWindows", FloatKind::bf16, FloatKind::f32, 2, false, false, 2},
};
INSTANTIATE_TEST_SUITE_P(Cpu, VerifySlots, ::testing::ValuesIn(cases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
