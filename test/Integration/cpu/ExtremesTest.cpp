// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs at the edges of what the delta rule allows: decays that underflow or
// do nothing, write strengths of 0, 1 and 2, keys that are zero or all alike,
// large values. Results are finite and within the usual bounds.
#include "Call.h"

#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;
using data::GateKind;

namespace {
/// Changes the inputs of gdn.delta_rule before the call.
struct PlainCase {
  const char *name;
  GateKind gates;
  void (*edit)(Call &);
};

class PlainExtremes
    : public ::testing::TestWithParam<std::tuple<PlainCase, Form>> {};
class LayerExtremes : public ::testing::TestWithParam<GateKind> {};
} // namespace

static void nothing(Call &) {}
static void fill(Call &call, const char *name, double value) {
  call[name].fill(value);
}
/// Every key is the first token's.
static void repeatKeys(Call &call) {
  const std::vector<double> key = call["k"].row(0);
  for (int64_t t = 0; t < call["k"].dim(0); ++t)
    call["k"].assignRows(t, key);
}
static void scale(Call &call, const char *name, double factor) {
  std::vector<double> values = call[name].values();
  for (double &value : values)
    value *= factor;
  call[name].assign(values);
}

static const PlainCase plainCases[] = {
    {"Realistic", GateKind::realistic, nothing},
    {"DecayNearOne", GateKind::nearOne, nothing},
    {"StrongDecay", GateKind::strong, nothing},
    {"VeryStrongDecay", GateKind::veryStrong, nothing},
    {"DecayUnderflows", GateKind::realistic,
     [](Call &c) { fill(c, "log_decay", -1e4); }},
    {"NoDecay", GateKind::realistic, [](Call &c) { fill(c, "log_decay", 0); }},
    {"BetaZero", GateKind::realistic, [](Call &c) { fill(c, "beta", 0); }},
    {"BetaOne", GateKind::nearOne, [](Call &c) { fill(c, "beta", 1); }},
    {"BetaTwo", GateKind::nearOne, [](Call &c) { fill(c, "beta", 2); }},
    {"BetaTwoNoDecay", GateKind::nearOne,
     [](Call &c) {
       fill(c, "beta", 2);
       fill(c, "log_decay", 0);
     }},
    {"ZeroKeys", GateKind::realistic, [](Call &c) { fill(c, "k", 0); }},
    {"ZeroQueries", GateKind::realistic, [](Call &c) { fill(c, "q", 0); }},
    {"SameKeysBetaOne", GateKind::realistic,
     [](Call &c) {
       repeatKeys(c);
       fill(c, "beta", 1);
     }},
    {"SameKeysBetaTwoNoDecay", GateKind::realistic,
     [](Call &c) {
       repeatKeys(c);
       fill(c, "beta", 2);
       fill(c, "log_decay", 0);
     }},
    {"LargeValues", GateKind::realistic, [](Call &c) { scale(c, "v", 1e4); }},
    {"LargeValuesStrongDecay", GateKind::strong,
     [](Call &c) { scale(c, "v", 1e4); }},
    {"TinyValues", GateKind::realistic, [](Call &c) { scale(c, "v", 1e-6); }},
};

TEST_P(PlainExtremes, Prefill) {
  const auto &[c, form] = GetParam();
  Config config;
  config.form = form;
  Batch batch;
  batch.lengths = {100, 17};
  batch.ratio = form == Form::plain ? 3 : 1;
  batch.inputs.gates = c.gates;
  Call call(config, "prefill", batch);
  c.edit(call);
  call.runAndCheck();
}

TEST_P(PlainExtremes, Decode) {
  const auto &[c, form] = GetParam();
  Config config;
  config.form = form;
  Batch batch;
  batch.lengths = {1, 1, 1};
  batch.inputs.gates = c.gates;
  Call call(config, "decode", batch);
  c.edit(call);
  call.runAndCheck();
}

INSTANTIATE_TEST_SUITE_P(
    Cpu, PlainExtremes,
    ::testing::Combine(::testing::ValuesIn(plainCases),
                       ::testing::Values(Form::plain, Form::plainPerChannel)),
    [](const auto &info) {
      return std::string(std::get<0>(info.param).name) +
             (std::get<1>(info.param) == Form::plain ? "" : "PerChannel");
    });

