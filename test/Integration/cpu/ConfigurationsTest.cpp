// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Head sizes, ratios of heads, layouts and options of layers: each runs prefill
// over ragged sequences (an empty one, a skipped one, padding) and decode.
#include "Call.h"

#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;

namespace {
struct Case {
  const char *name;
  int64_t dk, dv, ratio;
  InputLayout layout;
  void (*choose)(Config &);
};

class Configurations : public ::testing::TestWithParam<Case> {};
} // namespace

static void nothing(Config &) {}

static const Case cases[] = {
    {"Qwen3Next", 128, 128, 2, InputLayout::interleaved, nothing},
    {"OlmoHybrid", 96, 192, 1, InputLayout::separate,
     [](Config &c) {
       c.doubleBeta = true;
       c.eps = 1e-5;
     }},
    {"Sigmoid", 64, 64, 3, InputLayout::flat,
     [](Config &c) { c.gate = Activation::sigmoid; }},
    {"NormAfterGate", 64, 128, 4, InputLayout::split,
     [](Config &c) { c.normAfterGate = true; }},
    {"NormConstants", 64, 64, 2, InputLayout::flat,
     [](Config &c) { c.options.normConstants = true; }},
    {"LargestHeads", 256, 256, 1, InputLayout::flat, nothing},
    {"BiasAndWidth3", 40, 24, 2, InputLayout::interleaved,
     [](Config &c) {
       c.convBias = true;
       c.convWidth = 3;
     }},
    {"SmallestHeadsAndWidth2", 8, 8, 3, InputLayout::split,
     [](Config &c) {
       c.convWidth = 2;
       c.doubleBeta = true;
     }},
    {"DecayPerChannel", 64, 64, 1, InputLayout::separate,
     [](Config &c) { c.perChannelDecay = true; }},
    {"CoreOnly", 64, 64, 2, InputLayout::split,
     [](Config &c) { c.options.outputs = EntryOutputs::core; }},
    {"NormOnly", 64, 64, 2, InputLayout::interleaved,
     [](Config &c) { c.options.outputs = EntryOutputs::norm; }},
    {"Gated", 64, 40, 2, InputLayout::gated,
     [](Config &c) {
       c.options.outputs = EntryOutputs::core;
       c.options.l2norm = true;
     }},
    {"BoundedDecayPerChannel", 64, 64, 1, InputLayout::separate,
     [](Config &c) {
       c.perChannelDecay = true;
       c.decayBound = -5;
       c.gate = Activation::sigmoid;
     }},
    {"BoundedDecay", 64, 64, 2, InputLayout::flat,
     [](Config &c) { c.decayBound = -0.5; }},
    {"GatedPerChannelBounded", 40, 40, 1, InputLayout::gated,
     [](Config &c) {
       c.options.outputs = EntryOutputs::core;
       c.perChannelDecay = true;
       c.decayBound = -5;
     }},
    {"GatedPerChannel", 64, 64, 1, InputLayout::gated,
     [](Config &c) {
       c.options.outputs = EntryOutputs::core;
       c.options.l2norm = true;
       c.perChannelDecay = true;
     }},
};

static const Case longCases[] = {
    {"Heads16And8", 16, 8, 1, InputLayout::flat, nothing},
    {"Heads24And40", 24, 40, 2, InputLayout::interleaved, nothing},
    {"Heads56And56", 56, 56, 4, InputLayout::split, nothing},
    {"Heads104And88", 104, 88, 2, InputLayout::separate, nothing},
    {"Heads120And248", 120, 248, 1, InputLayout::flat, nothing},
    {"Heads248And120", 248, 120, 3, InputLayout::interleaved, nothing},
    {"Heads256And8", 256, 8, 2, InputLayout::flat, nothing},
    {"Heads8And256", 8, 256, 2, InputLayout::flat, nothing},
    {"Heads128And128Flat", 128, 128, 4, InputLayout::flat, nothing},
    {"Heads256And256Sigmoid", 256, 256, 2, InputLayout::interleaved,
     [](Config &c) { c.gate = Activation::sigmoid; }},
    {"Width5", 64, 64, 2, InputLayout::flat,
     [](Config &c) { c.convWidth = 5; }},
    {"Width8AndBias", 64, 64, 2, InputLayout::split,
     [](Config &c) {
       c.convWidth = 8;
       c.convBias = true;
     }},
    {"DecayPerChannelOf128", 128, 128, 1, InputLayout::separate,
     [](Config &c) {
       c.perChannelDecay = true;
       c.gate = Activation::sigmoid;
     }},
    {"DecayPerChannelGrouped", 40, 24, 3, InputLayout::separate,
     [](Config &c) { c.perChannelDecay = true; }},
    {"SigmoidAfterGate", 96, 192, 2, InputLayout::separate,
     [](Config &c) {
       c.gate = Activation::sigmoid;
       c.normAfterGate = true;
       c.eps = 1e-5;
     }},
};

static Config configOf(const Case &c) {
  Config config(c.dk, c.dv);
  config.layout = c.layout;
  c.choose(config);
  return config;
}

TEST_P(Configurations, Prefill) {
  Batch batch;
  batch.lengths = {37, 0, 5, 20, 1};
  batch.keyHeads = 2;
  batch.ratio = GetParam().ratio;
  batch.padding = 3;
  batch.slots = 7;
  batch.nullSlot = 0;
  batch.ids = {4, 2, 0, 6, 1}; // sequence 2 has the null slot
  Call(configOf(GetParam()), "prefill", batch).runAndCheck();
}

TEST_P(Configurations, Decode) {
  Batch batch;
  batch.lengths = {1, 1, 1, 1};
  batch.keyHeads = 2;
  batch.ratio = GetParam().ratio;
  batch.slots = 6;
  batch.nullSlot = 0;
  batch.ids = {5, 0, 2, 3};
  Call(configOf(GetParam()), "decode", batch).runAndCheck();
}

// The number of heads is an argument: one image serves all.
TEST(HeadCounts, OfOneImage) {
  for (InputLayout layout : {InputLayout::interleaved, InputLayout::flat})
    for (int64_t ratio : {1, 2, 3, 4, 8})
      for (int64_t keyHeads : {1, 3}) {
        SCOPED_TRACE(ratio);
        Config config(40, 24);
        config.layout = layout;
        Batch batch;
        batch.lengths = {18, 3};
        batch.keyHeads = keyHeads;
        batch.ratio = ratio;
        Call(config, "prefill", batch).runAndCheck();
      }
}

static std::string nameOf(const ::testing::TestParamInfo<Case> &info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Cpu, Configurations, ::testing::ValuesIn(cases),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Full, Configurations, ::testing::ValuesIn(longCases),
                         nameOf);
