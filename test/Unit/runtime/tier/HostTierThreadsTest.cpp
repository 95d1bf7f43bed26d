// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads that swap sequences of one pool in and out, and write files, at the
// same time. For the thread sanitizer, and for what is lost between threads.

#include "tier_test.h"

#include <thread>

using namespace gdnrt;
using namespace gdnrt::test;

TEST(HostTierThreads, EachHasItsState) {
  StatePoolShape shape = smallShape();
  shape.numRequests = 6;
  auto pool = sharedPool(shape);
  auto tier = makeTier(pool, 6);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (uint32_t thread = 0; thread < 3; ++thread)
    threads.emplace_back([&, thread] {
      int32_t slot = 0, host = 0;
      if (!*pool->allocate(SlotKind::request, 1, &slot, true, nullptr)) {
        ++wrong;
        return;
      }
      for (uint32_t turn = 0; turn < 50; ++turn) {
        fillSlot(*pool, slot, 100 * thread + turn);
        const auto bytes = bytesOf(*pool, slot);
        if (!*tier->swapOut(&slot, 1, nullptr, &host) ||
            save(*tier, host).empty() ||
            !*tier->swapIn(&host, 1, nullptr, &slot) ||
            bytesOf(*pool, slot) != bytes)
          ++wrong;
      }
      (void)pool->free(&slot, 1, nullptr);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(tier->numFree(), 6);
  EXPECT_EQ(pool->numFree(SlotKind::request), 6);
}

namespace {

/// Calls a function when something is written or read.
struct Meddler final : ByteWriter, ByteReader {
  std::function<void()> meddle;
  const std::vector<uint8_t> *contents = nullptr;
  uint64_t position = 0;
  Status write(const void *, uint64_t) override {
    meddle();
    return {};
  }
  Result<uint64_t> read(void *data, uint64_t bytes) override {
    meddle();
    std::memcpy(data, contents->data() + position, bytes);
    position += bytes;
    return bytes;
  }
};

} // namespace

// A function of the caller may call the tier, and finds the slot busy.
TEST(HostTierThreads, BusyWithAFile) {
  auto pool = sharedPool(smallShape());
  auto tier = makeTier(pool, 2);
  const Ids slots = take(*pool, 2), hosts = takeHost(*tier, 2);
  fillSlot(*pool, slots[0], 5);
  const auto bytes = bytesOf(*pool, slots[0]);
  ASSERT_TRUE(tier->store(slots.data(), hosts.data(), 1, nullptr).isOk());
  const auto file = save(*tier, hosts[0]);
  Meddler meddler;
  std::string freed, stored, loaded;
  meddler.meddle = [&] {
    freed = tier->free(hosts.data(), 1).toString();
    stored = tier->store(&slots[1], hosts.data(), 1, nullptr).toString();
    loaded = tier->load(hosts.data(), &slots[1], 1, nullptr).toString();
  };
  ASSERT_TRUE(tier->write(hosts[0], {}, meddler).isOk());
  EXPECT_EQ(freed, "INVALID_ARGUMENT: host_tier: host slot 0 is busy: expected "
                   "no file that it is written to, got one");
  EXPECT_EQ(stored, freed);
  EXPECT_EQ(loaded, "OK");
  EXPECT_EQ(bytesOf(*pool, slots[1]), bytes);
  meddler.contents = &file;
  ByteReader *part = &meddler;
  ASSERT_EQ(tier->read(hosts[0], &part, 1, nullptr, nullptr).toString(), "OK");
  EXPECT_EQ(freed, "INVALID_ARGUMENT: host_tier: host slot 0 is busy: expected "
                   "no file that it is read from, got one");
  EXPECT_EQ(stored, freed);
  EXPECT_EQ(loaded, freed);
  EXPECT_TRUE(tier->free(hosts.data(), 2).isOk());
}

// Its owner goes; the last of the files that use it frees it.
TEST(HostTierThreads, ASlotIsLeftToItsFiles) {
  auto pool = sharedPool(smallShape());
  auto tier = makeTier(pool, 2);
  const Ids slots = take(*pool, 1), hosts = takeHost(*tier, 2);
  ASSERT_TRUE(tier->store(slots.data(), hosts.data(), 1, nullptr).isOk());
  const auto file = save(*tier, hosts[0]);
  Meddler meddler, inner;
  inner.meddle = [&] {
    tier->leave(hosts[0]);
    EXPECT_EQ(tier->numFree(), 0);
  };
  meddler.meddle = [&] {
    if (!inner.meddle)
      return;
    EXPECT_TRUE(tier->write(hosts[0], {}, inner).isOk());
    inner.meddle = nullptr;
    EXPECT_EQ(tier->numFree(), 0);
  };
  ASSERT_TRUE(tier->write(hosts[0], {}, meddler).isOk());
  EXPECT_EQ(tier->numFree(), 1);
  // The other one is read, from a file with other tags.
  meddler.contents = &file;
  meddler.meddle = [&] {
    tier->leave(hosts[1]);
    EXPECT_EQ(tier->numFree(), 1);
  };
  ByteReader *part = &meddler;
  StateTags others;
  others.numTokens = 7;
  EXPECT_FALSE(tier->read(hosts[1], &part, 1, &others, nullptr).isOk());
  EXPECT_EQ(tier->numFree(), 2);
  // Those that no file uses are free at once, and no other is.
  const Ids again = takeHost(*tier, 1);
  tier->leave(again[0]);
  tier->leave(again[0]);
  tier->leave(-1);
  tier->leave(2);
  EXPECT_EQ(tier->numFree(), 2);
}
