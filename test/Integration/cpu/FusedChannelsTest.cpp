// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tile program of the kernel whose blocks prepare their chunks, with a
// decay per channel: chunks of 32 tokens, T and P apart. It rounds what the
// kernel's memory rounds, so its errors bound those of the form; GPUs alone
// take it.
#include "Call.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;

namespace {
struct Gates {
  const char *name;
  /// Of a token, a head and one of 128 channels; `x` is uniform in [0, 1).
  double (*log)(int64_t token, int64_t head, int64_t channel, double x);
};

class FusedChannels
    : public ::testing::TestWithParam<std::tuple<Gates, double>> {};
} // namespace

/// Of bounded gates, in the middle.
static double bounded(double x) { return -5 / (1 + std::exp(6 - 12 * x)); }

static const Gates gates[] = {
    {"SlowChannel",
     [](int64_t, int64_t head, int64_t channel, double x) {
       return channel == 17 * (head + 1) ? -0.005 : bounded(x);
     }},
    // Eight tokens wipe one half of the channels, the next eight the other.
    {"Resets",
     [](int64_t token, int64_t, int64_t channel, double) {
       return token / 8 % 2 == channel / 64 ? -5 : -1e-3;
     }},
    {"DownTo50",
     [](int64_t, int64_t, int64_t, double x) { return -50 * x * x; }},
};

TEST_P(FusedChannels, EqualReference) {
  const auto [kind, correlation] = GetParam();
  Config config(128, 128);
  config.form = Form::plainPerChannel;
  config.options.io = FloatKind::bf16;
  config.options.outputs = EntryOutputs::core;
  config.pipeline.precision = Precision::mixedIo;
  config.pipeline.chunkStages = ChunkStages::staged;
  config.pipeline.variants = {"fused-channels:fused=1", "staged:"};
  Batch batch;
  batch.lengths = {100, 1, 64, 257, 0, 33, 31, 32, 16, 15};
  batch.keyHeads = 2;
  batch.leading = 3;
  batch.padding = 5;
  batch.inputs.keyCorrelation = correlation;
  Call call(config, "prefill", batch);
  Buffer &decays = call["log_decay"];
  const data::RandomStream random(/*seed=*/7, kind.name);
  std::vector<double> logs;
  for (int64_t t = 0; t < decays.dim(0); ++t)
    for (int64_t h = 0; h < decays.dim(1); ++h)
      for (int64_t c = 0; c < decays.dim(2); ++c)
        logs.push_back(kind.log(t, h, c, random.uniform(logs.size())));
  decays.assign(logs);
  call.run("fused-channels");
  const Errors most = {3e-3, 3e-3, 2e-3};
  call.check(most);
  EXPECT_LE(call.errors().core, most.core);
  EXPECT_LE(call.errors().state, most.state);
}

INSTANTIATE_TEST_SUITE_P(Cpu, FusedChannels,
                         ::testing::Combine(::testing::ValuesIn(gates),
                                            ::testing::Values(0, 0.9)),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param).name) +
                                  (std::get<1>(info.param) != 0 ? "Correlated"
                                                                : "");
                         });
