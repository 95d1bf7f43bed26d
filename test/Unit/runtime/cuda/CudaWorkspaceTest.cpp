// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Workspaces of a GPU: counters that are zeroed when they are given, regions of
// stages behind them, and launches of several stages.

#include "cuda_launch_test.h"
#include "gdnrt/workspace.h"

#include <algorithm>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

class CudaWorkspace : public CudaLaunchTest {
protected:
  uint64_t neededBytes() {
    uint64_t bytes = 0;
    EXPECT_EQ(gdnrt_binding_workspace_bytes(binding, &bytes, &error), GDNRT_OK);
    return bytes;
  }
  std::string give(void *data, uint64_t bytes, void *stream = nullptr) {
    if (gdnrt_binding_set_workspace(binding, data, bytes, stream, &error) !=
        GDNRT_OK)
      return error.message;
    return "OK";
  }
  static int64_t wordOf(void *data) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(data));
  }

  alignas(64) uint8_t memory[4096];
};

/// A kernel with 2*N counters.
ImageBuilder withCounters() {
  return scaleImage([](fb::CodeT &code) {
    auto form = std::make_unique<fb::LinearFormT>();
    form->symbols = {0};
    form->coefficients = {2};
    launchOf(code).counters.push_back(std::move(form));
  });
}

/// Before it, a variant of two stages with a region of 8*N bytes, taken if
/// N <= 132.
ImageBuilder withStages() {
  ImageBuilder builder = withCounters();
  EntryBuilder entry(*builder.image.entries[0]);
  entry.variant("split")
      .stage("maps", {"N", "3"})
      .stage("scan", {"N"})
      .workspace({"8*N"})
      .condition({"N"}, {"workers"});
  for (auto &stage : builder.image.entries[0]->codes[0]->variants[1]->stages) {
    stage->launch = std::make_unique<fb::LaunchT>();
    stage->launch->threads = 64;
    stage->launch->dependent = true;
  }
  entry.firstVariant();
  return builder;
}

} // namespace

TEST_F(CudaWorkspace, CountersAreZeroedWhenGiven) {
  make(withCounters(), 10);
  EXPECT_EQ(neededBytes(), 128u); // 80, rounded up
  EXPECT_EQ(launch(), "INVALID_ARGUMENT: scale: expected a workspace of at "
                      "least 128 bytes for the variant rows, got 0");
  EXPECT_TRUE(fakeCuda().launches.empty());
  std::memset(memory, 0xff, sizeof(memory));
  EXPECT_EQ(give(memory, 256), "OK");
  for (size_t i = 0; i < 256; ++i)
    ASSERT_EQ(memory[i], 0) << i;
  EXPECT_EQ(memory[256], 0xff);
  EXPECT_EQ(launch(), "OK");
  EXPECT_EQ(seen().words[kScaleWords - 2], wordOf(memory));
  EXPECT_EQ(seen().words[kScaleWords - 1], 10);
  // Not per launch.
  EXPECT_EQ(fakeCuda().count("cuMemsetD8Async"), 0);
  gdnrt_variant_info info = gdnrt_variant_info_default();
  ASSERT_EQ(
      gdnrt_entry_variant(gdnrt_kernel_entry(kernel), 0, 0, &info, &error),
      GDNRT_OK);
  EXPECT_EQ(info.needs_workspace, 1);
}

TEST_F(CudaWorkspace, GrowingWithinWhatWasZeroed) {
  make(withCounters(), 10);
  EXPECT_EQ(give(memory, 256), "OK");
  auto rebind = [&](int64_t n) {
    Array x(address(0x1000), DType::f32, {n});
    Array out(address(uintptr_t{1} << 44), DType::f32, {n});
    gdnrt_arg args[] = {x, out};
    size_t params[] = {0, 1};
    EXPECT_EQ(gdnrt_binding_rebind(binding, params, args, 2, &error), GDNRT_OK)
        << error.message;
  };
  rebind(32);
  EXPECT_EQ(launch(), "OK");
  rebind(33);
  EXPECT_EQ(launch(), "INVALID_ARGUMENT: scale: expected a workspace of at "
                      "least 320 bytes for the variant rows, got 256");
  rebind(0); // no units, no workspace
  EXPECT_EQ(launch(), "OK");
}

TEST_F(CudaWorkspace, RefusedMemory) {
  make(withCounters(), 10);
  EXPECT_EQ(give(memory + 8, 256),
            "INVALID_ARGUMENT: workspace: expected data aligned to 64 bytes, "
            "got an address 8 past a multiple");
  fakeCuda().failures = {{"cuMemsetD8Async", 1}};
  EXPECT_EQ(give(memory, 256),
            "DEVICE_ERROR: fill: cuMemsetD8Async: "
            "CUDA_ERROR_INVALID_VALUE (1): invalid argument");
  // What could not be zeroed is not used.
  fakeCuda().failures.clear();
  EXPECT_EQ(launch(), "INVALID_ARGUMENT: scale: expected a workspace of at "
                      "least 128 bytes for the variant rows, got 0");
}

