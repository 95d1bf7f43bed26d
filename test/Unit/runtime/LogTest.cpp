// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a device tells its log: what was made with it, and nothing of launches.

#include "gdn-c/serving.h"
#include "gdn-c/state_pool.h"
#include "test_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace gdnrt::test;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

namespace {

using Messages = std::vector<std::string>;

void add(void *user, gdnrt_log_level level, const char *message) {
  const char *name = level == GDNRT_LOG_WARNING ? "warning: " : "info: ";
  static_cast<Messages *>(user)->push_back(std::string(name) + message);
}

gdnrt_device *makeDevice(Messages *messages) {
  gdnrt_cpu_options options = gdnrt_cpu_options_default();
  options.num_workers = 1;
  options.log = messages ? add : nullptr;
  options.log_user = messages;
  gdnrt_device *device = nullptr;
  EXPECT_EQ(gdnrt_device_create_cpu(&options, &device, nullptr), GDNRT_OK);
  return device;
}

/// What is made with a device: a kernel, a workspace and a pool.
void makeAll(gdnrt_device *device) {
  Bytes bytes = testImage().build();
  gdnrt_image *image = nullptr;
  ASSERT_EQ(
      gdnrt_image_load_memory(bytes.data(), bytes.size(), &image, nullptr),
      GDNRT_OK);
  gdnrt_kernel *kernel = nullptr;
  EXPECT_EQ(gdnrt_kernel_create(device, image, "count", &kernel, nullptr),
            GDNRT_OK);
  gdnrt_workspace_size size = gdnrt_workspace_size_default();
  size.total_bytes = 128;
  gdnrt_workspace *workspace = nullptr;
  EXPECT_EQ(gdnrt_workspace_create(device, &size, &workspace, nullptr),
            GDNRT_OK);
  gdnrt_state_pool_options options = gdnrt_state_pool_options_default();
  options.num_layers = 1;
  options.num_requests = 2;
  options.num_key_heads = options.num_value_heads = 1;
  options.key_dim = options.value_dim = 8;
  options.conv_width = 4;
  gdnrt_state_pool *pool = nullptr;
  EXPECT_EQ(gdnrt_state_pool_create(device, &options, &pool, nullptr),
            GDNRT_OK);
  gdnrt_state_pool_destroy(pool);
  gdnrt_workspace_destroy(workspace);
  gdnrt_kernel_destroy(kernel);
  gdnrt_image_destroy(image);
}

} // namespace

TEST(Log, SaysWhatIsMade) {
  Messages messages;
  gdnrt_device *device = makeDevice(&messages);
  EXPECT_THAT(messages, ElementsAre("info: device: x86-64 CPU, 1 worker"));
  messages.clear();
  makeAll(device);
  EXPECT_THAT(
      messages,
      ElementsAre(MatchesRegex("info: count: shared object for x86-64, loaded "
                               "in [0-9]+\\.[0-9] ms"),
                  "info: workspace: 128 bytes",
                  MatchesRegex("info: state pool: 3 slots, [0-9]+ bytes")));
  gdnrt_device_destroy(device);
}

// What fails has not been made, and the status says why.
TEST(Log, NothingOfFailures) {
  Messages messages;
  gdnrt_device *device = makeDevice(&messages);
  messages.clear();
  gdnrt_workspace_size size = gdnrt_workspace_size_default();
  size.counter_bytes = 3;
  gdnrt_workspace *workspace = nullptr;
  EXPECT_EQ(gdnrt_workspace_create(device, &size, &workspace, nullptr),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_THAT(messages, IsEmpty());
  gdnrt_device_destroy(device);
}

TEST(Log, NobodyHasToTakeIt) {
  gdnrt_device *device = makeDevice(nullptr);
  makeAll(device);
  gdnrt_device_destroy(device);
}
