// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States that are written when there is no room for more tokens: steps with any
// number of pending tokens, commits, what is skipped, and that many steps give
// what steps in place give. What is not pending is NaN.
#include "Call.h"

#include "gdn/Data/Compare.h"

#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;

namespace {
struct Case {
  const char *name;
  FloatKind io, state;
  int64_t keyHeads = 2, ratio = 2;
  int64_t room = 5;
  int64_t most = 5; // tokens of a sequence of verify
  InputLayout layout = InputLayout::flat;
  StateLayout stateLayout = StateLayout::vk;
  bool perChannel = false;
};

std::ostream &operator<<(std::ostream &os, const Case &c) {
  return os << c.name;
}

class Deferred : public ::testing::TestWithParam<Case> {
protected:
  static Config config(bool defers = true, bool verifies = true) {
    const Case &c = GetParam();
    Config config(40, 72);
    config.options.io = c.io;
    config.options.state = c.state;
    config.options.stateLayout = c.stateLayout;
    config.options.deferWrites = defers ? c.room : 0;
    if (verifies && c.layout != InputLayout::ready) {
      config.options.verify = VerifyStates::lazy;
      config.options.verifyTokens = c.most;
    }
    config.layout = c.layout;
    config.perChannelDecay = c.perChannel;
    if (c.layout == InputLayout::ready)
      config.options.outputs = EntryOutputs::core;
    return config;
  }
  static Batch batchOf(std::vector<int64_t> pending,
                       std::vector<int64_t> ids = {}) {
    Batch batch;
    batch.lengths.assign(pending.size(), 1);
    batch.accepted.assign(pending.size(), 0);
    batch.steps = 4;
    batch.pending = std::move(pending);
    batch.ids = std::move(ids);
    batch.slots = 24;
    batch.nullSlot = 0;
    batch.keyHeads = GetParam().keyHeads;
    batch.ratio = GetParam().ratio;
    return batch;
  }
  static void runAndCheck(Call call) {
    call.runAndCheckRounded(GetParam().state);
  }
  /// A batch of several tokens each.
  static Batch raggedOf(std::vector<int64_t> lengths,
                        std::vector<int64_t> pending,
                        std::vector<int64_t> accepted = {}) {
    Batch batch = batchOf(std::move(pending));
    batch.lengths = std::move(lengths);
    if (!accepted.empty())
      batch.accepted = std::move(accepted);
    batch.leading = 2;
    batch.padding = 3;
    return batch;
  }
  static std::vector<int64_t> allCounts() {
    std::vector<int64_t> counts;
    for (int64_t i = 0; i <= GetParam().room; ++i)
      counts.push_back(i);
    return counts;
  }
};

/// With tokens of verify, which need a convolution.
class DeferredVerify : public Deferred {};
} // namespace

TEST_P(Deferred, StepsWithEveryCount) {
  runAndCheck(Call(config(), "decode", batchOf(allCounts())));
}

TEST_P(Deferred, Commit) {
  runAndCheck(Call(config(), "commit", batchOf(allCounts())));
}

TEST_P(Deferred, SkippedSlotsKeepAllBytes) {
  const std::vector<int64_t> ids = {-1, 5, 0, 24, 7};
  runAndCheck(Call(config(), "decode", batchOf({1, 2, 3, 4, 5}, ids)));
  runAndCheck(Call(config(), "commit", batchOf({1, 2, 3, 4, 5}, ids)));
}

TEST_P(Deferred, GatesOfAllKinds) {
  for (data::GateKind gates : {data::GateKind::nearOne, data::GateKind::strong,
                               data::GateKind::veryStrong}) {
    Batch batch = batchOf(allCounts());
    batch.inputs.gates = gates;
    runAndCheck(Call(config(), "decode", batch));
  }
}

TEST_P(DeferredVerify, OfEveryCount) {
  for (int64_t length : {0, 1, 3, 5})
    for (int64_t accepted = 0; accepted <= 4; ++accepted) {
      SCOPED_TRACE(std::to_string(length) + " after " +
                   std::to_string(accepted));
      const std::vector<int64_t> counts = allCounts();
      runAndCheck(
          Call(config(), "verify",
               raggedOf(std::vector<int64_t>(counts.size(), length), counts,
                        std::vector<int64_t>(counts.size(), accepted))));
    }
}

TEST_P(DeferredVerify, OfRaggedRows) {
  runAndCheck(Call(
      config(), "verify",
      raggedOf({4, 0, 1, 5, 3, 2}, {0, 2, 1, 4, 5, 3}, {0, 2, 4, 1, 3, 0})));
}

// Counts that are none, long sequences, slots that no pool has: zeros, no byte
// written.
TEST_P(DeferredVerify, OfWhatIsSkipped) {
  Batch batch = raggedOf({3, GetParam().most + 1, 2, 4, 1, 2, 5},
                         {1, 2, 3, 4, 5, 0, 1}, {5, 0, -1, 2, 1, 3, 4});
  batch.ids = {3, 4, 5, -1, 0, 24, 7};
  Call call(config(), "verify", batch);
  for (int64_t n = 0; n < 7; ++n)
    EXPECT_EQ(call.isLive(n), n == 6) << n;
  runAndCheck(std::move(call));
}

