// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The entries `verify` and `commit` where tokens stay pending: what goes into
// the state, that any number of accepted tokens leaves the bits of as many
// decode steps, and that nothing else is read of what is pending: it is NaN.
#include "Call.h"

#include "gdn/Data/Compare.h"

#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;

namespace {
struct Case {
  const char *name;
  FloatKind io, state;
  int64_t ratio = 2;
  bool perChannel = false, wideIds = false;
  int64_t convWidth = 4;
  std::optional<double> decayBound = std::nullopt;
};

std::ostream &operator<<(std::ostream &os, const Case &c) {
  return os << c.name;
}

class VerifyLazy : public ::testing::TestWithParam<Case> {
protected:
  static Config config() {
    const Case &c = GetParam();
    Config config(40, 72);
    config.convWidth = c.convWidth;
    config.options.io = c.io;
    config.options.state = c.state;
    config.options.verify = VerifyStates::lazy;
    config.options.slots64 = c.wideIds;
    config.perChannelDecay = c.perChannel;
    config.decayBound = c.decayBound;
    if (c.perChannel)
      config.layout = InputLayout::separate;
    return config;
  }
  static Batch batchOf(std::vector<int64_t> lengths,
                       std::vector<int64_t> accepted, int64_t steps) {
    Batch batch;
    batch.lengths = std::move(lengths);
    batch.accepted = std::move(accepted);
    batch.steps = steps;
    batch.slots = 12;
    batch.nullSlot = 0;
    batch.ratio = GetParam().ratio;
    batch.leading = 2;
    batch.padding = 3;
    return batch;
  }
  static void runAndCheck(Call call) {
    call.runAndCheckRounded(GetParam().state);
  }
  /// Sequences of a commit have no tokens; lengths of 1 stand for them.
  static Batch commitOf(std::vector<int64_t> accepted, int64_t steps) {
    const size_t rows = accepted.size();
    Batch batch =
        batchOf(std::vector<int64_t>(rows, 1), std::move(accepted), steps);
    batch.leading = batch.padding = 0;
    return batch;
  }
};
} // namespace

TEST_P(VerifyLazy, OfRaggedRows) {
  runAndCheck(
      Call(config(), "verify", batchOf({4, 0, 1, 7, 3}, {0, 2, 7, 4, 3}, 7)));
}

TEST_P(VerifyLazy, OfEveryCount) {
  for (int64_t length : {0, 1, 3, 8})
    for (int64_t accepted = 0; accepted <= 8; ++accepted) {
      SCOPED_TRACE(std::to_string(length) + " after " +
                   std::to_string(accepted));
      runAndCheck(Call(config(), "verify", batchOf({length}, {accepted}, 8)));
    }
}

// Tokens for which there is no place give results and are not kept.
TEST_P(VerifyLazy, OfMoreTokensThanPlaces) {
  runAndCheck(Call(config(), "verify", batchOf({8, 2, 5, 4}, {3, 0, 1, 2}, 3)));
}

// More than eight tokens skip their sequence: zeros, no byte written.
TEST_P(VerifyLazy, OfLongRows) {
  Call call(config(), "verify", batchOf({9, 8, 40, 3}, {1, 2, 0, 3}, 4));
  EXPECT_FALSE(call.isLive(0) || call.isLive(2));
  EXPECT_TRUE(call.isLive(1) && call.isLive(3));
  runAndCheck(std::move(call));
}

// A count that is none skips its sequence: zeros, no byte written.
TEST_P(VerifyLazy, OfCountsOutOfRange) {
  constexpr int64_t far = int64_t(1) << 31;
  Call call(config(), "verify",
            batchOf({3, 3, 3, 3, 3, 3}, {5, -1, -far, far - 1, 4, 0}, 4));
  for (int64_t n = 0; n < 4; ++n)
    EXPECT_FALSE(call.isLive(n)) << n;
  EXPECT_TRUE(call.isLive(4) && call.isLive(5));
  runAndCheck(std::move(call));
}

TEST_P(VerifyLazy, OfSkippedSlots) {
  Batch batch = batchOf({3, 2, 4, 1, 2}, {1, 2, 3, 4, 0}, 4);
  batch.ids = {-1, 5, 0, 12, 7};
  runAndCheck(Call(config(), "verify", batch));
}

