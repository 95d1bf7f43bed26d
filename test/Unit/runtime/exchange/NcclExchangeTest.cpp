// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exchanges on NCCL, of which a stand-in is loaded, through the C interface.

#include "fake_nccl.h"

#include "gdn-c/exchange.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace {

class NcclExchange : public ::testing::Test {
protected:
  void SetUp() override {
    fakeNccl.version = 22700;
    fakeNccl.asyncError = fakeNccl.gatherResult = 0;
    fakeNccl.aborted = fakeNccl.destroyed = fakeNccl.graphs = 0;
    gdnrt_cpu_options options = gdnrt_cpu_options_default();
    options.num_workers = 1;
    ASSERT_EQ(gdnrt_device_create_cpu(&options, &device, nullptr), GDNRT_OK);
    ASSERT_EQ(gdnrt_nccl_id(GDNRT_FAKE_NCCL, id, nullptr), GDNRT_OK);
  }
  void TearDown() override { gdnrt_device_destroy(device); }

  gdnrt_nccl_options optionsOf(int rank, int size, int64_t timeout = 60000) {
    gdnrt_nccl_options options = gdnrt_nccl_options_default();
    options.library = GDNRT_FAKE_NCCL;
    options.id = id;
    options.rank = rank;
    options.num_ranks = size;
    options.timeout_ms = timeout;
    return options;
  }
  /// The message of making an exchange.
  std::string messageOf(const gdnrt_nccl_options &options) {
    gdnrt_exchange *made = nullptr;
    gdnrt_error error;
    error.message[0] = 0;
    if (gdnrt_exchange_create_nccl(device, &options, &made, &error) == GDNRT_OK)
      gdnrt_exchange_destroy(made);
    return error.message;
  }

  /// Whether a communicator is aborted once its graphs are destroyed.
  bool isAbortedWithoutGraphs() {
    const bool isEarly = fakeNccl.aborted > 0;
    fakeNccl.graphs = 0;
    for (int turn = 0; fakeNccl.aborted == 0 && turn < 5000; ++turn)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return !isEarly && fakeNccl.aborted == 1;
  }

  gdnrt_device *device = nullptr;
  uint8_t id[GDNRT_NCCL_ID_BYTES];
};

/// Calls `body(rank)` on a thread for each rank.
template <typename Body> void onThreads(int size, Body body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back(body, rank);
  for (std::thread &thread : threads)
    thread.join();
}

TEST_F(NcclExchange, RanksGetWhatAllGave) {
  constexpr int size = 3;
  onThreads(size, [&](int rank) {
    gdnrt_nccl_options options = optionsOf(rank, size);
    gdnrt_exchange *exchange = nullptr;
    ASSERT_EQ(gdnrt_exchange_create_nccl(device, &options, &exchange, nullptr),
              GDNRT_OK);
    for (int turn = 0; turn < 3; ++turn) {
      // One buffer for each turn: a rank may be behind.
      std::vector<int> *got = new std::vector<int>(size, -1);
      int *given = new int(10 * turn + rank);
      ASSERT_EQ(gdnrt_exchange_all_gather(exchange, given, got->data(), 4,
                                          nullptr, nullptr),
                GDNRT_OK);
      ASSERT_EQ(gdnrt_exchange_wait(exchange, nullptr, nullptr), GDNRT_OK);
      EXPECT_EQ(*got,
                (std::vector<int>{10 * turn, 10 * turn + 1, 10 * turn + 2}));
      delete got;
      delete given;
    }
    gdnrt_exchange_destroy(exchange);
  });
  EXPECT_EQ(fakeNccl.destroyed, size);
  EXPECT_EQ(fakeNccl.aborted, 0);
}

