// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element types: of inputs and outputs, of states, of weights, of slot ids.
// States are compared call by call and over a run of many calls.
//
// The bound of a run, for states of unit roundoff u: a call maps the error E of
// its state to A E + r, where A = alpha (I - beta k k^T) shrinks (unit keys,
// beta in [0, 2]) and r is the rounding, |r| <= u |M|. So after n calls
// |E| <= u (|M_1| + ... + |M_n|), which is at most n u |M| where states do not
// shrink, and outputs inherit the error of the state they are read from.
#include "Call.h"

#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;

namespace {
struct Case {
  const char *name;
  FloatKind io, state;
  void (*choose)(Config &);
};

class ElementTypes : public ::testing::TestWithParam<Case> {};
} // namespace

static void nothing(Config &) {}
static void weightsInF32(Config &c) {
  c.options.convWeight = c.options.normWeight = FloatKind::f32;
}

using K = FloatKind;
static const Case cases[] = {
    {"F32StatesF32", K::f32, K::f32, nothing},
    {"BF16StatesF32", K::bf16, K::f32, nothing},
    {"F16StatesF32", K::f16, K::f32, weightsInF32},
    {"BF16StatesBF16", K::bf16, K::bf16, weightsInF32},
    {"F16StatesF16", K::f16, K::f16, nothing},
    {"F32StatesBF16ConvStatesBF16", K::f32, K::bf16,
     [](Config &c) { c.options.convState = K::bf16; }},
};
static const Case longCases[] = {
    {"F32StatesF16", K::f32, K::f16, nothing},
    {"BF16StatesF16", K::bf16, K::f16, nothing},
    {"F16StatesBF16", K::f16, K::bf16, nothing},
    {"BF16ConvStatesF32", K::bf16, K::f32,
     [](Config &c) { c.options.convState = K::f32; }},
    {"F16ConvStatesBF16", K::f16, K::f32,
     [](Config &c) { c.options.convState = K::bf16; }},
    {"BF16TimeStepBF16", K::bf16, K::f32,
     [](Config &c) { c.options.dtBias = K::bf16; }},
    {"F32WeightsBF16", K::f32, K::f32,
     [](Config &c) {
       c.options.convWeight = K::bf16;
       c.options.normWeight = K::f16;
     }},
};

static Config configOf(const Case &c) {
  Config config(40, 72);
  config.options.io = c.io;
  config.options.state = c.state;
  c.choose(config);
  return config;
}

// The bounds of the project for inputs of fewer bits, over enough values that
// the rounding of the outputs is the average one.
TEST_P(ElementTypes, OneCall) {
  Batch batch;
  batch.lengths = {70, 3, 16};
  batch.ratio = 3;
  Call call(configOf(GetParam()), "prefill", batch);
  call.runAndCheck();
  const double unit = roundingOf(GetParam().io) / roundingOf(FloatKind::bf16);
  EXPECT_LE(call.errors().core, std::max(1e-5, 2e-3 * unit));
  EXPECT_LE(call.errors().out, std::max(1e-5, 5e-3 * unit));
}

// Prefill of 40 tokens, then decode. The reference keeps its own states.
TEST_P(ElementTypes, ManyCalls) {
  const Config config = configOf(GetParam());
  const int64_t steps = 40;
  Batch batch;
  batch.lengths = {40, 40};
  batch.nullSlot = 0;
  Call first(config, "prefill", batch);
  reference::Pool state = {
      {first["state_pool"].shape(), first["state_pool"].values()},
      batch.nullSlot};
  first.run();
  first.check(oneCall, &state);

  const double rounding = roundingOf(config.options.state);
  batch.lengths = {1, 1};
  for (int64_t step = 1; step <= steps; ++step) {
    SCOPED_TRACE(step);
    batch.inputs.seed = step;
    batch.slots = first["state_pool"].dim(0);
    batch.ids.assign(2, 0);
    for (int64_t n : {0, 1})
      batch.ids[n] = int64_t(first["slots"].rows(n, 1)[0]);
    Call decode(config, "decode", batch);
    for (const char *name :
         {"conv_pool", "state_pool", "conv_weight", "A_log", "dt_bias"})
      decode.replace(name, first[name]);
    decode.run();
    const double drift = rounding * double(step);
    decode.check(
        {oneCall.core + drift, oneCall.out + drift, oneCall.state + drift},
        &state);
    // The call by itself, from the states that it found.
    decode.check(oneCall);
  }
}

static std::string nameOf(const ::testing::TestParamInfo<Case> &info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Cpu, ElementTypes, ::testing::ValuesIn(cases), nameOf);
INSTANTIATE_TEST_SUITE_P(Full, ElementTypes, ::testing::ValuesIn(longCases),
                         nameOf);
