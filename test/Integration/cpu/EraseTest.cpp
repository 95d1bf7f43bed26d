// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.delta_rule with a key to erase along (GDN-2), with all that its states
// may do; and where it is the rule without: that has the same bits.
#include "Call.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;

namespace {
struct Case {
  const char *name;
  FloatKind io, state;
  bool perChannel;
  int64_t dk = 40, dv = 72;
};

class Erase : public ::testing::TestWithParam<Case> {
protected:
  static Config config(bool erase = true) {
    const Case &c = GetParam();
    Config config(c.dk, c.dv);
    config.form = c.perChannel ? Form::plainPerChannel : Form::plain;
    config.erase = erase;
    config.options.io = c.io;
    config.options.state = c.state;
    config.options.hasInitial = config.options.writeSlots = true;
    config.options.checkpoints = true;
    config.pipeline.chunkFrom = erase ? 1 : -1; // takes no chunks all the same
    return config;
  }
  /// One sequence that starts from its slot, and writes there.
  static Batch oneSequence(int64_t tokens) {
    Batch batch;
    batch.lengths = {tokens};
    batch.ids = {1};
    return batch;
  }
  static void expectSame(Call &a, Call &b) {
    EXPECT_TRUE(a["core"].sameMemory(b["core"]));
    EXPECT_TRUE(a["state_pool"].sameMemory(b["state_pool"]));
  }
};
} // namespace

/// Multiplies the rows of each token's heads by powers of two, or divides.
static void scaleHeads(Buffer &rows, const std::vector<double> &exponents,
                       int64_t width) {
  std::vector<double> values = rows.values();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::ldexp(values[i], int(exponents[i / width]));
  rows.assign(values);
}

TEST_P(Erase, OfRaggedRows) {
  Call(config(), "prefill", allKindsOfSequences()).runAndCheck();
}

// exp(log_decay) from 1 to 0.
TEST_P(Erase, WithDecaysOfAllStrengths) {
  Call call(config(), "prefill", allKindsOfSequences());
  setDecaysOfAllStrengths(call);
  call.runAndCheck();
}

// One key for all tokens, that erase of it what their gates say; no decay.
TEST_P(Erase, WithOneKeyForAllTokens) {
  Call call(config(), "prefill", oneSequence(150));
  const std::vector<double> key = call["k"].row(0);
  for (int64_t t = 0; t < call["k"].dim(0); ++t)
    call["k"].assignRows(t, key);
  call["log_decay"].fill(0);
  call["beta"].fill(1);
  call.runAndCheck();
}

TEST_P(Erase, DecodesOneTokenEach) {
  Call(config(), "decode", oneTokenEach(allKindsOfSequences())).runAndCheck();
}

TEST_P(Erase, KeepsStatesAfterTokens) {
  Config slots = config();
  slots.options.hasInitial = slots.options.checkpoints = false;
  slots.options.verify = VerifyStates::slots;
  Batch batch;
  batch.lengths = {3, 2, 0};
  batch.ids = {1, 0, 2};
  batch.tokenSlots = {{3, 4, 5}, {6, 7, 8}, {9, 10, 11}};
  batch.nullSlot = 0;
  batch.slots = 12;
  Call(slots, "verify", batch).runAndCheck();
}

TEST_P(Erase, FollowsTrees) {
  Config tree = config();
  tree.options.hasInitial = tree.options.checkpoints = false;
  tree.options.verify = VerifyStates::tree;
  Batch batch;
  batch.lengths = {4, 3};
  batch.ids = {1, 2};
  batch.tokenSlots = {{3, 4, 5, 6}, {7, 8, 9, 10}};
  batch.parents = {{-1, 0, 0, 2}, {-1, -1, 0, 0}};
  batch.slots = 12;
  Call(tree, "verify", batch).runAndCheckRounded(GetParam().state);
}

// Two calls of one sequence; states of 16 bits are rounded between them.
TEST_P(Erase, InTwoCalls) {
  if (GetParam().state != FloatKind::f32)
    GTEST_SKIP() << "rounds its states";
  for (int64_t cut : {1, 16, 37}) {
    Call whole(config(), "prefill", oneSequence(70)),
        parts(config(), "prefill", oneSequence(70));
    whole.run();
    for (int64_t begin : {int64_t(0), cut}) {
      const int64_t end = begin == 0 ? cut : 70;
      Batch batch = oneSequence(end - begin);
      batch.slots = whole["state_pool"].dim(0);
      Call part(config(), "prefill", batch);
      for (const char *name : {"q", "k", "v", "log_decay", "beta", "erase"})
        part[name].assign(whole[name].rows(begin, end - begin));
      part.replace("state_pool", parts["state_pool"]);
      part.run();
      EXPECT_EQ(part["core"].values(), whole["core"].rows(begin, end - begin));
    }
    EXPECT_TRUE(parts["state_pool"].sameMemory(whole["state_pool"]));
  }
}

// Erasing along the key itself is the rule without.
TEST_P(Erase, AlongTheKey) {
  Call with(config(), "prefill", allKindsOfSequences()),
      without(config(/*erase=*/false), "prefill", allKindsOfSequences());
  with["erase"].assign(with["k"].values());
  with.run();
  without.run();
  expectSame(with, without);
}

// Kimi Delta Attention is GDN-2 with both gates equal to beta. With powers of
// two nothing is rounded when keys and values are multiplied by it.
TEST_P(Erase, WithGatesOfBeta) {
  Batch batch = allKindsOfSequences();
  batch.ratio = 1; // an erase key is one of its key head
  Call with(config(), "prefill", batch),
      without(config(/*erase=*/false), "prefill", batch);
  std::vector<double> exponents(without["beta"].values());
  for (auto [i, exponent] : llvm::enumerate(exponents))
    exponent = -double(i % 4);
  with["erase"].assign(with["k"].values());
  scaleHeads(with["erase"], exponents, GetParam().dk);
  scaleHeads(with["v"], exponents, GetParam().dv);
  std::vector<double> betas(exponents.size(), 1);
  with["beta"].assign(betas);
  without["beta"].assign(betas);
  scaleHeads(without["beta"], exponents, 1);
  with.run();
  without.run();
  expectSame(with, without);
}

static const Case cases[] = {
    {"F32", FloatKind::f32, FloatKind::f32, false},
    {"BF16", FloatKind::bf16, FloatKind::f32, false, 128, 128},
    {"PerChannel", FloatKind::f32, FloatKind::f32, true},
    {"PerChannelBF16", FloatKind::bf16, FloatKind::f32, true, 64, 64},
    {"StatesBF16", FloatKind::bf16, FloatKind::bf16, true},
};
INSTANTIATE_TEST_SUITE_P(Cpu, Erase, ::testing::ValuesIn(cases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
