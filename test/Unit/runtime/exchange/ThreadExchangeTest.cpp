// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exchanges among threads, through the C interface.

#include "gdn-c/exchange.h"
#include "gdn-c/runtime.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace {

/// Of a device; null: of the host.
std::vector<gdnrt_exchange *> makeRanks(int size, int64_t timeout = 60000,
                                        gdnrt_device *device = nullptr) {
  std::vector<gdnrt_exchange *> ranks(size);
  gdnrt_error error;
  EXPECT_EQ(device ? gdnrt_exchange_create_streams(device, size, timeout,
                                                   ranks.data(), &error)
                   : gdnrt_exchange_create_threads(size, timeout, ranks.data(),
                                                   &error),
            GDNRT_OK);
  return ranks;
}

/// Threads with memory of the host, or of a device; here a CPU, whose streams
/// are null. test/PTX has those of a GPU.
class ThreadExchange : public ::testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    if (GetParam())
      ASSERT_EQ(gdnrt_device_create_cpu(nullptr, &device, nullptr), GDNRT_OK);
  }
  void TearDown() override { gdnrt_device_destroy(device); }
  gdnrt_device *device = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Memory, ThreadExchange, ::testing::Bool(),
                         [](const auto &kind) {
                           return kind.param ? "OfADevice" : "OfTheHost";
                         });

/// Calls `body(rank)` on a thread for each rank, and destroys the exchanges.
template <typename Body>
void onThreads(const std::vector<gdnrt_exchange *> &ranks, Body body) {
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    threads.emplace_back(body, static_cast<int>(rank));
  for (std::thread &thread : threads)
    thread.join();
  for (gdnrt_exchange *rank : ranks)
    gdnrt_exchange_destroy(rank);
}

TEST_P(ThreadExchange, RanksGetWhatAllGave) {
  for (int size : {1, 2, 5}) {
    auto ranks = makeRanks(size, 60000, device);
    onThreads(ranks, [&](int rank) {
      int32_t own = -1, all = -1;
      EXPECT_EQ(gdnrt_exchange_describe(ranks[rank], &own, &all, nullptr),
                GDNRT_OK);
      EXPECT_EQ(own, rank);
      EXPECT_EQ(all, size);
      std::mt19937 random(size);
      for (int turn = 0; turn < 500; ++turn) {
        const size_t count = random() % 64;
        std::vector<int> got(size * count, -1), expected;
        for (int other = 0; other < size; ++other)
          for (size_t i = 0; i < count; ++i)
            expected.push_back(other * 1000 + turn + static_cast<int>(i));
        const auto first = expected.begin() + rank * count;
        std::vector<int> given(first, first + count);
        const bool isInPlace = turn % 2 != 0;
        if (isInPlace)
          std::copy(given.begin(), given.end(), got.begin() + rank * count);
        gdnrt_error error;
        ASSERT_EQ(gdnrt_exchange_all_gather(
                      ranks[rank],
                      isInPlace ? got.data() + rank * count : given.data(),
                      got.data(), count * sizeof(int), nullptr, &error),
                  GDNRT_OK);
        EXPECT_EQ(got, expected);
        EXPECT_EQ(gdnrt_exchange_wait(ranks[rank], nullptr, nullptr), GDNRT_OK);
      }
    });
  }
}

TEST_P(ThreadExchange, OtherSizesAreAnErrorOnAllRanks) {
  auto ranks = makeRanks(3, 60000, device);
  onThreads(ranks, [&](int rank) {
    char send[8] = {}, receive[24];
    gdnrt_error error;
    EXPECT_EQ(gdnrt_exchange_all_gather(ranks[rank], send, receive,
                                        rank == 2 ? 4 : 8, nullptr, &error),
              GDNRT_INVALID_ARGUMENT);
    EXPECT_STREQ(error.message,
                 "INVALID_ARGUMENT: exchange: bytes: expected 8, those of rank "
                 "0, got 4 of rank 2");
  });
}

