// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps of a scheduler: what a layer launches for metadata, and a backend for a
// batch, has the bits of the kernel alone. Rows of padding and profile runs
// give zeros and touch no pool.

#include "gdn-c/attention.h"
#include "layer_test.h"

using namespace gdnrt::cts;

namespace {
class StepCases : public LayerTest {
protected:
  void TearDown() override {
    gdnrt_attention_backend_destroy(backend);
    LayerTest::TearDown();
  }
  gdnrt_attention_backend *backend = nullptr;
};
GDNRT_CTS_LAYERS(StepCases);
} // namespace

TEST_P(StepCases, LayerHasTheBitsOfTheKernel) {
  Problem alone(kernel.entry(), rows());
  Problem layered = alone;
  kernel.run(alone);
  gdnrt_gdn_metadata metadata = build(kind, rows());
  kernel.onDevice(layered, [&](const auto &args) {
    makeLayer(args);
    step(args, &metadata);
  });
  expectSameOutputs(layered, alone);
  expectSamePools(layered, alone);
}

TEST_P(StepCases, PaddingOfGraphsIsZero) {
  if (kind == EntryKind::prefill)
    GTEST_SKIP() << "graphs are of decode and verify";
  Rows live = rows();
  Problem alone(kernel.entry(), padded(live));
  Problem layered = alone;
  kernel.run(alone);
  const int64_t rows = alone.numRows();
  gdnrt_gdn_metadata metadata = build(kind, live, rows);
  kernel.onDevice(layered, [&](const auto &args) {
    makeLayer(args);
    step(args, &metadata);
  });
  expectSameOutputs(layered, alone);
  expectSamePools(layered, alone);
  for (auto row = static_cast<int64_t>(live.lengths.size()); row < rows; ++row)
    expectZeroRow(layered, row);
}

TEST_P(StepCases, ProfileRunTouchesNothing) {
  Problem problem(kernel.entry(), rows());
  Problem before = problem;
  kernel.onDevice(problem, [&](const auto &args) {
    makeLayer(args);
    step(args, nullptr);
    step(args, nullptr);
  });
  for (int64_t row = 0; row < problem.numRows(); ++row)
    expectZeroRow(problem, row);
  expectSamePools(problem, before);
}

TEST_P(StepCases, BackendHasTheBitsOfTheKernel) {
  if (kind == EntryKind::verify)
    GTEST_SKIP() << "batches of that kind verify nothing";
  Problem alone(kernel.entry(), rows());
  Problem batched = alone, idle = alone;
  kernel.run(alone);
  ASSERT_EQ(
      gdnrt_attention_backend_create_gdn(kernel.device(), &backend, &error),
      GDNRT_OK);
  const Rows live = rows();
  const std::vector<int64_t> &slots = live.slots;
  std::vector<int32_t> lengths(live.lengths.begin(), live.lengths.end());
  gdnrt_forward_batch batch = {};
  batch.batch_size = static_cast<int64_t>(slots.size());
  batch.req_pool_indices = slots.data();
  batch.extend_seq_lens = lengths.data();
  auto forward = [&](const Problem &problem) {
    kernel.onDevice(problem, [&](const auto &args) {
      makeLayer(args);
      std::vector<gdnrt_named_arg> tokens = pick(args, false);
      EXPECT_EQ(gdnrt_attention_init_forward_metadata(backend, &batch, &error),
                GDNRT_OK)
          << error.message;
      EXPECT_EQ(gdnrt_attention_forward_gdn(backend, layer, &batch,
                                            tokens.data(), tokens.size(),
                                            &error),
                GDNRT_OK)
          << error.message;
      EXPECT_EQ(gdnrt_device_synchronize(kernel.device(), nullptr, &error),
                GDNRT_OK);
    });
  };
  batch.forward_mode =
      kind == EntryKind::decode ? GDNRT_MODE_DECODE : GDNRT_MODE_MIXED;
  forward(batched);
  expectSameOutputs(batched, alone);
  expectSamePools(batched, alone);

  Problem before = idle;
  batch.forward_mode = GDNRT_MODE_IDLE;
  forward(idle);
  for (int64_t row = 0; row < idle.numRows(); ++row)
    expectZeroRow(idle, row);
  expectSamePools(idle, before);
}
