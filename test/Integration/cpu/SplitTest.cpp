// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a token gets does not depend on how tokens are cut into calls, on the
// sequences beside its own or on the number of workers. With f32 states and raw
// inputs kept in their own type the arithmetic per token is the same, token by
// token, so that outputs and states are the same bits.
#include "Call.h"

#include "gdn/Data/Compare.h"

#include <gtest/gtest.h>

using namespace gdn;
using namespace gdn::integration;

namespace {
struct Case {
  const char *name;
  FloatKind io, state;
  int64_t dk, dv;
};

/// How far two ways to the same result may be apart; 0: not at all.
struct Apart {
  double output, state;
};
constexpr Apart sameBits = {0, 0};

class Split : public ::testing::TestWithParam<Case> {
protected:
  static Config config() {
    const Case &c = GetParam();
    Config config(c.dk, c.dv);
    config.options.io = c.io;
    config.options.state = c.state;
    config.pipeline.chunkFrom = -1; // chunks begin where a call begins
    return config;
  }
  /// Splitting must not change a bit of states in f32.
  static Apart apart() {
    if (GetParam().state == FloatKind::f32)
      return {0, 0};
    return {2e-2, 2e-2};
  }
};
} // namespace

/// Tokens `begin` to `end` of `whole` in a call of one sequence. Everything
/// else, the pools included, is shared with `whole` or, where given, `pools`.
static Call piece(Call &whole, const char *entry, int64_t begin, int64_t end,
                  int64_t row, Call *pools = nullptr) {
  Batch batch = whole.batch;
  batch.lengths = {end - begin};
  batch.padding = 0;
  batch.slots = whole["state_pool"].dim(0);
  batch.ids = {int64_t(whole["slots"].rows(row, 1)[0])};
  Call call(whole.config, entry, batch);
  for (const Parameter &parameter : call.parameters()) {
    const std::string &name = parameter.name;
    if (parameter.isPool)
      call.replace(name, (pools ? *pools : whole)[name]);
    else if (parameter.isPerToken() && !parameter.isOutput)
      call[name].assign(whole[name].rows(begin, end - begin));
    else if (data::isFloat(parameter.dtype) && !parameter.isOutput)
      call.replace(name, whole[name]);
  }
  return call;
}

/// Expects the outputs of `call` in rows `begin` and on of `whole`.
static void expectOutputs(Call &call, Call &whole, int64_t begin,
                          const Apart &apart) {
  for (const char *name : {"core", "out"}) {
    if (!call.has(name))
      continue;
    const int64_t count = call[name].dim(0);
    const std::vector<double> got = call[name].values();
    const std::vector<double> want = whole[name].rows(begin, count);
    if (apart.output == 0)
      EXPECT_TRUE(data::bitEqual(got, want)) << name;
    else
      EXPECT_LE(data::compare(got, want).relativeRMSE, apart.output) << name;
  }
}

static void expectPools(Call &a, Call &b, const Apart &apart) {
  EXPECT_TRUE(a["conv_pool"].sameMemory(b["conv_pool"]));
  if (apart.state == 0) {
    EXPECT_TRUE(a["state_pool"].sameMemory(b["state_pool"]));
    return;
  }
  const int64_t slot = a.writtenSlot(0);
  EXPECT_LE(data::compare(a["state_pool"].row(slot), b["state_pool"].row(slot))
                .relativeRMSE,
            apart.state);
}

/// Runs one sequence whole and cut at `cuts`.
static void runCut(const Config &config, int64_t tokens,
                   std::vector<int64_t> cuts, const Apart &apart) {
  Batch batch;
  batch.lengths = {tokens};
  Call whole(config, "prefill", batch), pools(config, "prefill", batch);
  whole.run();
  cuts.push_back(tokens);
  int64_t begin = 0;
  for (int64_t end : cuts) {
    Call part = piece(whole, "prefill", begin, end, 0, &pools);
    part.run();
    expectOutputs(part, whole, begin, apart);
    begin = end;
  }
  expectPools(pools, whole, apart);
}

TEST_P(Split, AtOnePlace) {
  for (int64_t cut : {1, 15, 16, 17, 63, 64, 65, 129}) {
    SCOPED_TRACE(cut);
    runCut(config(), 130, {cut}, apart());
  }
}

TEST_P(Split, Everywhere) {
  std::vector<int64_t> all;
  for (int64_t cut = 1; cut < 21; ++cut) {
    SCOPED_TRACE(cut);
    runCut(config(), 21, {cut}, apart());
    all.push_back(cut);
  }
  runCut(config(), 21, all, apart());
}

