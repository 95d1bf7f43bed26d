// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What tests of prefill in stages have in common: kernels of several types and
// sizes, and batches whose sequences do not all keep or have a state.
#ifndef GDN_TEST_INTEGRATION_CPU_STAGEDCASE_H
#define GDN_TEST_INTEGRATION_CPU_STAGEDCASE_H

#include "Call.h"

#include <gtest/gtest.h>

namespace gdn::integration {

struct StagedCase {
  const char *name;
  Precision precision = Precision::mixed;
  FloatKind io = FloatKind::bf16, state = FloatKind::f32;
  int64_t dk = 64, dv = 64, ratio = 2;
  InputLayout layout = InputLayout::interleaved;
  int64_t chunk = 64;
  int64_t convWidth = 4;
  bool convBias = false;

  /// Inputs that are ready have no norm behind the rule.
  Config config() const {
    Config config(dk, dv);
    config.layout = layout;
    config.convWidth = convWidth;
    config.convBias = convBias;
    config.options.io = io;
    config.options.state = state;
    config.options.hasInitial = config.options.writeSlots = true;
    config.options.l2norm = layout == InputLayout::ready;
    if (layout == InputLayout::ready)
      config.options.outputs = EntryOutputs::core;
    config.pipeline.precision = precision;
    config.pipeline.chunk = chunk;
    config.pipeline.chunkStages = ChunkStages::staged;
    return config;
  }
  /// A batch of no sequence yet, with tokens before and behind all.
  Batch batch() const {
    Batch batch;
    batch.ratio = ratio;
    batch.keyHeads = 2;
    batch.leading = 3;
    batch.padding = 5;
    batch.nullSlot = 0;
    batch.slots = 24;
    return batch;
  }
  Errors bounds() const {
    if (precision == Precision::mixedIo)
      return {5e-3, 1e-2, 5e-3};
    return {5e-3, 5e-3, 2e-3};
  }
};

/// A call of prefill that gives the same bits for any number of workers.
inline void expectSameForAnyWorkers(const Config &config, const Batch &batch,
                                    const char *variant, const Errors &bounds) {
  Call one(config, "prefill", batch);
  one.run(variant);
  one.check(bounds);
  for (int workers : {2, 0}) {
    Call many(config, "prefill", batch, {}, workers);
    many.run(variant);
    for (const char *name : {"core", "out", "conv_pool", "state_pool"})
      if (many.has(name))
        EXPECT_TRUE(many[name].sameMemory(one[name])) << name;
  }
}

inline std::string nameOf(const ::testing::TestParamInfo<StagedCase> &info) {
  return info.param.name;
}

} // namespace gdn::integration

#endif // GDN_TEST_INTEGRATION_CPU_STAGEDCASE_H
