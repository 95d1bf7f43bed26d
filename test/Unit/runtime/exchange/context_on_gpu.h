// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans of context parallelism on GPUs: ranks are threads, each with a stream.
// Tests say which devices ranks have, and how they exchange.
#ifndef GDN_TEST_UNIT_RUNTIME_EXCHANGE_CONTEXT_ON_GPU_H
#define GDN_TEST_UNIT_RUNTIME_EXCHANGE_CONTEXT_ON_GPU_H

#include "context_cases.h"
#include "device_graph.h"
#include "row_major.h"

#include "gdn-c/context.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace gdnrt::test {

/// An image, and the heads that it is for.
struct ContextKind {
  std::string name, path;
  bool perChannel = false;
  ContextSizes sizes;
};

/// What the command line says: `CASES MOST_TOKENS KIND:DIM:IMAGE ..`, with
/// heads, channels, normed-heads or normed-channels as KIND.
struct ContextRuns {
  int64_t cases = 0, mostTokens = 0;
  std::vector<ContextKind> kinds;
  /// Whether batches are small, for a machine of PTX that takes seconds a head.
  bool isSmall() const { return mostTokens < 1000; }
};
/// False if there are too few arguments.
bool readContextRuns(int count, char **arguments, ContextRuns &runs);

/// An array of a device in bf16 or f32.
struct DeviceArray {
  void *data = nullptr;
  gdnrt_dtype dtype = GDNRT_F32;
  std::vector<int64_t> sizes;

  size_t count() const {
    size_t all = 1;
    for (int64_t size : sizes)
      all *= static_cast<size_t>(size);
    return all;
  }
  gdnrt_arg arg() const { return toRowMajor(data, dtype, sizes); }
};

/// What a rank has.
struct ContextRank {
  std::vector<int64_t> starts;
  DeviceArray q, k, v, logDecay, beta, out, pool;
  gdnrt_context_plan *plan = nullptr;
  gdnrt_error error = {};
  gdnrt_status status = GDNRT_OK;
};

/// What runs gave: outputs of each rank as they lie in memory, and pools.
struct ContextBits {
  std::vector<std::vector<uint16_t>> out;
  std::vector<std::vector<float>> pools;
  bool operator==(const ContextBits &other) const;
};

class ContextOnGpu : public ::testing::Test {
protected:
  static constexpr int kMostRanks = 4;

  /// Rank r has the device r modulo their number. Skips without a GPU.
  void useDevices(int number);
  void TearDown() override;

  /// Exchanges of so many ranks.
  virtual gdnrt_status makeExchanges(std::vector<gdnrt_exchange *> &made,
                                     gdnrt_error *error) = 0;

  gdnrt_device *deviceOf(size_t rank) const {
    return devices[rank % devices.size()];
  }
  void dropRanks();
  void dropContexts();
  /// Values of bf16 lose nothing.
  void write(size_t rank, DeviceArray &array, const std::vector<float> &values);
  template <typename T>
  std::vector<T> read(size_t rank, const DeviceArray &array) {
    std::vector<T> values(array.count());
    if (!values.empty())
      EXPECT_EQ(gdnrt_device_read(deviceOf(rank), values.data(), array.data,
                                  values.size() * sizeof(T), nullptr),
                GDNRT_OK);
    return values;
  }

  /// Arrays of each rank of a case, and a context of each.
  void makeRanks(const ContextKind &kind, const ContextCase &drawn);
  gdnrt_status makePlan(const ContextCase &drawn, int rank, int32_t segments,
                        gdnrt_error *error);
  void makePlans(const ContextCase &drawn, int32_t segments);
  /// Calls `body(number, error)` on a thread for each rank, with the rank's
  /// device current; keeps what it says.
  template <typename Body> void onEachRank(Body body) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      threads.emplace_back([&, rank] {
        streams[rank]->makeCurrent();
        ranks[rank].status = body(static_cast<int>(rank), &ranks[rank].error);
      });
    for (std::thread &thread : threads)
      thread.join();
  }
  /// As onEachRank; none may fail.
  template <typename Body> void onRanks(Body body) {
    onEachRank(body);
    for (ContextRank &rank : ranks)
      ASSERT_EQ(rank.status, GDNRT_OK) << rank.error.message;
  }
  gdnrt_status launch(const ContextCase &drawn, int rank, gdnrt_error *error);
  /// Pools as they were, and outputs that nobody wrote.
  void reset(const ContextCase &drawn);
  ContextBits bits();
  /// Launches and waits, on all ranks.
  void run(const ContextCase &drawn);
  /// Beside float64, and pools beside each other.
  void check(const ContextCase &drawn, const ContextResult &want,
             const ContextBits &got);

  std::vector<gdnrt_device *> devices;
  std::vector<std::unique_ptr<DeviceGraph>> streams; // of kMostRanks
  std::vector<gdnrt_context *> contexts;             // of the ranks of now
  std::vector<gdnrt_exchange *> exchanges;
  std::vector<ContextRank> ranks;
  double worstOut = 0, worstState = 0;

private:
  std::map<std::string, gdnrt_image *> images;
  std::map<size_t, std::vector<gdnrt_exchange *>> exchangesOf;
  std::map<std::pair<std::string, size_t>, std::vector<gdnrt_context *>>
      contextsOf;
};

} // namespace gdnrt::test

#endif // GDN_TEST_UNIT_RUNTIME_EXCHANGE_CONTEXT_ON_GPU_H
