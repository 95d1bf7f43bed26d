// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans of context parallelism on a GPU: ranks are threads, each with a stream
// of the same device, eager and from one graph of all of them. By hand, or on
// the driver that runs PTX:
//
//   gdnrt_context_gpu_tests CASES MOST_TOKENS KIND:DIM:IMAGE ..
//
// with heads, channels, normed-heads or normed-channels as KIND.
#include "context_cases.h"
#include "device_graph.h"

#include "gdn-c/context.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>

using namespace gdnrt::test;

namespace {

constexpr uint16_t kNaN = 0x7fc0;

/// An image, and the heads that it is for.
struct Kind {
  std::string name, path;
  bool perChannel;
  ContextSizes sizes;
};
std::vector<Kind> kinds;
int64_t numCases, mostTokens;

/// An array of the device in bf16 or f32.
struct Array {
  void *data = nullptr;
  gdnrt_dtype dtype = GDNRT_F32;
  std::vector<int64_t> sizes;

  size_t count() const {
    size_t all = 1;
    for (int64_t size : sizes)
      all *= static_cast<size_t>(size);
    return all;
  }
  gdnrt_arg arg() const {
    gdnrt_arg made = {};
    made.data = data;
    made.dtype = dtype;
    made.rank = static_cast<int32_t>(sizes.size());
    made.sizes = sizes.data();
    made.null_slot = -1;
    return made;
  }
};

/// What a rank has.
struct Rank {
  std::vector<int64_t> starts;
  Array q, k, v, logDecay, beta, out, pool;
  gdnrt_context_plan *plan = nullptr;
  gdnrt_error error = {};
  gdnrt_status status = GDNRT_OK;
};

/// Ranks of one process and device.
struct Group {
  std::vector<gdnrt_exchange *> exchanges;
  std::vector<gdnrt_context *> contexts;
};

/// What runs gave: outputs of each rank as they lie in memory, and pools.
struct Bits {
  std::vector<std::vector<uint16_t>> out;
  std::vector<std::vector<float>> pools;
  bool operator==(const Bits &other) const {
    // By bytes: what no sequence owns may be NaN.
    auto same = [](const auto &a, const auto &b) {
      return a.size() == b.size() &&
             std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
    };
    return std::equal(out.begin(), out.end(), other.out.begin(), same) &&
           std::equal(pools.begin(), pools.end(), other.pools.begin(), same);
  }
};

class ContextGpu : public ::testing::Test {
protected:
  void SetUp() override {
    gdnrt_error error;
    const gdnrt_status status =
        gdnrt_device_create_cuda(nullptr, &device, &error);
    if (status == GDNRT_UNSUPPORTED)
      GTEST_SKIP() << error.message;
    ASSERT_EQ(status, GDNRT_OK) << error.message;
    for (int i = 0; i < 4; ++i)
      streams.push_back(std::make_unique<gdnrt::DeviceGraph>(0));
  }
  void TearDown() override {
    dropRanks();
    for (auto &[key, group] : groups) {
      for (gdnrt_context *context : group.contexts)
        gdnrt_context_destroy(context);
      for (gdnrt_exchange *exchange : group.exchanges)
        gdnrt_exchange_destroy(exchange);
    }
    for (auto &[path, image] : images)
      gdnrt_image_destroy(image);
    streams.clear();
    gdnrt_device_destroy(device);
  }

