// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The slots of a sequence that is stored are freed at once, so what the pool
// does with them next has to wait for the copy.

#include "host_states.h"

#include "device_array.h"

#include <algorithm>
#include <cstring>
#include <string>

using namespace gdnrt::traces;

HostStates::HostStates(gdnrt_state_pool *pool) {
  gdnrt_error error;
  gdnrt_host_tier_options options = gdnrt_host_tier_options_default();
  options.num_slots = 2;
  gdnrt_host_tier *tier = nullptr;
  check(gdnrt_host_tier_create(pool, &options, &tier, &error), error);
  tier_.reset(tier);
}

int32_t HostStates::store(int32_t slot) {
  gdnrt_error error;
  int32_t host = -1, taken = 0;
  check(gdnrt_host_tier_allocate(tier_.get(), 1, &host, &taken, &error), error);
  if (!taken)
    return -1;
  check(gdnrt_host_tier_store(tier_.get(), &slot, &host, 1, nullptr, &error),
        error);
  return host;
}

namespace {
struct File {
  std::string bytes;
  size_t read = 0;
};
} // namespace

void HostStates::passThroughFile(int32_t host) {
  gdnrt_error error;
  File file;
  const gdnrt_byte_writer writer = {
      [](void *user, const void *data, uint64_t bytes) -> int32_t {
        static_cast<File *>(user)->bytes.append(static_cast<const char *>(data),
                                                bytes);
        return 0;
      },
      &file};
  const gdnrt_byte_reader reader = {
      [](void *user, void *data, uint64_t bytes) -> int64_t {
        File &from = *static_cast<File *>(user);
        const size_t some =
            std::min<size_t>(bytes, from.bytes.size() - from.read);
        std::memcpy(data, from.bytes.data() + from.read, some);
        from.read += some;
        return static_cast<int64_t>(some);
      },
      &file};
  const gdnrt_state_tags tags = gdnrt_state_tags_default();
  check(gdnrt_host_tier_write(tier_.get(), host, &tags, &writer, &error),
        error);
  check(gdnrt_host_tier_read(tier_.get(), host, &reader, 1, &tags, nullptr,
                             &error),
        error);
}

void HostStates::load(int32_t host, int32_t slot) {
  gdnrt_error error;
  check(gdnrt_host_tier_load(tier_.get(), &host, &slot, 1, nullptr, &error),
        error);
  check(gdnrt_host_tier_wait(tier_.get(), &slot, 1, nullptr, &error), error);
  free(host);
}

void HostStates::free(int32_t host) {
  gdnrt_error error;
  check(gdnrt_host_tier_free(tier_.get(), &host, 1, &error), error);
}

int64_t HostStates::numUsed() const {
  gdnrt_error error;
  gdnrt_host_tier_info info = gdnrt_host_tier_info_default();
  check(gdnrt_host_tier_describe(tier_.get(), &info, &error), error);
  return info.num_slots - info.free_slots;
}
