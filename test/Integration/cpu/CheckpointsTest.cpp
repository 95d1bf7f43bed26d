// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States inside a sequence: each is that of a sequence which ends there,
// nothing else changes, and a sequence goes on from one. Slots that nobody
// reads hold NaN.
#include "Call.h"

#include "gdn/Data/Compare.h"

#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;

namespace {
struct Case {
  const char *name;
  FloatKind io, state;
  CpuPipelineOptions pipeline;
  /// True if a checkpoint moves no bound of a chunk, and a sequence that ends
  /// at one takes the same form: then bits agree.
  bool isAligned;
  bool perChannel = false;
};

std::ostream &operator<<(std::ostream &os, const Case &c) {
  return os << c.name;
}

class Checkpoints : public ::testing::TestWithParam<Case> {
protected:
  static Config config() {
    const Case &c = GetParam();
    Config config(40, 72);
    config.options.io = c.io;
    config.options.state = c.state;
    config.options.checkpoints = true;
    config.pipeline = c.pipeline;
    config.perChannelDecay = c.perChannel;
    if (c.perChannel)
      config.layout = InputLayout::separate;
    return config;
  }

  /// Expects the same bits where forms are aligned, else the bound of one call
  /// and of one rounding on each side.
  static void expectSame(llvm::ArrayRef<double> got,
                         llvm::ArrayRef<double> want, FloatKind kind) {
    if (GetParam().isAligned)
      EXPECT_TRUE(data::bitEqual(got, want));
    else
      EXPECT_LE(data::compare(got, want).relativeRMSE,
                oneCall.state + 2 * roundingOf(kind));
  }
  static void expectSameStates(Call &a, int64_t slot, Call &b, int64_t other) {
    EXPECT_TRUE(
        data::bitEqual(a["conv_pool"].row(slot), b["conv_pool"].row(other)));
    expectSame(a["state_pool"].row(slot), b["state_pool"].row(other),
               GetParam().state);
  }
};

/// Sequences of many lengths; sequence 6 is skipped. Slots 20 and on are
/// checkpoints'.
Batch ragged() {
  Batch batch;
  batch.lengths = {200, 0, 64, 5, 130, 63, 128, 193};
  batch.ids = {1, 2, 3, 4, 5, 6, 0, 7};
  batch.nullSlot = 0;
  batch.slots = 32;
  batch.keyHeads = 2;
  batch.leading = 3;
  batch.padding = 2;
  batch.checkpoints = {{{64, 20}, {128, 21}, {192, 22}},
                       {},
                       {{64, 23}},
                       {},
                       {{128, 24}},
                       {},
                       {{64, 25}},
                       {{192, 26}}};
  return batch;
}
} // namespace

TEST_P(Checkpoints, OfRaggedRows) {
  Call(config(), "prefill", ragged()).runAndCheck();
}

// Ids that are skipped, counts that are no checkpoint: they write nothing, and
// those beside them are written all the same.
TEST_P(Checkpoints, ThatWriteNothing) {
  Batch batch = ragged();
  constexpr int64_t far = int64_t(1) << 31; // -far and far - 1: the ends of i32
  batch.checkpoints = {
      {{-64, 31},
       {0, 31},
       {63, 31},
       {64, 0},
       {65, 31},
       {128, 20},
       {128, 31},
       {64, 31},
       {192, -1},
       {200, 31},
       {256, 31}},
      {{0, 31}, {64, 31}},
      {{128, 31}, {64, 21}},
      {{64, 31}},
      {{far - 64, 31}, {far - 1, 31}, {-far, 31}, {64, 22}, {128, 32}},
      {{63, 31}, {64, 31}},
      {{64, 31}, {128, 31}},
      {{192, far - 1}}};
  Call call(config(), "prefill", batch);
  EXPECT_EQ(call.checkpointSlots(0), std::vector<int64_t>{20});
  EXPECT_EQ(call.checkpointSlots(2), std::vector<int64_t>{21});
  EXPECT_EQ(call.checkpointSlots(4), std::vector<int64_t>{22});
  call.runAndCheck();
}

TEST_P(Checkpoints, ChangeNothingElse) {
  Batch batch = ragged();
  Call with(config(), "prefill", batch);
  batch.checkpoints.clear();
  Call without(config(), "prefill", batch);
  with.run();
  without.run();
  for (const char *name : {"core", "out"})
    expectSame(with[name].values(), without[name].values(), GetParam().io);
  for (size_t n = 0; n < batch.lengths.size(); ++n)
    if (const int64_t slot = with.writtenSlot(n); slot >= 0)
      expectSameStates(with, slot, without, slot);
}

