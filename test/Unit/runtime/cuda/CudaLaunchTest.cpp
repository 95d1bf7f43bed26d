// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a launch tells the driver: grid, attributes, words, stream and context;
// and what it never does.

#include "cuda_launch_test.h"

#include "gdnrt/cuda_kernel.h"

using namespace gdnrt;
using namespace gdnrt::test;

using CudaLaunch = CudaLaunchTest;

TEST_F(CudaLaunch, GridWordsAndStream) {
  make([](fb::CodeT &code) { launchOf(code).shared_bytes = 4096; }, 300);
  int stream;
  ASSERT_EQ(launch(&stream), "OK");
  const cuda::LaunchConfig &config = seen().config;
  EXPECT_EQ(seen().kernel, "scale_kernel");
  EXPECT_EQ(config.gridX, 300u);
  EXPECT_EQ(config.gridY, 1u);
  EXPECT_EQ(config.gridZ, 1u);
  EXPECT_EQ(config.blockX, 128u);
  EXPECT_EQ(config.blockY, 1u);
  EXPECT_EQ(config.sharedBytes, 4096u);
  EXPECT_EQ(static_cast<void *>(config.stream), &stream);
  EXPECT_TRUE(seen().attributes.empty());
  EXPECT_EQ(seen().words,
            (std::vector<int64_t>{0x1000, 300, 2, int64_t{1} << 44, 300, 1, 300,
                                  0, 300}));
}

TEST_F(CudaLaunch, OnlyLaunches) {
  make([](fb::CodeT &) {}, 10);
  ASSERT_EQ(launch(), "OK");
  EXPECT_EQ(fakeCuda().calls,
            (std::vector<std::string>{"cuCtxGetCurrent", "cuCtxPushCurrent",
                                      "cuLaunchKernelEx", "cuCtxPopCurrent"}));
  EXPECT_NE(seen().context, nullptr);
  EXPECT_EQ(fakeCurrentContext(), nullptr);
}

TEST_F(CudaLaunch, NoUnits) {
  make([](fb::CodeT &) {}, 0);
  ASSERT_EQ(launch(), "OK");
  EXPECT_TRUE(fakeCuda().calls.empty());
}

TEST_F(CudaLaunch, Clusters) {
  make([](fb::CodeT &code) { launchOf(code).cluster = 4; }, 8);
  ASSERT_EQ(launch(), "OK");
  EXPECT_EQ(seen().config.gridX, 8u);
  ASSERT_EQ(seen().attributes.size(), 1u);
  EXPECT_EQ(seen().attributes[0].id, 4);
  EXPECT_EQ(seen().attributes[0].value.cluster.x, 4u);
  EXPECT_EQ(seen().attributes[0].value.cluster.y, 1u);
  EXPECT_EQ(seen().attributes[0].value.cluster.z, 1u);
  // Rounded up: the words tell the kernel where the units end.
  bind(9);
  ASSERT_EQ(launch(), "OK");
  EXPECT_EQ(seen().config.gridX, 12u);
  EXPECT_EQ(seen().words.back(), 9);
}

TEST_F(CudaLaunch, PersistentBlocks) {
  make([](fb::CodeT &code) { launchOf(code).blocks_per_sm = 2; }, 1000);
  ASSERT_EQ(launch(), "OK");
  EXPECT_EQ(seen().config.gridX, 264u);
  EXPECT_EQ(seen().words.back(), 1000);
  bind(100);
  ASSERT_EQ(launch(), "OK");
  EXPECT_EQ(seen().config.gridX, 100u);
}

TEST_F(CudaLaunch, DependentWhereBothSidesAllowIt) {
  auto isDependent = [&] {
    EXPECT_EQ(launch(), "OK");
    if (seen().attributes.empty())
      return false;
    EXPECT_EQ(seen().attributes.size(), 1u);
    EXPECT_EQ(seen().attributes[0].id, 6);
    EXPECT_EQ(seen().attributes[0].value.allowed, 1);
    return true;
  };
  auto allow = [&](int32_t allowed) {
    EXPECT_EQ(gdnrt_binding_allow_dependent_launch(binding, allowed, &error),
              GDNRT_OK);
  };
  make([](fb::CodeT &) {}, 10);
  allow(1);
  EXPECT_FALSE(isDependent()); // the kernel does not wait by itself
  make([](fb::CodeT &code) { launchOf(code).dependent = true; }, 10);
  EXPECT_FALSE(isDependent()); // nobody allowed it
  allow(1);
  EXPECT_TRUE(isDependent());
  allow(0);
  EXPECT_FALSE(isDependent());
}

