// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Set-up that the tests of the CUDA device share.

#include "cuda_test.h"

using namespace gdnrt;
using namespace gdnrt::test;

fb::CodeT &gdnrt::test::addGpuCode(EntryBuilder &entry, fb::EntryT &table,
                                   const std::string &symbol,
                                   const std::string &target,
                                   fb::CodeFormat format, uint32_t blob) {
  entry.code(symbol, {"N"}, 0, {}, target, blob);
  fb::CodeT &code = *table.codes.back();
  code.format = format;
  code.variants[0]->stages[0]->launch = std::make_unique<fb::LaunchT>();
  launchOf(code).threads = 128;
  return code;
}

ImageBuilder
gdnrt::test::scaleImage(const std::function<void(fb::CodeT &)> &change) {
  ImageBuilder builder;
  EntryBuilder entry = builder.entry("scale");
  entry.tensor("x", fb::Access::read, fb::DType::f32, {"N"})
      .tensor("out", fb::Access::write, fb::DType::f32, {"N"});
  builder.blob({'c', 'u', 'b', 'i', 'n'});
  change(addGpuCode(entry, *builder.image.entries[0], "scale_kernel", "sm_90a",
                    fb::CodeFormat::cubin, 0));
  return builder;
}

ImageBuilder gdnrt::test::slotsImage(const std::string &name) {
  ImageBuilder builder;
  EntryBuilder entry = builder.entry(name);
  entry.tensor("slots", fb::Access::read, fb::DType::i32, {"N"})
      .pool("state_pool", fb::DType::f32, {"P"});
  builder.blob({1});
  addGpuCode(entry, *builder.image.entries[0], name + "_kernel", "sm_90a",
             fb::CodeFormat::cubin, 0);
  return builder;
}

void CudaTest::SetUp() {
  resetFakeCuda();
  setFakeCurrentContext(nullptr);
  fakeCuda().parameterBytes = kScaleWords * sizeof(int64_t);
}

void CudaTest::TearDown() {
  // Everything that was made is gone again, and no call left a context behind.
  EXPECT_EQ(fakeCuda().retained, 0);
  EXPECT_EQ(fakeCuda().loadedModules, 0);
  EXPECT_EQ(fakeCuda().allocations, 0);
  setFakeCurrentContext(nullptr);
}

std::shared_ptr<Device> CudaTest::makeDevice(int ordinal) {
  CudaOptions options;
  options.ordinal = ordinal;
  options.driver = GDNRT_FAKE_CUDA;
  auto device = createCudaDevice(options);
  EXPECT_TRUE(device.isOk()) << device.status().toString();
  return *device;
}

std::string CudaTest::deviceMessage(int ordinal) {
  CudaOptions options;
  options.ordinal = ordinal;
  options.driver = GDNRT_FAKE_CUDA;
  return createCudaDevice(options).status().toString();
}

std::unique_ptr<LoadedCode> CudaTest::load(const ImageBuilder &builder,
                                           std::string *message) {
  Bytes bytes = builder.build();
  auto image = Image::loadMemory(bytes.data(), bytes.size());
  EXPECT_TRUE(image.isOk()) << image.status().toString();
  auto loaded = makeDevice()->load(**image, 0);
  if (message)
    *message = loaded.status().toString();
  return loaded.isOk() ? std::move(*loaded) : nullptr;
}

std::shared_ptr<LoadedKernel>
CudaTest::loadKernel(const std::shared_ptr<Device> &device, const Image &image,
                     size_t entry, bool debugChecks) {
  auto made = std::make_shared<LoadedKernel>();
  made->device = device;
  made->entry = image.entries()[entry];
  auto code = device->load(image, entry);
  EXPECT_TRUE(code.isOk()) << code.status().toString();
  made->code = std::move(*code);
  made->debugChecks = debugChecks;
  return made;
}

gdnrt_device *CudaTest::makeHandle(bool debugChecks) {
  gdnrt_cuda_options options = gdnrt_cuda_options_default();
  options.debug_checks = debugChecks;
  options.driver = GDNRT_FAKE_CUDA;
  gdnrt_device *device = nullptr;
  gdnrt_error error;
  EXPECT_EQ(gdnrt_device_create_cuda(&options, &device, &error), GDNRT_OK)
      << error.message;
  return device;
}
