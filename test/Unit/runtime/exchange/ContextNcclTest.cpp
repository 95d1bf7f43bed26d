// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans of context parallelism over NCCL: ranks are threads, each with a GPU of
// its own. By hand where there are two GPUs or more:
//
//   gdnrt_context_nccl_tests LIBRARY CASES MOST_TOKENS KIND:DIM:IMAGE ..
//
// LIBRARY is the path of libnccl.so.2. With one GPU both ranks have it, which
// NCCL refuses, and all is skipped; a stand-in of NCCL does not, but no graph
// has what it does.
#include "context_on_gpu.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <dlfcn.h>
#include <future>

using namespace gdnrt::test;
using gdnrt::DeviceGraph;

namespace {

std::string library;
ContextRuns runs;

using Clock = std::chrono::steady_clock;

struct DrawnAndExpected {
  uint32_t seed = 0;
  ContextCase drawn;
  ContextResult expected;
};

class ContextNccl : public ContextOnGpu {
protected:
  void SetUp() override {
    const int gpus = gdnrt::numGpus();
    if (gpus == 0)
      GTEST_SKIP() << "no GPU";
    useDevices(std::min(gpus, kMostRanks));
    size = std::max<size_t>(devices.size(), 2);
    if (!isShared())
      return;
    std::vector<gdnrt_exchange *> made(size);
    gdnrt_error error;
    if (makeExchanges(made, &error) != GDNRT_OK)
      GTEST_SKIP() << "one GPU for all ranks: " << error.message;
    for (gdnrt_exchange *exchange : made)
      gdnrt_exchange_destroy(exchange);
  }
  /// By an id: as gdnrt_exchange_create_nccl has to be called, on all ranks at
  /// the same time, with the rank's GPU current.
  gdnrt_status makeExchanges(std::vector<gdnrt_exchange *> &made,
                             gdnrt_error *error) override {
    std::array<uint8_t, GDNRT_NCCL_ID_BYTES> id;
    if (gdnrt_status status = gdnrt_nccl_id(library.c_str(), id.data(), error);
        status != GDNRT_OK)
      return status;
    std::vector<gdnrt_status> statuses(made.size());
    std::vector<gdnrt_error> errors(made.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < made.size(); ++rank)
      threads.emplace_back([&, rank] {
        streams[rank]->makeCurrent();
        gdnrt_nccl_options options = optionsOf(rank, made.size());
        options.id = id.data();
        statuses[rank] = gdnrt_exchange_create_nccl(deviceOf(rank), &options,
                                                    &made[rank], &errors[rank]);
      });
    for (std::thread &thread : threads)
      thread.join();
    for (size_t rank = 0; rank < made.size(); ++rank)
      if (statuses[rank] != GDNRT_OK) {
        *error = errors[rank];
        for (gdnrt_exchange *exchange : made)
          gdnrt_exchange_destroy(exchange);
        return statuses[rank];
      }
    return GDNRT_OK;
  }
  gdnrt_nccl_options optionsOf(size_t rank, size_t number) const {
    gdnrt_nccl_options options = gdnrt_nccl_options_default();
    options.library = library.c_str();
    options.rank = static_cast<int32_t>(rank);
    options.num_ranks = static_cast<int32_t>(number);
    options.timeout_ms = timeout;
    return options;
  }
  /// Cases of as many ranks as there are GPUs, made on threads.
  std::vector<DrawnAndExpected> draw(const ContextKind &kind, int64_t count) {
    std::vector<std::future<DrawnAndExpected>> found;
    for (uint32_t seed = 0; static_cast<int64_t>(found.size()) < count;
         ++seed) {
      // The same numbers are drawn for small heads, but for values.
      const ContextCase sizes = drawContextCase(seed, kind.perChannel);
      int64_t tokens = 0;
      for (int64_t n = 0; n < sizes.count(); ++n)
        tokens += sizes.length(n);
      if (sizes.ranks == static_cast<int64_t>(size) &&
          tokens <= runs.mostTokens)
        found.push_back(std::async(std::launch::async, [seed, &kind] {
          DrawnAndExpected made;
          made.seed = seed;
          made.drawn = drawContextCase(seed, kind.perChannel, kind.sizes);
          made.expected = expectedOf(made.drawn);
          return made;
        }));
    }
    std::vector<DrawnAndExpected> made;
    for (auto &each : found)
      made.push_back(each.get());
    return made;
  }
  /// One with tokens on every rank.
  ContextCase drawFull(const ContextKind &kind) {
    for (uint32_t seed = 0;; ++seed) {
      ContextCase drawn = drawContextCase(seed, kind.perChannel);
      bool isFull = drawn.ranks == static_cast<int64_t>(size) &&
                    drawn.count() == 1 && drawn.isSlot(drawn.slots[0]);
      int64_t tokens = 0;
      for (int64_t r = 0; isFull && r < drawn.ranks; ++r) {
        isFull = drawn.lengths[r][0] > 0;
        tokens += drawn.lengths[r][0];
      }
      if (isFull && tokens <= runs.mostTokens)
        return drawContextCase(seed, kind.perChannel, kind.sizes);
    }
  }
  /// A graph for each rank, each captured on a thread of its own.
  void capture(const ContextCase &drawn) {
    onRanks([&](int rank, gdnrt_error *error) {
      streams[rank]->beginCapture(DeviceGraph::Capture::ofThread);
      const gdnrt_status status = launch(drawn, rank, error);
      streams[rank]->endCapture();
      return status;
    });
  }
  void replay() {
    onRanks([&](int rank, gdnrt_error *error) {
      streams[rank]->launch();
      return gdnrt_exchange_wait(exchanges[rank], streams[rank]->stream(),
                                 error);
    });
  }
  /// A run of all ranks, then one whose last rank fails.
  void runThenFail(bool withGraphs) {
    const ContextKind &kind = runs.kinds.front();
    const ContextCase drawn = drawFull(kind);
    makeRanks(kind, drawn);
    if (HasFatalFailure())
      return;
    makePlans(drawn, 2);
    run(drawn);
    if (HasFatalFailure())
      return;
    if (withGraphs) {
      capture(drawn);
      if (HasFatalFailure())
        return;
      replay();
    }
    const int last = static_cast<int>(size) - 1;
    ++ranks[last].v.sizes[0];
    const auto begin = Clock::now();
    onEachRank([&](int rank, gdnrt_error *error) {
      const gdnrt_status status = launch(drawn, rank, error);
      return status == GDNRT_OK
                 ? gdnrt_exchange_wait(exchanges[rank], streams[rank]->stream(),
                                       error)
                 : status;
    });
    const double seconds =
        std::chrono::duration<double>(Clock::now() - begin).count();
    EXPECT_LT(seconds, 10);
    EXPECT_EQ(ranks[last].status, GDNRT_INVALID_ARGUMENT);
    for (int rank = 0; rank < last; ++rank) {
      EXPECT_EQ(ranks[rank].status, GDNRT_IO_ERROR);
      const std::string message = ranks[rank].error.message;
      EXPECT_NE(message.find("within 2000 ms; another rank may have failed"),
                std::string::npos)
          << message;
      gdnrt_error error;
      EXPECT_EQ(
          gdnrt_exchange_wait(exchanges[rank], streams[rank]->stream(), &error),
          GDNRT_IO_ERROR);
      EXPECT_EQ(message, error.message);
    }
    std::printf("after %.1f s: %s\n", seconds, ranks[0].error.message);
  }
  /// Whether one device has all ranks: then there is a stand-in of NCCL.
  bool isShared() const { return devices.size() < size; }