TEST_P(VerifyLazy, Commit) {
  runAndCheck(Call(config(), "commit", commitOf({0, 1, 2, 3, 4, 5, 8}, 8)));
}

TEST_P(VerifyLazy, CommitOfWhatIsSkipped) {
  constexpr int64_t far = int64_t(1) << 31;
  Batch batch = commitOf({2, 2, 2, 4, -1, -far, far - 1, 3}, 3);
  batch.ids = {-1, 0, 12, 4, 5, 6, 7, 8};
  runAndCheck(Call(config(), "commit", batch));
}

namespace {
/// Every pool of the image, from call to call.
struct Pools {
  std::map<std::string, Buffer> buffers;

  static Pools of(Call &call) {
    Pools pools;
    for (const Parameter &parameter : call.parameters())
      if (parameter.isPool)
        pools.buffers[parameter.name] = call[parameter.name];
    return pools;
  }
  Pools clone() const {
    Pools copy;
    for (const auto &[name, buffer] : buffers)
      copy.buffers[name] = buffer.clone();
    return copy;
  }
  void put(Call &call) const {
    for (const auto &[name, buffer] : buffers)
      if (call.has(name))
        call.replace(name, buffer);
  }
  std::vector<double> row(const std::string &name, int64_t slot) const {
    return buffers.at(name).row(slot);
  }
};
} // namespace

/// Gives `call` the weights of `other`.
static void takeWeights(Call &call, Call &other) {
  for (const Parameter &parameter : call.parameters())
    if (!parameter.isPool && !parameter.isPerToken() && !parameter.isOutput &&
        data::isFloat(parameter.dtype))
      call.replace(parameter.name, other[parameter.name]);
}

/// The first `columns` columns of each channel in `slot` of a convolution pool.
static std::vector<double> windowOf(const Buffer &conv, int64_t slot,
                                    int64_t columns) {
  std::vector<double> all = conv.row(slot), window;
  for (size_t i = 0; i < all.size(); ++i)
    if (int64_t(i) % conv.dim(2) < columns)
      window.push_back(all[i]);
  return window;
}

/// A decode step of token `t` of `whole`, on `slot` of `pools`, whose
/// convolution pool has windows alone.
static Call decode(Call &whole, int64_t t, const Pools &pools, int64_t slot) {
  Batch batch = whole.batch;
  batch.lengths = {1};
  batch.ids = {slot};
  batch.accepted.clear();
  batch.leading = batch.padding = 0;
  Call call(whole.config, "decode", batch);
  takeWeights(call, whole);
  for (const Parameter &parameter : call.parameters())
    if (parameter.isPerToken() && !parameter.isOutput)
      call[parameter.name].assign(whole[parameter.name].rows(t, 1));
  pools.put(call);
  call.run();
  return call;
}

