// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A rank that has no memory for a plan, at whichever place it misses it: the
// others hear of it at once, and all can make another plan.
#include "context_ranks.h"
#include "failing_allocator.h"

using namespace gdnrt::test;

using ContextMemory = ContextRanks;

// Segments of one rank that no memory has.
TEST_F(ContextMemory, MoreSegmentsThanMemory) {
  constexpr int32_t segments = 1 << 20;
  constexpr int64_t tokens = int64_t{64} * segments;
  static const int64_t starts[] = {0, tokens, tokens}, none[] = {0, 0, 0};
  askForPlans([&](int rank, auto &options) {
    options.num_heads = 1 << 18;
    options.cu_checkpoints = nullptr;
    options.num_tokens = rank == 0 ? 0 : tokens;
    options.starts = rank == 0 ? none : starts;
    options.num_segments = segments;
  });
  EXPECT_EQ(ranks[1].status, GDNRT_OUT_OF_MEMORY);
  EXPECT_STREQ(ranks[1].error.message,
               "OUT_OF_MEMORY: context plan: no memory for 1048576 segments of "
               "262144 heads of 16 x 16");
  EXPECT_EQ(ranks[0].status, GDNRT_OUT_OF_MEMORY);
  EXPECT_STREQ(ranks[0].error.message,
               "OUT_OF_MEMORY: context plan: expected a plan on all ranks, got "
               "OUT_OF_MEMORY on rank 1");
  for (const Rank &rank : ranks)
    EXPECT_EQ(rank.plan, nullptr);
  makePlans(twoRanks(), 0);
}

// Each allocation of a rank in turn, and all behind it.
TEST_F(ContextMemory, EachAllocationMayFail) {
  if (!failsAllocations())
    GTEST_SKIP() << "the sanitizer has its own operator new";
  const ContextCase drawn = twoRanks();
  makeRanks(drawn);
  for (bool isOnce : {true, false}) {
    int64_t successes = 0;
    for (bool hasFailed = true; hasFailed; ++successes) {
      onRanks([&](int rank) {
        const gdnrt_context_options options = optionsOf(drawn, rank);
        auto make = [&] {
          ranks[rank].status = gdnrt_context_plan_create(
              contexts[rank], &options, &ranks[rank].plan, &ranks[rank].error);
        };
        if (rank == 0)
          return make();
        const FailingAllocations failing(successes, isOnce);
        make();
        hasFailed = failing.hasFailed();
      });
      const gdnrt_status expected = hasFailed ? GDNRT_OUT_OF_MEMORY : GDNRT_OK;
      for (Rank &rank : ranks) {
        ASSERT_EQ(rank.status, expected)
            << successes << ": " << rank.error.message;
        ASSERT_EQ(rank.plan == nullptr, hasFailed) << successes;
        gdnrt_context_plan_destroy(rank.plan);
        rank.plan = nullptr;
      }
    }
    EXPECT_GT(successes, 20);
  }
  // The exchange is as good as before.
  makePlans(drawn, 0);
  run(drawn);
  check(drawn, 0);
}

TEST_F(ContextMemory, ARankWithoutAPlaceForThePlan) {
  const ContextCase drawn = twoRanks();
  makeRanks(drawn);
  onRanks([&](int rank) {
    const gdnrt_context_options options = optionsOf(drawn, rank);
    ranks[rank].status = gdnrt_context_plan_create(
        contexts[rank], &options, rank == 0 ? &ranks[rank].plan : nullptr,
        &ranks[rank].error);
  });
  EXPECT_STREQ(ranks[1].error.message,
               "INVALID_ARGUMENT: plan: expected a pointer, got null");
  EXPECT_STREQ(ranks[0].error.message,
               "INVALID_ARGUMENT: context plan: expected arguments that go "
               "together on all ranks, got others on rank 1");
}