/// A call of tokens `begin` to `end` of `whole`, of one sequence from `slot`,
/// on pools of its own with the states that `whole` had.
static Call part(Call &whole, int64_t begin, int64_t end, int64_t slot) {
  Batch batch = whole.batch;
  batch.lengths = {end - begin};
  batch.ids = {slot};
  batch.checkpoints.clear();
  batch.leading = batch.padding = 0;
  Call call(whole.config, "prefill", batch);
  for (const Parameter &parameter : call.parameters()) {
    const std::string &name = parameter.name;
    if (parameter.isPool)
      call.replace(name, whole[name].clone());
    else if (parameter.isPerToken() && !parameter.isOutput)
      call[name].assign(whole[name].rows(begin, end - begin));
    else if (data::isFloat(parameter.dtype) && !parameter.isOutput)
      call.replace(name, whole[name]);
  }
  return call;
}

TEST_P(Checkpoints, AreStatesOfRowsThatEndThere) {
  Call whole(config(), "prefill", ragged());
  std::vector<Call> ending;
  int64_t begin = whole.batch.leading;
  for (auto [n, row] : llvm::enumerate(whole.batch.checkpoints)) {
    if (whole.isLive(n))
      for (const Checkpoint &checkpoint : row)
        ending.push_back(
            part(whole, begin, begin + checkpoint.tokens, whole.batch.ids[n]));
    begin += whole.batch.lengths[n];
  }
  whole.run();
  size_t next = 0;
  for (size_t n = 0; n < whole.batch.lengths.size(); ++n)
    for (int64_t slot : whole.checkpointSlots(n)) {
      SCOPED_TRACE("slot " + std::to_string(slot));
      Call &end = ending[next++];
      end.run();
      expectSameStates(whole, slot, end, end.writtenSlot(0));
    }
  EXPECT_EQ(next, ending.size());
}

// From the slot of a checkpoint the sequence goes on as if it had never
// stopped; a state that a narrow pool has rounded is another one.
TEST_P(Checkpoints, CanBeContinued) {
  Call whole(config(), "prefill", ragged());
  whole.run();
  const int64_t begin = whole.batch.leading;
  for (int64_t c = 0; c < 3; ++c) {
    const int64_t cut = 64 * (c + 1);
    SCOPED_TRACE(cut);
    Call rest = part(whole, begin + cut, begin + 200, 20 + c);
    rest.run();
    const bool isExact =
        GetParam().isAligned && GetParam().state == FloatKind::f32;
    for (const char *name : {"core", "out"}) {
      const std::vector<double> want = whole[name].rows(begin + cut, 200 - cut);
      const double error =
          data::compare(rest[name].values(), want).relativeRMSE;
      EXPECT_LE(error, isExact ? 0
                               : oneCall.out + 2 * roundingOf(GetParam().io) +
                                     2 * roundingOf(GetParam().state))
          << name;
    }
    EXPECT_TRUE(data::bitEqual(rest["conv_pool"].row(20 + c),
                               whole["conv_pool"].row(1)));
    const double error = data::compare(rest["state_pool"].row(20 + c),
                                       whole["state_pool"].row(1))
                             .relativeRMSE;
    EXPECT_LE(error,
              isExact ? 0 : oneCall.state + 4 * roundingOf(GetParam().state));
  }
}

// Sequences, counts and slots at random, most counts good and most slots live.
TEST_P(Checkpoints, AtRandom) {
  constexpr int64_t kinds[] = {64, 64, 64, 1, 32};
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    const data::RandomStream stream(seed, "checkpoints");
    uint64_t draws = 0;
    auto below = [&](int64_t bound) { return stream.below(draws++, bound); };
    Batch batch;
    batch.inputs.seed = seed;
    batch.nullSlot = 0;
    batch.slots = 64;
    batch.padding = below(3);
    const int64_t rows = 1 + below(5);
    const std::vector<int64_t> ids = data::distinctSlots(63, 64, 0, seed);
    size_t used = 0;
    for (int64_t n = 0; n < rows; ++n) {
      batch.lengths.push_back(below(3) ? below(300) : 64 * below(4));
      batch.ids.push_back(below(6) ? ids[used++] : -below(2));
      batch.checkpoints.emplace_back();
      for (int64_t c = below(6); c > 0 && used < ids.size(); --c) {
        const int64_t unit = kinds[below(5)];
        batch.checkpoints[n].push_back(
            {unit * below(400 / unit), below(6) ? ids[used++] : 64});
      }
      if (below(2))
        llvm::sort(batch.checkpoints[n],
                   [](const Checkpoint &a, const Checkpoint &b) {
                     return a.tokens < b.tokens;
                   });
    }
    Call(config(), "prefill", batch).runAndCheck();
  }
}

TEST_P(Checkpoints, WorkersDoNotMatter) {
  Call one(config(), "prefill", ragged());
  one.run();
  Call many(config(), "prefill", ragged(), {}, 0);
  many.run();
  for (const char *name : {"core", "out", "conv_pool", "state_pool"})
    EXPECT_TRUE(many[name].sameMemory(one[name])) << name;
}