TEST_F(NcclExchange, ARankThatDoesNotComeIsAnErrorAndAborts) {
  EXPECT_EQ(messageOf(optionsOf(0, 2, 20)),
            "IO_ERROR: exchange: rank 0 of 2: expected ncclCommInitRankConfig "
            "within 20 ms; another rank may have failed");
  EXPECT_EQ(fakeNccl.aborted, 1);
  ASSERT_EQ(gdnrt_nccl_id(GDNRT_FAKE_NCCL, id, nullptr), GDNRT_OK);
  onThreads(2, [&](int rank) {
    gdnrt_nccl_options options = optionsOf(rank, 2, 300);
    gdnrt_exchange *exchange = nullptr;
    ASSERT_EQ(gdnrt_exchange_create_nccl(device, &options, &exchange, nullptr),
              GDNRT_OK);
    gdnrt_error error;
    char send[4] = {}, receive[8];
    if (rank == 1) // comes no more
      return gdnrt_exchange_destroy(exchange);
    EXPECT_EQ(
        gdnrt_exchange_all_gather(exchange, send, receive, 4, nullptr, &error),
        GDNRT_IO_ERROR);
    EXPECT_STREQ(error.message,
                 "IO_ERROR: exchange: rank 0 of 2: expected ncclAllGather "
                 "within 300 ms; another rank may have failed");
    // Of no more use.
    EXPECT_EQ(gdnrt_exchange_wait(exchange, nullptr, nullptr), GDNRT_IO_ERROR);
    gdnrt_exchange_destroy(exchange);
  });
  EXPECT_EQ(fakeNccl.aborted, 2);
}

// NCCL aborts no communicator that a graph has kernels of.
TEST_F(NcclExchange, AFailureIsAnErrorWhileThereAreGraphs) {
  for (const bool isAborted : {false, true}) {
    fakeNccl.aborted = 0;
    ASSERT_EQ(gdnrt_nccl_id(GDNRT_FAKE_NCCL, id, nullptr), GDNRT_OK);
    gdnrt_exchange *made[2] = {};
    onThreads(2, [&](int rank) {
      const gdnrt_nccl_options options = optionsOf(rank, 2, 50);
      EXPECT_EQ(
          gdnrt_exchange_create_nccl(device, &options, &made[rank], nullptr),
          GDNRT_OK);
    });
    gdnrt_exchange_destroy(made[1]); // comes no more
    fakeNccl.graphs = 1;
    if (isAborted)
      EXPECT_EQ(gdnrt_exchange_abort(made[0], nullptr), GDNRT_OK);
    char send[4] = {}, receive[8];
    gdnrt_error error;
    EXPECT_EQ(
        gdnrt_exchange_all_gather(made[0], send, receive, 4, nullptr, &error),
        GDNRT_IO_ERROR);
    EXPECT_NE(std::string(error.message)
                  .find(isAborted ? "this rank was aborted"
                                  : "expected ncclAllGather within 50 ms"),
              std::string::npos)
        << error.message;
    EXPECT_TRUE(isAbortedWithoutGraphs());
    gdnrt_exchange_destroy(made[0]);
  }
}

TEST_F(NcclExchange, AGraphThatOutlivesAnExchangeDoesNotHoldTheHost) {
  for (const int64_t timeout : {20, 60000}) {
    fakeNccl.aborted = 0;
    ASSERT_EQ(gdnrt_nccl_id(GDNRT_FAKE_NCCL, id, nullptr), GDNRT_OK);
    const gdnrt_nccl_options options = optionsOf(0, 1, timeout);
    gdnrt_exchange *exchange = nullptr;
    ASSERT_EQ(gdnrt_exchange_create_nccl(device, &options, &exchange, nullptr),
              GDNRT_OK);
    fakeNccl.graphs = 1;
    if (timeout == 20) {
      gdnrt_exchange_destroy(exchange);
      EXPECT_TRUE(isAbortedWithoutGraphs());
      continue;
    }
    // Graphs that end in time.
    std::thread other([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      fakeNccl.graphs = 0;
    });
    gdnrt_exchange_destroy(exchange);
    other.join();
    EXPECT_EQ(fakeNccl.aborted, 0);
    EXPECT_EQ(fakeNccl.destroyed, 1);
  }
}