// Steps with random lengths and random counts of accepted tokens, now and then
// a commit, and beside them one decode step after another of the tokens that
// were accepted.
TEST_P(VerifyLazy, RollBackToTheBitsOfDecode) {
  const bool isExact = GetParam().state == FloatKind::f32;
  constexpr int64_t rows = 3, steps = 5;
  const int64_t window = GetParam().convWidth - 1;
  const data::RandomStream stream(11, "lazy");
  uint64_t draws = 0;
  std::vector<int64_t> accepted(rows, 0);
  Batch start = batchOf({0, 0, 0}, accepted, steps);
  start.ids = {1, 5, 9};
  Call first(config(), "verify", start);
  Pools pools = Pools::of(first);
  Pools plain = pools.clone();
  {
    const Buffer &conv = pools.buffers["conv_pool"];
    Buffer windows(conv.dtype(), {conv.dim(0), conv.dim(1), window});
    for (int64_t slot : start.ids)
      windows.assignRows(slot, windowOf(conv, slot, window));
    plain.buffers["conv_pool"] = windows;
  }
  // What sequence n has computed is in slot start.ids[n] of `plain`; tokens of
  // the last step leave the states behind each of them here.
  std::vector<std::vector<Pools>> after(rows);
  for (int64_t step = 0; step < 9; ++step) {
    SCOPED_TRACE(step);
    std::vector<int64_t> lengths;
    for (int64_t n = 0; n < rows; ++n) {
      lengths.push_back(stream.below(draws++, steps + 1));
      if (lengths[n] > 0 && !after[n].empty()) {
        accepted[n] = stream.below(draws++, after[n].size() + 1);
        const Pools &kept = after[n][std::max<int64_t>(accepted[n], 1) - 1];
        if (accepted[n] > 0)
          for (const char *name : {"conv_pool", "state_pool"})
            plain.buffers[name].copyRow(start.ids[n], kept.buffers.at(name));
        after[n].clear();
      } else if (lengths[n] > 0) {
        accepted[n] = 0;
      }
    }
    Batch batch = start;
    batch.lengths = lengths;
    batch.accepted = accepted;
    batch.inputs.seed = step + 1;
    if (step % 3 == 2) { // what is accepted may be committed before
      // A sequence without tokens keeps its own for a step to come.
      Batch commit = commitOf(accepted, steps);
      commit.ids = start.ids;
      for (int64_t n = 0; n < rows; ++n)
        if (lengths[n] == 0)
          commit.accepted[n] = 0;
        else
          batch.accepted[n] = 0;
      Call call(config(), "commit", commit);
      pools.put(call);
      call.run();
      for (int64_t n = 0; n < rows; ++n) {
        if (lengths[n] == 0)
          continue;
        const int64_t slot = start.ids[n];
        if (isExact)
          EXPECT_TRUE(data::bitEqual(pools.row("state_pool", slot),
                                     plain.row("state_pool", slot)));
        EXPECT_TRUE(
            data::bitEqual(windowOf(pools.buffers["conv_pool"], slot, window),
                           windowOf(plain.buffers["conv_pool"], slot, window)));
      }
    }
    Call call(config(), "verify", batch);
    takeWeights(call, first);
    pools.put(call);
    call.run();
    int64_t t = batch.leading;
    for (int64_t n = 0; n < rows; ++n) {
      const int64_t slot = start.ids[n];
      if (lengths[n] == 0)
        continue;
      // The state holds what is accepted, and no token of this step.
      if (isExact) {
        EXPECT_TRUE(data::bitEqual(pools.row("state_pool", slot),
                                   plain.row("state_pool", slot)));
      } else {
        EXPECT_LE(data::compare(pools.row("state_pool", slot),
                                plain.row("state_pool", slot))
                      .relativeRMSE,
                  oneCall.state + 8 * roundingOf(GetParam().state));
        plain.buffers["state_pool"].copyRow(slot, pools.buffers["state_pool"]);
      }
      EXPECT_TRUE(
          data::bitEqual(windowOf(pools.buffers["conv_pool"], slot, window),
                         windowOf(plain.buffers["conv_pool"], slot, window)));
      Pools next = plain.clone();
      for (int64_t i = 0; i < lengths[n]; ++i, ++t) {
        Call one = decode(call, t, next, slot);
        if (isExact)
          for (const char *name : {"core", "out"})
            EXPECT_TRUE(data::bitEqual(call[name].row(t), one[name].row(0)))
                << name << " of token " << i;
        after[n].push_back(next.clone());
      }
    }
  }
}

// A verify step is a commit and a step of which nothing was pending, bit for
// bit in every type of pool.
TEST_P(VerifyLazy, StartsFromWhatACommitLeaves) {
  const Batch batch = batchOf({4, 2, 0, 5, 1}, {2, 5, 3, 1, 0}, 5);
  Call whole(config(), "verify", batch);
  Pools pools = Pools::of(whole), parts = pools.clone();
  Batch committed = commitOf(batch.accepted, 5);
  committed.accepted[2] = 0; // its sequence has no tokens
  for (int64_t n = 0; n < 5; ++n)
    committed.ids.push_back(whole.readSlot(n));
  Batch rest = batch;
  rest.ids = committed.ids;
  rest.accepted.assign(5, 0);
  Call commit(config(), "commit", committed);
  parts.put(commit);
  commit.run();
  Call step(config(), "verify", rest);
  for (const Parameter &parameter : whole.parameters())
    if (data::isFloat(parameter.dtype) && !parameter.isPool &&
        !parameter.isOutput)
      step.replace(parameter.name, whole[parameter.name]);
  parts.put(step);
  step.run();
  whole.run();
  for (const char *name : {"core", "out"})
    EXPECT_TRUE(step[name].sameMemory(whole[name])) << name;
  for (const auto &[name, buffer] : pools.buffers) {
    for (int64_t n : {0, 1, 3, 4}) {
      const int64_t slot = committed.ids[n];
      if (name == "state_pool")
        EXPECT_TRUE(buffer.sameRow(slot, parts.buffers[name])) << name << n;
      if (name == "conv_pool")
        EXPECT_TRUE(data::bitEqual(
            windowOf(buffer, slot, GetParam().convWidth - 1),
            windowOf(parts.buffers[name], slot, GetParam().convWidth - 1)));
    }
  }
}

