// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes plans of ranks and runs them, and compares what they give with float64.
#include "context_ranks.h"

#include "row_major.h"

#include <cmath>

using namespace gdnrt::test;

static constexpr int64_t stateSize = contextHeads * contextDim * contextDim;

void ContextRanks::makeRanks(const ContextCase &drawn, int64_t timeout) {
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

gdnrt_context_options ContextRanks::optionsOf(const ContextCase &drawn,
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

gdnrt_context_args ContextRanks::argsOf(const ContextCase &drawn, int rank) {
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

void ContextRanks::makePlans(const ContextCase &drawn, int32_t segments) {
  onRanks([&](int rank) {
    gdnrt_context_options options = optionsOf(drawn, rank);
    options.num_segments = segments;
    ranks[rank].status = gdnrt_context_plan_create(
        contexts[rank], &options, &ranks[rank].plan, &ranks[rank].error);
  });
  for (Rank &rank : ranks)
    ASSERT_EQ(rank.status, GDNRT_OK) << rank.error.message;
}

void ContextRanks::run(const ContextCase &drawn) {
  onRanks([&](int rank) {
    const gdnrt_context_args args = argsOf(drawn, rank);
    ranks[rank].status = gdnrt_context_plan_run(ranks[rank].plan, &args,
                                                nullptr, &ranks[rank].error);
  });
  for (Rank &rank : ranks)
    ASSERT_EQ(rank.status, GDNRT_OK) << rank.error.message;
}

/// |got - want| of `size` elements from there on, relative to |want|.
static double errorOf(const float *got, const double *want, int64_t size) {
  double off = 0, norm = 0;
  for (int64_t i = 0; i < size; ++i) {
    off += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(off) / std::max(std::sqrt(norm), 1e-6);
}

void ContextRanks::check(const ContextCase &drawn, uint32_t seed) {
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