  void dropRanks() {
    for (Rank &rank : ranks) {
      gdnrt_context_plan_destroy(rank.plan);
      for (Array *array : {&rank.q, &rank.k, &rank.v, &rank.logDecay,
                           &rank.beta, &rank.out, &rank.pool})
        EXPECT_EQ(gdnrt_device_free(device, array->data, nullptr), GDNRT_OK);
    }
    ranks.clear();
  }
  /// Values of bf16 lose nothing.
  void write(Array &array, const std::vector<float> &values) {
    const size_t width = array.dtype == GDNRT_BF16 ? 2 : 4;
    std::vector<uint8_t> bytes(values.size() * width);
    for (size_t i = 0; i < values.size(); ++i)
      std::memcpy(bytes.data() + i * width,
                  reinterpret_cast<const char *>(&values[i]) + 4 - width,
                  width);
    if (!array.data)
      ASSERT_EQ(
          gdnrt_device_allocate(device, bytes.size() + 4, &array.data, nullptr),
          GDNRT_OK);
    if (!bytes.empty())
      ASSERT_EQ(gdnrt_device_write(device, array.data, bytes.data(),
                                   bytes.size(), nullptr),
                GDNRT_OK);
  }
  template <typename T> std::vector<T> read(const Array &array) {
    std::vector<T> values(array.count());
    if (!values.empty())
      EXPECT_EQ(gdnrt_device_read(device, values.data(), array.data,
                                  values.size() * sizeof(T), nullptr),
                GDNRT_OK);
    return values;
  }

  void makeRanks(const Kind &kind, const ContextCase &drawn);
  void makePlans(const ContextCase &drawn, int32_t segments);
  /// Calls `body(number)` on a thread for each rank; none may fail.
  template <typename Body> void onRanks(Body body) {
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      threads.emplace_back([&, rank] {
        ranks[rank].status = body(static_cast<int>(rank), &ranks[rank].error);
      });
    for (std::thread &thread : threads)
      thread.join();
    for (Rank &rank : ranks)
      ASSERT_EQ(rank.status, GDNRT_OK) << rank.error.message;
  }
  gdnrt_status launch(const ContextCase &drawn, int rank, gdnrt_error *error) {
    Rank &own = ranks[rank];
    gdnrt_context_args args = gdnrt_context_args_default();
    args.q = own.q.arg();
    args.k = own.k.arg();
    args.v = own.v.arg();
    args.log_decay = own.logDecay.arg();
    args.beta = own.beta.arg();
    args.state_pool = own.pool.arg();
    args.state_pool.null_slot = drawn.nullSlot;
    args.out = own.out.arg();
    return gdnrt_context_plan_run(own.plan, &args, streams[rank]->stream(),
                                  error);
  }
  /// Pools as they were, and outputs that nobody wrote.
  void reset(const ContextCase &drawn) {
    float poison;
    const uint32_t bits = uint32_t{kNaN} << 16;
    std::memcpy(&poison, &bits, sizeof(poison));
    for (Rank &rank : ranks) {
      write(rank.pool, drawn.states);
      write(rank.out, std::vector<float>(rank.out.count(), poison));
    }
  }
  Bits bits() {
    Bits made;
    for (Rank &rank : ranks) {
      made.out.push_back(read<uint16_t>(rank.out));
      made.pools.push_back(read<float>(rank.pool));
    }
    return made;
  }
  void run(const ContextCase &drawn);
  void capture(const ContextCase &drawn);
  void check(const ContextCase &drawn, const Bits &got);

