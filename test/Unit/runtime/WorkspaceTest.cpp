// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Workspaces in memory of the caller's: what is written to it, and what memory
// is refused. Launches in one are in the conformance suite.

#include "gdn-c/serving.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace {

class WrappedWorkspace : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(gdnrt_device_create_cpu(nullptr, &device, &error), GDNRT_OK);
    std::memset(memory, 0xff, sizeof(memory));
    size.counter_bytes = 64;
    size.total_bytes = 128;
  }
  void TearDown() override { gdnrt_device_destroy(device); }
  gdnrt_status wrap(void *data) {
    gdnrt_workspace *made = nullptr;
    gdnrt_status status =
        gdnrt_workspace_wrap(device, &size, data, nullptr, &made, &error);
    EXPECT_EQ(made != nullptr, status == GDNRT_OK);
    gdnrt_workspace_destroy(made);
    return status;
  }

  gdnrt_device *device = nullptr;
  gdnrt_error error = {};
  gdnrt_workspace_size size = gdnrt_workspace_size_default();
  alignas(64) unsigned char memory[256];
};

} // namespace

TEST_F(WrappedWorkspace, OnlyCountersAreWritten) {
  ASSERT_EQ(wrap(memory + 64), GDNRT_OK) << error.message;
  for (size_t i = 0; i < sizeof(memory); ++i)
    EXPECT_EQ(memory[i], i >= 64 && i < 128 ? 0 : 0xff) << i;
  // Nothing of it, and nothing at all.
  size.counter_bytes = 0;
  EXPECT_EQ(wrap(memory + 128), GDNRT_OK);
  EXPECT_EQ(memory[128], 0xff);
  size.total_bytes = 0;
  EXPECT_EQ(wrap(nullptr), GDNRT_OK) << error.message;
}

TEST_F(WrappedWorkspace, Refusals) {
  EXPECT_EQ(wrap(nullptr), GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "INVALID_ARGUMENT: data: expected a pointer, got null");
  EXPECT_EQ(wrap(memory + 16), GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "INVALID_ARGUMENT: workspace: expected data aligned to 64 "
               "bytes, got an address 16 past a multiple");
  size.counter_bytes = 192;
  EXPECT_EQ(wrap(memory), GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "INVALID_ARGUMENT: workspace: expected a multiple of 64 bytes "
               "of counters, at most 128, got 192");
  EXPECT_TRUE(std::all_of(memory, memory + sizeof(memory),
                          [](unsigned char byte) { return byte == 0xff; }));
  size = gdnrt_workspace_size_default();
  gdnrt_workspace *made = nullptr;
  EXPECT_EQ(
      gdnrt_workspace_wrap(nullptr, &size, memory, nullptr, &made, &error),
      GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(
      gdnrt_workspace_wrap(device, nullptr, memory, nullptr, &made, &error),
      GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(
      gdnrt_workspace_wrap(device, &size, memory, nullptr, nullptr, &error),
      GDNRT_INVALID_ARGUMENT);
}
