// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays, plans and runs of ranks on GPUs, and what they gave beside float64.
#include "context_on_gpu.h"

#include <algorithm>
#include <cmath>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

constexpr uint16_t kNaN = 0x7fc0;

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

} // namespace

bool gdnrt::test::readContextRuns(int count, char **arguments,
                                  ContextRuns &runs) {
  if (count < 3)
    return false;
  runs.cases = std::stoll(arguments[0]);
  runs.mostTokens = std::stoll(arguments[1]);
  for (int i = 2; i < count; ++i) {
    const std::string text = arguments[i];
    const size_t one = text.find(':'), two = text.find(':', one + 1);
    if (two == std::string::npos)
      return false;
    ContextKind kind;
    kind.name = text.substr(0, one);
    kind.perChannel = kind.name.find("channels") != std::string::npos;
    kind.sizes.isNormed = kind.name.rfind("normed-", 0) == 0;
    kind.sizes.dim = std::stoll(text.substr(one + 1, two - one - 1));
    kind.sizes.isRounded = true;
    if (runs.isSmall())
      kind.sizes.keyHeads = 1, kind.sizes.heads = 2;
    kind.path = text.substr(two + 1);
    runs.kinds.push_back(kind);
  }
  return true;
}

bool ContextBits::operator==(const ContextBits &other) const {
  // By bytes: what no sequence owns may be NaN.
  auto same = [](const auto &a, const auto &b) {
    return a.size() == b.size() &&
           (a.empty() ||
            std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0);
  };
  return std::equal(out.begin(), out.end(), other.out.begin(), same) &&
         std::equal(pools.begin(), pools.end(), other.pools.begin(), same);
}

void ContextOnGpu::useDevices(int number) {
  for (int ordinal = 0; ordinal < number; ++ordinal) {
    gdnrt_cuda_options options = gdnrt_cuda_options_default();
    options.ordinal = ordinal;
    gdnrt_device *device = nullptr;
    gdnrt_error error;
    const gdnrt_status status =
        gdnrt_device_create_cuda(&options, &device, &error);
    if (status == GDNRT_UNSUPPORTED && ordinal == 0)
      GTEST_SKIP() << error.message;
    ASSERT_EQ(status, GDNRT_OK) << error.message;
    devices.push_back(device);
  }
  for (int rank = 0; rank < kMostRanks; ++rank)
    streams.push_back(std::make_unique<DeviceGraph>(rank % number));
}

void ContextOnGpu::TearDown() {
  dropRanks();
  // Graphs have gathers of the exchanges, which end after them.
  streams.clear();
  dropContexts();
  for (auto &[path, image] : images)
    gdnrt_image_destroy(image);
  for (gdnrt_device *device : devices)
    gdnrt_device_destroy(device);
}

void ContextOnGpu::dropRanks() {
  for (size_t number = 0; number < ranks.size(); ++number) {
    ContextRank &rank = ranks[number];
    gdnrt_context_plan_destroy(rank.plan);
    for (DeviceArray *array : {&rank.q, &rank.k, &rank.v, &rank.logDecay,
                               &rank.beta, &rank.out, &rank.pool})
      EXPECT_EQ(gdnrt_device_free(deviceOf(number), array->data, nullptr),
                GDNRT_OK);
  }
  ranks.clear();
}

void ContextOnGpu::dropContexts() {
  for (auto &[key, made] : contextsOf)
    for (gdnrt_context *context : made)
      gdnrt_context_destroy(context);
  contextsOf.clear();
  // Ranks of NCCL end together.
  for (auto &[number, made] : exchangesOf) {
    std::vector<std::thread> threads;
    for (gdnrt_exchange *exchange : made)
      threads.emplace_back([exchange] { gdnrt_exchange_destroy(exchange); });
    for (std::thread &thread : threads)
      thread.join();
  }
  exchangesOf.clear();
}

