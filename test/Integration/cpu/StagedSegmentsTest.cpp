// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sequences cut into segments between the stages of the chunk form: against the
// reference, for every kind of sequence, element type and number of segments.
// The workspace holds NaN before each launch, as does every slot that no
// sequence reads.
#include "StagedCase.h"

using namespace gdn;
using namespace gdn::integration;

namespace {
class StagedSegments : public ::testing::TestWithParam<StagedCase> {
protected:
  static Config config() {
    Config config = GetParam().config();
    config.addSegments({2, 3, 8, 40});
    return config;
  }
  /// Sequences of many segments and of one, without tokens and with a tail; one
  /// without a state, one whose result is not kept, one that is skipped.
  static Batch ragged() {
    Batch batch = GetParam().batch();
    batch.lengths = {700, 0, 1, 320, 64, 65, 129, 0, 512, 200};
    batch.ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 0};
    batch.writeIds = {1, 12, 3, 14, 15, 6, 0, 8, 9, 21};
    batch.initial = {true, true, false, false, true,
                     true, true, true,  true,  true};
    return batch;
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
      call.check(GetParam().bounds());
    }
}

// In place, in long sequences: the last segment writes the state that the first
// one begins with.
TEST_P(StagedSegments, InPlaceForAnyWorkers) {
  Config inPlace = config();
  inPlace.options.hasInitial = inPlace.options.writeSlots = false;
  inPlace.addSegments({8}); // no others run here
  Batch batch;
  batch.lengths = {1500, 70};
  batch.ratio = GetParam().ratio;
  expectSameForAnyWorkers(inPlace, batch, "staged-segments-8",
                          GetParam().bounds());
}

static constexpr auto ready = InputLayout::ready;
static const StagedCase cases[] = {
    {"BF16", Precision::mixed, FloatKind::bf16, FloatKind::f32, 64, 64, 2,
     ready},
    {"Io", Precision::mixedIo, FloatKind::bf16, FloatKind::f32, 128, 128, 2,
     ready},
    {"StatesBF16", Precision::mixed, FloatKind::bf16, FloatKind::bf16, 32, 64,
     4, ready},
    {"Wide", Precision::mixedIo, FloatKind::f16, FloatKind::f16, 96, 192, 1,
     ready},
    {"Packed"},
    {"Chunks16", Precision::mixed, FloatKind::bf16, FloatKind::f32, 64, 64, 3,
     InputLayout::flat, 16},
};
static const StagedCase longCases[] = {
    {"F16", Precision::mixed, FloatKind::f16, FloatKind::f32, 64, 64, 2, ready},
};
INSTANTIATE_TEST_SUITE_P(Cpu, StagedSegments, ::testing::ValuesIn(cases),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Full, StagedSegments, ::testing::ValuesIn(longCases),
                         nameOf);

// All offsets in a segment, at all numbers of sequences.
TEST(SegmentSlots, AdjacentSequencesShareNoSlot) {
  Config config(32, 32);
  config.form = Form::plain;
  config.options.io = FloatKind::bf16;
  config.options.outputs = EntryOutputs::core;
  config.pipeline.precision = Precision::mixed;
  config.pipeline.chunk = 16;
  config.pipeline.chunkStages = ChunkStages::staged;
  config.addSegments({3, 5, 16});
  for (int64_t sequences : {0, 1, 2, 5, 9})
    for (const char *variant :
         {"staged-segments-3", "staged-segments-5", "staged-segments-16"}) {
      SCOPED_TRACE(testing::Message() << sequences << variant);
      Batch batch;
      for (int64_t n = 0; n < sequences; ++n)
        batch.lengths.push_back(n * 67 % 200);
      batch.leading = sequences % 2 * 37;
      batch.padding = 20;
      Call call(config, "prefill", batch);
      call.run(variant);
      call.check({5e-3, 5e-3, 2e-3});
    }
}
