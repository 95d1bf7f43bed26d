// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sequences cut into segments: against the reference and against one pass, for
// every kind of sequence, element type and number of segments. The workspace
// holds NaN before each launch, as does every slot that no sequence reads.
#include "Call.h"

#include "gdn/Data/Compare.h"

#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;

namespace {
struct Case {
  const char *name;
  int64_t segments;
  FloatKind io = FloatKind::f32, state = FloatKind::f32;
  int64_t dk = 40, dv = 72, ratio = 2;
  int64_t chunk = 64, chunkFrom = 1;
  Form form = Form::layer;
};

class Segments : public ::testing::TestWithParam<Case> {
protected:
  static Config config() {
    const Case &c = GetParam();
    Config config(c.dk, c.dv);
    config.form = c.form;
    config.options.io = c.io;
    config.options.state = c.state;
    config.options.hasInitial = config.options.writeSlots =
        c.form == Form::layer;
    config.pipeline.chunk = c.chunk;
    config.pipeline.chunkFrom = c.chunkFrom;
    config.pipeline.segments = c.segments;
    return config;
  }
  /// Sequences shorter than a chunk and without tokens, sequences of some and
  /// of all segments, tails; a sequence without a state, one whose result is
  /// not kept, one that is skipped.
  static Batch ragged() {
    Batch batch;
    batch.lengths = {700, 0, 1, 63, 64, 65, 129, 192, 321, 512, 200};
    batch.ratio = GetParam().ratio;
    batch.leading = 3;
    batch.padding = 5;
    batch.nullSlot = 0;
    batch.slots = 24;
    batch.ids = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0};
    batch.writeIds = {1, 12, 3, 14, 15, 6, 7, 8, 0, 10, 21};
    batch.initial = {true,  true, false, true, true, true,
                     false, true, true,  true, true};
    return batch;
  }
};
} // namespace

// The results of a sequence in f32 differ from one pass by rounding alone.
static void expectClose(Call &a, Call &b, bool exactWindows) {
  for (const char *name : {"core", "out"})
    if (a.has(name))
      EXPECT_LE(data::compare(a[name].values(), b[name].values()).relativeRMSE,
                1e-5 + 2 * roundingOf(a.config.options.io))
          << name;
  for (int64_t n = 0; n < int64_t(a.batch.lengths.size()); ++n) {
    const int64_t slot = a.writtenSlot(n);
    if (slot < 0)
      continue;
    EXPECT_LE(
        data::compare(a["state_pool"].row(slot), b["state_pool"].row(slot))
            .relativeRMSE,
        1e-5 + 2 * roundingOf(a.config.options.state))
        << "sequence " << n;
  }
  if (exactWindows && a.has("conv_pool"))
    EXPECT_TRUE(a["conv_pool"].sameMemory(b["conv_pool"]));
}

TEST_P(Segments, EqualReferenceAndOnePass) {
  Call cut(config(), "prefill", ragged()), whole(config(), "prefill", ragged());
  cut.run("segments");
  cut.check(oneCall);
  whole.run("rows");
  expectClose(cut, whole, true);
}

TEST_P(Segments, EqualBitsForAnyWorkers) {
  Call one(config(), "prefill", ragged());
  one.run("segments");
  for (int workers : {1, 2, 0}) {
    Call many(config(), "prefill", ragged(), {}, workers);
    many.run("segments");
    for (const char *name : {"core", "out", "conv_pool", "state_pool"})
      if (many.has(name))
        EXPECT_TRUE(many[name].sameMemory(one[name])) << name;
  }
}

static const Case cases[] = {
    {"F32By2", 2},
    {"F32By3", 3},
    {"F32By5", 5},
    {"F32By8", 8},
    {"TokenByToken", 3, FloatKind::f32, FloatKind::f32, 64, 64, 1, 64, -1},
    {"ChunksAndRest", 3, FloatKind::f32, FloatKind::f32, 64, 64, 3, 64, 40},
    {"BF16", 3, FloatKind::bf16, FloatKind::f32, 40, 72, 4},
    {"StatesBF16", 5, FloatKind::bf16, FloatKind::bf16},
    {"F16StatesF16", 3, FloatKind::f16, FloatKind::f16},
    {"Chunks16", 3, FloatKind::f32, FloatKind::f32, 40, 24, 2, 16},
    {"Plain", 3, FloatKind::f32, FloatKind::f32, 64, 64, 2, 64, 1, Form::plain},
    {"PerChannel", 3, FloatKind::f32, FloatKind::f32, 64, 64, 2, 64, 1,
     Form::plainPerChannel},
    {"Linear", 3, FloatKind::f32, FloatKind::f32, 64, 64, 2, 64, 1,
     Form::linear},
    {"LinearPerChannel", 3, FloatKind::f32, FloatKind::f32, 64, 64, 2, 64, 1,
     Form::linearPerChannel},
};
INSTANTIATE_TEST_SUITE_P(Cpu, Segments, ::testing::ValuesIn(cases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

// One long sequence, gates from nearly open to nearly shut, keys alike.
TEST(LongSegments, Gates) {
  using data::GateKind;
  for (int64_t segments : {3, 8})
    for (GateKind gates : {GateKind::nearOne, GateKind::realistic,
                           GateKind::strong, GateKind::veryStrong}) {
      SCOPED_TRACE(int(gates));
      Config config(64, 64);
      config.pipeline.segments = segments;
      config.pipeline.chunkFrom = 1;
      Batch batch;
      batch.lengths = {segments * 256};
      batch.inputs.gates = gates;
      batch.inputs.keyCorrelation = 0.9;
      Call cut(config, "prefill", batch), whole(config, "prefill", batch);
      cut.run("segments");
      cut.check(oneCall);
      whole.run("rows");
      expectClose(cut, whole, true);
    }
}

// A device takes the variant by its rule: sequences long enough, workers that
// would be idle, and a workspace.
TEST(SegmentRule, NeedsWorkersAndTokens) {
  Config config(64, 64);
  config.pipeline.segments = 3;
  config.pipeline.segmentsFrom = 256;
  Program &program = Program::get(config);
  gdnrt_kernel *kernel = program.entry("prefill", 2).kernel;
  gdnrt_variant_info info = gdnrt_variant_info_default();
  gdnrt_error error;
  ASSERT_EQ(gdnrt_entry_variant(gdnrt_kernel_entry(kernel),
                                gdnrt_kernel_code(kernel), 0, &info, &error),
            GDNRT_OK)
      << error.message;
  EXPECT_STREQ(info.name, "segments");
  EXPECT_STREQ(info.conditions, "2 * N * Hk <= workers, 256 * N <= T");
  EXPECT_EQ(info.stage_count, 3u);
  EXPECT_EQ(info.needs_workspace, 1);
  gdnrt_kernel *decode = program.entry("decode", 2).kernel;
  EXPECT_EQ(gdnrt_entry_variant_count(gdnrt_kernel_entry(decode),
                                      gdnrt_kernel_code(decode)),
            1u);
}
