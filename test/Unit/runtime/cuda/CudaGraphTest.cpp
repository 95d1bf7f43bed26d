// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a graph was captured with lives as long as it: modules and workspaces
// whose handles are gone, on the stand-in for the driver.

#include "counting_allocator.h"
#include "cuda_launch_test.h"
#include "gdn-c/serving.h"
#include "gdnrt/cuda_device.h"
#include "gdnrt/workspace.h"

namespace {

using namespace gdnrt;
using namespace gdnrt::test;

class CudaGraph : public CudaLaunchTest {
protected:
  void SetUp() override {
    CudaLaunchTest::SetUp();
    make([](fb::CodeT &) {}, 8);
  }
  void TearDown() override {
    destroyFakeGraphs();
    CudaLaunchTest::TearDown();
  }
  /// Destroys what a graph does not know, but not the device.
  void destroyKernel() {
    gdnrt_binding_destroy(binding);
    gdnrt_kernel_destroy(kernel);
    binding = nullptr;
    kernel = nullptr;
  }
  void *stream = address(0x77);
};

} // namespace

TEST_F(CudaGraph, KeepsItsModules) {
  fakeCuda().isCapturing = true;
  ASSERT_EQ(launch(stream), "OK");
  ASSERT_EQ(fakeCuda().userObjects.size(), 1u);
  fakeCuda().isCapturing = false;
  destroyKernel();
  EXPECT_EQ(fakeCuda().loadedModules, 1);
  // Destructors call nothing of the driver.
  fakeCuda().calls.clear();
  destroyFakeGraphs();
  EXPECT_TRUE(fakeCuda().calls.empty());
  EXPECT_EQ(fakeCuda().loadedModules, 1);
  ASSERT_EQ(gdnrt_device_synchronize(device, nullptr, &error), GDNRT_OK);
  EXPECT_EQ(fakeCuda().loadedModules, 0);
}

// On a thread of the driver's no exception may leave them.
TEST_F(CudaGraph, DestructorsOfGraphsAllocateNothing) {
  if (!countsAllocations())
    GTEST_SKIP() << "the sanitizer has its own operator new";
  fakeCuda().isCapturing = true;
  for (int i = 0; i < 5; ++i)
    ASSERT_EQ(launch(stream), "OK");
  fakeCuda().isCapturing = false;
  auto objects = std::move(fakeCuda().userObjects);
  fakeCuda().userObjects.clear();
  const uint64_t before = numAllocations();
  for (auto [destroy, data] : objects)
    destroy(data);
  EXPECT_EQ(numAllocations(), before);
  ASSERT_EQ(gdnrt_device_synchronize(device, nullptr, &error), GDNRT_OK);
  destroyKernel();
  EXPECT_EQ(fakeCuda().loadedModules, 0);
}

TEST_F(CudaGraph, OutlivesItsDevice) {
  fakeCuda().isCapturing = true;
  ASSERT_EQ(launch(stream), "OK");
  fakeCuda().isCapturing = false;
  destroy();
  EXPECT_EQ(fakeCuda().loadedModules, 1);
  destroyFakeGraphs();
  // Another device, of whatever image, releases what is left.
  device = makeHandle();
  void *data = nullptr;
  ASSERT_EQ(gdnrt_device_allocate(device, 1, &data, &error), GDNRT_OK);
  EXPECT_EQ(fakeCuda().loadedModules, 0);
  ASSERT_EQ(gdnrt_device_free(device, data, &error), GDNRT_OK);
}

TEST_F(CudaGraph, NoGraphKeepsNothing) {
  ASSERT_EQ(launch(stream), "OK");
  fakeCuda().isCapturing = true; // the legacy stream never is
  ASSERT_EQ(launch(nullptr), "OK");
  EXPECT_EQ(fakeCuda().count("cuUserObjectCreate"), 0);
  fakeCuda().isCapturing = false;
  destroyKernel();
  EXPECT_EQ(fakeCuda().loadedModules, 0);
}

TEST_F(CudaGraph, WhatCannotBeKeptIsNotLaunched) {
  fakeCuda().isCapturing = true;
  for (const char *call : {"cuUserObjectCreate", "cuGraphRetainUserObject"}) {
    fakeCuda().failures = {{call, 1}};
    EXPECT_NE(launch(stream).find(std::string("scale: ") + call),
              std::string::npos)
        << error.message;
    EXPECT_TRUE(fakeCuda().launches.empty());
  }
  fakeCuda().failures.clear();
  fakeCuda().isCapturing = false;
  // Nothing of it stays.
  destroyKernel();
  ASSERT_EQ(gdnrt_device_synchronize(device, nullptr, &error), GDNRT_OK);
  EXPECT_EQ(fakeCuda().loadedModules, 0);
}

TEST_F(CudaGraph, KeepsWorkspaces) {
  CudaOptions options;
  options.driver = GDNRT_FAKE_CUDA;
  auto made = createCudaDevice(options);
  ASSERT_TRUE(made.isOk()) << made.status().toString();
  gdnrt_workspace_size size = gdnrt_workspace_size_default();
  size.total_bytes = 256;
  const int64_t before = fakeCuda().count("cuMemFree");
  {
    auto workspace = Workspace::make(*made, size);
    ASSERT_TRUE(workspace.isOk()) << workspace.status().toString();
    fakeCuda().isCapturing = true;
    ASSERT_TRUE((*made)->keepForGraph(stream, *workspace).isOk());
    fakeCuda().isCapturing = false;
  }
  EXPECT_EQ(fakeCuda().count("cuMemFree"), before);
  destroyFakeGraphs();
  EXPECT_EQ(fakeCuda().count("cuMemFree"), before);
  ASSERT_TRUE((*made)->synchronize(nullptr).isOk());
  EXPECT_EQ(fakeCuda().count("cuMemFree"), before + 1);
}