TEST_F(NcclExchange, WhatNcclTellsOfIsAnError) {
  gdnrt_nccl_options options = optionsOf(0, 1);
  gdnrt_exchange *exchange = nullptr;
  ASSERT_EQ(gdnrt_exchange_create_nccl(device, &options, &exchange, nullptr),
            GDNRT_OK);
  fakeNccl.gatherResult = gdnrt::nccl::kInProgress;
  fakeNccl.asyncError = 6;
  gdnrt_error error;
  char data[4];
  EXPECT_EQ(gdnrt_exchange_all_gather(exchange, data, data, 4, nullptr, &error),
            GDNRT_DEVICE_ERROR);
  EXPECT_STREQ(error.message,
               "DEVICE_ERROR: exchange: ncclAllGather: remote process exited "
               "or there was a network error (6)");
  EXPECT_EQ(fakeNccl.aborted, 1);
  gdnrt_exchange_destroy(exchange);
  EXPECT_EQ(fakeNccl.aborted, 1);
}

TEST_F(NcclExchange, ACommunicatorOfTheCallerStaysTheCallers) {
  gdnrt::nccl::Config config;
  config.blocking = 0;
  gdnrt::nccl::UniqueId unique;
  std::memcpy(unique.bytes, id, sizeof(id));
  gdnrt::nccl::Comm comm = nullptr;
  (void)ncclCommInitRankConfig(&comm, 1, unique, 0, &config);
  gdnrt_nccl_options options = optionsOf(0, 2);
  options.id = nullptr;
  options.communicator = comm;
  EXPECT_EQ(messageOf(options), "INVALID_ARGUMENT: exchange: num_ranks: "
                                "expected 1, those of the communicator, got 2");
  options.num_ranks = 1;
  gdnrt_exchange *exchange = nullptr;
  ASSERT_EQ(gdnrt_exchange_create_nccl(device, &options, &exchange, nullptr),
            GDNRT_OK);
  int given = 5, got = 0;
  EXPECT_EQ(
      gdnrt_exchange_all_gather(exchange, &given, &got, 4, nullptr, nullptr),
      GDNRT_OK);
  EXPECT_EQ(got, 5);
  EXPECT_EQ(gdnrt_exchange_abort(exchange, nullptr), GDNRT_OK);
  EXPECT_EQ(gdnrt_exchange_wait(exchange, nullptr, nullptr), GDNRT_IO_ERROR);
  gdnrt_exchange_destroy(exchange);
  EXPECT_EQ(fakeNccl.aborted + fakeNccl.destroyed, 0);
  (void)ncclCommDestroy(comm);
}

TEST_F(NcclExchange, NamesWhatIsMissing) {
  gdnrt_nccl_options options = optionsOf(0, 1);
  options.library = "libnot_there.so";
  EXPECT_EQ(messageOf(options).rfind("UNSUPPORTED: exchange: no NCCL: ", 0),
            0u);
  options.library = GDNRT_EMPTY_NCCL;
  EXPECT_NE(messageOf(options).find(
                "lacks ncclGetVersion; expected NCCL 2.18 or later"),
            std::string::npos)
      << messageOf(options);
  options = optionsOf(0, 1);
  fakeNccl.version = 21703;
  EXPECT_NE(
      messageOf(options).find("expected NCCL 2.18 or later, got version 21703"),
      std::string::npos);
  fakeNccl.version = 22700;
  EXPECT_EQ(messageOf(optionsOf(2, 2)),
            "INVALID_ARGUMENT: exchange: rank: expected 0 to 1, got 2");
  options.communicator = device;
  EXPECT_EQ(messageOf(options), "INVALID_ARGUMENT: exchange: expected a "
                                "communicator or an id, got both");
  options.communicator = nullptr;
  options.id = nullptr;
  EXPECT_EQ(messageOf(options), "INVALID_ARGUMENT: exchange: expected a "
                                "communicator or an id, got none");
}

} // namespace