TEST_F(CudaWorkspace, StagesAndRegions) {
  fakeCuda().parameterBytes = (kScaleWords + 1) * sizeof(int64_t);
  make(withStages(), 10);
  std::memset(memory, 0xff, sizeof(memory));
  EXPECT_EQ(neededBytes(), 128u + 128u); // counters of "rows", then the region
  EXPECT_EQ(give(memory, 256), "OK");
  EXPECT_EQ(memory[79], 0);
  EXPECT_EQ(memory[80], 0xff); // the region is not zeroed
  EXPECT_EQ(gdnrt_binding_variant(binding), 0u);
  EXPECT_EQ(launch(), "OK");
  ASSERT_EQ(fakeCuda().launches.size(), 2u);
  const FakeLaunch &maps = fakeCuda().launches[0];
  const FakeLaunch &scan = fakeCuda().launches[1];
  EXPECT_EQ(maps.kernel, "maps");
  EXPECT_EQ(maps.config.gridX, 30u);
  EXPECT_EQ(maps.words[7], wordOf(memory + 128));
  EXPECT_EQ(maps.words[8], wordOf(memory));
  EXPECT_EQ(maps.words[9], 30);
  EXPECT_EQ(scan.kernel, "scan");
  EXPECT_EQ(scan.config.gridX, 10u);
  EXPECT_EQ(scan.words[9], 10);
  // Nobody allowed the first one to begin early; of what stands behind it, that
  // is for the image to say.
  EXPECT_TRUE(maps.attributes.empty());
  ASSERT_EQ(scan.attributes.size(), 1u);
  EXPECT_EQ(scan.attributes[0].id, 6);
  EXPECT_EQ(gdnrt_binding_allow_dependent_launch(binding, 1, &error), GDNRT_OK);
  fakeCuda().launches.clear();
  EXPECT_EQ(launch(), "OK");
  ASSERT_EQ(fakeCuda().launches.size(), 2u);
  EXPECT_EQ(fakeCuda().launches[0].attributes.size(), 1u);
  // With too little memory for the region the other variant runs.
  EXPECT_EQ(give(memory, 128), "OK");
  EXPECT_EQ(gdnrt_binding_variant(binding), 1u);
  EXPECT_EQ(launch(), "OK");
  EXPECT_EQ(seen().kernel, "scale_kernel");
  EXPECT_EQ(seen().words[8], wordOf(memory));
}

TEST_F(CudaWorkspace, CountersThatGrowIntoARegion) {
  fakeCuda().parameterBytes = (kScaleWords + 1) * sizeof(int64_t);
  make(withStages(), 1);
  EXPECT_EQ(give(memory, 4096), "OK");
  Array x(address(0x1000), DType::f32, {200});
  Array out(address(uintptr_t{1} << 44), DType::f32, {200});
  gdnrt_arg args[] = {x, out};
  size_t params[] = {0, 1};
  ASSERT_EQ(gdnrt_binding_rebind(binding, params, args, 2, &error), GDNRT_OK);
  EXPECT_EQ(launch(), "INVALID_ARGUMENT: scale: expected a workspace with 1600 "
                      "bytes of counters, got 8; give it again after its sizes "
                      "have grown");
  EXPECT_EQ(give(memory, 4096), "OK");
  EXPECT_EQ(launch(), "OK");
}

TEST_F(CudaWorkspace, IsZeroedWhenItIsThere) {
  auto gpu = makeDevice();
  gdnrt_workspace_size size = gdnrt_workspace_size_default();
  size.counter_bytes = 64;
  size.total_bytes = 128;
  fakeCuda().calls.clear();
  auto workspace = Workspace::make(gpu, size);
  ASSERT_TRUE(workspace.isOk()) << workspace.status().toString();
  // Whatever stream uses it first.
  const auto &calls = fakeCuda().calls;
  auto last = [&](const char *name) {
    return std::find(calls.rbegin(), calls.rend(), name) - calls.rbegin();
  };
  EXPECT_EQ(fakeCuda().count("cuMemsetD8Async"), 1);
  EXPECT_LT(last("cuStreamSynchronize"), last("cuMemsetD8Async"));
  // No zeros, no workspace; its memory is free again.
  for (const char *call : {"cuMemsetD8Async", "cuStreamSynchronize"}) {
    fakeCuda().failures = {{call, 700}};
    Status status = Workspace::make(gpu, size).status();
    EXPECT_EQ(status.code(), StatusCode::deviceError);
    EXPECT_NE(status.message().find(call), std::string::npos)
        << status.toString();
    EXPECT_EQ(fakeCuda().allocations, 1) << call;
  }
}
