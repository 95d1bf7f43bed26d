// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks that are threads of this process, on the CPU, with plans of context
// parallelism through the C interface. Images are made by gdn-compile.
#ifndef GDN_TEST_UNIT_RUNTIME_EXCHANGE_CONTEXT_RANKS_H
#define GDN_TEST_UNIT_RUNTIME_EXCHANGE_CONTEXT_RANKS_H

#include "context_cases.h"

#include "gdn-c/context.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace gdnrt::test {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// What a rank has: its rows of the case, and a pool of its own.
struct Rank {
  std::vector<int64_t> starts;
  std::vector<float> q, k, v, logDecay, beta, out, pool;
  gdnrt_context_plan *plan = nullptr;
  gdnrt_error error = {};
  gdnrt_status status = GDNRT_OK;
};

/// Ranks of one process.
struct Group {
  std::vector<gdnrt_exchange *> exchanges;
  std::vector<gdnrt_context *> contexts;
};

class ContextRanks : public ::testing::Test {
protected:
  void SetUp() override {
    gdnrt_cpu_options options = gdnrt_cpu_options_default();
    options.num_workers = 1; // ranks are threads already
    ASSERT_EQ(gdnrt_device_create_cpu(&options, &device, nullptr), GDNRT_OK);
    ASSERT_EQ(gdnrt_image_load_file(GDNRT_CONTEXT_IMAGE, &perHead, nullptr),
              GDNRT_OK);
    ASSERT_EQ(gdnrt_image_load_file(GDNRT_CONTEXT_CHANNELS_IMAGE, &perChannel,
                                    nullptr),
              GDNRT_OK);
    ASSERT_EQ(
        gdnrt_image_load_file(GDNRT_CONTEXT_NORMED_IMAGE, &normed, nullptr),
        GDNRT_OK);
  }
  void TearDown() override {
    for (Rank &rank : ranks)
      gdnrt_context_plan_destroy(rank.plan);
    for (auto &[key, group] : groups) {
      for (gdnrt_context *context : group.contexts)
        gdnrt_context_destroy(context);
      for (gdnrt_exchange *exchange : group.exchanges)
        gdnrt_exchange_destroy(exchange);
    }
    gdnrt_image_destroy(perHead);
    gdnrt_image_destroy(perChannel);
    gdnrt_image_destroy(normed);
    gdnrt_device_destroy(device);
  }

  /// Ranks of a case, without plans.
  void makeRanks(const ContextCase &drawn, int64_t timeout = 20000);
  gdnrt_context_options optionsOf(const ContextCase &drawn, int rank) const;
  gdnrt_context_args argsOf(const ContextCase &drawn, int rank);
  /// Calls `body(number)` on a thread for each rank.
  template <typename Body> void onRanks(Body body) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      threads.emplace_back(body, static_cast<int>(rank));
    for (std::thread &thread : threads)
      thread.join();
  }
  void makePlans(const ContextCase &drawn, int32_t segments);
  void run(const ContextCase &drawn);
  void check(const ContextCase &drawn, uint32_t seed);
  /// Each of two ranks asks for a plan of options that `change(rank, options)`
  /// changed.
  template <typename Change> void askForPlans(Change change) {
    const ContextCase drawn = twoRanks();
    makeRanks(drawn);
    onRanks([&](int rank) {
      gdnrt_context_options options = optionsOf(drawn, rank);
      change(rank, options);
      ranks[rank].status = gdnrt_context_plan_create(
          contexts[rank], &options, &ranks[rank].plan, &ranks[rank].error);
    });
  }
  /// All of them fail.
  template <typename Change>
  void failsWith(Change change, const std::string &message) {
    askForPlans(change);
    EXPECT_EQ(ranks[1].status, GDNRT_INVALID_ARGUMENT);
    EXPECT_STREQ(ranks[1].error.message, message.c_str());
    EXPECT_EQ(ranks[0].status, GDNRT_INVALID_ARGUMENT);
    for (Rank &rank : ranks)
      EXPECT_EQ(rank.plan, nullptr);
  }
  static ContextCase twoRanks() {
    for (uint32_t seed = 0;; ++seed) {
      ContextCase drawn = drawContextCase(seed, false);
      if (drawn.ranks == 2 && drawn.count() == 2 && drawn.nullSlot < 0 &&
          drawn.isSlot(drawn.slots[0]) && drawn.length(0) > 64)
        return drawn;
    }
  }

  gdnrt_device *device = nullptr;
  gdnrt_image *perHead = nullptr, *perChannel = nullptr, *normed = nullptr;
  /// By number of ranks and image: loading code takes longer than a case.
  std::map<std::pair<int64_t, gdnrt_image *>, Group> groups;
  std::vector<gdnrt_context *> contexts;
  std::vector<Rank> ranks;
};

} // namespace gdnrt::test

#endif // GDN_TEST_UNIT_RUNTIME_EXCHANGE_CONTEXT_RANKS_H
