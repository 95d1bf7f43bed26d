// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One long sequence over GPUs by plans in C, gdnrt_context_plan, over NCCL,
// beside one GPU in the same run:
//
//   gdnrt_context_times LIBRARY IMAGE [--gpus=2] [--tokens=32768,131072]
//                       [--segments=2,3,4]
//
// LIBRARY is the path of libnccl.so.2, IMAGE of heads of 128 x 128, of bf16,
// with --layout=ready --outputs=core --segment-maps --combine-maps. Prints rows
// of the record many-gpus, one a line: times of the slowest rank, between
// events, and errors beside what one GPU gives.

#include "context_gpu.h"

#include "gdn-c/rule.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace gdnbench;
using gdnrt::DeviceGraph;

namespace {

constexpr int64_t kHeads = kContextHeads, kDim = kContextDim;
constexpr int kCalls = 5, kRounds = 9, kWarmUp = 2;

/// Threads that wait for each other.
class Meeting {
public:
  explicit Meeting(int size) : size_(size) {}
  void wait() {
    std::unique_lock lock(mutex_);
    const int64_t turn = turn_;
    if (++here_ == size_) {
      here_ = 0;
      ++turn_;
      return all_.notify_all();
    }
    all_.wait(lock, [&] { return turn_ != turn; });
  }

private:
  std::mutex mutex_;
  std::condition_variable all_;
  const int size_;
  int here_ = 0;
  int64_t turn_ = 0;
};

/// Microseconds of a call, eager and from a graph.
struct Times {
  double eager = 0, graph = 0;
};

double median(std::vector<double> times) {
  times.erase(times.begin(), times.begin() + kWarmUp);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// Of `launch` on a stream whose GPU is current; `meet` waits for other ranks.
/// Rounds of both modes take turns, so that both see the GPU as warm.
Times timesOf(DeviceGraph &stream, const std::function<void()> &launch,
              const std::function<void()> &meet) {
  launch();
  stream.synchronize();
  meet();
  stream.beginCapture(DeviceGraph::Capture::ofThread);
  launch();
  stream.endCapture();
  auto round = [&](const std::function<void()> &call) {
    meet();
    return stream.timeOf([&] {
      for (int i = 0; i < kCalls; ++i)
        call();
    }) / kCalls;
  };
  std::vector<double> eager, graph;
  for (int i = 0; i < kRounds; ++i) {
    eager.push_back(round(launch));
    graph.push_back(round([&] { stream.launch(); }));
  }
  return {median(eager), median(graph)};
}

/// The largest |got - want| / |want| of a head, of rows of all heads with
/// `width` values each.
template <typename Got, typename Want>
double errorOf(Got got, Want want, int64_t rows, int64_t width) {
  std::vector<double> found(kHeads);
  inParallel(kHeads, [&](int64_t head) {
    double off = 0, norm = 0;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < width; ++i) {
        const int64_t at = (row * kHeads + head) * width + i;
        const double one = want(at), other = got(at);
        off += (other - one) * (other - one);
        norm += one * one;
      }
    found[head] = std::sqrt(off / norm);
  });
  // A NaN is larger than any number.
  double worst = 0;
  for (double each : found)
    worst = each <= worst ? worst : each;
  return worst;
}

class Bench {
public:
  Bench(std::string library, const std::string &path, int number)
      : library_(std::move(library)), gpus_(number), meeting_(number) {
    gdnrt_error error;
    check(gdnrt_image_load_file(path.c_str(), &image_, &error), error);
    for (int ordinal = 0; ordinal < number; ++ordinal) {
      Gpu &gpu = gpus_[ordinal];
      gdnrt_cuda_options options = gdnrt_cuda_options_default();
      options.ordinal = ordinal;
      check(gdnrt_device_create_cuda(&options, &gpu.device, &error), error);
      gpu.stream = std::make_unique<DeviceGraph>(ordinal);
    }
    std::array<uint8_t, GDNRT_NCCL_ID_BYTES> id;
    check(gdnrt_nccl_id(library_.c_str(), id.data(), &error), error);
    onRanks([&](int rank) {
      gdnrt_nccl_options options = gdnrt_nccl_options_default();
      options.library = library_.c_str();
      options.id = id.data();
      options.rank = rank;
      options.num_ranks = number;
      gdnrt_error own;
      Gpu &gpu = gpus_[rank];
      check(
          gdnrt_exchange_create_nccl(gpu.device, &options, &gpu.exchange, &own),
          own);
      check(gdnrt_context_create(gpu.device, image_, gpu.exchange, &gpu.context,
                                 &own),
            own);
    });
    check(gdnrt_rule_create(gpus_[0].device, image_, &rule_, &error), error);
  }
  ~Bench() {
    gdnrt_rule_destroy(rule_);
    for (Gpu &gpu : gpus_)
      gdnrt_context_destroy(gpu.context);
    // Graphs have gathers of the exchanges, which end after them.
    for (Gpu &gpu : gpus_)
      gpu.stream = nullptr;
    std::vector<std::thread> threads;
    for (Gpu &gpu : gpus_)
      threads.emplace_back([&] { gdnrt_exchange_destroy(gpu.exchange); });
    for (std::thread &thread : threads)
      thread.join();
    gdnrt_image_destroy(image_);
    for (Gpu &gpu : gpus_) {
      for (auto *array : {&gpu.q, &gpu.k, &gpu.v, &gpu.logDecay, &gpu.beta,
                          &gpu.out, &gpu.pool})
        array->reset();
      gdnrt_device_destroy(gpu.device);
    }
  }

