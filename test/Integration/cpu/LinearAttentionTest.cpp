// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.gated_linear_attention alone, token by token and in chunks, with all that
// its states may do: what it shares with the delta rule, it shares in code.
#include "Call.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;

namespace {
struct Case {
  const char *name;
  FloatKind io, state;
  CpuPipelineOptions pipeline;
  bool perChannel = false;
  int64_t dk = 40, dv = 72;
};

std::ostream &operator<<(std::ostream &os, const Case &c) {
  return os << c.name;
}

class LinearAttention : public ::testing::TestWithParam<Case> {
protected:
  static Config config() {
    const Case &c = GetParam();
    Config config(c.dk, c.dv);
    config.form = c.perChannel ? Form::linearPerChannel : Form::linear;
    config.options.io = c.io;
    config.options.state = c.state;
    config.options.hasInitial = config.options.writeSlots = true;
    config.options.checkpoints = true;
    config.pipeline = c.pipeline;
    return config;
  }
};
} // namespace

TEST_P(LinearAttention, OfRaggedRows) {
  Call(config(), "prefill", allKindsOfSequences()).runAndCheck();
}

// exp(log_decay) from 1 to 0: nothing is divided by a decay that underflows.
TEST_P(LinearAttention, WithDecaysOfAllStrengths) {
  Call call(config(), "prefill", allKindsOfSequences());
  setDecaysOfAllStrengths(call);
  call.runAndCheck();
}

TEST_P(LinearAttention, DecodesOneTokenEach) {
  Call(config(), "decode", oneTokenEach(allKindsOfSequences())).runAndCheck();
}

/// Sequences that keep the state after each token.
static Batch drafts() {
  Batch batch;
  batch.lengths = {4, 3, 1, 2, 0};
  batch.ids = {1, 2, 3, 0, 4};
  batch.tokenSlots = {{5, 6, 7, 8},
                      {9, 0, 10, 11},
                      {12, 13, 14, 15},
                      {16, 17, 18, 19},
                      {20, 21, 22, 23}};
  batch.nullSlot = 0;
  batch.slots = 24;
  return batch;
}

TEST_P(LinearAttention, KeepsStatesAfterTokens) {
  Config slots = config();
  slots.options.hasInitial = slots.options.checkpoints = false;
  slots.options.verify = VerifyStates::slots;
  Call(slots, "verify", drafts()).runAndCheck();
}

TEST_P(LinearAttention, FollowsTrees) {
  Config tree = config();
  tree.options.hasInitial = tree.options.checkpoints = false;
  tree.options.verify = VerifyStates::tree;
  Batch batch = drafts();
  batch.parents = {{-1, 0, 0, 2},
                   {-1, 0, 1, 0},
                   {-1, 0, 0, 0},
                   {-1, -1, 0, 0},
                   {0, 0, 0, 0}};
  Call call(tree, "verify", batch);
  call.run();
  // A token starts from its parent's state as the slot holds it: of three
  // tokens behind each other, two have been rounded before.
  const double rounded = 2 * roundingOf(GetParam().state);
  call.check({oneCall.core + rounded, oneCall.out, oneCall.state + rounded});
}

static CpuPipelineOptions blocks(int64_t tokens) {
  CpuPipelineOptions pipeline;
  pipeline.tokens = tokens;
  pipeline.chunkFrom = -1;
  pipeline.segments = 0;
  return pipeline;
}
static CpuPipelineOptions chunks(int64_t chunk, int64_t from = 1) {
  CpuPipelineOptions pipeline;
  pipeline.chunk = chunk;
  pipeline.chunkFrom = from;
  pipeline.segments = 0;
  return pipeline;
}

static const Case cases[] = {
    {"F32", FloatKind::f32, FloatKind::f32, blocks(16)},
    {"StatesBF16", FloatKind::bf16, FloatKind::bf16, blocks(24)},
    {"PerChannel", FloatKind::f32, FloatKind::f32, blocks(16), true},
    {"Chunks64", FloatKind::f32, FloatKind::f32, chunks(64)},
    {"Chunks16", FloatKind::f16, FloatKind::f16, chunks(16)},
    {"Chunks32BF16", FloatKind::bf16, FloatKind::f32, chunks(32)},
    {"Chunks64PerChannel", FloatKind::f32, FloatKind::f32, chunks(64), true},
    {"ByTheRule", FloatKind::f32, FloatKind::f32, chunks(64, 0), false, 128,
     128},
    {"ByLength", FloatKind::f32, FloatKind::f32, chunks(64, 100)},
};
INSTANTIATE_TEST_SUITE_P(Cpu, LinearAttention, ::testing::ValuesIn(cases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
