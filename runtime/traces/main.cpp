// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random traces of a scheduler: a pool and the kernels of an image against a
// float64 model.
//
//   gdnrt_traces --image=FILE [--device=cpu|cuda] [--traces=200] [--seed=1]
//                [--plant=BUG] [--tolerance=1e-4] [--verbose]
//
// Plays traces number seed, seed + 1, ... and stops at the first that fails,
// which it shrinks and prints. --traces=1 --seed=N plays one again. --plant
// makes the scheduler err: keeps-state, leaks, shares-slots, uses-freed or
// wrong-rollback. Exits with 0, with 1 after a failure, with 77 if there is no
// such device.

#include "scheduler.h"
#include "shrink.h"

#include <chrono>
#include <cstdlib>
#include <iostream>

using namespace gdnrt::traces;

namespace {

struct Options {
  std::string image, device = "cpu";
  uint64_t traces = 200, seed = 1;
  double tolerance = 1e-4;
  Bug bug = Bug::none;
  bool isVerbose = false;
};

constexpr struct {
  const char *name;
  Bug bug;
} kBugs[] = {
    {"keeps-state", Bug::keepsState},       {"leaks", Bug::leaks},
    {"shares-slots", Bug::sharesSlots},     {"uses-freed", Bug::usesFreed},
    {"wrong-rollback", Bug::wrongRollback},
};

} // namespace

/// False if an argument is not understood.
static bool parse(int argc, char **argv, Options &options) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const size_t equals = arg.find('=');
    const std::string key = arg.substr(0, equals);
    const std::string value =
        equals == std::string::npos ? "" : arg.substr(equals + 1);
    if (key == "--image")
      options.image = value;
    else if (key == "--device" && (value == "cpu" || value == "cuda"))
      options.device = value;
    else if (key == "--traces")
      options.traces = std::strtoull(value.c_str(), nullptr, 10);
    else if (key == "--seed")
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    else if (key == "--tolerance")
      options.tolerance = std::strtod(value.c_str(), nullptr);
    else if (key == "--verbose")
      options.isVerbose = true;
    else if (key == "--plant") {
      for (const auto &known : kBugs)
        if (value == known.name)
          options.bug = known.bug;
      if (options.bug == Bug::none)
        return false;
    } else
      return false;
  }
  return !options.image.empty();
}

static void report(const Kernels &kernels, const Trace &trace, Bug bug,
                   uint64_t number) {
  auto fails = [&](const Trace &candidate) {
    return Scheduler(kernels, candidate, bug, nullptr).play().has_value();
  };
  Trace smallest = shrink(trace, fails);
  std::cout << "trace " << number << " fails (--traces=1 --seed=" << number
            << "); shrunk from " << trace.steps.size() << " to "
            << smallest.steps.size() << " steps:\n  " << toString(smallest)
            << "\n";
  for (const Step &step : smallest.steps)
    std::cout << "  " << toString(step) << "\n";
  std::cout << "  what happens:\n";
  auto failure = Scheduler(kernels, smallest, bug, &std::cout).play();
  if (failure)
    std::cout << "  step " << failure->step + 1 << ": " << failure->what
              << "\n";
}

int main(int argc, char **argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::cerr << "usage: " << argv[0]
              << " --image=FILE [--device=cpu|cuda] [--traces=N] [--seed=N] "
                 "[--plant=BUG] [--tolerance=X] [--verbose]\n";
    return 2;
  }
  try {
    Kernels kernels(options.image, options.device);
    kernels.tolerance = options.tolerance;
    const auto start = std::chrono::steady_clock::now();
    Coverage all;
    for (uint64_t i = 0; i < options.traces; ++i) {
      Trace trace = makeTrace(options.seed + i);
      if (options.isVerbose)
        std::cout << "trace " << options.seed + i << ": " << toString(trace)
                  << "\n";
      Scheduler scheduler(kernels, trace, options.bug,
                          options.isVerbose ? &std::cout : nullptr);
      if (scheduler.play()) {
        report(kernels, trace, options.bug, options.seed + i);
        return 1;
      }
      all.add(scheduler.coverage());
    }
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - start;
    std::cout << options.traces << " traces passed in " << seconds.count()
              << " s: " << all.steps << " steps, " << all.tokens
              << " tokens of prompts and decodes, " << all.guesses
              << " guessed tokens, " << all.rolledBack << " rows rolled back, "
              << all.skippedRows << " rows skipped, " << all.firstTokens
              << " requests of one token, " << all.idleSteps << " idle steps, "
              << all.forks << " forks, " << all.resumed << " resumed, "
              << all.evicted << " evicted, " << all.full << " times full\n";
  } catch (const RuntimeError &error) {
    std::cout << error.what() << "\n";
    constexpr int skipped = 77;
    return std::string(error.what()).rfind("UNSUPPORTED: cuda", 0) == 0
               ? skipped
               : 1;
  }
  return 0;
}