TEST_F(CudaLaunch, Errors) {
  make([](fb::CodeT &) {}, 10);
  fakeCuda().failures = {{"cuLaunchKernelEx", 1}};
  EXPECT_EQ(launch(), "DEVICE_ERROR: scale: scale_kernel: cuLaunchKernelEx: "
                      "CUDA_ERROR_INVALID_VALUE (1): invalid argument");
  fakeCuda().failures = {{"cuCtxPushCurrent", 1}};
  EXPECT_EQ(launch(), "DEVICE_ERROR: cuda: cuCtxPushCurrent: "
                      "CUDA_ERROR_INVALID_VALUE (1): invalid argument");
  fakeCuda().failures.clear();
  bind(int64_t{1} << 31);
  EXPECT_EQ(launch(), "INVALID_ARGUMENT: scale: scale_kernel: expected at most "
                      "2147483631 units, got 2147483648");
  EXPECT_EQ(fakeCurrentContext(), nullptr);
}

TEST_F(CudaLaunch, AlignmentIsChecked) {
  make([](fb::CodeT &code) { code.alignments = {16, 0}; }, 10);
  Array x(address(0x1008), DType::f32, {10});
  gdnrt_arg arg = x;
  size_t index = 0;
  EXPECT_EQ(gdnrt_binding_rebind(binding, &index, &arg, 1, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "INVALID_ARGUMENT: x: expected data aligned to 16 bytes, got an "
               "address 8 past a multiple");
}

TEST_F(CudaLaunch, DebugChecksReadSlotsFromTheDevice) {
  fakeCuda().parameterBytes = kSlotsWords * sizeof(int64_t);
  bytes = slotsImage("scale").build();
  device = makeHandle(/*debugChecks=*/true);
  ASSERT_EQ(gdnrt_image_load_memory(bytes.data(), bytes.size(), &image, &error),
            GDNRT_OK);
  ASSERT_EQ(gdnrt_kernel_create(device, image, "scale", &kernel, &error),
            GDNRT_OK)
      << error.message;
  std::vector<int32_t> ids = {-1, 5, 0, 9, 2};
  void *slots = nullptr;
  ASSERT_EQ(gdnrt_device_allocate(device, 20, &slots, &error), GDNRT_OK);
  auto launchWith = [&](const std::vector<int32_t> &values) {
    EXPECT_EQ(gdnrt_device_write(device, slots, values.data(), 20, &error),
              GDNRT_OK);
    return launch();
  };
  // Backwards, as strides may be: the address is that of the last id.
  Array slotArray(static_cast<int32_t *>(slots) + 4, DType::i32, {5}, {-1});
  Array pool(address(uintptr_t{1} << 44), DType::f32, {8});
  gdnrt_arg args[] = {slotArray, pool};
  ASSERT_EQ(gdnrt_kernel_bind(kernel, args, 2, &binding, &error), GDNRT_OK)
      << error.message;
  EXPECT_EQ(launchWith(ids), "OK");
  EXPECT_EQ(fakeCuda().count("cuMemcpyDtoHAsync"), 1);
  gdnrt_slot_report report = gdnrt_slot_report_default();
  ASSERT_EQ(gdnrt_binding_slot_report(binding, &report, &error), GDNRT_OK);
  EXPECT_EQ(report.live, 2);
  EXPECT_EQ(report.skipped_negative, 1);
  EXPECT_EQ(report.skipped_null, 1);
  EXPECT_EQ(report.skipped_past_end, 1);
  EXPECT_EQ(launchWith({3, 1, 2, 3, 4}),
            "INVALID_ARGUMENT: slots: rows 1 and 4 both write slot 3 of "
            "state_pool");
  EXPECT_TRUE(fakeCuda().launches.empty());
  fakeCuda().failures = {{"cuMemcpyDtoHAsync", 1}};
  EXPECT_EQ(launch(), "DEVICE_ERROR: read: cuMemcpyDtoHAsync: "
                      "CUDA_ERROR_INVALID_VALUE (1): invalid argument");
  fakeCuda().failures.clear();
  EXPECT_EQ(gdnrt_device_free(device, slots, &error), GDNRT_OK);
}
