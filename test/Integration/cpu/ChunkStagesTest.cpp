// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form in two stages, on whole layers: against the reference, for
// every kind of sequence, element type and shape. The workspace holds NaN
// before each launch, as does every slot that no sequence reads. Ready inputs,
// gates and lengths of all kinds: ChunkFormTest.cpp.
#include "StagedCase.h"

using namespace gdn;
using namespace gdn::integration;

namespace {
class TwoStages : public ::testing::TestWithParam<StagedCase> {
protected:
  /// Sequences without tokens, shorter than a window and than a chunk, of whole
  /// chunks and with a tail; one without a state, one whose result is not kept,
  /// one that is skipped.
  static Batch ragged() {
    Batch batch = GetParam().batch();
    batch.lengths = {200, 0, 1, 2, 63, 64, 65, 129, 0, 192, 70};
    batch.ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0};
    batch.writeIds = {1, 12, 3, 14, 15, 6, 7, 0, 9, 10, 21};
    batch.initial = {true,  true, false, true, true, true,
                     false, true, true,  true, true};
    return batch;
  }
};
} // namespace

TEST_P(TwoStages, EqualReference) {
  for (auto gates : {data::GateKind::nearOne, data::GateKind::realistic,
                     data::GateKind::veryStrong}) {
    SCOPED_TRACE(data::name(gates).str());
    Batch batch = ragged();
    batch.inputs.gates = gates;
    Call call(GetParam().config(), "prefill", batch);
    call.run("staged");
    call.check(GetParam().bounds());
  }
}

// Chunks have the same slots whatever runs at the same time.
TEST_P(TwoStages, EqualBitsForAnyWorkers) {
  expectSameForAnyWorkers(GetParam().config(), ragged(), "staged",
                          GetParam().bounds());
}

static const StagedCase cases[] = {
    {"BF16"},
    {"F16", Precision::mixed, FloatKind::f16},
    {"Io", Precision::mixedIo},
    {"StatesBF16", Precision::mixed, FloatKind::bf16, FloatKind::bf16, 40, 72,
     4},
    {"StatesF16Separate", Precision::mixedIo, FloatKind::f16, FloatKind::f16,
     96, 192, 1, InputLayout::separate},
    {"Width2", Precision::mixed, FloatKind::bf16, FloatKind::f32, 64, 128, 3,
     InputLayout::split, 64, 2},
    {"BiasAndWidth3", Precision::mixed, FloatKind::bf16, FloatKind::f32, 24, 40,
     2, InputLayout::flat, 64, 3, true},
    {"Chunks16", Precision::mixed, FloatKind::bf16, FloatKind::f32, 64, 64, 2,
     InputLayout::flat, 16},
};
// Half a minute of a core; configurations have such heads in each run.
static const StagedCase longCases[] = {
    {"LargestHeads", Precision::mixed, FloatKind::bf16, FloatKind::f32, 256,
     256, 1, InputLayout::flat},
};
INSTANTIATE_TEST_SUITE_P(Cpu, TwoStages, ::testing::ValuesIn(cases), nameOf);
INSTANTIATE_TEST_SUITE_P(Full, TwoStages, ::testing::ValuesIn(longCases),
                         nameOf);

// No sequence at all, and sequences in a number that is no power of two, of
// which the last owns chunks.
TEST(ChunkSlots, AnyNumberOfSequences) {
  Config config(40, 24);
  config.form = Form::plain;
  config.options.io = FloatKind::bf16;
  config.options.outputs = EntryOutputs::core;
  config.pipeline.precision = Precision::mixed;
  config.pipeline.chunk = 16;
  config.pipeline.chunkStages = ChunkStages::staged;
  for (int64_t sequences : {0, 1, 2, 3, 5, 8, 17, 64, 65}) {
    SCOPED_TRACE(sequences);
    Batch batch;
    for (int64_t n = 0; n < sequences; ++n)
      batch.lengths.push_back(n % 5 == 3 ? 0 : 1 + 7 * n % 40);
    batch.leading = sequences % 2 * 37;
    batch.padding = 20;
    Call call(config, "prefill", batch);
    call.run("staged");
    call.check({5e-3, 5e-3, 2e-3});
  }
}

