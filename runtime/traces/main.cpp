// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random traces of a scheduler: a pool and the kernels of an image against a
// float64 model.
//
//   gdnrt_traces --image=FILE [--device=cpu|cuda] [--traces=200] [--seed=1]
//                [--plant=BUG] [--tolerance=X] [--verbose]
//                [--expect-replays] [--expect-plans]
//
// Plays traces number seed, seed + 1, ... and stops at the first that fails,
// which it shrinks and prints. --traces=1 --seed=N plays one again. --plant
// makes the scheduler err: keeps-state, leaks, shares-slots, uses-freed,
// wrong-rollback, writes-shared, forgets-host or starts-early. --tolerance is
// the error of a value, in parts of the largest; without it that of the format
// of states. Exits with 0, with 1 after a failure, with 77 if there is no such
// device.
// --expect-replays and
// --expect-plans make it a failure if no step was replayed from a graph, or
// planned on the device.
//
// Traces with graphs run on a device without debug checks, the others on one
// with them.

#include "scheduler.h"
#include "shrink.h"

#include <CLI/CLI.hpp>

#include <chrono>
#include <iostream>
#include <map>
#include <optional>
#include <tuple>

using namespace gdnrt::traces;

namespace {

struct Options {
  std::string image, device = "cpu";
  uint64_t traces = 200, seed = 1;
  std::optional<double> tolerance;
  Bug bug = Bug::none;
  bool isVerbose = false, expectsReplays = false, expectsPlans = false;
};

/// The kernels of the image, on a device with debug checks and on one without
/// them, if that has graphs.
class Devices {
public:
  explicit Devices(const Options &options)
      : checked_(options.image, options.device, /*debugChecks=*/true) {
    checked_.tolerance = options.tolerance.value_or(checked_.tolerance);
    if (checked_.isHost())
      return;
    unchecked_.emplace(options.image, options.device, /*debugChecks=*/false);
    unchecked_->tolerance = checked_.tolerance;
  }
  const Kernels &of(const Trace &trace) const {
    return unchecked_ && trace.usesGraphs ? *unchecked_ : checked_;
  }

private:
  Kernels checked_;
  std::optional<Kernels> unchecked_;
};

const std::map<std::string, Bug> kBugs = {
    {"keeps-state", Bug::keepsState},
    {"leaks", Bug::leaks},
    {"shares-slots", Bug::sharesSlots},
    {"uses-freed", Bug::usesFreed},
    {"wrong-rollback", Bug::wrongRollback},
    {"writes-shared", Bug::writesShared},
    {"forgets-host", Bug::forgetsHost},
    {"starts-early", Bug::startsEarly},
};

} // namespace

static void report(const Devices &devices, const Trace &trace, Bug bug,
                   uint64_t number) {
  auto fails = [&](const Trace &candidate) {
    return Scheduler(devices.of(candidate), candidate, bug, nullptr)
        .play()
        .has_value();
  };
  Trace smallest = shrink(trace, fails);
  std::cout << "trace " << number << " fails (--traces=1 --seed=" << number
            << "); shrunk from " << trace.steps.size() << " to "
            << smallest.steps.size() << " steps:\n  " << toString(smallest)
            << "\n";
  for (const Step &step : smallest.steps)
    std::cout << "  " << toString(step) << "\n";
  std::cout << "  what happens:\n";
  auto failure =
      Scheduler(devices.of(smallest), smallest, bug, &std::cout).play();
  if (failure)
    std::cout << "  step " << failure->step + 1 << ": " << failure->what
              << "\n";
}

int main(int argc, char **argv) {
  Options options;
  CLI::App app("Random traces of a scheduler against a float64 model");
  app.add_option("--image", options.image, "the image")->required();
  app.add_option("--device", options.device, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--traces", options.traces, "how many traces");
  app.add_option("--seed", options.seed, "the number of the first");
  app.add_option("--tolerance", options.tolerance, "the error of a value");
  app.add_option("--plant", options.bug, "an error of the scheduler")
      ->transform(CLI::CheckedTransformer(kBugs));
  app.add_flag("--expect-replays", options.expectsReplays,
               "fail if no step is replayed from a graph");
  app.add_flag("--expect-plans", options.expectsPlans,
               "fail if no step is planned");
  app.add_flag("--verbose", options.isVerbose, "print what happens");
  CLI11_PARSE(app, argc, argv);
  try {
    const Devices devices(options);
    const auto start = std::chrono::steady_clock::now();
    Coverage all;
    for (uint64_t i = 0; i < options.traces; ++i) {
      Trace trace = makeTrace(options.seed + i);
      if (options.isVerbose)
        std::cout << "trace " << options.seed + i << ": " << toString(trace)
                  << "\n";
      Scheduler scheduler(devices.of(trace), trace, options.bug,
                          options.isVerbose ? &std::cout : nullptr);
      if (scheduler.play()) {
        report(devices, trace, options.bug, options.seed + i);
        return 1;
      }
      all.add(scheduler.ran());
    }
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    std::cout << options.traces << " traces passed in " << seconds.count()
              << " s: " << all.steps << " steps, " << all.tokens
              << " tokens of prompts and decodes, " << all.guesses
              << " guessed tokens, " << all.rolledBack << " rows rolled back, "
              << all.skippedRows << " rows skipped, " << all.firstTokens
              << " requests of one token, " << all.idleSteps << " idle steps, "
              << all.replayed << " steps replayed from graphs, " << all.planned
              << " steps planned, " << all.forks << " forks, " << all.resumed
              << " resumed, " << all.hits << " started from a prefix cache, "
              << all.checkpoints << " checkpoints of prefill, " << all.evicted
              << " evicted, " << all.swapped << " back from the host, "
              << all.resized << " of them by ranks, " << all.moved
              << " checkpoints moved to the host, " << all.fetched
              << " fetched, " << all.full << " times full\n";
    for (auto [expected, count, what] :
         {std::tuple(options.expectsReplays, all.replayed, "replayed"),
          {options.expectsPlans, all.planned, "planned"}})
      if (expected && count == 0) {
        std::cout << "no step was " << what << "\n";
        return 1;
      }
  } catch (const std::runtime_error &error) {
    std::cout << error.what() << "\n";
    constexpr int skipped = 77;
    return std::string(error.what()).rfind("UNSUPPORTED: cuda", 0) == 0
               ? skipped
               : 1;
  }
  return 0;
}
