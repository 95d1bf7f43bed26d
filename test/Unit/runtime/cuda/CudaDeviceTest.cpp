// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Making a CUDA device: finding the driver, choosing a GPU, and whose context
// is used and current.

#include "cuda_test.h"

#include "gdnrt/cuda_driver.h"

using namespace gdnrt;
using namespace gdnrt::test;

using CudaDevice = CudaTest;

TEST_F(CudaDevice, Properties) {
  auto device = makeDevice(1);
  EXPECT_EQ(device->properties().kind, "cuda");
  EXPECT_EQ(device->properties().name, "Fake GPU, sm_90, 132 multiprocessors");
  EXPECT_EQ(device->properties().numWorkers, 132);
  EXPECT_FALSE(device->properties().hostReadable);
}

TEST_F(CudaDevice, NoDriver) {
  CudaOptions options;
  options.driver = "/no/such/libcuda.so.1";
  Status status = createCudaDevice(options).status();
  EXPECT_EQ(status.code(), StatusCode::unsupported);
  EXPECT_EQ(status.message().rfind("cuda: no driver: ", 0), 0u)
      << status.message();
}

TEST_F(CudaDevice, OldDriver) {
  CudaOptions options;
  options.driver = GDNRT_OLD_FAKE_CUDA;
  EXPECT_EQ(createCudaDevice(options).status().toString(),
            "UNSUPPORTED: cuda: " GDNRT_OLD_FAKE_CUDA
            " lacks cuLaunchKernelEx; expected the driver of CUDA 12.0 or "
            "later");
  fakeCuda().version = 11080;
  EXPECT_EQ(deviceMessage(), "UNSUPPORTED: cuda: expected the driver of CUDA "
                             "12.0 or later, got 11.8");
}

TEST_F(CudaDevice, NoGpu) {
  fakeCuda().deviceCount = 0;
  EXPECT_EQ(deviceMessage(), "UNSUPPORTED: cuda: the driver has no GPU");
  fakeCuda().deviceCount = 2;
  EXPECT_EQ(deviceMessage(2),
            "INVALID_ARGUMENT: ordinal: expected 0 to 1, got 2");
  EXPECT_EQ(deviceMessage(-1),
            "INVALID_ARGUMENT: ordinal: expected 0 to 1, got -1");
}

TEST_F(CudaDevice, EveryCallMayFail) {
  for (const char *call :
       {"cuDriverGetVersion", "cuInit", "cuDeviceGetCount", "cuDeviceGet",
        "cuDeviceGetName", "cuDeviceGetAttribute", "cuCtxGetCurrent",
        "cuDevicePrimaryCtxRetain"}) {
    fakeCuda().failures = {{call, 1}};
    EXPECT_EQ(deviceMessage(),
              "DEVICE_ERROR: cuda: " + std::string(call) +
                  ": CUDA_ERROR_INVALID_VALUE (1): invalid argument");
  }
  // An error that the driver cannot name.
  fakeCuda().failures = {{"cuInit", 777}};
  EXPECT_EQ(deviceMessage(), "DEVICE_ERROR: cuda: cuInit: unknown error (777): "
                             "no description");
}

TEST_F(CudaDevice, RetainsThePrimaryContext) {
  {
    auto device = makeDevice();
    EXPECT_EQ(fakeCuda().retained, 1);
    EXPECT_EQ(fakeCurrentContext(), nullptr);
  }
  EXPECT_EQ(fakeCuda().retained, 0);
}

TEST_F(CudaDevice, TakesTheCurrentContextOfItsGpu) {
  cuda::Context mine = fakeForeignContext(0);
  setFakeCurrentContext(mine);
  auto device = makeDevice();
  EXPECT_EQ(fakeCuda().retained, 0);
  // It is used also where another one is current, and that stays current.
  cuda::Context other = fakeForeignContext(1);
  setFakeCurrentContext(other);
  EXPECT_TRUE(device->synchronize(nullptr).isOk());
  EXPECT_EQ(fakeCurrentContext(), other);
  EXPECT_EQ(fakeCuda().count("cuCtxPushCurrent"), 1);
  // Where it is current already, nothing is pushed.
  setFakeCurrentContext(mine);
  EXPECT_TRUE(device->synchronize(nullptr).isOk());
  EXPECT_EQ(fakeCuda().count("cuCtxPushCurrent"), 1);
}