TEST_P(ThreadExchange, ARankThatDoesNotComeIsAnErrorOnTheOthers) {
  auto ranks = makeRanks(3, 50, device);
  onThreads(ranks, [&](int rank) {
    char send[8] = {}, receive[24];
    gdnrt_error error;
    if (rank == 1)
      return;
    for (int turn = 0; turn < 2; ++turn) {
      EXPECT_EQ(gdnrt_exchange_all_gather(ranks[rank], send, receive, 8,
                                          nullptr, &error),
                GDNRT_IO_ERROR);
      EXPECT_NE(strstr(error.message, "expected all ranks within 50 ms"),
                nullptr)
          << error.message;
    }
    EXPECT_EQ(gdnrt_exchange_wait(ranks[rank], nullptr, &error),
              GDNRT_IO_ERROR);
  });
}

TEST_P(ThreadExchange, AnAbortedRankIsAnErrorAtOnce) {
  auto ranks = makeRanks(2, 60000, device);
  onThreads(ranks, [&](int rank) {
    char send[8] = {}, receive[16];
    gdnrt_error error;
    if (rank == 1) {
      EXPECT_EQ(gdnrt_exchange_abort(ranks[rank], nullptr), GDNRT_OK);
      return;
    }
    EXPECT_EQ(gdnrt_exchange_all_gather(ranks[rank], send, receive, 8, nullptr,
                                        &error),
              GDNRT_IO_ERROR);
    EXPECT_STREQ(error.message, "IO_ERROR: exchange: rank 1 was aborted");
  });
}

TEST(ExchangeArguments, RefusesWhatItCannotTake) {
  gdnrt_exchange *none[1] = {nullptr};
  gdnrt_error error;
  EXPECT_EQ(gdnrt_exchange_create_threads(0, 0, none, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "INVALID_ARGUMENT: exchange: num_ranks: expected "
                              "1 or more, got 0");
  // No memory is taken for them.
  EXPECT_EQ(gdnrt_exchange_create_threads(INT32_MAX, 0, none, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "INVALID_ARGUMENT: exchange: num_ranks: expected 1 to 65536, as "
               "each is a thread, got 2147483647");
  EXPECT_EQ(gdnrt_exchange_create_threads(1, -1, none, &error),
            GDNRT_INVALID_ARGUMENT);
  // A clock of 64 bits has no nanosecond so late.
  EXPECT_EQ(gdnrt_exchange_create_threads(1, INT64_MAX, none, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "INVALID_ARGUMENT: exchange: timeout_ms: expected 1 to "
               "2147483647, got 9223372036854775807");
  EXPECT_EQ(gdnrt_exchange_create_threads(1, 0, nullptr, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(gdnrt_exchange_create_streams(nullptr, 1, 0, none, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "INVALID_ARGUMENT: device: expected a pointer, got null");
  gdnrt_device *device = nullptr;
  ASSERT_EQ(gdnrt_device_create_cpu(nullptr, &device, nullptr), GDNRT_OK);
  EXPECT_EQ(gdnrt_exchange_create_streams(device, 0, 0, none, &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(gdnrt_exchange_create_streams(device, 65537, 0, none, &error),
            GDNRT_INVALID_ARGUMENT);
  gdnrt_device_destroy(device);
  EXPECT_EQ(none[0], nullptr);
  EXPECT_EQ(gdnrt_exchange_wait(nullptr, nullptr, &error),
            GDNRT_INVALID_ARGUMENT);
  auto ranks = makeRanks(1);
  char data[8];
  EXPECT_EQ(
      gdnrt_exchange_all_gather(ranks[0], nullptr, data, 8, nullptr, &error),
      GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(gdnrt_exchange_all_gather(ranks[0], data, data, UINT64_MAX, nullptr,
                                      &error),
            GDNRT_INVALID_ARGUMENT);
  EXPECT_EQ(
      gdnrt_exchange_all_gather(ranks[0], nullptr, nullptr, 0, nullptr, &error),
      GDNRT_OK);
  gdnrt_exchange_destroy(ranks[0]);
  gdnrt_exchange_destroy(nullptr);
}

} // namespace
