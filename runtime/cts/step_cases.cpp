// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps of a scheduler: what a layer launches for metadata, and a backend for a
// batch, has the bits of the kernel alone. Rows of padding and profile runs
// give zeros and touch no pool.

#include "gdn-c/attention.h"
#include "layer_test.h"

#include <algorithm>

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

// No step is needed to see that weights and pools do not fit each other.
TEST_P(StepCases, WeightsOfOtherHeadsAreRefused) {
  Problem problem(kernel.entry(), rows());
  std::vector<gdnrt_named_arg> args = problem.args();
  std::vector<int64_t> sizes;
  for (gdnrt_named_arg &each : args)
    if (std::string(each.name) == "A_log") {
      sizes.assign(each.arg.sizes, each.arg.sizes + each.arg.rank);
      ++sizes[0];
      each.arg.sizes = sizes.data();
    }
  if (sizes.empty())
    GTEST_SKIP() << "the entry takes gates";
  EXPECT_EQ(createLayer(args), GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(layer, nullptr);
  EXPECT_NE(std::string(error.message).find("Hv = "), std::string::npos)
      << error.message;
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
  gdnrt_forward_batch batch = gdnrt_forward_batch_default();
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

// What a layer finds in a workspace that others worked in does not matter, and
// one that is too small is said so or done without.
TEST_P(StepCases, SharedWorkspaceLeavesNoTrace) {
  const Rows live = rows();
  Rows other = live;
  for (int64_t &length : other.lengths)
    length = kind == EntryKind::decode ? 1 : std::min<int64_t>(length, 2);
  Problem alone(kernel.entry(), live), shared = alone;
  Problem before(kernel.entry(), other);
  gdnrt_workspace_size size = gdnrt_workspace_size_default();
  auto run = [&](const Problem &problem, const Rows &rows,
                 const gdnrt_workspace *workspace) {
    gdnrt_gdn_metadata metadata = build(kind, rows);
    kernel.onDevice(problem, [&](const auto &args) {
      makeLayer(args);
      if (!workspace) {
        // The second time asks for no more.
        for (int time = 0; time < 2; ++time)
          EXPECT_EQ(gdnrt_gdn_layer_workspace_size(layer, alone.numRows(),
                                                   alone.numTokens(), &size,
                                                   &error),
                    GDNRT_OK)
              << error.message;
        return;
      }
      ASSERT_EQ(gdnrt_gdn_layer_share_workspace(layer, workspace, &error),
                GDNRT_OK)
          << error.message;
      step(args, &metadata);
    });
  };
  run(alone, live, nullptr);
  EXPECT_EQ(size.counter_bytes % 64, 0U);
  // Other layers may need more of both.
  size.counter_bytes += 128;
  size.total_bytes += 4096;
  gdnrt_workspace *workspaces[2] = {};
  ASSERT_EQ(
      gdnrt_workspace_create(kernel.device(), &size, &workspaces[0], &error),
      GDNRT_OK)
      << error.message;
  // The other one lies in memory of ours, which held something.
  constexpr size_t kBehind = 64;
  std::vector<uint8_t> held(size.total_bytes + kBehind, 0xff);
  void *memory = nullptr;
  ASSERT_EQ(
      gdnrt_device_allocate(kernel.device(), held.size(), &memory, &error),
      GDNRT_OK);
  ASSERT_EQ(gdnrt_device_write(kernel.device(), memory, held.data(),
                               held.size(), &error),
            GDNRT_OK);
  ASSERT_EQ(gdnrt_workspace_wrap(kernel.device(), &size, memory, nullptr,
                                 &workspaces[1], &error),
            GDNRT_OK)
      << error.message;
  run(alone, live, workspaces[0]);
  run(before, other, workspaces[1]);
  run(shared, live, workspaces[1]);
  expectSameOutputs(shared, alone);
  expectSamePools(shared, alone);
  for (gdnrt_workspace *workspace : workspaces)
    gdnrt_workspace_destroy(workspace);
  // It is ours still: counters are zero, and nothing was written behind it.
  ASSERT_EQ(gdnrt_device_read(kernel.device(), held.data(), memory, held.size(),
                              &error),
            GDNRT_OK);
  EXPECT_TRUE(std::all_of(held.begin(), held.begin() + size.counter_bytes,
                          [](uint8_t byte) { return byte == 0; }));
  EXPECT_TRUE(std::all_of(held.end() - kBehind, held.end(),
                          [](uint8_t byte) { return byte == 0xff; }));
  EXPECT_EQ(gdnrt_device_free(kernel.device(), memory, &error), GDNRT_OK);
}

namespace {
class LayerRefusals : public EntryTest {};
GDNRT_CTS_ENTRIES(LayerRefusals);
} // namespace

// Schedulers' ids are i32; a layer of an entry that takes others says so.
TEST_P(LayerRefusals, IdsOfI64) {
  gdnrt_error error;
  gdnrt_param_info info = gdnrt_param_info_default();
  for (size_t p = 0; p < gdnrt_entry_param_count(kernel.entry()); ++p) {
    gdnrt_entry_param(kernel.entry(), p, &info, &error);
    if (std::string(info.name) == "slots")
      break;
  }
  if (info.dtype != GDNRT_I64)
    GTEST_SKIP() << "the entry takes ids of i32";
  Problem problem(kernel.entry(), {{1, 1}, {1, 2}});
  std::vector<gdnrt_named_arg> fixed;
  for (const gdnrt_named_arg &each : problem.args())
    if (std::string(each.name).find("pool") != std::string::npos ||
        std::string(each.name).find("weight") != std::string::npos ||
        std::string(each.name) == "A_log" ||
        std::string(each.name) == "dt_bias")
      fixed.push_back(each);
  gdnrt_gdn_kernels kernels = gdnrt_gdn_kernels_default();
  kernels.prefill = kernel.handle();
  gdnrt_gdn_layer *layer = nullptr;
  EXPECT_EQ(gdnrt_gdn_layer_create(&kernels, fixed.data(), fixed.size(), &layer,
                                   &error),
            GDNRT_UNSUPPORTED);
  EXPECT_NE(
      std::string(error.message).find("expected an entry with ids of i32"),
      std::string::npos)
      << error.message;
}
