// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form against the reference, in f32 and with the roundings of
// tensor cores: lengths around chunks, gates, keys, values, head sizes, ratios
// of heads, sequences beside each other. The bounds are those of
// docs/spec/numerics.md, on whole errors: the rounding of outputs is included.
#include "Call.h"

#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;
using data::GateKind;

namespace {

struct Kind {
  const char *name;
  FloatKind io;
  Precision precision;
  ChunkStages stages = ChunkStages::onePass;
};

enum class Keys { independent, correlated, identical };

struct Inputs {
  GateKind gates = GateKind::realistic;
  Keys keys = Keys::independent; ///< identical ones come with beta = 1
  double valueScale = 1;

  /// True if roundings of what identical keys write add up along one direction
  /// in a state that hardly decays.
  bool addUp() const {
    return keys == Keys::identical && gates == GateKind::nearOne;
  }
};

/// A form of entry, an element type of inputs, and a precision.
class ChunkForm : public ::testing::TestWithParam<std::tuple<Kind, Form>> {
protected:
  static Form form() { return std::get<1>(GetParam()); }
  static const Kind &kind() { return std::get<0>(GetParam()); }
  static bool isExact() { return kind().precision == Precision::f32; }
  /// Packed projections have independent keys and values of their own.
  static bool isReady() { return form() == Form::plain; }
  /// Keys that are handed over may keep their type; those that the kernel
  /// computes are rounded to f16.
  static Precision precision() {
    const bool keepsKeys = kind().precision == Precision::mixedIo && isReady();
    return isExact()   ? Precision::f32
           : keepsKeys ? Precision::mixedIo
                       : Precision::mixed;
  }

  static Config config(int64_t dk, int64_t dv) {
    Config config(dk, dv);
    config.form = form();
    config.layout = InputLayout::flat;
    config.options.io = kind().io;
    config.options.outputs = EntryOutputs::core;
    config.pipeline.chunkFrom = 1;
    config.pipeline.precision = kind().precision;
    config.pipeline.chunkStages = kind().stages;
    return config;
  }
  static Errors bounds();
  static void check(const Config &config, Batch batch, const Inputs &inputs);
  static void check(const Config &config, int64_t tokens, const Inputs &inputs,
                    int64_t ratio = 2) {
    SCOPED_TRACE(tokens);
    Batch batch;
    batch.lengths = {tokens};
    batch.ratio = ratio;
    // A single q.k may be next to zero; its error is not relative to that.
    batch.keyHeads = tokens <= 2 ? 4 : 1;
    check(config, batch, inputs);
  }
};

} // namespace

/// What the errors of a call may be, besides the rounding of the outputs where
/// nothing else is rounded.
Errors ChunkForm::bounds() {
  switch (precision()) {
  case Precision::f32:
    return oneCall;
  case Precision::mixed:
    return {isReady() ? 3e-3 : 5e-3, 5e-3, 2e-3};
  case Precision::mixedIo:
    return {5e-3, 5e-3, 5e-3};
  }
  llvm_unreachable("a Precision outside its enumeration");
}

void ChunkForm::check(const Config &config, Batch batch, const Inputs &inputs) {
  SCOPED_TRACE(testing::Message()
               << config.dk << "x" << config.dv << ", "
               << data::name(inputs.gates).str() << ", keys "
               << int(inputs.keys) << ", values of " << inputs.valueScale);
  batch.inputs.gates = inputs.gates;
  batch.inputs.keyCorrelation = inputs.keys == Keys::correlated ? 0.9 : 0;
  Call call(config, "prefill", batch);
  if (inputs.keys == Keys::identical) {
    const std::vector<double> key = call["k"].row(0);
    for (int64_t t = 0; t < call["k"].dim(0); ++t)
      call["k"].assignRows(t, key);
    call["beta"].fill(1);
  }
  if (inputs.valueScale != 1) {
    std::vector<double> values = call["v"].values();
    for (double &value : values)
      value *= inputs.valueScale;
    call["v"].assign(values);
  }
  call.run(kind().stages == ChunkStages::staged ? "staged" : "");
  const Errors want = bounds();
  call.check(want);
  const std::string what = std::string("chunks, ") + kind().name +
                           (isReady() ? ", ready" : ", packed") +
                           (inputs.addUp() ? ", adding up" : "");
  noteError(what + ": output", call.errors().core);
  noteError(what + ": state", call.errors().state);
  if (isExact())
    return;
  EXPECT_LE(call.errors().core, want.core);
  EXPECT_LE(call.errors().state, want.state);
}

TEST_P(ChunkForm, Lengths) {
  for (GateKind gates : {GateKind::nearOne, GateKind::realistic})
    for (int64_t tokens :
         {1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 273, 1000, 2048})
      check(config(128, 128), tokens, {gates});
}

TEST_P(ChunkForm, GatesKeysAndValues) {
  for (GateKind gates : {GateKind::nearOne, GateKind::realistic,
                         GateKind::strong, GateKind::veryStrong})
    for (Keys keys : {Keys::independent, Keys::correlated, Keys::identical})
      for (double scale : {1.0, 1e4})
        for (int64_t tokens : {64, 273, 1000})
          if (isReady() || (keys == Keys::independent && scale == 1))
            check(config(128, 128), tokens, {gates, keys, scale});
}

