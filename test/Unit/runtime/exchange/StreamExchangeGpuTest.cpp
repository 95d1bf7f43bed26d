// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gathers of ranks that are streams of one GPU, or of the driver that runs PTX.
#include "device_graph.h"

#include "gdn-c/exchange.h"
#include "gdn-c/runtime.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

TEST(StreamExchangeGpu, RanksGetWhatAllGave) {
  gdnrt_device *device = nullptr;
  gdnrt_error error;
  const gdnrt_status status =
      gdnrt_device_create_cuda(nullptr, &device, &error);
  if (status == GDNRT_UNSUPPORTED)
    GTEST_SKIP() << error.message;
  ASSERT_EQ(status, GDNRT_OK) << error.message;
  constexpr int kRanks = 3, kCount = 5000;
  gdnrt_exchange *three[kRanks] = {};
  std::vector<std::unique_ptr<gdnrt::DeviceGraph>> streams;
  for (int rank = 0; rank < kRanks; ++rank)
    streams.push_back(std::make_unique<gdnrt::DeviceGraph>(0));
  ASSERT_EQ(
      gdnrt_exchange_create_streams(device, kRanks, 60000, three, nullptr),
      GDNRT_OK);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      void *stream = streams[rank]->stream(), *memory = nullptr;
      constexpr size_t bytes = kCount * sizeof(int32_t);
      ASSERT_EQ(
          gdnrt_device_allocate(device, (kRanks + 1) * bytes, &memory, nullptr),
          GDNRT_OK);
      char *own = static_cast<char *>(memory), *all = own + bytes;
      std::vector<int32_t> values(kCount), got(kRanks * kCount);
      for (int turn = 0; turn < 20; ++turn) {
        std::fill(values.begin(), values.end(), 100 * rank + turn);
        EXPECT_EQ(
            gdnrt_device_write(device, own, values.data(), bytes, nullptr),
            GDNRT_OK);
        EXPECT_EQ(gdnrt_exchange_all_gather(three[rank], own, all, bytes,
                                            stream, nullptr),
                  GDNRT_OK);
        EXPECT_EQ(gdnrt_exchange_wait(three[rank], stream, nullptr), GDNRT_OK);
        EXPECT_EQ(
            gdnrt_device_read(device, got.data(), all, kRanks * bytes, nullptr),
            GDNRT_OK);
        for (int i = 0; i < kRanks * kCount; ++i)
          ASSERT_EQ(got[i], 100 * (i / kCount) + turn);
      }
      EXPECT_EQ(gdnrt_device_free(device, memory, nullptr), GDNRT_OK);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (gdnrt_exchange *exchange : three)
    gdnrt_exchange_destroy(exchange);
  streams.clear();
  gdnrt_device_destroy(device);
}