void ContextOnGpu::write(size_t rank, DeviceArray &array,
                         const std::vector<float> &values) {
  const size_t width = array.dtype == GDNRT_BF16 ? 2 : 4;
  std::vector<uint8_t> bytes(values.size() * width);
  for (size_t i = 0; i < values.size(); ++i)
    std::memcpy(bytes.data() + i * width,
                reinterpret_cast<const char *>(&values[i]) + 4 - width, width);
  if (!array.data)
    ASSERT_EQ(gdnrt_device_allocate(deviceOf(rank), bytes.size() + 4,
                                    &array.data, nullptr),
              GDNRT_OK);
  if (!bytes.empty())
    ASSERT_EQ(gdnrt_device_write(deviceOf(rank), array.data, bytes.data(),
                                 bytes.size(), nullptr),
              GDNRT_OK);
}

void ContextOnGpu::makeRanks(const ContextKind &kind,
                             const ContextCase &drawn) {
  dropRanks();
  const size_t number = static_cast<size_t>(drawn.ranks);
  gdnrt_error error;
  std::vector<gdnrt_exchange *> &all = exchangesOf[number];
  if (all.empty()) {
    all.resize(number);
    const gdnrt_status status = makeExchanges(all, &error);
    if (status != GDNRT_OK)
      exchangesOf.erase(number);
    ASSERT_EQ(status, GDNRT_OK) << error.message;
  }
  exchanges = exchangesOf[number];
  std::vector<gdnrt_context *> &own = contextsOf[{kind.path, number}];
  if (own.empty()) {
    gdnrt_image *&image = images[kind.path];
    if (!image)
      ASSERT_EQ(gdnrt_image_load_file(kind.path.c_str(), &image, &error),
                GDNRT_OK)
          << error.message;
    for (size_t rank = 0; rank < number; ++rank) {
      gdnrt_context *context = nullptr;
      ASSERT_EQ(gdnrt_context_create(deviceOf(rank), image, exchanges[rank],
                                     &context, &error),
                GDNRT_OK)
          << error.message;
      own.push_back(context);
    }
  }
  contexts = own;
  const ContextSizes &sizes = drawn.sizes;
  ranks.assign(drawn.ranks, ContextRank());
  for (int64_t r = 0; r < drawn.ranks; ++r) {
    ContextRank &rank = ranks[r];
    rank.starts = {0};
    for (int64_t n = 0; n < drawn.count(); ++n)
      rank.starts.push_back(rank.starts.back() + drawn.lengths[r][n]);
    const int64_t rows = rank.starts.back();
    auto take = [&](DeviceArray &to, const std::vector<float> &from,
                    gdnrt_dtype type, std::vector<int64_t> shape) {
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
      write(static_cast<size_t>(r), to, own);
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

gdnrt_status ContextOnGpu::makePlan(const ContextCase &drawn, int rank,
                                    int32_t segments, gdnrt_error *error) {
  ContextRank &own = ranks[rank];
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
  return gdnrt_context_plan_create(contexts[rank], &options, &own.plan, error);
}

void ContextOnGpu::makePlans(const ContextCase &drawn, int32_t segments) {
  onRanks([&](int rank, gdnrt_error *error) {
    return makePlan(drawn, rank, segments, error);
  });
}

gdnrt_status ContextOnGpu::launch(const ContextCase &drawn, int rank,
                                  gdnrt_error *error) {
  ContextRank &own = ranks[rank];
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

void ContextOnGpu::reset(const ContextCase &drawn) {
  float poison;
  const uint32_t bits = uint32_t{kNaN} << 16;
  std::memcpy(&poison, &bits, sizeof(poison));
  for (size_t number = 0; number < ranks.size(); ++number) {
    ContextRank &rank = ranks[number];
    write(number, rank.pool, drawn.states);
    write(number, rank.out, std::vector<float>(rank.out.count(), poison));
  }
}

ContextBits ContextOnGpu::bits() {
  ContextBits made;
  for (size_t number = 0; number < ranks.size(); ++number) {
    made.out.push_back(read<uint16_t>(number, ranks[number].out));
    made.pools.push_back(read<float>(number, ranks[number].pool));
  }
  return made;
}

void ContextOnGpu::run(const ContextCase &drawn) {
  reset(drawn);
  onRanks([&](int rank, gdnrt_error *error) {
    const gdnrt_status status = launch(drawn, rank, error);
    return status == GDNRT_OK
               ? gdnrt_exchange_wait(exchanges[rank], streams[rank]->stream(),
                                     error)
               : status;
  });
}

void ContextOnGpu::check(const ContextCase &drawn, const ContextResult &want,
                         const ContextBits &got) {
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