  void measure(int64_t tokens, const std::vector<int> &segments) {
    inputs_ = makeContextInputs(tokens);
    part_ = tokens / static_cast<int64_t>(gpus_.size());
    onRanks([&](int rank) {
      gpus_[rank].take(inputs_, rank * part_, rank == 0 ? tokens : part_);
    });
    const Times first = timesOfOne();
    wantOut_ = gpus_[0].outputs(tokens);
    wantState_ = gpus_[0].states();
    for (int number : segments)
      measureMany(number, first);
  }

private:
  /// Calls `body(rank)` on a thread for each GPU, which is current there.
  void onRanks(const std::function<void(int)> &body) {
    std::vector<std::thread> threads;
    std::vector<std::string> failed(gpus_.size());
    for (size_t rank = 0; rank < gpus_.size(); ++rank)
      threads.emplace_back([&, rank] {
        try {
          gpus_[rank].stream->makeCurrent();
          body(static_cast<int>(rank));
        } catch (const std::exception &error) {
          // The others may wait for this rank forever.
          std::fprintf(stderr, "rank %d: %s\n", static_cast<int>(rank),
                       error.what());
          std::_Exit(1);
        }
      });
    for (std::thread &thread : threads)
      thread.join();
  }

  /// The whole sequence in one call, timed; then once from the first state.
  Times timesOfOne() {
    Gpu &gpu = gpus_[0];
    Array starts, slots, flags;
    starts.make(gpu.device, GDNRT_I32, {2},
                std::vector<int32_t>{0, static_cast<int32_t>(inputs_.tokens)});
    slots.make(gpu.device, GDNRT_I32, {1}, std::vector<int32_t>{1});
    flags.make(gpu.device, GDNRT_I1, {1}, std::vector<uint8_t>{1});
    gdnrt_rule_args args = gdnrt_rule_args_default();
    args.q = gpu.q->arg(-1);
    args.k = gpu.k->arg(-1);
    args.v = gpu.v->arg(-1);
    args.log_decay = gpu.logDecay->arg(-1);
    args.beta = gpu.beta->arg(-1);
    args.cu_seqlens = starts.arg(-1);
    args.slots = slots.arg(-1);
    args.has_initial = flags.arg(-1);
    args.state_pool = gpu.pool->arg(-1);
    args.out = gpu.out->arg(-1);
    gpu.stream->makeCurrent();
    auto launch = [&] {
      gdnrt_error error;
      check(gdnrt_rule_run(rule_, &args, gpu.stream->stream(), &error), error);
    };
    const Times made = timesOf(*gpu.stream, launch, [] {});
    gpu.reset(inputs_);
    launch();
    gpu.stream->synchronize();
    return made;
  }

  gdnrt_context_plan *makePlan(int rank, int segments) {
    const std::array<int64_t, 2> starts = {0, part_};
    const int64_t slot = 1;
    gdnrt_context_options options = gdnrt_context_options_default();
    options.num_heads = kHeads;
    options.num_slots = kContextSlots;
    options.num_tokens = part_;
    options.num_sequences = 1;
    options.starts = starts.data();
    options.slots = &slot;
    options.null_slot = -1;
    options.num_segments = segments;
    gdnrt_context_plan *plan = nullptr;
    gdnrt_error error;
    check(
        gdnrt_context_plan_create(gpus_[rank].context, &options, &plan, &error),
        error);
    return plan;
  }

