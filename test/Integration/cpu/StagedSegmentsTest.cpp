// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows cut into segments between the stages of the chunk form: against the
// reference, for every kind of row, element type and number of segments. The
// workspace holds NaN before each launch, as does every slot that no row reads.
#include "Call.h"

#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;

namespace {
struct Case {
  const char *name;
  Precision precision = Precision::mixed;
  FloatKind io = FloatKind::bf16, state = FloatKind::f32;
  int64_t dk = 64, dv = 64, ratio = 2;
  InputLayout layout = InputLayout::ready;
  int64_t chunk = 64;
};

class StagedSegments : public ::testing::TestWithParam<Case> {
protected:
  static Config config() {
    const Case &c = GetParam();
    Config config(c.dk, c.dv);
    config.layout = c.layout;
    config.options.io = c.io;
    config.options.state = c.state;
    config.options.hasInitial = config.options.writeSlots = true;
    config.options.l2norm = c.layout == InputLayout::ready;
    if (c.layout == InputLayout::ready)
      config.options.outputs = EntryOutputs::core;
    config.pipeline.precision = c.precision;
    config.pipeline.chunk = c.chunk;
    config.pipeline.chunkStages = ChunkStages::staged;
    config.addSegments({2, 3, 8, 40});
    return config;
  }
  /// Rows of many segments and of one, without tokens and with a tail; a row
  /// without a state, one whose result is not kept, one that is skipped; tokens
  /// before and behind all rows.
  static Batch ragged() {
    Batch batch;
    batch.lengths = {700, 0, 1, 320, 64, 65, 129, 0, 512, 200};
    batch.ratio = GetParam().ratio;
    batch.keyHeads = 2;
    batch.leading = 3;
    batch.padding = 5;
    batch.nullSlot = 0;
    batch.slots = 24;
    batch.ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 0};
    batch.writeIds = {1, 12, 3, 14, 15, 6, 0, 8, 9, 21};
    batch.initial = {true, true, false, false, true,
                     true, true, true,  true,  true};
    return batch;
  }
  static Errors bounds() {
    if (GetParam().precision == Precision::mixedIo)
      return {5e-3, 1e-2, 5e-3};
    return {5e-3, 5e-3, 2e-3};
  }
};
} // namespace

TEST_P(StagedSegments, EqualReference) {
  for (auto gates : {data::GateKind::nearOne, data::GateKind::realistic,
                     data::GateKind::veryStrong})
    for (const char *variant : {"staged-segments-2", "staged-segments-3",
                                "staged-segments-8", "staged-segments-40"}) {
      SCOPED_TRACE(testing::Message() << data::name(gates).str() << variant);
      Batch batch = ragged();
      batch.inputs.gates = gates;
      Call call(config(), "prefill", batch);
      call.run(variant);
      call.check(bounds());
    }
}

// In place, in long rows: the last segment writes the state that the first one
// begins with.
TEST_P(StagedSegments, InPlaceForAnyWorkers) {
  Config inPlace = config();
  inPlace.options.hasInitial = inPlace.options.writeSlots = false;
  inPlace.addSegments({8}); // no others run here
  Batch batch;
  batch.lengths = {1500, 70};
  batch.ratio = GetParam().ratio;
  Call one(inPlace, "prefill", batch);
  one.run("staged-segments-8");
  one.check(bounds());
  for (int workers : {2, 0}) {
    Call many(inPlace, "prefill", batch, {}, workers);
    many.run("staged-segments-8");
    for (const char *name : {"core", "out", "conv_pool", "state_pool"})
      if (many.has(name))
        EXPECT_TRUE(many[name].sameMemory(one[name])) << name;
  }
}

static const Case cases[] = {
    {"BF16"},
    {"Io", Precision::mixedIo, FloatKind::bf16, FloatKind::f32, 128, 128},
    {"StatesBF16", Precision::mixed, FloatKind::bf16, FloatKind::bf16, 32, 64,
     4},
    {"Wide", Precision::mixedIo, FloatKind::f16, FloatKind::f16, 96, 192, 1},
    {"Packed", Precision::mixed, FloatKind::bf16, FloatKind::f32, 64, 64, 2,
     InputLayout::interleaved},
    {"Chunks16", Precision::mixed, FloatKind::bf16, FloatKind::f32, 64, 64, 3,
     InputLayout::flat, 16},
};
static const Case longCases[] = {
    {"F16", Precision::mixed, FloatKind::f16},
};
static std::string nameOf(const ::testing::TestParamInfo<Case> &info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Cpu, StagedSegments, ::testing::ValuesIn(cases),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Full, StagedSegments, ::testing::ValuesIn(longCases),
                         nameOf);

// All offsets in a segment, at all numbers of rows.
TEST(SegmentSlots, AdjacentRowsShareNoSlot) {
  Config config(32, 32);
  config.form = Form::plain;
  config.options.io = FloatKind::bf16;
  config.options.outputs = EntryOutputs::core;
  config.pipeline.precision = Precision::mixed;
  config.pipeline.chunk = 16;
  config.pipeline.chunkStages = ChunkStages::staged;
  config.addSegments({3, 5, 16});
  for (int64_t rows : {0, 1, 2, 5, 9})
    for (const char *variant :
         {"staged-segments-3", "staged-segments-5", "staged-segments-16"}) {
      SCOPED_TRACE(testing::Message() << rows << variant);
      Batch batch;
      for (int64_t n = 0; n < rows; ++n)
        batch.lengths.push_back(n * 67 % 200);
      batch.leading = rows % 2 * 37;
      batch.padding = 20;
      Call call(config, "prefill", batch);
      call.run(variant);
      call.check({5e-3, 5e-3, 2e-3});
    }
}