TEST_P(VerifyLazy, WorkersDoNotMatter) {
  const Batch batch = batchOf({4, 0, 1, 6, 3}, {1, 2, 7, 4, 3}, 7);
  const Batch committed = commitOf({1, 2, 7, 4, 3}, 7);
  for (const auto &[entry, of] :
       {std::pair("verify", batch), {"commit", committed}}) {
    Call one(config(), entry, of);
    one.run();
    Call many(config(), entry, of, {}, 0);
    many.run();
    for (const Parameter &parameter : one.parameters())
      EXPECT_TRUE(many[parameter.name].sameMemory(one[parameter.name]))
          << entry << " " << parameter.name;
  }
}

// What is read and written lies within the buffers, whatever counts say; pools
// with gaps and with channels last.
TEST_P(VerifyLazy, MemoryIsThatOfTheCaller) {
  Memory gaps;
  gaps.slotGap = 24;
  gaps.headGap = 8;
  Memory channelsLast;
  channelsLast.convChannelsLast = true;
  Memory after, before;
  after.placement = Placement::guardAfter;
  before.placement = Placement::guardBefore;
  for (const Memory &memory : {gaps, channelsLast, after, before}) {
    Batch batch = batchOf({8, 1, 5}, {3, 0, 1}, 3);
    batch.ids = {11, 1, 6};
    runAndCheck(Call(config(), "verify", batch, memory));
    batch.lengths = {1, 1, 1};
    batch.leading = batch.padding = 0;
    runAndCheck(Call(config(), "commit", batch, memory));
  }
}

// Channels that decay by 0.5 % to 1e-9 in a token: what is kept of them has the
// digits of f32, which an error relative to the bound would not leave.
TEST(VerifyLazySlow, BoundedDecaysKeepTheirDigits) {
  for (double bias : {-6.9, -12.0, -20.0}) {
    Config config(40, 72);
    config.options.verify = VerifyStates::lazy;
    config.layout = InputLayout::separate;
    config.perChannelDecay = true;
    config.decayBound = -5;
    Batch batch;
    batch.lengths = {4, 3};
    batch.accepted = {0, 2};
    batch.steps = 4;
    batch.slots = 6;
    batch.ratio = 1;
    Call call(config, "verify", batch);
    call["A_log"].fill(0);
    call["dt_bias"].fill(bias);
    call["pending_decays"].fill(0);
    call.runAndCheck();
  }
}

static const Case cases[] = {
    {"F32", FloatKind::f32, FloatKind::f32},
    {"BF16", FloatKind::bf16, FloatKind::f32, 1},
    {"StatesBF16", FloatKind::bf16, FloatKind::bf16, 3},
    {"StatesF16", FloatKind::f16, FloatKind::f16},
    {"PerChannel", FloatKind::f32, FloatKind::f32, 2, true, true},
    {"PerChannelBounded", FloatKind::f32, FloatKind::f32, 1, true, false, 4,
     -5},
    {"WideWindows", FloatKind::bf16, FloatKind::f32, 2, false, true, 8},
    {"NarrowWindows", FloatKind::bf16, FloatKind::f32, 2, false, false, 2},
};
INSTANTIATE_TEST_SUITE_P(Cpu, VerifyLazy, ::testing::ValuesIn(cases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