  size_t size = 2;
  int64_t timeout = 60000;
};

} // namespace

// Ragged batches, parts without tokens, slots that are none, states of zeros,
// checkpoints: a second run, and two replays of a graph of each rank, have the
// bits of the first run.
TEST_F(ContextNccl, RandomCases) {
  for (const ContextKind &kind : runs.kinds) {
    worstOut = worstState = 0;
    for (const DrawnAndExpected &each : draw(kind, runs.cases)) {
      const ContextCase &drawn = each.drawn;
      SCOPED_TRACE(kind.path + ", seed " + std::to_string(each.seed));
      makeRanks(kind, drawn);
      if (HasFatalFailure())
        return;
      makePlans(drawn, static_cast<int32_t>(each.seed % 4));
      if (HasFatalFailure())
        return;
      run(drawn);
      if (HasFatalFailure())
        return;
      const ContextBits first = bits();
      check(drawn, each.expected, first);
      if (HasFatalFailure())
        return;
      run(drawn);
      ASSERT_TRUE(bits() == first) << "a second run";
      if (isShared())
        continue;
      capture(drawn);
      if (HasFatalFailure())
        return;
      for (int turn = 0; turn < 2; ++turn) {
        reset(drawn);
        replay();
        ASSERT_TRUE(bits() == first) << "replay " << turn;
      }
    }
    std::printf("%s, heads of %d: %d cases, %d GPUs: outputs %.1e, states of "
                "heads %.1e\n",
                kind.name.c_str(), static_cast<int>(kind.sizes.dim),
                static_cast<int>(runs.cases), static_cast<int>(devices.size()),
                worstOut, worstState);
    std::fflush(stdout);
  }
}

// The last rank's arguments are refused before anything is launched; the others
// wait for it no longer than their time-out, and say so from then on.
TEST_F(ContextNccl, ARankWhoseRunFailsIsAnErrorOnTheOthers) {
  timeout = 2000;
  runThenFail(/*withGraphs=*/false);
}

// The same beside graphs that have kernels of the communicator, for which NCCL
// waits when it aborts one.
TEST_F(ContextNccl, AFailureIsAnErrorWhileThereAreGraphs) {
  if (isShared())
    GTEST_SKIP() << "expected a GPU for each rank";
  timeout = 2000;
  runThenFail(/*withGraphs=*/true);
}

