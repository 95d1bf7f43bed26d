// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans of context parallelism through the C interface, on the CPU: ranks are
// threads. Images are made by gdn-compile.
#include "context_cases.h"
#include "row_major.h"

#include "gdn-c/context.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <thread>

using namespace gdnrt::test;

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t stateSize = contextHeads * contextDim * contextDim;

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

class ContextPlan : public ::testing::Test {
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

void ContextPlan::makeRanks(const ContextCase &drawn, int64_t timeout) {
  for (Rank &rank : ranks)
    gdnrt_context_plan_destroy(rank.plan);
  gdnrt_image *image = drawn.sizes.isNormed ? normed
                       : drawn.perChannel   ? perChannel
                                            : perHead;
  Group &group = groups[{drawn.ranks, image}];
  if (group.contexts.empty()) {
    group.exchanges.resize(drawn.ranks);
    ASSERT_EQ(gdnrt_exchange_create_threads(static_cast<int32_t>(drawn.ranks),
                                            timeout, group.exchanges.data(),
                                            nullptr),
              GDNRT_OK);
    gdnrt_error error;
    for (gdnrt_exchange *exchange : group.exchanges) {
      gdnrt_context *context = nullptr;
      ASSERT_EQ(gdnrt_context_create(device, image, exchange, &context, &error),
                GDNRT_OK)
          << error.message;
      group.contexts.push_back(context);
    }
  }
  contexts = group.contexts;
  ranks.assign(drawn.ranks, Rank());
  for (int64_t r = 0; r < drawn.ranks; ++r) {
    Rank &rank = ranks[r];
    rank.starts = {0};
    for (int64_t n = 0; n < drawn.count(); ++n)
      rank.starts.push_back(rank.starts.back() + drawn.lengths[r][n]);
    auto take = [&](std::vector<float> &to, const std::vector<float> &from,
                    int64_t width) {
      for (int64_t row : drawn.rows(r))
        to.insert(to.end(), from.begin() + row * width,
                  from.begin() + (row + 1) * width);
    };
    take(rank.q, drawn.q, contextKeyHeads * contextDim);
    take(rank.k, drawn.k, contextKeyHeads * contextDim);
    take(rank.v, drawn.v, contextHeads * contextDim);
    take(rank.logDecay, drawn.logDecay, contextHeads * drawn.gate());
    take(rank.beta, drawn.beta, contextHeads);
    rank.out.assign(rank.v.size(), kNaN);
    rank.pool = drawn.states;
  }
}

gdnrt_context_options ContextPlan::optionsOf(const ContextCase &drawn,
                                             int rank) const {
  gdnrt_context_options options = gdnrt_context_options_default();
  options.num_heads = contextHeads;
  options.num_slots = contextSlots;
  options.num_tokens = ranks[rank].starts.back();
  options.num_sequences = drawn.count();
  options.starts = ranks[rank].starts.data();
  options.slots = drawn.slots.data();
  options.write_slots = drawn.writeSlots.data();
  options.has_initial = drawn.hasInitial.data();
  options.null_slot = drawn.nullSlot;
  options.cu_checkpoints = drawn.checkpointStarts.data();
  options.checkpoint_tokens = drawn.checkpointTokens.data();
  options.checkpoint_slots = drawn.checkpointSlots.data();
  return options;
}

gdnrt_context_args ContextPlan::argsOf(const ContextCase &drawn, int rank) {
  Rank &own = ranks[rank];
  auto arg = [](std::vector<float> &array, const std::vector<int64_t> &shape) {
    return gdnrt::toRowMajor(array.data(), GDNRT_F32, shape);
  };
  // One set for each rank: threads ask at the same time.
  static thread_local std::vector<int64_t> keys, values, gates, strengths,
      states;
  const int64_t rows = own.starts.back();
  keys = {rows, contextKeyHeads, contextDim};
  values = {rows, contextHeads, contextDim};
  strengths = gates = {rows, contextHeads};
  if (drawn.perChannel)
    gates.push_back(contextDim);
  states = {contextSlots, contextHeads, contextDim, contextDim};
  gdnrt_context_args args = gdnrt_context_args_default();
  args.q = arg(own.q, keys);
  args.k = arg(own.k, keys);
  args.v = arg(own.v, values);
  args.log_decay = arg(own.logDecay, gates);
  args.beta = arg(own.beta, strengths);
  args.state_pool = arg(own.pool, states);
  args.state_pool.null_slot = drawn.nullSlot;
  args.out = arg(own.out, values);
  return args;
}

void ContextPlan::makePlans(const ContextCase &drawn, int32_t segments) {
  onRanks([&](int rank) {
    gdnrt_context_options options = optionsOf(drawn, rank);
    options.num_segments = segments;
    ranks[rank].status = gdnrt_context_plan_create(
        contexts[rank], &options, &ranks[rank].plan, &ranks[rank].error);
  });
  for (Rank &rank : ranks)
    ASSERT_EQ(rank.status, GDNRT_OK) << rank.error.message;
}

void ContextPlan::run(const ContextCase &drawn) {
  onRanks([&](int rank) {
    const gdnrt_context_args args = argsOf(drawn, rank);
    ranks[rank].status = gdnrt_context_plan_run(ranks[rank].plan, &args,
                                                nullptr, &ranks[rank].error);
  });
  for (Rank &rank : ranks)
    ASSERT_EQ(rank.status, GDNRT_OK) << rank.error.message;
}

/// |got - want| of `size` elements from there on, relative to |want|.
double errorOf(const float *got, const double *want, int64_t size) {
  double off = 0, norm = 0;
  for (int64_t i = 0; i < size; ++i) {
    off += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(off) / std::max(std::sqrt(norm), 1e-6);
}

void ContextPlan::check(const ContextCase &drawn, uint32_t seed) {
  const ContextResult want = expectedOf(drawn);
  const int64_t width = contextHeads * contextDim;
  for (int64_t r = 0; r < drawn.ranks; ++r) {
    std::vector<double> wanted;
    for (int64_t row : drawn.rows(r))
      wanted.insert(wanted.end(), want.out.begin() + row * width,
                    want.out.begin() + (row + 1) * width);
    ASSERT_LT(errorOf(ranks[r].out.data(), wanted.data(),
                      static_cast<int64_t>(wanted.size())),
              1e-5)
        << "outputs, seed " << seed << ", rank " << r;
    ASSERT_EQ(ranks[r].pool, ranks[0].pool)
        << "seed " << seed << ", rank " << r;
  }
  for (int64_t slot = 0; slot < contextSlots; ++slot) {
    const int64_t at = slot * stateSize;
    bool isWritten = false;
    for (int64_t i = at; i < at + stateSize; ++i)
      isWritten |= want.states[i] != drawn.states[i];
    const double error =
        errorOf(ranks[0].pool.data() + at, want.states.data() + at, stateSize);
    ASSERT_TRUE(isWritten ? error < 1e-5 : error == 0)
        << "slot " << slot << ", seed " << seed << ": " << error;
  }
}

} // namespace

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