// Sequences of all lengths behind each other, at all offsets in a chunk.
TEST(ChunkSlots, AdjacentSequencesShareNoSlot) {
  Config config(40, 24);
  config.form = Form::plain;
  config.options.io = FloatKind::bf16;
  config.options.outputs = EntryOutputs::core;
  config.pipeline.precision = Precision::mixedIo;
  config.pipeline.chunk = 16;
  config.pipeline.chunkStages = ChunkStages::staged;
  for (int64_t offset = 0; offset < 16; ++offset) {
    SCOPED_TRACE(offset);
    Batch batch;
    batch.leading = offset;
    for (int64_t length = 0; length <= 33; ++length)
      batch.lengths.push_back((length * 19) % 34);
    Call call(config, "prefill", batch);
    call.run("staged");
    call.check({5e-3, 5e-3, 5e-3});
  }
}

// States inside sequences: between chunks, of all sizes that checkpoints do not
// cut.
TEST(TwoStageCheckpoints, EqualReference) {
  for (int64_t chunk : {16, 64})
    for (bool plain : {false, true}) {
      SCOPED_TRACE(testing::Message() << chunk << ' ' << plain);
      Config config(40, 72);
      config.options.io = FloatKind::bf16;
      config.options.checkpoints = true;
      config.options.writeSlots = true;
      config.options.l2norm = plain;
      if (plain) {
        config.layout = InputLayout::ready;
        config.options.outputs = EntryOutputs::core;
      }
      config.pipeline.precision = Precision::mixed;
      config.pipeline.chunk = chunk;
      config.pipeline.chunkStages = ChunkStages::staged;
      Batch batch;
      batch.lengths = {200, 0, 64, 5, 130, 63, 128, 193};
      batch.ids = {1, 2, 3, 4, 5, 6, 0, 7};
      batch.writeIds = {1, 2, 13, 4, 5, 16, 0, 7};
      batch.nullSlot = 0;
      batch.slots = 32;
      batch.keyHeads = 2;
      batch.leading = 3;
      batch.padding = 2;
      // Counts that are no checkpoint, and a slot that is none, among others.
      batch.checkpoints = {{{64, 20}, {100, 31}, {128, 21}, {192, 22}},
                           {{0, 31}},
                           {{64, 23}},
                           {},
                           {{64, -1}, {128, 24}},
                           {},
                           {{64, 31}},
                           {{192, 26}}};
      Call call(config, "prefill", batch);
      call.run("staged");
      call.check({5e-3, 5e-3, 2e-3});
    }
}

// V-splits give the same bits; a norm keeps heads whole.
TEST(VSplits, EqualBits) {
  for (auto [layout, outputs] :
       {std::pair{InputLayout::ready, EntryOutputs::core},
        {InputLayout::flat, EntryOutputs::core},
        {InputLayout::flat, EntryOutputs::norm}}) {
    Config config(48, 96);
    config.layout = layout;
    config.options.io = FloatKind::bf16;
    config.options.outputs = outputs;
    config.options.l2norm = layout == InputLayout::ready;
    config.pipeline.precision = Precision::mixedIo;
    config.pipeline.chunkStages = ChunkStages::staged;
    Batch batch;
    batch.lengths = {130, 0, 2, 64, 77};
    batch.ids = {1, 2, 3, 0, 5};
    batch.nullSlot = 0;
    batch.slots = 9;
    batch.leading = 2;
    batch.padding = 3;
    Call whole(config, "prefill", batch);
    whole.run("staged");
    whole.check({5e-3, 1e-2, 5e-3});
    config.pipeline.variants = {"staged-v-split-2:v-split=2",
                                "staged-v-split-3:v-split=3",
                                "staged-v-split-5:v-split=5", // not of 96
                                "staged:"};
    for (const char *variant :
         {"staged", "staged-v-split-2", "staged-v-split-3"}) {
      SCOPED_TRACE(variant);
      if (outputs == EntryOutputs::norm && llvm::StringRef(variant) != "staged")
        continue; // a norm wants whole rows
      Call cut(config, "prefill", batch);
      cut.run(variant);
      cut.check({5e-3, 1e-2, 5e-3});
      for (const char *name : {"core", "out", "conv_pool", "state_pool"})
        if (cut.has(name))
          EXPECT_TRUE(cut[name].sameMemory(whole[name])) << name;
    }
  }
}
