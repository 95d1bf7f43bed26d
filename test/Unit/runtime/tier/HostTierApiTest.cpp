// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of host tiers: preemption and files, and nulls everywhere.

#include "gdn-c/host_tier.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace {

class HostTierApi : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(gdnrt_device_create_cpu(nullptr, &device, &error), GDNRT_OK);
    gdnrt_state_pool_options shape = gdnrt_state_pool_options_default();
    shape.num_layers = 2;
    shape.num_requests = 2;
    shape.num_key_heads = 1;
    shape.num_value_heads = 2;
    shape.key_dim = shape.value_dim = 4;
    shape.conv_width = 4;
    ASSERT_EQ(gdnrt_state_pool_create(device, &shape, &pool, &error), GDNRT_OK);
    options.num_slots = 2;
    ASSERT_EQ(gdnrt_host_tier_create(pool, &options, &tier, &error), GDNRT_OK)
        << error.message;
  }
  void TearDown() override {
    gdnrt_host_tier_destroy(tier);
    gdnrt_state_pool_destroy(pool);
    gdnrt_device_destroy(device);
  }
  float *state(int32_t slot) {
    gdnrt_arg view;
    EXPECT_EQ(gdnrt_state_pool_view(pool, GDNRT_POOL_STATE, 1, &view, &error),
              GDNRT_OK);
    return static_cast<float *>(view.data) + slot * view.strides[0];
  }
  int64_t numFree() {
    gdnrt_host_tier_info info = gdnrt_host_tier_info_default();
    EXPECT_EQ(gdnrt_host_tier_describe(tier, &info, &error), GDNRT_OK);
    EXPECT_EQ(info.num_slots, 2);
    EXPECT_EQ(info.slot_bytes, 2u * (2 * 16 * 4 + 16 * 3 * 4));
    EXPECT_GE(info.bytes, 2 * info.slot_bytes);
    return info.free_slots;
  }

  gdnrt_device *device = nullptr;
  gdnrt_state_pool *pool = nullptr;
  gdnrt_host_tier *tier = nullptr;
  gdnrt_host_tier_options options = gdnrt_host_tier_options_default();
  gdnrt_error error = {};
};

int32_t append(void *user, const void *data, uint64_t bytes) {
  static_cast<std::string *>(user)->append(static_cast<const char *>(data),
                                           bytes);
  return 0;
}

struct Source {
  const std::string *bytes;
  size_t position;
};

int64_t giveBytes(void *user, void *data, uint64_t bytes) {
  auto *source = static_cast<Source *>(user);
  const size_t some =
      std::min<size_t>(bytes, source->bytes->size() - source->position);
  std::memcpy(data, source->bytes->data() + source->position, some);
  source->position += some;
  return static_cast<int64_t>(some);
}

int32_t refuse(void *, const void *, uint64_t) { return 3; }
int64_t refuseToRead(void *, void *, uint64_t) { return -1; }
int64_t boast(void *, void *, uint64_t bytes) {
  return static_cast<int64_t>(bytes) + 1;
}

} // namespace

