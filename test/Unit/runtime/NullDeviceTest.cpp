// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The device that runs nothing: it takes any code, refuses what others refuse,
// and leaves memory alone.

#include "gdn-c/runtime.h"
#include "test_image.h"

#include <gtest/gtest.h>

using namespace gdnrt::test;

namespace {

class NullDevice : public ::testing::Test {
protected:
  void SetUp() override {
    bytes = testImage().build();
    ASSERT_EQ(
        gdnrt_image_load_memory(bytes.data(), bytes.size(), &image, &error),
        GDNRT_OK);
    ASSERT_EQ(gdnrt_device_create_null(&device, &error), GDNRT_OK);
  }
  void TearDown() override {
    gdnrt_kernel_destroy(kernel);
    gdnrt_device_destroy(device);
    gdnrt_image_destroy(image);
  }
  Bytes bytes;
  gdnrt_error error = {};
  gdnrt_image *image = nullptr;
  gdnrt_device *device = nullptr;
  gdnrt_kernel *kernel = nullptr;
};

} // namespace

TEST_F(NullDevice, RunsNothing) {
  gdnrt_device_info info = gdnrt_device_info_default();
  ASSERT_EQ(gdnrt_device_describe(device, &info, &error), GDNRT_OK);
  EXPECT_STREQ(info.kind, "null");
  ASSERT_EQ(gdnrt_kernel_create(device, image, "count", &kernel, &error),
            GDNRT_OK)
      << error.message;
  int64_t counts[3] = {1, 2, 3}, size = 3;
  gdnrt_arg arg = {counts, GDNRT_I64, 1, &size, nullptr, 0};
  gdnrt_binding *binding = nullptr;
  ASSERT_EQ(gdnrt_kernel_bind(kernel, &arg, 1, &binding, &error), GDNRT_OK);
  int stream = 0;
  EXPECT_EQ(gdnrt_launch(binding, &stream, &error), GDNRT_OK);
  EXPECT_EQ(gdnrt_device_synchronize(device, &stream, &error), GDNRT_OK);
  EXPECT_EQ(counts[0] + counts[1] + counts[2], 6);
  // What is bound is checked as everywhere.
  arg.dtype = GDNRT_F32;
  size_t param = 0;
  EXPECT_EQ(gdnrt_binding_rebind(binding, &param, &arg, 1, &error),
            GDNRT_INVALID_ARGUMENT);
  gdnrt_binding_destroy(binding);
}

TEST_F(NullDevice, HasMemory) {
  void *data = nullptr;
  int32_t number = 7, found = 0;
  ASSERT_EQ(gdnrt_device_allocate(device, 4, &data, &error), GDNRT_OK);
  ASSERT_EQ(gdnrt_device_write(device, data, &number, 4, &error), GDNRT_OK);
  ASSERT_EQ(gdnrt_device_read(device, &found, data, 4, &error), GDNRT_OK);
  EXPECT_EQ(found, 7);
  EXPECT_EQ(gdnrt_device_free(device, data, &error), GDNRT_OK);
}

TEST_F(NullDevice, Refuses) {
  EXPECT_EQ(gdnrt_device_create_null(nullptr, &error), GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(
      gdnrt_kernel_create_from_code(device, image, "count", 9, &kernel, &error),
      GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "INVALID_ARGUMENT: count: code index 9 is past the 1 codes");
}
