// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entry `verify` over trees of tokens: each token starts from its parent's
// state and window; every way from the sequence's state to a token has the bits
// of decode steps. Slots that nobody reads hold NaN.
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
};

std::ostream &operator<<(std::ostream &os, const Case &c) {
  return os << c.name;
}

class VerifyTree : public ::testing::TestWithParam<Case> {
protected:
  static Config config(VerifyStates verify = VerifyStates::tree) {
    const Case &c = GetParam();
    Config config(40, 72);
    config.convWidth = c.convWidth;
    config.options.io = c.io;
    config.options.state = c.state;
    config.options.verify = verify;
    config.options.slots64 = c.wideIds;
    config.perChannelDecay = c.perChannel;
    if (c.perChannel)
      config.layout = InputLayout::separate;
    return config;
  }
  /// Sequences with the parents `parents`: sequence n reads slot n + 1.
  static Batch batchOf(std::vector<int64_t> lengths,
                       std::vector<std::vector<int64_t>> parents) {
    Batch batch;
    batch.lengths = std::move(lengths);
    const int64_t rows = batch.lengths.size();
    int64_t next = 1 + rows;
    for (int64_t n = 0; n < rows; ++n) {
      batch.ids.push_back(n + 1);
      batch.tokenSlots.emplace_back();
      for (size_t t = 0; t < parents[n].size(); ++t)
        batch.tokenSlots[n].push_back(next++);
    }
    batch.parents = std::move(parents);
    batch.slots = 40;
    batch.nullSlot = 0;
    batch.ratio = GetParam().ratio;
    batch.leading = 2;
    batch.padding = 3;
    return batch;
  }
  /// A narrow pool rounds the state of each token that is a parent.
  static Errors bounds() {
    const double rounding = 8 * roundingOf(GetParam().state);
    return {oneCall.core + rounding, oneCall.out + rounding,
            oneCall.state + rounding};
  }
  static void expectRight(Batch batch) {
    Call call(config(), "verify", batch);
    call.run();
    call.check(bounds());
  }
};
} // namespace

static std::vector<std::vector<int64_t>> trees() {
  return {{-1, 0, 1, 2, 3, 4, 5, 6},    // a chain
          {-1, 0, 0, 1, 1, 2, 2, 3},    // two of each
          {-1, -1, -1, -1, 3, 2, 1, 0}, // four first tokens
          {-1, 0, -1, 1, 3, 4, 2, 5}};
}

TEST_P(VerifyTree, OfRaggedRows) {
  expectRight(batchOf({8, 7, 0, 8}, trees()));
  expectRight(batchOf({1, 8, 3, 5}, trees()));
}

// A parent that does not come before its token, or whose state is not kept,
// counts as none.
TEST_P(VerifyTree, ParentsThatAreNone) {
  constexpr int64_t far = int64_t(1) << 31;
  Batch batch = batchOf({6, 6, 6, 4}, {{0, 1, 5, -2, far - 1, -far},
                                       {-1, 0, 1, 2, 3, 4},
                                       {3, 0, 0, 1, 1, 8},
                                       {-1, 0, 1, 2, -1, 4}});
  batch.tokenSlots[1][2] = -1;
  batch.tokenSlots[1][3] = 0;
  batch.tokenSlots[2][0] = 40;
  expectRight(batch);
}

TEST_P(VerifyTree, SkippedRows) {
  Batch batch = batchOf({8, 7, 3, 8}, trees());
  batch.ids = {0, -1, 40, 4};
  expectRight(batch);
}

TEST_P(VerifyTree, TablesAreReadInside) {
  for (Placement placement : {Placement::guardAfter, Placement::guardBefore}) {
    Memory memory;
    memory.placement = placement;
    // Sequences of more tokens than the tables have.
    Batch batch = batchOf({8, 1, 5}, {{-1, 0, 1}, {-1, 0, 0}, {-1, -1, 1}});
    batch.leading = batch.padding = 0;
    Call call(config(), "verify", batch, memory);
    call.run();
    call.check(bounds());
  }
}