  void measureMany(int segments, const Times &first) {
    const size_t size = gpus_.size();
    std::vector<Times> times(size), gathers(size);
    std::vector<double> outErrors(size), stateErrors(size);
    std::vector<char> same(size, 1);
    uint64_t sent = 0;
    onRanks([&](int rank) {
      Gpu &gpu = gpus_[rank];
      gdnrt_context_plan *plan = makePlan(rank, segments);
      gdnrt_context_args args = gdnrt_context_args_default();
      args.q = gpu.q->arg(part_);
      args.k = gpu.k->arg(part_);
      args.v = gpu.v->arg(part_);
      args.log_decay = gpu.logDecay->arg(part_);
      args.beta = gpu.beta->arg(part_);
      args.state_pool = gpu.pool->arg(-1);
      args.out = gpu.out->arg(part_);
      gdnrt_error error;
      auto launch = [&] {
        check(gdnrt_context_plan_run(plan, &args, gpu.stream->stream(), &error),
              error);
      };
      auto meet = [&] { meeting_.wait(); };
      auto once = [&](const std::function<void()> &call) {
        gpu.reset(inputs_);
        meet();
        call();
        check(gdnrt_exchange_wait(gpu.exchange, gpu.stream->stream(), &error),
              error);
      };
      once(launch);
      const std::vector<uint16_t> out = gpu.outputs(part_);
      const std::vector<float> state = gpu.states();
      auto compare = [&] {
        same[rank] &= out == gpu.outputs(part_) && state == gpu.states();
      };
      once(launch);
      compare();
      times[rank] = timesOf(*gpu.stream, launch, meet);
      once([&] { gpu.stream->launch(); });
      compare();
      uint64_t bytes = 0;
      check(gdnrt_context_plan_sizes(plan, nullptr, &bytes, &error), error);
      Array gathered;
      gathered.make(gpu.device, GDNRT_F32,
                    {static_cast<int64_t>(size * bytes / 4)},
                    std::vector<float>(size * bytes / 4));
      char *base = static_cast<char *>(gathered.data);
      gathers[rank] = timesOf(
          *gpu.stream,
          [&] {
            check(gdnrt_exchange_all_gather(
                      gpu.exchange, base + static_cast<uint64_t>(rank) * bytes,
                      base, bytes, gpu.stream->stream(), &error),
                  error);
          },
          meet);
      gdnrt_context_plan_destroy(plan);
      if (rank == 0)
        sent = bytes;
      const uint16_t *want = wantOut_.data() + rank * part_ * kHeads * kDim;
      outErrors[rank] = errorOf(
          [&](int64_t i) { return double(widened(out[i])); },
          [&](int64_t i) { return double(widened(want[i])); }, part_, kDim);
      stateErrors[rank] = errorOf(
          [&](int64_t i) { return double(state[i]); },
          [&](int64_t i) { return double(wantState_[i]); }, 1, kDim * kDim);
    });
    const Times second = timesOfOne();
    auto most = [](const auto &of, double Times::*mode) {
      double found = 0;
      for (const Times &each : of)
        found = std::max(found, each.*mode);
      return found;
    };
    for (auto [name, mode] :
         {std::pair("eager", &Times::eager), {"graph", &Times::graph}}) {
      const double one = std::min(first.*mode, second.*mode),
                   us = most(times, mode);
      std::printf(
          "{\"suite\": \"many-gpus\", \"impl\": \"gdn\", \"config\": "
          "{\"gpus\": %d, \"ranks\": %d, \"plan\": \"C\", \"Hk\": %d, "
          "\"Hv\": %d, \"dk\": %d, \"dv\": %d, \"tokens\": %lld, \"io\": "
          "\"bfloat16\", \"state\": \"float32\", \"mode\": \"%s\", "
          "\"segments\": %d, \"nccl\": true}, \"us\": %.2f, \"one_us\": %.2f, "
          "\"ratio\": %.4f, \"gather_us\": %.2f, \"sent_bytes\": %llu, "
          "\"error_to_one\": %.3e, \"state_error_to_one\": %.3e, "
          "\"same_bits\": %s}\n",
          static_cast<int>(size), static_cast<int>(size),
          static_cast<int>(kContextKeyHeads), static_cast<int>(kHeads),
          static_cast<int>(kDim), static_cast<int>(kDim),
          static_cast<long long>(inputs_.tokens), name, segments, us, one,
          one / us, most(gathers, mode), static_cast<unsigned long long>(sent),
          *std::max_element(outErrors.begin(), outErrors.end()),
          *std::max_element(stateErrors.begin(), stateErrors.end()),
          std::count(same.begin(), same.end(), 1) ==
                  static_cast<std::ptrdiff_t>(size)
              ? "true"
              : "false");
    }
    std::fflush(stdout);
  }

  std::string library_;
  std::vector<Gpu> gpus_;
  Meeting meeting_;
  gdnrt_image *image_ = nullptr;
  gdnrt_rule *rule_ = nullptr;
  ContextInputs inputs_;
  int64_t part_ = 0;
  std::vector<uint16_t> wantOut_;
  std::vector<float> wantState_;
};

} // namespace

int main(int argc, char **argv) {
  std::string library, image;
  int gpus = 2;
  std::vector<int64_t> tokens = {32768, 131072};
  std::vector<int> segments = {2, 3, 4};
  CLI::App app("One long sequence over GPUs, by plans in C over NCCL.");
  app.add_option("library", library, "the path of libnccl.so.2")->required();
  app.add_option("image", image, "of heads of 128 x 128")->required();
  app.add_option("--gpus", gpus, "ranks, a GPU each")->check(CLI::Range(1, 8));
  app.add_option("--tokens", tokens, "lengths of the sequence")->delimiter(',');
  app.add_option("--segments", segments, "of a rank")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  try {
    Bench bench(library, image, gpus);
    for (int64_t length : tokens)
      bench.measure(length, segments);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "gdnrt_context_times: %s\n", error.what());
    return 1;
  }
  return 0;
}
