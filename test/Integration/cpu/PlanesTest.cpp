// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States in planes, in every entry that reads or writes them: what the planes
// stand for beside the reference, which does not round; rows of zeros, of
// numbers that are not finite and of those that differ much.
#include "Call.h"

#include "gdn/Data/Compare.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace gdn;
using namespace gdn::integration;

namespace {
struct Case {
  const char *name;
  int64_t planes;
  int64_t room = 0; // of pending tokens; 0: states are written at each step
  FloatKind io = FloatKind::f32;
  VerifyStates verify = VerifyStates::lazy;
  bool readsUpper = false;
};

std::ostream &operator<<(std::ostream &os, const Case &c) {
  return os << c.name;
}

class Planes : public ::testing::TestWithParam<Case> {
protected:
  static Config config() {
    const Case &c = GetParam();
    Config config(40, 72);
    config.options.io = c.io;
    config.options.statePlanes = c.planes;
    config.options.readsUpper = c.readsUpper;
    config.options.deferWrites = c.room;
    config.options.verify = c.verify;
    config.options.hasInitial = true;
    return config;
  }
  static Batch batchOf(std::vector<int64_t> lengths) {
    Batch batch;
    batch.pending.assign(lengths.size(), 0);
    batch.accepted.assign(lengths.size(), 0);
    for (size_t n = 0; n < lengths.size(); ++n) {
      batch.pending[n] = int64_t(n);
      batch.accepted[n] = int64_t(n) % 4;
    }
    batch.lengths = std::move(lengths);
    batch.steps = 4;
    batch.slots = 24;
    batch.nullSlot = 0;
    batch.keyHeads = 2;
    batch.ratio = 2;
    return batch;
  }
  /// Rounding to the nearest of 127 or 32,512 steps of a row's largest element,
  /// which is a few times its mean square.
  static Errors bounds() {
    const double step = GetParam().planes == 2 ? 1e-4 : 2e-2;
    return {oneCall.core, oneCall.out, step};
  }
  static void runAndCheck(Call call) {
    call.run();
    call.check(bounds());
  }
};
} // namespace

TEST_P(Planes, Decode) {
  runAndCheck(Call(config(), "decode", batchOf({1, 1, 1, 1, 1, 1})));
}

TEST_P(Planes, Prefill) {
  Batch batch = batchOf({70, 0, 1, 33, 5});
  batch.initial = {true, true, false, true, false};
  batch.leading = 2;
  batch.padding = 3;
  runAndCheck(Call(config(), "prefill", batch));
}

TEST_P(Planes, Verify) {
  Batch batch = batchOf({4, 0, 1, 8, 3, 2});
  batch.leading = 2;
  batch.padding = 3;
  runAndCheck(Call(config(), "verify", batch));
}

TEST_P(Planes, Commit) {
  runAndCheck(Call(config(), "commit", batchOf({1, 1, 1, 1, 1, 1})));
}

TEST_P(Planes, SkippedSlotsKeepAllBytes) {
  for (const char *entry : {"decode", "commit"}) {
    Batch batch = batchOf({1, 1, 1, 1, 1});
    batch.ids = {-1, 5, 0, 24, 7};
    runAndCheck(Call(config(), entry, batch));
  }
}

// A slot is copied as it is, and one that is zeroed has states of zero.
TEST_P(Planes, CopyAndZero) {
  Batch batch = batchOf({1, 1, 1});
  batch.ids = {3, 5, 7};
  batch.writeIds = {4, 6, 8};
  Call copy(config(), "copy_slots", batch);
  std::map<std::string, std::vector<double>> rows;
  for (const char *name : {"state_pool", "state_scales", "state_low"})
    if (copy.has(name)) {
      if (copy[name].dtype() != data::DType::u8)
        copy[name].fill(0.5);
      rows[name] = copy[name].row(5);
    }
  copy.run();
  for (const auto &[name, row] : rows)
    EXPECT_EQ(copy[name].row(6), row) << name;

  Call zero(config(), "zero_slots", batch);
  zero.run();
  for (double scale : zero["state_scales"].row(5))
    EXPECT_EQ(scale, 0);
}

// Of a commit, which writes a state from what is known: rows of zeros stay
// zero, one that is not finite has a scale that is none and no neighbour has.
TEST_P(Planes, RowsOfAllKinds) {
  if (GetParam().room == 0)
    return; // without counts a commit needs tokens that are accepted
  Batch batch = batchOf({1, 1});
  batch.pending = {1, 1};
  batch.accepted = {0, 0};
  batch.ids = {3, 5};
  Call call(config(), "commit", batch);
  Buffer &scales = call["state_scales"], &deltas = call["pending_deltas"];
  scales.assignRows(3, std::vector<double>(4 * 72, 0));
  std::vector<double> pending = deltas.row(3);
  auto set = [&](int64_t row, double value) { pending[row] = value; };
  set(0, 0);
  set(1, 1e30);
  set(2, std::numeric_limits<double>::infinity());
  set(3, std::nan(""));
  set(4, 1e-38);
  deltas.assignRows(3, pending);
  std::vector<double> counts(2, 1);
  call["pending_counts"].assignRows(3, counts);
  call.run();
  const std::vector<double> after = scales.row(3);
  EXPECT_EQ(after[0], 0);
  EXPECT_TRUE(after[1] > 1e25 && std::isfinite(after[1]));
  EXPECT_TRUE(std::isnan(after[2]));
  EXPECT_TRUE(std::isnan(after[3]));
  EXPECT_EQ(after[4], 0);
  for (size_t row = 5; row < 72; ++row)
    EXPECT_TRUE(after[row] > 0 && std::isfinite(after[row])) << row;
}

INSTANTIATE_TEST_SUITE_P(
    Formats, Planes,
    ::testing::Values(Case{"Two", 2}, Case{"TwoDeferred", 2, 8},
                      Case{"UpperOfTwo", 2, 8, FloatKind::f32,
                           VerifyStates::lazy, /*readsUpper=*/true},
                      Case{"OneDeferred", 1, 16, FloatKind::bf16}),
    [](const auto &info) { return std::string(info.param.name); });