/// A decode step of token `t` of `whole`, from slot 1 of pools that it changes.
static Call decode(Call &whole, int64_t t, const Buffer &conv,
                   const Buffer &state) {
  Batch batch = whole.batch;
  batch.lengths = {1};
  batch.ids = {1};
  batch.leading = batch.padding = 0;
  Call call(whole.config, "decode", batch);
  for (const Parameter &parameter : call.parameters()) {
    if (parameter.isPool || parameter.isOutput ||
        !data::isFloat(parameter.dtype))
      continue;
    if (parameter.isPerToken())
      call[parameter.name].assign(whole[parameter.name].rows(t, 1));
    else
      call.replace(parameter.name, whole[parameter.name]);
  }
  call.replace("conv_pool", conv);
  call.replace("state_pool", state);
  call.run();
  return call;
}

TEST_P(VerifyTree, EveryWayHasTheBitsOfDecode) {
  if (GetParam().state != FloatKind::f32)
    GTEST_SKIP() << "a narrow pool rounds at every decode step";
  for (const std::vector<int64_t> &parents : trees()) {
    Call call(config(), "verify", batchOf({8}, {parents}));
    const Buffer conv = call["conv_pool"].clone(),
                 state = call["state_pool"].clone();
    call.run();
    for (int64_t leaf = 0; leaf < 8; ++leaf) {
      SCOPED_TRACE(leaf);
      std::vector<int64_t> way;
      for (int64_t t = leaf; t >= 0; t = parents[t])
        way.insert(way.begin(), t);
      const Buffer convs = conv.clone(), states = state.clone();
      for (int64_t t : way) {
        Call one = decode(call, call.batch.leading + t, convs, states);
        if (t == leaf)
          EXPECT_TRUE(data::bitEqual(call["out"].row(call.batch.leading + t),
                                     one["out"].row(0)));
      }
      const int64_t slot = call.batch.tokenSlots[0][leaf];
      EXPECT_TRUE(data::bitEqual(call["conv_pool"].row(slot), convs.row(1)));
      EXPECT_TRUE(data::bitEqual(call["state_pool"].row(slot), states.row(1)));
    }
  }
}

// Trees, lengths and skipped slots at random.
TEST_P(VerifyTree, AtRandom) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    const data::RandomStream stream(seed, "trees");
    uint64_t draws = 0;
    auto below = [&](int64_t bound) { return stream.below(draws++, bound); };
    std::vector<int64_t> lengths;
    std::vector<std::vector<int64_t>> parents;
    const int64_t steps = 1 + below(8);
    for (int64_t n = 0; n < 4; ++n) {
      lengths.push_back(below(steps + 1));
      parents.emplace_back();
      for (int64_t t = 0; t < steps; ++t)
        parents.back().push_back(below(t + 2) - 1);
    }
    Batch batch = batchOf(lengths, parents);
    batch.inputs.seed = seed;
    for (std::vector<int64_t> &row : batch.tokenSlots)
      for (int64_t &slot : row)
        if (below(6) == 0)
          slot = -below(2);
    expectRight(batch);
  }
}

TEST_P(VerifyTree, WorkersDoNotMatter) {
  Call one(config(), "verify", batchOf({8, 7, 3, 8}, trees()));
  one.run();
  Call many(config(), "verify", batchOf({8, 7, 3, 8}, trees()), {}, 0);
  many.run();
  for (const char *name : {"core", "out", "conv_pool", "state_pool"})
    EXPECT_TRUE(many[name].sameMemory(one[name])) << name;
}

static const Case cases[] = {
    {"F32", FloatKind::f32, FloatKind::f32},
    {"BF16", FloatKind::bf16, FloatKind::f32, 1},
    {"StatesBF16", FloatKind::bf16, FloatKind::bf16, 3},
    {"PerChannel", FloatKind::f32, FloatKind::f32, 2, true, true},
    {"WideWindows", FloatKind::bf16, FloatKind::f32, 2, false, true, 8},
    {"NarrowWindows", FloatKind::bf16, FloatKind::f32, 2, false, false, 2},
};
INSTANTIATE_TEST_SUITE_P(Cpu, VerifyTree, ::testing::ValuesIn(cases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