TEST_P(DeferredVerify, CommitOfAccepted) {
  Batch batch = batchOf({0, 1, 2, 3, 4, 5}, {1, 2, 3, 4, 5, 6});
  batch.accepted = {0, 4, 1, 3, 5, -1};
  runAndCheck(Call(config(), "commit", batch));
}

// Twice as many steps as there is room for, beside steps in place; slots begin
// in different phases, with tokens that change nothing.
TEST_P(Deferred, StepsGiveWhatStepsInPlaceGive) {
  const std::vector<int64_t> ids = {3, 1, 8};
  std::map<std::string, Buffer> deferred, inPlace;
  const auto isWeight = [](const Parameter &parameter) {
    return !parameter.isPool && !parameter.isPerToken() &&
           !parameter.isOutput && data::isFloat(parameter.dtype);
  };
  std::map<std::string, Buffer> weights;
  double worst = 0;
  for (int64_t step = 0; step < 2 * GetParam().room + 1; ++step) {
    SCOPED_TRACE(step);
    Batch batch = batchOf({0, 0, 0}, ids);
    batch.inputs.seed = 100 + step;
    Call call(config(true, false), "decode", batch),
        plain(config(false, false), "decode", batch);
    for (const Parameter &parameter : call.parameters()) {
      const std::string &name = parameter.name;
      if (isWeight(parameter)) {
        if (step == 0)
          weights[name] = call[name];
        call.replace(name, weights[name]);
        plain.replace(name, weights[name]);
      } else if (parameter.isPool && step == 0) {
        if (name == "pending_counts") {
          const std::vector<int64_t> phases = {0, 1, GetParam().room};
          for (auto [slot, phase] : llvm::zip(ids, phases))
            call[name].assignRows(
                slot, std::vector<double>(GetParam().keyHeads, double(phase)));
        } else if (llvm::StringRef(name).starts_with("pending"))
          call[name].fill(0);
        else
          plain.replace(name, call[name].clone());
      } else if (parameter.isPool) {
        call.replace(name, deferred[name]);
        if (inPlace.count(name))
          plain.replace(name, inPlace[name]);
      } else if (!parameter.isOutput) {
        plain.replace(name, call[name]);
      }
    }
    call.run();
    plain.run();
    for (const char *name : {"core", "out"})
      if (call.has(name))
        worst = std::max(
            worst, data::compare(call[name].values(), plain[name].values())
                       .relativeRMSE);
    for (const Parameter &parameter : call.parameters())
      if (parameter.isPool)
        deferred[parameter.name] = call[parameter.name];
    for (const Parameter &parameter : plain.parameters())
      if (parameter.isPool)
        inPlace[parameter.name] = plain[parameter.name];
  }
  Call commit(config(true, false), "commit", batchOf({0, 0, 0}, ids));
  for (const Parameter &parameter : commit.parameters())
    if (parameter.isPool)
      commit.replace(parameter.name, deferred[parameter.name]);
  commit.run();
  // In place a narrow state is rounded at each step.
  const double rounding =
      20 * roundingOf(GetParam().state) + 2 * roundingOf(GetParam().io);
  EXPECT_LE(worst, 1e-5 + rounding);
  for (int64_t slot : ids) {
    EXPECT_LE(data::compare(commit["state_pool"].row(slot),
                            inPlace["state_pool"].row(slot))
                  .relativeRMSE,
              1e-5 + rounding);
    EXPECT_EQ(commit["pending_counts"].row(slot),
              std::vector<double>(GetParam().keyHeads, 0));
  }
}

static const Case f32Case = {"F32", FloatKind::f32, FloatKind::f32};
static const Case bf16Case = {"Bf16", FloatKind::bf16, FloatKind::bf16, 1, 3, 8,
                              8};
static const Case f16Case = {
    "F16State", FloatKind::bf16, FloatKind::f16, 2, 1, 16, 8};
static const Case readyCase = {"Ready", FloatKind::f32, FloatKind::f32,    1, 4,
                               2,       /*most=*/2,     InputLayout::ready};
static const Case keyFirstCase = {
    "KeyFirst", FloatKind::f32,    FloatKind::f32, 2, 2, 5,
    5,          InputLayout::flat, StateLayout::kv};

static const Case channelsCase = {"Channels",
                                  FloatKind::f32,
                                  FloatKind::f32,
                                  2,
                                  1,
                                  5,
                                  5,
                                  InputLayout::separate,
                                  StateLayout::vk,
                                  /*perChannel=*/true};
static const Case narrowChannelsCase = {
    "Bf16Channels",        FloatKind::bf16, FloatKind::bf16, 3, 1, 8, 8,
    InputLayout::separate, StateLayout::vk,
    /*perChannel=*/true};
static const Case readyChannelsCase = {
    "ReadyChannels",    FloatKind::f32,     FloatKind::f32,  1, 4, 2,
    /*most=*/2,         InputLayout::ready, StateLayout::vk,
    /*perChannel=*/true};

static std::string nameOf(const ::testing::TestParamInfo<Case> &info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Types, Deferred,
                         ::testing::Values(f32Case, bf16Case, f16Case,
                                           readyCase, keyFirstCase,
                                           channelsCase, narrowChannelsCase,
                                           readyChannelsCase),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Types, DeferredVerify,
                         ::testing::Values(f32Case, bf16Case, f16Case,
                                           keyFirstCase, channelsCase,
                                           narrowChannelsCase),
                         nameOf);