TEST_F(HostTierApi, PreemptionAndFiles) {
  int32_t slot = 0, host = -1, taken = -1, other = 0;
  ASSERT_EQ(
      gdnrt_state_pool_allocate(pool, 1, 1, nullptr, &slot, &taken, &error),
      GDNRT_OK);
  state(slot)[3] = 7;
  ASSERT_EQ(
      gdnrt_host_tier_swap_out(tier, &slot, 1, nullptr, &host, &taken, &error),
      GDNRT_OK);
  EXPECT_EQ(taken, 1);
  EXPECT_EQ(numFree(), 1);
  gdnrt_state_tags tags = gdnrt_state_tags_default();
  tags.num_tokens = 5;
  tags.token_hash = ~uint64_t{0};
  std::string file;
  const gdnrt_byte_writer writer = {append, &file};
  ASSERT_EQ(gdnrt_host_tier_write(tier, host, &tags, &writer, &error),
            GDNRT_OK);
  int32_t second = -1;
  ASSERT_EQ(gdnrt_host_tier_allocate(tier, 1, &second, &taken, &error),
            GDNRT_OK);
  Source source = {&file, 0};
  const gdnrt_byte_reader reader = {giveBytes, &source};
  gdnrt_state_tags found = gdnrt_state_tags_default();
  ASSERT_EQ(
      gdnrt_host_tier_read(tier, second, &reader, 1, &tags, &found, &error),
      GDNRT_OK)
      << error.message;
  EXPECT_EQ(found.num_tokens, 5);
  EXPECT_EQ(found.token_hash, ~uint64_t{0});
  ASSERT_EQ(gdnrt_host_tier_swap_in(tier, &second, 1, nullptr, &other, &taken,
                                    &error),
            GDNRT_OK);
  EXPECT_EQ(state(other)[3], 7);
  state(other)[3] = 0;
  ASSERT_EQ(gdnrt_host_tier_load(tier, &host, &other, 1, nullptr, &error),
            GDNRT_OK);
  ASSERT_EQ(gdnrt_host_tier_wait(tier, &other, 1, nullptr, &error), GDNRT_OK);
  EXPECT_EQ(state(other)[3], 7);
  ASSERT_EQ(gdnrt_host_tier_store(tier, &other, &host, 1, nullptr, &error),
            GDNRT_OK);
  uint8_t over = 0;
  ASSERT_EQ(gdnrt_host_tier_is_over(tier, &host, 1, &over, &error), GDNRT_OK);
  EXPECT_EQ(over, 1);
  ASSERT_EQ(gdnrt_host_tier_synchronize(tier, &host, 1, &error), GDNRT_OK);
  // The pool may go first.
  gdnrt_state_pool_destroy(pool);
  pool = nullptr;
  const std::string path = (std::filesystem::temp_directory_path() /
                            ("gdn-tier-" + std::to_string(::getpid())))
                               .string();
  ASSERT_EQ(gdnrt_host_tier_write_file(tier, host, &tags, path.c_str(), &error),
            GDNRT_OK);
  const char *paths[] = {path.c_str()};
  EXPECT_EQ(gdnrt_host_tier_read_files(tier, host, paths, 1, nullptr, nullptr,
                                       &error),
            GDNRT_OK);
  std::filesystem::remove(path);
  EXPECT_EQ(gdnrt_host_tier_read_files(tier, host, paths, 1, nullptr, nullptr,
                                       &error),
            GDNRT_IO_ERROR);
  ASSERT_EQ(gdnrt_host_tier_free(tier, &host, 1, &error), GDNRT_OK);
  EXPECT_EQ(numFree(), 2);
}

TEST_F(HostTierApi, FunctionsThatFail) {
  int32_t slot = 0, host = 0, taken = 0;
  ASSERT_EQ(
      gdnrt_state_pool_allocate(pool, 1, 1, nullptr, &slot, &taken, &error),
      GDNRT_OK);
  ASSERT_EQ(
      gdnrt_host_tier_swap_out(tier, &slot, 1, nullptr, &host, &taken, &error),
      GDNRT_OK);
  const int32_t unknown = 1000;
  EXPECT_EQ(gdnrt_host_tier_synchronize(tier, &unknown, 1, &error),
            GDNRT_INVALID_ARGUMENT);
  const gdnrt_state_tags tags = gdnrt_state_tags_default();
  const gdnrt_byte_writer writer = {refuse, nullptr};
  EXPECT_EQ(gdnrt_host_tier_write(tier, host, &tags, &writer, &error),
            GDNRT_IO_ERROR);
  EXPECT_STREQ(error.message,
               "IO_ERROR: writer: expected 0 for 176 bytes, got 3");
  gdnrt_byte_reader reader = {refuseToRead, nullptr};
  EXPECT_EQ(
      gdnrt_host_tier_read(tier, host, &reader, 1, nullptr, nullptr, &error),
      GDNRT_IO_ERROR);
  EXPECT_STREQ(error.message,
               "IO_ERROR: reader: expected 0 to 176 bytes, got -1");
  reader.read = boast;
  EXPECT_EQ(
      gdnrt_host_tier_read(tier, host, &reader, 1, nullptr, nullptr, &error),
      GDNRT_IO_ERROR);
}

