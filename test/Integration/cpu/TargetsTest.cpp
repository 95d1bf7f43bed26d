// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code for levels of x86-64 below the machine's own, where it can run.
#include "Call.h"

#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;

class Targets : public ::testing::TestWithParam<const char *> {};

/// True if this machine runs code for the level.
static bool runsHere(llvm::StringRef target) {
  return target == "x86-64-v3" ? __builtin_cpu_supports("x86-64-v3")
                               : __builtin_cpu_supports("x86-64-v4");
}

static void runBoth(Config config) {
  if (!runsHere(config.target))
    GTEST_SKIP() << "this machine is below " << config.target;
  Batch batch;
  batch.lengths = {37, 0, 5, 1};
  batch.keyHeads = 2;
  batch.ratio = 3;
  batch.nullSlot = 0;
  batch.ids = {1, 2, 0, 4};
  batch.slots = 5;
  batch.padding = 3;
  Memory guarded;
  guarded.placement = Placement::guardAfter;
  Call(config, "prefill", batch, guarded).runAndCheck();
  batch.lengths = {1, 1, 1, 1};
  batch.padding = 0;
  Call(config, "decode", batch, guarded).runAndCheck();
}

TEST_P(Targets, F32) {
  Config config(40, 24);
  config.target = GetParam();
  runBoth(config);
}

TEST_P(Targets, BF16) {
  Config config(64, 128);
  config.target = GetParam();
  config.layout = InputLayout::flat;
  config.options.io = FloatKind::bf16;
  runBoth(config);
}

TEST_P(Targets, F16StatesBF16) {
  Config config(8, 8);
  config.target = GetParam();
  config.options.io = FloatKind::f16;
  config.options.state = FloatKind::bf16;
  runBoth(config);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Targets,
                         ::testing::Values("x86-64-v3", "x86-64-v4"),
                         [](const auto &info) {
                           return std::string(info.param).substr(7);
                         });
