// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans of context parallelism: their results, and what ranks are told of
// failures.
#include "context_ranks.h"

using namespace gdnrt::test;

using ContextPlan = ContextRanks;

// Ragged batches, parts without tokens, slots that are none, states of zeros,
// checkpoints, and keys that the kernel norms; a second run of the plan has the
// same bits.
TEST_F(ContextPlan, RandomCases) {
  for (uint32_t seed = 0; seed < 400; ++seed) {
    ContextSizes sizes;
    sizes.isNormed = seed % 4 == 3;
    const ContextCase drawn = drawContextCase(seed, seed % 2 != 0, sizes);
    makeRanks(drawn);
    makePlans(drawn, static_cast<int32_t>(seed % 4));
    run(drawn);
    check(drawn, seed);
    if (HasFatalFailure())
      return;
    const std::vector<Rank> before = ranks;
    for (Rank &rank : ranks) {
      rank.pool = drawn.states;
      rank.out.assign(rank.out.size(), kNaN);
    }
    run(drawn);
    for (size_t r = 0; r < ranks.size(); ++r) {
      ASSERT_EQ(ranks[r].out, before[r].out) << "seed " << seed;
      ASSERT_EQ(ranks[r].pool, before[r].pool) << "seed " << seed;
    }
  }
}

TEST_F(ContextPlan, Sizes) {
  const ContextCase drawn = twoRanks();
  makeRanks(drawn);
  makePlans(drawn, 0);
  uint64_t memory = 0, sent = 0;
  ASSERT_EQ(gdnrt_context_plan_sizes(ranks[0].plan, &memory, &sent, nullptr),
            GDNRT_OK);
  EXPECT_EQ(sent % (contextHeads * 2 * contextDim * contextDim * sizeof(float)),
            0u);
  EXPECT_GT(sent, 0u);
  EXPECT_GT(memory, 2 * sent);
  EXPECT_EQ(gdnrt_context_plan_sizes(ranks[0].plan, nullptr, nullptr, nullptr),
            GDNRT_OK);
}

TEST_F(ContextPlan, RanksThatDiffer) {
  failsWith(
      [](int rank, auto &options) { options.num_slots += rank; },
      "INVALID_ARGUMENT: num_slots: expected 16, which rank 0 has, got 17 "
      "on rank 1");
  static const uint8_t flags[] = {1, 0}, others[] = {1, 1};
  failsWith(
      [](int rank, auto &options) {
        options.has_initial = rank == 0 ? flags : others;
      },
      "INVALID_ARGUMENT: has_initial: expected 0 of sequence 1, which rank 0 "
      "has, got 1 on rank 1");
  static const int64_t starts[] = {0, 1, 1}, tokens[] = {64},
                       places[] = {9, 10};
  failsWith(
      [](int rank, auto &options) {
        options.cu_checkpoints = starts;
        options.checkpoint_tokens = tokens;
        options.checkpoint_slots = places + rank;
      },
      "INVALID_ARGUMENT: checkpoint_slots: expected 9 of checkpoint 0, which "
      "rank 0 has, got 10 on rank 1");
  failsWith(
      [](int rank, auto &options) {
        options.cu_checkpoints = rank == 0 ? starts : nullptr;
        options.checkpoint_tokens = tokens;
        options.checkpoint_slots = places;
      },
      "INVALID_ARGUMENT: checkpoint_tokens: expected 1, which rank 0 has, got "
      "0 on rank 1");
}

// As a last state's, or as another checkpoint's.
TEST_F(ContextPlan, SlotsOfCheckpointsThatAreWrittenTwice) {
  static const int64_t starts[] = {0, 2, 2}, tokens[] = {64, 128};
  static const int64_t slots[] = {2, 3}, twice[] = {2, 9};
  failsWith(
      [](int, auto &options) {
        options.slots = options.write_slots = slots;
        options.cu_checkpoints = starts;
        options.checkpoint_tokens = tokens;
        options.checkpoint_slots = twice;
      },
      "INVALID_ARGUMENT: checkpoint_slots: expected slots that nothing else "
      "writes, got 2 twice");
}

// Sequences run in any order.
TEST_F(ContextPlan, ASlotThatAnotherSequenceBeginsWith) {
  static const int64_t slots[] = {2, 3}, next[] = {3, 4}, same[] = {2, 2};
  static const uint8_t zeros[] = {1, 0}, states[] = {1, 1};
  auto use = [](auto *read, auto *initial) {
    return [=](int, auto &options) {
      options.slots = read;
      options.write_slots = next;
      options.has_initial = initial;
      options.cu_checkpoints = nullptr;
    };
  };
  failsWith(use(slots, states),
            "INVALID_ARGUMENT: write_slots: expected slots that no other "
            "sequence begins with, got 3");
  // Who begins with zeros reads no slot, and two may read one.
  for (auto change : {use(slots, zeros), use(same, states)}) {
    askForPlans(change);
    for (Rank &rank : ranks)
      EXPECT_EQ(rank.status, GDNRT_OK) << rank.error.message;
  }
}

// Products of sizes that 64 bits cannot have.
TEST_F(ContextPlan, MoreHeadsThanMemory) {
  for (int64_t heads : {int64_t{1} << 40, (int64_t{1} << 57) + 1}) {
    askForPlans([&](int, auto &options) { options.num_heads = heads; });
    for (Rank &rank : ranks)
      EXPECT_EQ(rank.status, GDNRT_OUT_OF_MEMORY) << rank.error.message;
  }
}