TEST_P(ChunkForm, HeadSizesAndRatios) {
  for (auto [dk, dv] :
       {std::pair{64, 64}, {96, 192}, {64, 128}, {256, 256}, {40, 24}})
    for (int64_t ratio : {1, 2, 3, 4})
      check(config(dk, dv), 129, {GateKind::nearOne}, ratio);
}

// Sequences of all lengths at once, two without tokens, one skipped, and
// padding; in chunks to the end, and with the last tokens one by one.
TEST_P(ChunkForm, RaggedRows) {
  Batch batch;
  batch.lengths = {0, 64, 1, 129, 17, 0, 63, 273};
  batch.keyHeads = 2;
  batch.padding = 3;
  batch.nullSlot = 0;
  batch.ids = {9, 2, 7, 5, 0, 1, 6, 3};
  batch.slots = 10;
  for (int64_t chunkFrom : {1, 40})
    for (GateKind gates : {GateKind::nearOne, GateKind::strong}) {
      Config mixed = config(64, 64);
      mixed.pipeline.chunkFrom = chunkFrom;
      check(mixed, batch, {gates});
    }
}

TEST_P(ChunkForm, ChunkSizes) {
  for (int64_t chunk : {16, 32, 128}) {
    SCOPED_TRACE(chunk);
    Config sized = config(96, 64);
    sized.pipeline.chunk = chunk;
    for (GateKind gates : {GateKind::nearOne, GateKind::veryStrong})
      check(sized, 273, {gates});
  }
}

TEST_P(ChunkForm, PrecisionIsRecorded) {
  const char *names[] = {"f32", "mixed", "mixed-io"};
  const gdnrt_entry *entry =
      gdnrt_kernel_entry(Program::get(config(64, 64)).entry("prefill").kernel);
  EXPECT_STREQ(gdnrt_entry_attribute(entry, "precision"),
               names[int(precision())]);
}

// Every length with all gates, keys, values and head sizes; ratios take turns.
namespace {
class ChunkFormProduct : public ChunkForm {};
} // namespace
TEST_P(ChunkFormProduct, Everything) {
  int64_t ratio = 0;
  for (auto [dk, dv] :
       {std::pair{64, 64}, {96, 192}, {128, 128}, {64, 128}, {256, 256}})
    for (GateKind gates : {GateKind::nearOne, GateKind::realistic,
                           GateKind::strong, GateKind::veryStrong})
      for (Keys keys : {Keys::independent, Keys::correlated, Keys::identical})
        for (double scale : {1.0, 1e4})
          for (int64_t tokens :
               {1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 273, 1000, 2048})
            if (isReady() || (keys == Keys::independent && scale == 1))
              check(config(dk, dv), tokens, {gates, keys, scale},
                    1 + ratio++ % 4);
}

static const Kind kinds[] = {
    {"F32", FloatKind::f32, Precision::f32},
    {"BF16Mixed", FloatKind::bf16, Precision::mixed},
    {"F16Mixed", FloatKind::f16, Precision::mixed},
    {"BF16MixedIo", FloatKind::bf16, Precision::mixedIo},
};
static const Kind splitKinds[] = {
    {"BF16MixedIoSplit", FloatKind::bf16, Precision::mixedIo,
     ChunkStages::staged},
};
static const Kind moreSplitKinds[] = {
    {"BF16MixedSplit", FloatKind::bf16, Precision::mixed, ChunkStages::staged},
    {"F16MixedSplit", FloatKind::f16, Precision::mixed, ChunkStages::staged},
};
static const Kind everyRunsKinds[] = {kinds[0], kinds[1], kinds[3]};
static const Kind moreKinds[] = {
    kinds[2],
    {"BF16", FloatKind::bf16, Precision::f32},
    {"F16", FloatKind::f16, Precision::f32},
};
static const Form forms[] = {Form::plain, Form::layer};
static std::string
nameOf(const ::testing::TestParamInfo<std::tuple<Kind, Form>> &info) {
  return std::string(std::get<0>(info.param).name) +
         (std::get<1>(info.param) == Form::plain ? "Ready" : "Packed");
}
INSTANTIATE_TEST_SUITE_P(Cpu, ChunkForm,
                         ::testing::Combine(::testing::ValuesIn(everyRunsKinds),
                                            ::testing::ValuesIn(forms)),
                         nameOf);
// From packed projections the numbers of the split form are those of the PTX
// machine's runs as well.
INSTANTIATE_TEST_SUITE_P(CpuSplit, ChunkForm,
                         ::testing::Combine(::testing::ValuesIn(splitKinds),
                                            ::testing::Values(Form::plain)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(FullPacked, ChunkForm,
                         ::testing::Combine(::testing::ValuesIn(splitKinds),
                                            ::testing::Values(Form::layer)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(FullSplit, ChunkForm,
                         ::testing::Combine(::testing::ValuesIn(moreSplitKinds),
                                            ::testing::ValuesIn(forms)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Full, ChunkForm,
                         ::testing::Combine(::testing::ValuesIn(moreKinds),
                                            ::testing::ValuesIn(forms)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(Full, ChunkFormProduct,
                         ::testing::Combine(::testing::ValuesIn(kinds),
                                            ::testing::ValuesIn(forms)),
                         nameOf);