TEST_F(HostTierApi, NullsAndOptions) {
  int32_t ids[1] = {0}, taken = 0;
  uint8_t over = 0;
  const gdnrt_state_tags tags = gdnrt_state_tags_default();
  const gdnrt_byte_writer writer = {append, nullptr}, noWriter = {};
  const gdnrt_byte_reader noReader = {};
  const char *noPath[] = {nullptr};
  gdnrt_host_tier_info info = gdnrt_host_tier_info_default();
  gdnrt_host_tier *made = nullptr;
  const gdnrt_status statuses[] = {
      gdnrt_host_tier_create(nullptr, &options, &made, &error),
      gdnrt_host_tier_create(pool, nullptr, &made, &error),
      gdnrt_host_tier_create(pool, &options, nullptr, &error),
      gdnrt_host_tier_describe(nullptr, &info, &error),
      gdnrt_host_tier_describe(tier, nullptr, &error),
      gdnrt_host_tier_allocate(nullptr, 1, ids, &taken, &error),
      gdnrt_host_tier_allocate(tier, 1, nullptr, &taken, &error),
      gdnrt_host_tier_allocate(tier, 1, ids, nullptr, &error),
      gdnrt_host_tier_free(nullptr, ids, 1, &error),
      gdnrt_host_tier_free(tier, nullptr, 1, &error),
      gdnrt_host_tier_is_over(tier, ids, 1, nullptr, &error),
      gdnrt_host_tier_is_over(tier, nullptr, 1, &over, &error),
      gdnrt_host_tier_synchronize(nullptr, ids, 1, &error),
      gdnrt_host_tier_store(tier, nullptr, ids, 1, nullptr, &error),
      gdnrt_host_tier_store(tier, ids, nullptr, 1, nullptr, &error),
      gdnrt_host_tier_load(tier, nullptr, ids, 1, nullptr, &error),
      gdnrt_host_tier_load(tier, ids, nullptr, 1, nullptr, &error),
      gdnrt_host_tier_wait(tier, nullptr, 1, nullptr, &error),
      gdnrt_host_tier_swap_out(tier, ids, 1, nullptr, nullptr, &taken, &error),
      gdnrt_host_tier_swap_out(tier, ids, 1, nullptr, ids, nullptr, &error),
      gdnrt_host_tier_swap_in(tier, nullptr, 1, nullptr, ids, &taken, &error),
      gdnrt_host_tier_swap_in(tier, ids, 1, nullptr, ids, nullptr, &error),
      gdnrt_host_tier_write(tier, 0, nullptr, &writer, &error),
      gdnrt_host_tier_write(tier, 0, &tags, nullptr, &error),
      gdnrt_host_tier_write(tier, 0, &tags, &noWriter, &error),
      gdnrt_host_tier_read(tier, 0, nullptr, 1, nullptr, nullptr, &error),
      gdnrt_host_tier_read(tier, 0, &noReader, 1, nullptr, nullptr, &error),
      gdnrt_host_tier_write_file(tier, 0, &tags, nullptr, &error),
      gdnrt_host_tier_write_file(nullptr, 0, &tags, "x", &error),
      gdnrt_host_tier_read_files(tier, 0, nullptr, 1, nullptr, nullptr, &error),
      gdnrt_host_tier_read_files(tier, 0, noPath, 1, nullptr, nullptr, &error),
  };
  for (size_t i = 0; i < std::size(statuses); ++i)
    EXPECT_EQ(statuses[i], GDNRT_INVALID_ARGUMENT) << i;
  gdnrt_host_tier_destroy(nullptr);
  options.format = 5;
  EXPECT_EQ(gdnrt_host_tier_create(pool, &options, &made, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "INVALID_ARGUMENT: host_tier: format: expected 0 to 4, got 5");
  options.format = GDNRT_HOST_I8;
  options.total_key_heads = -1;
  EXPECT_EQ(gdnrt_host_tier_create(pool, &options, &made, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: host_tier: total_key_heads: "
                              "expected 0 or more, got -1");
  options.total_key_heads = 0;
  ASSERT_EQ(gdnrt_host_tier_create(pool, &options, &made, &error), GDNRT_OK);
  gdnrt_host_tier_destroy(made);
}