// A_log from 0 to log 16, with the mean decay that the kind says.
TEST_P(LayerExtremes, Gates) {
  Batch batch;
  batch.lengths = {80, 30};
  batch.keyHeads = 2;
  batch.inputs.gates = GetParam();
  Call(Config(), "prefill", batch).runAndCheck();
}

// Projections far outside of what a model gives: gates saturate, the convolved
// keys reach 1e4, softplus passes its threshold.
TEST_P(LayerExtremes, LargeProjections) {
  Batch batch;
  batch.lengths = {40};
  batch.inputs.gates = GetParam();
  batch.inputs.scale = 1e4;
  Call(Config(), "prefill", batch).runAndCheck();
}

// exp(A_log) is infinite in f32, softplus(u) is 0: their product is a decay all
// the same. With larger u nothing is left of a state.
TEST(LayerRates, OverflowWhereSoftplusVanishes) {
  for (const char *entry : {"prefill", "decode"})
    for (auto [aLog, bias] : {std::pair{100.0, -104.0}, std::pair{100.0, -30.0},
                              std::pair{100.0, 3.0}, std::pair{88.0, -90.0},
                              std::pair{-3.0, -17.0}, std::pair{14.0, -17.0}}) {
      SCOPED_TRACE(entry + (" A_log " + std::to_string(aLog)) + " dt_bias " +
                   std::to_string(bias));
      Batch batch;
      batch.lengths = {1, 1, 1};
      if (entry == std::string("prefill"))
        batch.lengths = {80, 30};
      Call call(Config(), entry, batch);
      call["A_log"].fill(aLog);
      call["dt_bias"].fill(bias);
      call.runAndCheck();
    }
}

// From decays of the bound to slow ones, with rates that overflow too: what a
// state keeps over 80 tokens is as exact as with softplus.
TEST(LayerRates, BoundedDecays) {
  for (const char *entry : {"prefill", "decode"})
    for (bool perChannel : {false, true})
      for (auto [aLog, bias] :
           {std::pair{0.0, 9.0}, std::pair{0.0, 0.0}, std::pair{0.0, -7.0},
            std::pair{-2.0, -60.0}, std::pair{2.77, -0.4},
            std::pair{2.77, -40.0}, std::pair{100.0, 0.0}}) {
        SCOPED_TRACE(entry + (" A_log " + std::to_string(aLog)) + " dt_bias " +
                     std::to_string(bias) + (perChannel ? " channels" : ""));
        Config config;
        config.perChannelDecay = perChannel;
        config.layout =
            perChannel ? InputLayout::separate : InputLayout::interleaved;
        config.decayBound = -5;
        Batch batch;
        batch.lengths = {1, 1, 1};
        if (entry == std::string("prefill"))
          batch.lengths = {80, 30};
        Call call(config, entry, batch);
        call["A_log"].fill(aLog);
        call["dt_bias"].fill(bias);
        call.runAndCheck();
      }
}

// Keys and values are zero after the convolution of zeros; the states of the
// convolution are zero too.
TEST_P(LayerExtremes, ZeroProjections) {
  Batch batch;
  batch.lengths = {40};
  batch.inputs.gates = GetParam();
  Call call(Config(), "prefill", batch);
  call["qkvz"].fill(0);
  call["conv_pool"].fill(0);
  call["state_pool"].fill(0);
  call.run();
  for (double value : call["core"].values())
    ASSERT_EQ(value, 0);
  for (double value : call["out"].values())
    ASSERT_EQ(value, 0);
  for (double value : call["state_pool"].values())
    ASSERT_EQ(value, 0);
}

INSTANTIATE_TEST_SUITE_P(Cpu, LayerExtremes,
                         ::testing::Values(GateKind::realistic,
                                           GateKind::nearOne, GateKind::strong,
                                           GateKind::veryStrong),
                         [](const auto &info) {
                           return data::name(info.param).str();
                         });
