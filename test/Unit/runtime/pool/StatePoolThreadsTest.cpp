// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Many threads on one pool: none gets a slot that another has, and each finds
// in its slots what it put there. For the thread sanitizer above all.

#include "pool_test.h"

#include <thread>

using namespace gdnrt;
using namespace gdnrt::test;

static void work(StatePool &pool, uint32_t seed, int rounds,
                 std::atomic<int> &wrong) {
  uint32_t random = seed;
  auto next = [&](uint32_t bound) {
    random = random * 1664525u + 1013904223u;
    return (random >> 16) % bound;
  };
  const auto mine = static_cast<uint8_t>(seed);
  for (int round = 0; round < rounds; ++round) {
    int32_t slots[3];
    const size_t count = 1 + next(2);
    const bool zero = next(2) != 0;
    auto taken = pool.allocate(SlotKind::request, count, slots, zero, nullptr);
    if (!taken.isOk())
      ++wrong;
    if (!taken.isOk() || !*taken)
      continue;
    for (size_t i = 0; i < count; ++i) {
      if (zero && colour(pool, slots[i]) != 0)
        ++wrong;
      paint(pool, slots[i], mine);
    }
    size_t owned = count;
    auto forked = pool.fork(slots[0], &slots[count], nullptr);
    if (!forked.isOk())
      ++wrong;
    else if (*forked)
      ++owned;
    std::this_thread::yield();
    for (size_t i = 0; i < owned; ++i)
      wrong += colour(pool, slots[i]) != mine;
    wrong += !pool.checkBatch(slots, owned).isOk();
    wrong += pool.numInUse(SlotKind::request) < static_cast<int64_t>(owned);
    wrong += !pool.free(slots, owned, nullptr).isOk();
  }
}

TEST(StatePoolThreads, NobodyGetsWhatAnotherHas) {
  for (bool debug : {false, true}) {
    auto pool = makePool(smallShape(), {debug});
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (uint32_t seed = 1; seed <= 4; ++seed)
      threads.emplace_back(
          [&, seed] { work(*pool, seed, /*rounds=*/500, wrong); });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_EQ(pool->numFree(SlotKind::request), 4);
  }
}