  gdnrt_device *device = nullptr;
  std::vector<std::unique_ptr<gdnrt::DeviceGraph>> streams;
  std::map<std::string, gdnrt_image *> images;
  std::map<std::pair<std::string, int64_t>, Group> groups;
  std::vector<gdnrt_context *> contexts;
  std::vector<gdnrt_exchange *> exchanges;
  std::vector<Rank> ranks;
  double worstOut = 0, worstState = 0;
};

void ContextGpu::makeRanks(const Kind &kind, const ContextCase &drawn) {
  dropRanks();
  Group &group = groups[{kind.path, drawn.ranks}];
  gdnrt_error error;
  if (group.contexts.empty()) {
    gdnrt_image *&image = images[kind.path];
    if (!image)
      ASSERT_EQ(gdnrt_image_load_file(kind.path.c_str(), &image, &error),
                GDNRT_OK)
          << error.message;
    group.exchanges.resize(drawn.ranks);
    ASSERT_EQ(
        gdnrt_exchange_create_streams(device, static_cast<int32_t>(drawn.ranks),
                                      60000, group.exchanges.data(), &error),
        GDNRT_OK)
        << error.message;
    for (gdnrt_exchange *exchange : group.exchanges) {
      gdnrt_context *context = nullptr;
      ASSERT_EQ(gdnrt_context_create(device, image, exchange, &context, &error),
                GDNRT_OK)
          << error.message;
      group.contexts.push_back(context);
    }
  }
  contexts = group.contexts;
  exchanges = group.exchanges;
  const ContextSizes &sizes = drawn.sizes;
  ranks.assign(drawn.ranks, Rank());
  for (int64_t r = 0; r < drawn.ranks; ++r) {
    Rank &rank = ranks[r];
    rank.starts = {0};
    for (int64_t n = 0; n < drawn.count(); ++n)
      rank.starts.push_back(rank.starts.back() + drawn.lengths[r][n]);
    const int64_t rows = rank.starts.back();
    auto take = [&](Array &to, const std::vector<float> &from, gdnrt_dtype type,
                    std::vector<int64_t> shape) {
      int64_t width = 1;
      for (int64_t size : shape)
        width *= size;
      std::vector<float> own;
      for (int64_t row : drawn.rows(r))
        own.insert(own.end(), from.begin() + row * width,
                   from.begin() + (row + 1) * width);
      shape.insert(shape.begin(), rows);
      to.dtype = type;
      to.sizes = shape;
      write(to, own);
    };
    take(rank.q, drawn.q, GDNRT_BF16, {sizes.keyHeads, sizes.dim});
    take(rank.k, drawn.k, GDNRT_BF16, {sizes.keyHeads, sizes.dim});
    take(rank.v, drawn.v, GDNRT_BF16, {sizes.heads, sizes.dim});
    std::vector<int64_t> gates = {sizes.heads};
    if (drawn.perChannel)
      gates.push_back(sizes.dim);
    take(rank.logDecay, drawn.logDecay, GDNRT_F32, gates);
    take(rank.beta, drawn.beta, GDNRT_F32, {sizes.heads});
    rank.out.dtype = GDNRT_BF16;
    rank.out.sizes = rank.v.sizes;
    rank.pool.sizes = {contextSlots, sizes.heads, sizes.dim, sizes.dim};
  }
  reset(drawn);
}

void ContextGpu::makePlans(const ContextCase &drawn, int32_t segments) {
  onRanks([&](int rank, gdnrt_error *error) {
    Rank &own = ranks[rank];
    gdnrt_context_options options = gdnrt_context_options_default();
    options.num_heads = drawn.sizes.heads;
    options.num_slots = contextSlots;
    options.num_tokens = own.starts.back();
    options.num_sequences = drawn.count();
    options.starts = own.starts.data();
    options.slots = drawn.slots.data();
    options.write_slots = drawn.writeSlots.data();
    options.has_initial = drawn.hasInitial.data();
    options.null_slot = drawn.nullSlot;
    options.num_segments = segments;
    options.cu_checkpoints = drawn.checkpointStarts.data();
    options.checkpoint_tokens = drawn.checkpointTokens.data();
    options.checkpoint_slots = drawn.checkpointSlots.data();
    return gdnrt_context_plan_create(contexts[rank], &options, &own.plan,
                                     error);
  });
}

void ContextGpu::run(const ContextCase &drawn) {
  reset(drawn);
  onRanks([&](int rank, gdnrt_error *error) {
    const gdnrt_status status = launch(drawn, rank, error);
    return status == GDNRT_OK
               ? gdnrt_exchange_wait(exchanges[rank], streams[rank]->stream(),
                                     error)
               : status;
  });
}

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

/// |got - want| of `size` elements, relative to |want|.
template <typename Get>
double errorOf(Get got, const double *want, int64_t size) {
  double off = 0, norm = 0;
  for (int64_t i = 0; i < size; ++i) {
    off += (got(i) - want[i]) * (got(i) - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(off) / std::max(std::sqrt(norm), 1e-6);
}

double widened(uint16_t bits) {
  const uint32_t word = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

void ContextGpu::check(const ContextCase &drawn, const Bits &got) {
  const ContextResult want = expectedOf(drawn);
  const int64_t dim = drawn.sizes.dim, width = drawn.sizes.heads * dim;
  for (int64_t r = 0; r < drawn.ranks; ++r) {
    std::vector<double> wanted;
    for (int64_t row : drawn.rows(r))
      wanted.insert(wanted.end(), want.out.begin() + row * width,
                    want.out.begin() + (row + 1) * width);
    const double error =
        errorOf([&](int64_t i) { return widened(got.out[r][i]); },
                wanted.data(), static_cast<int64_t>(wanted.size()));
    ASSERT_LT(error, 6e-3) << "outputs of rank " << r;
    worstOut = std::max(worstOut, error);
    ASSERT_EQ(got.pools[r], got.pools[0]) << "pool of rank " << r;
  }
  const int64_t size = dim * dim;
  for (int64_t slot = 0; slot < contextSlots; ++slot) {
    const int64_t begin = slot * drawn.stateSize();
    const bool isWritten =
        !std::equal(want.states.begin() + begin,
                    want.states.begin() + begin + drawn.stateSize(),
                    drawn.states.begin() + begin);
    for (int64_t at = begin; at < begin + drawn.stateSize(); at += size) {
      const double error =
          errorOf([&](int64_t i) { return double(got.pools[0][at + i]); },
                  want.states.data() + at, size);
      ASSERT_TRUE(isWritten ? error < 2e-3 : error == 0)
          << "slot " << slot << ", head " << (at - begin) / size << ": "
          << error;
      worstState = std::max(worstState, error);
    }
  }
}

} // namespace

// Ragged batches, parts without tokens, slots that are none, states of zeros,
// checkpoints: a second run and two replays of a graph have the bits of the
// first run.
TEST_F(ContextGpu, RandomCases) {
  for (const Kind &kind : kinds) {
    worstOut = worstState = 0;
    int64_t done = 0, ranksOfAll = 0;
    for (uint32_t seed = 0; done < numCases; ++seed) {
      const ContextCase drawn =
          drawContextCase(seed, kind.perChannel, kind.sizes);
      int64_t tokens = 0;
      for (int64_t n = 0; n < drawn.count(); ++n)
        tokens += drawn.length(n);
      if (tokens > mostTokens || (mostTokens < 1000 && drawn.ranks < 2))
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
      const Bits first = bits();
      check(drawn, first);
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
  for (const Kind &kind : kinds) {
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
  if (argc < 4) {
    std::fprintf(stderr, "usage: %s CASES MOST_TOKENS KIND:DIM:IMAGE ..\n",
                 argv[0]);
    return 2;
  }
  numCases = std::stoll(argv[1]);
  mostTokens = std::stoll(argv[2]);
  for (int i = 3; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t one = text.find(':'), two = text.find(':', one + 1);
    Kind kind;
    kind.name = text.substr(0, one);
    kind.perChannel = kind.name.find("channels") != std::string::npos;
    kind.sizes.isNormed = kind.name.rfind("normed-", 0) == 0;
    kind.sizes.dim = std::stoll(text.substr(one + 1, two - one - 1));
    kind.sizes.isRounded = true;
    if (mostTokens < 1000) // where a machine of PTX takes seconds for a head
      kind.sizes.keyHeads = 1, kind.sizes.heads = 2;
    kind.path = text.substr(two + 1);
    kinds.push_back(kind);
  }
  return RUN_ALL_TESTS();
}