// The last rank makes no plan.
TEST_F(ContextNccl, ARankWithoutAPlanIsAnErrorOnTheOthers) {
  timeout = 2000;
  const ContextKind &kind = runs.kinds.front();
  const ContextCase drawn = drawFull(kind);
  makeRanks(kind, drawn);
  if (HasFatalFailure())
    return;
  onEachRank([&](int rank, gdnrt_error *error) {
    return rank + 1 == static_cast<int>(size) ? GDNRT_OK
                                              : makePlan(drawn, rank, 2, error);
  });
  for (size_t rank = 0; rank + 1 < size; ++rank)
    EXPECT_EQ(ranks[rank].status, GDNRT_IO_ERROR) << ranks[rank].error.message;
}

// A wrong argument of one rank's plan, and slots that differ, are errors on all
// of them at once.
TEST_F(ContextNccl, PlansThatDifferAreErrorsOnAllRanks) {
  const ContextKind &kind = runs.kinds.front();
  ContextCase drawn = drawFull(kind);
  makeRanks(kind, drawn);
  if (HasFatalFailure())
    return;
  ContextCase other = drawn;
  other.slots[0] = (drawn.slots[0] + 1) % contextSlots;
  onEachRank([&](int rank, gdnrt_error *error) {
    return makePlan(rank == 0 ? drawn : other, rank, 2, error);
  });
  for (const ContextRank &rank : ranks)
    EXPECT_EQ(rank.status, GDNRT_INVALID_ARGUMENT) << rank.error.message;
  ranks[0].starts[0] = ranks[0].starts.back() + 1;
  onEachRank([&](int rank, gdnrt_error *error) {
    return makePlan(drawn, rank, 2, error);
  });
  for (const ContextRank &rank : ranks)
    EXPECT_NE(rank.status, GDNRT_OK);
}

// Communicators of the caller: another size or rank than the caller's is an
// error before anything is sent.
TEST_F(ContextNccl, CommunicatorsOfTheCaller) {
  void *nccl = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  ASSERT_NE(nccl, nullptr) << dlerror();
  const auto makeAll = reinterpret_cast<int (*)(void **, int, const int *)>(
      dlsym(nccl, "ncclCommInitAll"));
  const auto destroy =
      reinterpret_cast<int (*)(void *)>(dlsym(nccl, "ncclCommDestroy"));
  if (!makeAll || !destroy || isShared())
    GTEST_SKIP() << "expected NCCL, and a GPU for each rank";
  std::vector<void *> made(size);
  std::vector<int> ordinals;
  for (size_t rank = 0; rank < size; ++rank)
    ordinals.push_back(static_cast<int>(rank));
  ASSERT_EQ(makeAll(made.data(), static_cast<int>(size), ordinals.data()), 0);
  for (size_t rank = 0; rank < size; ++rank) {
    gdnrt_exchange *exchange = nullptr;
    gdnrt_error error;
    gdnrt_nccl_options options = optionsOf(rank, size + 1);
    options.communicator = made[rank];
    EXPECT_EQ(
        gdnrt_exchange_create_nccl(deviceOf(rank), &options, &exchange, &error),
        GDNRT_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.message)
                  .find("num_ranks: expected " + std::to_string(size)),
              std::string::npos)
        << error.message;
    options = optionsOf((rank + 1) % size, size);
    options.communicator = made[rank];
    EXPECT_EQ(
        gdnrt_exchange_create_nccl(deviceOf(rank), &options, &exchange, &error),
        GDNRT_INVALID_ARGUMENT);
    options = optionsOf(rank, size);
    options.communicator = made[rank];
    EXPECT_EQ(
        gdnrt_exchange_create_nccl(deviceOf(rank), &options, &exchange, &error),
        GDNRT_OK)
        << error.message;
    gdnrt_exchange_destroy(exchange);
  }
  std::vector<std::thread> threads;
  for (void *comm : made)
    threads.emplace_back([&, comm] { EXPECT_EQ(destroy(comm), 0); });
  for (std::thread &thread : threads)
    thread.join();
}

// Ranks of another number: those that come wait for one that does not.
TEST_F(ContextNccl, TooFewRanksAreAnErrorOnAllOfThem) {
  timeout = 3000;
  std::array<uint8_t, GDNRT_NCCL_ID_BYTES> id;
  ASSERT_EQ(gdnrt_nccl_id(library.c_str(), id.data(), nullptr), GDNRT_OK);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      streams[rank]->makeCurrent();
      gdnrt_nccl_options options = optionsOf(rank, size + 1);
      options.id = id.data();
      gdnrt_exchange *exchange = nullptr;
      gdnrt_error error;
      EXPECT_EQ(gdnrt_exchange_create_nccl(deviceOf(rank), &options, &exchange,
                                           &error),
                GDNRT_IO_ERROR)
          << error.message;
    });
  for (std::thread &thread : threads)
    thread.join();
}

int main(int argc, char **argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc < 2 || !readContextRuns(argc - 2, argv + 2, runs)) {
    std::fprintf(stderr,
                 "usage: %s LIBRARY CASES MOST_TOKENS KIND:DIM:IMAGE ..\n",
                 argv[0]);
    return 2;
  }
  library = argv[1];
  return RUN_ALL_TESTS();
}
