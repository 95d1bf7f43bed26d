// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The slots of a sequence that is stored are freed at once, so what the pool
// does with them next has to wait for the copy.

#include "host_states.h"

#include "device_array.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

using namespace gdnrt::traces;

static gdnrt_host_tier *makeTier(gdnrt_state_pool *pool,
                                 const gdnrt_host_tier_options &options) {
  gdnrt_error error;
  gdnrt_host_tier *tier = nullptr;
  check(gdnrt_host_tier_create(pool, &options, &tier, &error), error);
  return tier;
}

HostStates::HostStates(const Pools &pools, const Trace &trace)
    : pools_(pools), trace_(trace) {
  gdnrt_host_tier_options options = gdnrt_host_tier_options_default();
  options.num_slots = 2 + trace.hostCopies;
  options.format = format();
  tier_.reset(makeTier(pools.states(), options));
}

int32_t HostStates::format() const {
  return pools_.mayRound() ? trace_.hostFormat : GDNRT_HOST_AS_POOL;
}

double HostStates::error() const {
  static constexpr double errors[] = {0, 0x1p-8, 0x1p-11, 1e-4, 5e-3};
  return errors[format()];
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

/// A file in memory.
struct File {
  std::string bytes;
  size_t read = 0;

  gdnrt_byte_writer writer() {
    return {[](void *user, const void *data, uint64_t count) -> int32_t {
              static_cast<File *>(user)->bytes.append(
                  static_cast<const char *>(data), count);
              return 0;
            },
            this};
  }
  gdnrt_byte_reader reader() {
    return {[](void *user, void *data, uint64_t count) -> int64_t {
              File &from = *static_cast<File *>(user);
              const size_t some =
                  std::min<size_t>(count, from.bytes.size() - from.read);
              std::memcpy(data, from.bytes.data() + from.read, some);
              from.read += some;
              return static_cast<int64_t>(some);
            },
            this};
  }
};

} // namespace

static void writeTo(File &file, gdnrt_host_tier *tier, int32_t host) {
  gdnrt_error error;
  const gdnrt_byte_writer writer = file.writer();
  const gdnrt_state_tags tags = gdnrt_state_tags_default();
  check(gdnrt_host_tier_write(tier, host, &tags, &writer, &error), error);
}

static void readFrom(std::vector<File> &files, gdnrt_host_tier *tier,
                     int32_t host) {
  gdnrt_error error;
  std::vector<gdnrt_byte_reader> readers;
  for (File &file : files) {
    file.read = 0;
    readers.push_back(file.reader());
  }
  const gdnrt_state_tags tags = gdnrt_state_tags_default();
  check(gdnrt_host_tier_read(tier, host, readers.data(), readers.size(), &tags,
                             nullptr, &error),
        error);
}

void HostStates::passThroughFile(int32_t host) {
  std::vector<File> files(1);
  writeTo(files[0], tier_.get(), host);
  readFrom(files, tier_.get(), host);
}

bool HostStates::passThroughRanks(int32_t host, int64_t ranks) {
  gdnrt_error error;
  std::vector<File> whole(1), parts;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const Pools::Pool pool = pools_.makeOfRank(trace_, ranks);
    if (!pool)
      return false;
    if (rank == 0)
      writeTo(whole[0], tier_.get(), host);
    gdnrt_host_tier_options options = gdnrt_host_tier_options_default();
    options.num_slots = 1;
    options.format = format();
    options.tp_size = ranks;
    options.tp_rank = rank;
    options.total_key_heads = pools_.sizes().keyHeads;
    options.total_value_heads = pools_.sizes().valueHeads;
    const Tier tier(makeTier(pool.get(), options));
    int32_t at = 0, slot = 0, taken = 0;
    check(gdnrt_host_tier_allocate(tier.get(), 1, &at, &taken, &error), error);
    readFrom(whole, tier.get(), at);
    // To the device of the rank, and from there.
    check(gdnrt_host_tier_swap_in(tier.get(), &at, 1, nullptr, &slot, &taken,
                                  &error),
          error);
    check(gdnrt_host_tier_swap_out(tier.get(), &slot, 1, nullptr, &at, &taken,
                                   &error),
          error);
    writeTo(parts.emplace_back(), tier.get(), at);
  }
  readFrom(parts, tier_.get(), host);
  return true;
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