TEST_P(Split, OneTokenEqualsDecode) {
  Batch batch;
  batch.lengths = {1, 1, 1, 1, 1};
  batch.nullSlot = 2;
  Call prefill(config(), "prefill", batch), decode(config(), "decode", batch);
  for (const Parameter &parameter : decode.parameters())
    EXPECT_TRUE(prefill[parameter.name].sameMemory(decode[parameter.name]))
        << parameter.name;
  prefill.run();
  decode.run();
  for (const char *name : {"core", "out", "conv_pool", "state_pool"})
    EXPECT_TRUE(prefill[name].sameMemory(decode[name])) << name;
}

// A sequence alone gives the bits that it gives among others.
TEST_P(Split, NeighboursDoNotMatter) {
  Batch batch;
  batch.lengths = {19, 33, 0, 1, 64};
  batch.keyHeads = 2;
  Call whole(config(), "prefill", batch), pools(config(), "prefill", batch);
  whole.run();
  int64_t begin = 0;
  for (size_t n = 0; n < batch.lengths.size(); ++n) {
    const int64_t end = begin + batch.lengths[n];
    Call alone = piece(whole, "prefill", begin, end, n, &pools);
    alone.run();
    expectOutputs(alone, whole, begin, sameBits);
    begin = end;
  }
  expectPools(pools, whole, sameBits);
}

TEST_P(Split, WorkersDoNotMatter) {
  Batch batch;
  batch.lengths = {19, 33, 0, 1, 64, 7};
  batch.keyHeads = 3;
  batch.padding = 5;
  Call one(config(), "prefill", batch);
  one.run();
  for (int workers : {2, 0}) {
    Call many(config(), "prefill", batch, {}, workers);
    many.run();
    for (const char *name : {"core", "out", "conv_pool", "state_pool"})
      EXPECT_TRUE(many[name].sameMemory(one[name])) << name;
  }
}

static const Case cases[] = {
    {"F32", FloatKind::f32, FloatKind::f32, 64, 64},
    {"BF16", FloatKind::bf16, FloatKind::f32, 40, 72},
    {"BF16StatesBF16", FloatKind::bf16, FloatKind::bf16, 40, 72},
};
static const Case longCases[] = {
    {"F16", FloatKind::f16, FloatKind::f32, 128, 128},
    {"F32Heads96And192", FloatKind::f32, FloatKind::f32, 96, 192},
    {"F16StatesF16", FloatKind::f16, FloatKind::f16, 40, 72},
};
static std::string nameOf(const ::testing::TestParamInfo<Case> &info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Cpu, Split, ::testing::ValuesIn(cases), nameOf);
INSTANTIATE_TEST_SUITE_P(Full, Split, ::testing::ValuesIn(longCases), nameOf);

namespace {
struct ChunkCase {
  const char *name;
  FloatKind io;
  Precision precision;
  Apart offBoundary;
};
class SplitInChunks : public ::testing::TestWithParam<ChunkCase> {
protected:
  static Config config() {
    Config config(64, 96);
    config.options.io = GetParam().io;
    config.pipeline.chunkFrom = 1;
    config.pipeline.precision = GetParam().precision;
    return config;
  }
};
} // namespace

// Where a chunk ends anyway, the state between calls is the state between
// chunks.
TEST_P(SplitInChunks, AtBoundaries) {
  runCut(config(), 273, {64}, {1e-5, 1e-5});
  runCut(config(), 273, {128}, {1e-5, 1e-5});
  runCut(config(), 273, {64, 128, 192, 256}, {1e-5, 1e-5});
}

// Elsewhere the chunks are other ones: two results within the bounds.
TEST_P(SplitInChunks, OffBoundaries) {
  for (int64_t cut : {1, 16, 63, 65, 100, 272})
    runCut(config(), 273, {cut}, GetParam().offBoundary);
  runCut(config(), 273, {17, 18, 120, 200}, GetParam().offBoundary);
}

INSTANTIATE_TEST_SUITE_P(
    Cpu, SplitInChunks,
    ::testing::Values(
        ChunkCase{"F32", FloatKind::f32, Precision::f32, {1e-5, 1e-5}},
        ChunkCase{"BF16", FloatKind::bf16, Precision::f32, {1e-3, 1e-5}},
        ChunkCase{"BF16Mixed", FloatKind::bf16, Precision::mixed, {3e-3, 2e-3}},
        ChunkCase{"F16Mixed", FloatKind::f16, Precision::mixed, {3e-3, 2e-3}}),
    [](const auto &info) { return info.param.name; });