TEST_F(ContextPlan, ARankThatFails) {
  auto failsAlone = [&](auto change, const char *message) {
    failsWith(
        [&](int rank, auto &options) {
          if (rank == 1)
            change(options);
        },
        message);
    EXPECT_STREQ(ranks[0].error.message,
                 "INVALID_ARGUMENT: context plan: expected arguments that go "
                 "together on all ranks, got others on rank 1");
  };
  failsAlone([](auto &options) { options.num_heads = 0; },
             "INVALID_ARGUMENT: num_heads: expected at least 1, got 0");
  failsAlone([](auto &options) { options.slots = nullptr; },
             "INVALID_ARGUMENT: slots: expected a pointer, got null");
  failsAlone([](auto &options) { options.num_segments = -1; },
             "INVALID_ARGUMENT: num_segments: expected at least 1, got -1");
  static const int64_t starts[] = {0, 5, 4};
  failsAlone(
      [](auto &options) {
        options.starts = starts;
        options.num_tokens = 9;
      },
      "INVALID_ARGUMENT: starts: expected 5 to 9 as element 2, got 4");
  static const int64_t falling[] = {0, 2, 1};
  failsAlone([](auto &options) { options.cu_checkpoints = falling; },
             "INVALID_ARGUMENT: cu_checkpoints: expected at least 2 as element "
             "2, got 1");
  static const int64_t some[] = {0, 1, 1};
  failsAlone(
      [](auto &options) {
        options.cu_checkpoints = some;
        options.checkpoint_slots = nullptr;
      },
      "INVALID_ARGUMENT: checkpoint_slots: expected a pointer, got null");
  failsAlone([](auto &options) { options.struct_size = 1; },
             "INVALID_ARGUMENT: options: expected the struct_size of "
             "gdnrt_context_options to be a multiple of 8 from 16 to 4096, got "
             "1");
  static const int64_t slots[] = {2, 3}, twice[] = {5, 5};
  failsAlone(
      [](auto &options) {
        options.slots = slots;
        options.write_slots = twice;
      },
      "INVALID_ARGUMENT: write_slots: expected each slot once, got 5 twice");
}

TEST_F(ContextPlan, AnImageWithoutTheEntries) {
  gdnrt_image *plain = nullptr;
  ASSERT_EQ(gdnrt_image_load_file(GDNRT_PLAIN_IMAGE, &plain, nullptr),
            GDNRT_OK);
  makeRanks(twoRanks());
  gdnrt_exchange *exchange = groups.begin()->second.exchanges.front();
  gdnrt_context *context = nullptr;
  EXPECT_EQ(gdnrt_context_create(device, plain, exchange, &context, nullptr),
            GDNRT_NOT_FOUND);
  gdnrt_image_destroy(plain);
  EXPECT_EQ(context, nullptr);
  EXPECT_EQ(gdnrt_context_create(device, perHead, nullptr, &context, nullptr),
            GDNRT_INVALID_ARGUMENT);
  // Threads would copy from addresses that the host cannot read.
  gdnrt_device *other = nullptr;
  ASSERT_EQ(gdnrt_device_create_null(&other, nullptr), GDNRT_OK);
  EXPECT_EQ(gdnrt_context_create(other, perHead, exchange, &context, nullptr),
            GDNRT_INVALID_ARGUMENT);
  gdnrt_device_destroy(other);
}

TEST_F(ContextPlan, ARankThatDoesNotCome) {
  const ContextCase drawn = twoRanks();
  makeRanks(drawn, /*timeout=*/50);
  const gdnrt_context_options options = optionsOf(drawn, 0);
  EXPECT_EQ(
      gdnrt_context_plan_create(contexts[0], &options, &ranks[0].plan, nullptr),
      GDNRT_IO_ERROR);
}

TEST_F(ContextPlan, ArraysOfAnotherBatch) {
  const ContextCase drawn = twoRanks();
  makeRanks(drawn);
  makePlans(drawn, 0);
  Rank &rank = ranks[0];
  auto fails = [&](auto change, const char *message) {
    gdnrt_context_args args = argsOf(drawn, 0);
    change(args);
    EXPECT_EQ(gdnrt_context_plan_run(rank.plan, &args, nullptr, &rank.error),
              GDNRT_INVALID_ARGUMENT);
    EXPECT_NE(std::string(rank.error.message).find(message), std::string::npos)
        << rank.error.message;
  };
  static const int64_t rows[] = {1, contextHeads, contextDim};
  fails([](auto &args) { args.out.sizes = rows; }, "out: expected ");
  fails([](auto &args) { args.state_pool.null_slot = 3; },
        "state_pool: expected the null slot -1, that of the plan, got 3");
  fails([](auto &args) { args.beta = gdnrt_arg(); },
        "beta: expected an array of 2 to ");
  fails([](auto &args) { args.q.dtype = GDNRT_BF16; }, "q: expected dtype f32");
  EXPECT_EQ(rank.pool, drawn.states);
  EXPECT_EQ(gdnrt_context_plan_run(nullptr, nullptr, nullptr, nullptr),
            GDNRT_INVALID_ARGUMENT);
}
