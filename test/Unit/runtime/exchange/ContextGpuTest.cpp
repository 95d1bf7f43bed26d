// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans of context parallelism on a GPU: ranks are threads, each with a stream
// of the same device, eager and from one graph of all of them. By hand, or on
// the driver that runs PTX:
//
//   gdnrt_context_gpu_tests CASES MOST_TOKENS KIND:DIM:IMAGE ..
//
// with heads, channels, normed-heads or normed-channels as KIND.
#include "context_on_gpu.h"

#include <cstdio>

using namespace gdnrt::test;

namespace {

ContextRuns runs;

class ContextGpu : public ContextOnGpu {
protected:
  void SetUp() override { useDevices(1); }
  gdnrt_status makeExchanges(std::vector<gdnrt_exchange *> &made,
                             gdnrt_error *error) override {
    return gdnrt_exchange_create_streams(devices[0],
                                         static_cast<int32_t>(made.size()),
                                         60000, made.data(), error);
  }
  void capture(const ContextCase &drawn);
};

/// One graph on the first rank's stream, which has the work of all of them.
void ContextGpu::capture(const ContextCase &drawn) {
  streams[0]->beginCapture();
  for (size_t rank = 1; rank < ranks.size(); ++rank)
    streams[rank]->waitFor(*streams[0]);
  onRanks(
      [&](int rank, gdnrt_error *error) { return launch(drawn, rank, error); });
  for (size_t rank = 1; rank < ranks.size(); ++rank)
    streams[0]->waitFor(*streams[rank]);
  streams[0]->endCapture();
}

} // namespace

// Ragged batches, parts without tokens, slots that are none, states of zeros,
// checkpoints: a second run and two replays of a graph have the bits of the
// first run.
TEST_F(ContextGpu, RandomCases) {
  for (const ContextKind &kind : runs.kinds) {
    worstOut = worstState = 0;
    int64_t done = 0, ranksOfAll = 0;
    for (uint32_t seed = 0; done < runs.cases; ++seed) {
      const ContextCase drawn =
          drawContextCase(seed, kind.perChannel, kind.sizes);
      int64_t tokens = 0;
      for (int64_t n = 0; n < drawn.count(); ++n)
        tokens += drawn.length(n);
      if (tokens > runs.mostTokens || (runs.isSmall() && drawn.ranks < 2))
        continue;
      ++done;
      ranksOfAll += drawn.ranks;
      SCOPED_TRACE(kind.path + ", seed " + std::to_string(seed));
      makeRanks(kind, drawn);
      if (HasFatalFailure())
        return;
      makePlans(drawn, static_cast<int32_t>(seed % 4));
      if (HasFatalFailure())
        return;
      run(drawn);
      if (HasFatalFailure())
        return;
      const ContextBits first = bits();
      check(drawn, expectedOf(drawn), first);
      if (HasFatalFailure())
        return;
      run(drawn);
      ASSERT_TRUE(bits() == first) << "a second run";
      capture(drawn);
      if (HasFatalFailure())
        return;
      for (int replay = 0; replay < 2; ++replay) {
        reset(drawn);
        streams[0]->replay();
        ASSERT_TRUE(bits() == first) << "replay " << replay;
      }
    }
    std::printf("%s, heads of %d: %d cases, %d ranks: outputs %.1e, states of "
                "heads %.1e\n",
                kind.name.c_str(), static_cast<int>(kind.sizes.dim),
                static_cast<int>(done), static_cast<int>(ranksOfAll), worstOut,
                worstState);
  }
}

// What kernels of a decay for each channel work in is taken at the first run.
TEST_F(ContextGpu, ACaptureAheadOfRuns) {
  for (const ContextKind &kind : runs.kinds) {
    if (!kind.perChannel)
      continue;
    uint32_t seed = 0;
    ContextCase drawn;
    do
      drawn = drawContextCase(seed++, true);
    while (drawn.ranks != 1 || drawn.count() != 1 || drawn.length(0) == 0 ||
           !drawn.isSlot(drawn.slots[0]));
    drawn = drawContextCase(seed - 1, true, kind.sizes);
    makeRanks(kind, drawn);
    makePlans(drawn, 0);
    streams[0]->beginCapture();
    gdnrt_error error;
    EXPECT_EQ(launch(drawn, 0, &error), GDNRT_UNSUPPORTED);
    EXPECT_NE(std::string(error.message).find("a run ahead of the capture"),
              std::string::npos)
        << error.message;
    streams[0]->endCapture();
  }
}

int main(int argc, char **argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (!readContextRuns(argc - 1, argv + 1, runs)) {
    std::fprintf(stderr, "usage: %s CASES MOST_TOKENS KIND:DIM:IMAGE ..\n",
                 argv[0]);
    return 2;
  }
  return RUN_ALL_TESTS();
}
