// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A bound kernel on a device of the stand-in, and what its launches were.

#ifndef GDN_TEST_UNIT_RUNTIME_CUDA_CUDA_LAUNCH_TEST_H
#define GDN_TEST_UNIT_RUNTIME_CUDA_CUDA_LAUNCH_TEST_H

#include "../arrays.h"
#include "cuda_test.h"

namespace gdnrt::test {

/// A kernel "scale" through the C ABI, with N elements bound.
class CudaLaunchTest : public CudaTest {
protected:
  void make(const std::function<void(fb::CodeT &)> &change, int64_t n,
            bool debugChecks = false) {
    make(scaleImage(change), n, debugChecks);
  }
  void make(const ImageBuilder &builder, int64_t n, bool debugChecks = false) {
    destroy();
    bytes = builder.build();
    device = makeHandle(debugChecks);
    ASSERT_EQ(
        gdnrt_image_load_memory(bytes.data(), bytes.size(), &image, &error),
        GDNRT_OK)
        << error.message;
    ASSERT_EQ(gdnrt_kernel_create(device, image, "scale", &kernel, &error),
              GDNRT_OK)
        << error.message;
    bind(n);
  }
  void bind(int64_t n) {
    gdnrt_binding_destroy(binding);
    binding = nullptr;
    Array x(address(0x1000), DType::f32, {n}, {2});
    Array out(address(uintptr_t{1} << 44), DType::f32, {n});
    gdnrt_arg args[] = {x, out};
    ASSERT_EQ(gdnrt_kernel_bind(kernel, args, 2, &binding, &error), GDNRT_OK)
        << error.message;
  }
  void destroy() {
    gdnrt_binding_destroy(binding);
    gdnrt_kernel_destroy(kernel);
    gdnrt_device_destroy(device);
    gdnrt_image_destroy(image);
    binding = nullptr;
    kernel = nullptr;
    device = nullptr;
    image = nullptr;
  }
  void TearDown() override {
    destroy();
    CudaTest::TearDown();
  }
  std::string launch(void *stream = nullptr) {
    fakeCuda().launches.clear();
    fakeCuda().calls.clear();
    if (gdnrt_launch(binding, stream, &error) != GDNRT_OK)
      return error.message;
    return "OK";
  }
  /// The only launch so far.
  FakeLaunch &seen() {
    EXPECT_EQ(fakeCuda().launches.size(), 1u);
    return fakeCuda().launches.front();
  }

  Bytes bytes;
  gdnrt_error error;
  gdnrt_image *image = nullptr;
  gdnrt_device *device = nullptr;
  gdnrt_kernel *kernel = nullptr;
  gdnrt_binding *binding = nullptr;
};

} // namespace gdnrt::test

#endif // GDN_TEST_UNIT_RUNTIME_CUDA_CUDA_LAUNCH_TEST_H