static CpuPipelineOptions blocks(int64_t tokens) {
  CpuPipelineOptions pipeline;
  pipeline.tokens = tokens;
  return pipeline;
}
static CpuPipelineOptions chunks(int64_t chunk, int64_t from = 1) {
  CpuPipelineOptions pipeline;
  pipeline.chunk = chunk;
  pipeline.chunkFrom = from;
  return pipeline;
}

static const Case cases[] = {
    {"F32", FloatKind::f32, FloatKind::f32, blocks(16), true},
    {"BlocksOf24", FloatKind::bf16, FloatKind::f32, blocks(24), true},
    {"StatesBF16", FloatKind::bf16, FloatKind::bf16, blocks(16), true},
    {"StatesF16", FloatKind::f32, FloatKind::f16, blocks(16), true},
    {"PerChannel", FloatKind::f32, FloatKind::f32, blocks(16), true, true},
    {"Chunks64", FloatKind::f32, FloatKind::f32, chunks(64), true},
    {"Chunks16", FloatKind::f16, FloatKind::f32, chunks(16), true},
    {"Chunks32BF16", FloatKind::bf16, FloatKind::bf16, chunks(32), true},
    {"Chunks128", FloatKind::f32, FloatKind::f32, chunks(128), false},
    {"ByLength", FloatKind::f32, FloatKind::f32, chunks(64, 100), false},
    {"ChunksPerChannel", FloatKind::f32, FloatKind::f32, chunks(64), true,
     true},
};
INSTANTIATE_TEST_SUITE_P(Cpu, Checkpoints, ::testing::ValuesIn(cases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

// Where each checkpoint is read and written lies within the buffers, whatever
// cu_checkpoints holds: the byte behind each buffer cannot be accessed. (The
// reference refuses such bounds.)
TEST(CheckpointBounds, AreClamped) {
  Config config(40, 24);
  config.options.checkpoints = config.options.slots64 = true;
  Batch batch;
  batch.lengths = {130, 64, 70};
  batch.slots = 12;
  batch.ids = {1, 2, 3};
  batch.nullSlot = 0;
  batch.checkpoints = {{{64, 8}}, {{64, 9}}, {{64, 10}}};
  Call plain(config, "prefill", batch);
  plain.run();
  constexpr double far = 0x1p31;
  const std::vector<std::vector<double>> bounds = {
      {0, 0, 0, 0},       {-far, -1, -1, -far}, {0, 3, 3, far - 1},
      {far - 1, 5, 4, 3}, {3, 2, 1, 0},         {-far, far - 1, -far, far - 1}};
  for (const std::vector<double> &bound : bounds) {
    Memory memory;
    for (Placement placement :
         {Placement::guardAfter, Placement::guardBefore}) {
      memory.placement = placement;
      Call call(config, "prefill", batch, memory);
      call["cu_checkpoints"].assign(bound);
      // Sequences may share checkpoints now; workers are one, so that they do
      // so in turn.
      call.run();
      EXPECT_TRUE(data::bitEqual(call["out"].values(), plain["out"].values()));
      for (int64_t slot : {1, 2, 3})
        EXPECT_TRUE(data::bitEqual(call["state_pool"].row(slot),
                                   plain["state_pool"].row(slot)));
    }
  }
}

// A checkpoint without a final state: the write slot is skipped.
TEST(CheckpointSlots, WithoutAWriteSlot) {
  for (bool wide : {false, true}) {
    Config config(40, 24);
    config.options.checkpoints = config.options.writeSlots = true;
    config.options.hasInitial = true;
    config.options.slots64 = wide;
    Batch batch;
    batch.lengths = {130, 64, 70};
    batch.slots = 12;
    batch.ids = {1, 1, 3};
    batch.writeIds = {-1, 4, 0};
    batch.initial = {true, true, false};
    batch.nullSlot = 0;
    batch.checkpoints = {{{64, 8}, {128, 9}}, {{64, 10}}, {{64, 11}}};
    Call(config, "prefill", batch).runAndCheck();
  }
}

// What is stored where nothing comes after: no value heads share a key head, or
// many do; wide convolution windows.
TEST(CheckpointWindows, OfOtherShapes) {
  for (int64_t ratio : {1, 3}) {
    Config config(32, 48);
    config.convWidth = 8;
    config.convBias = true;
    config.options.checkpoints = true;
    Batch batch;
    batch.lengths = {64, 129};
    batch.ratio = ratio;
    batch.slots = 9;
    batch.ids = {1, 2};
    batch.checkpoints = {{{64, 3}}, {{64, 4}, {128, 5}}};
    Memory memory;
    memory.convChannelsLast = true;
    Call(config, "prefill", batch, memory).runAndCheck();
  }
}
