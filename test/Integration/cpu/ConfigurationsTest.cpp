// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Head sizes, ratios of heads, layouts and options of layers: each runs prefill
// over ragged rows (an empty one, a skipped one, padding) and decode.
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
  batch.ids = {4, 2, 0, 6, 1}; // row 2 has the null slot
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

INSTANTIATE_TEST_SUITE_P(Cpu, Configurations, ::testing::ValuesIn(cases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