TEST_F(CudaDevice, LeavesTheContextOfAnotherGpuAlone) {
  cuda::Context other = fakeForeignContext(1);
  setFakeCurrentContext(other);
  auto device = makeDevice(0);
  EXPECT_EQ(fakeCuda().retained, 1);
  EXPECT_EQ(fakeCurrentContext(), other);
}

TEST_F(CudaDevice, Memory) {
  auto device = makeDevice();
  auto data = device->allocate(8);
  ASSERT_TRUE(data.isOk());
  int64_t value = 42, copy = 0;
  EXPECT_TRUE(device->write(*data, &value, 8).isOk());
  EXPECT_TRUE(device->read(&copy, *data, 8).isOk());
  EXPECT_EQ(copy, 42);
  EXPECT_TRUE(device->free(*data).isOk());
  // Nothing is a size too, and copies of it are.
  data = device->allocate(0);
  ASSERT_TRUE(data.isOk());
  EXPECT_TRUE(device->write(*data, nullptr, 0).isOk());
  EXPECT_TRUE(device->free(*data).isOk());
  fakeCuda().failures = {{"cuMemAlloc", 2}};
  EXPECT_EQ(device->allocate(100).status().toString(),
            "OUT_OF_MEMORY: 100 bytes: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY "
            "(2): out of memory");
  EXPECT_EQ(fakeCurrentContext(), nullptr);
}

TEST_F(CudaDevice, CopiesOfToolsHaveEndedWhenTheyReturn) {
  auto device = makeDevice();
  auto memory = device->allocate(64);
  ASSERT_TRUE(memory.isOk()) << memory.status().toString();
  char bytes[64] = {};
  auto last = [&] {
    const auto &calls = fakeCuda().calls;
    for (size_t i = calls.size(); i-- > 0;)
      if (calls[i].rfind("cuCtx", 0) != 0)
        return calls[i];
    return std::string();
  };
  ASSERT_TRUE(device->write(*memory, bytes, 64).isOk());
  EXPECT_EQ(last(), "cuStreamSynchronize");
  ASSERT_TRUE(device->read(bytes, *memory, 64).isOk());
  EXPECT_EQ(last(), "cuStreamSynchronize");
  fakeCuda().failures = {{"cuStreamSynchronize", 700}};
  EXPECT_EQ(device->write(*memory, bytes, 64).code(), StatusCode::deviceError);
  EXPECT_EQ(device->read(bytes, *memory, 64).code(), StatusCode::deviceError);
  fakeCuda().failures.clear();
  EXPECT_TRUE(device->free(*memory).isOk());
}

TEST_F(CudaDevice, CAbi) {
  gdnrt_device *device = nullptr;
  gdnrt_error error;
  gdnrt_cuda_options options = gdnrt_cuda_options_default();
  options.struct_size = 4;
  EXPECT_EQ(gdnrt_device_create_cuda(&options, &device, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(
      error.message,
      "INVALID_ARGUMENT: options: expected the struct_size of "
      "gdnrt_cuda_options to be a multiple of 8 from 16 to 4096, got 4");
  device = makeHandle();
  gdnrt_device_info info = gdnrt_device_info_default();
  ASSERT_EQ(gdnrt_device_describe(device, &info, &error), GDNRT_OK);
  EXPECT_STREQ(info.kind, "cuda");
  EXPECT_EQ(info.num_workers, 132);
  void *data = nullptr;
  ASSERT_EQ(gdnrt_device_allocate(device, 16, &data, &error), GDNRT_OK);
  EXPECT_EQ(gdnrt_device_write(device, data, "fifteen letters", 16, &error),
            GDNRT_OK);
  char text[16];
  EXPECT_EQ(gdnrt_device_read(device, text, data, 16, &error), GDNRT_OK);
  EXPECT_STREQ(text, "fifteen letters");
  EXPECT_EQ(gdnrt_device_write(device, nullptr, text, 1, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(gdnrt_device_free(device, nullptr, &error), GDNRT_OK);
  EXPECT_EQ(gdnrt_device_free(device, data, &error), GDNRT_OK);
  gdnrt_device_destroy(device);
}
