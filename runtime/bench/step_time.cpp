// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host's time for a decode step, and what it allocates: nothing.
//
//   gdnrt_step_time IMAGE [--check] [--json]
//
// IMAGE has an entry decode. Times are the median, least and most of many
// rounds, per step. --check exits with 1 if one layer with a batch of 1 takes
// more than 5 us at its best, or of 256 more than 20 us, or anything allocates.

#include "counting_malloc.h"
#include "decode_step.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

namespace {

struct Case {
  const char *what;
  int64_t batch, layers;
  bool arraysMove, requestsChange;
  /// 0: none
  double limitUs;
};

constexpr Case kCases[] = {
    {"step", 1, 1, false, false, 5},
    {"step, a request changes", 1, 1, false, true, 5},
    {"step, arrays move", 1, 1, true, false, 5},
    {"step", 256, 1, false, false, 20},
    {"step, a request changes", 256, 1, false, true, 20},
    {"step, arrays move", 256, 1, true, false, 20},
    {"step", 1, 36, false, false, 0},
    {"step, arrays move", 1, 36, true, false, 0},
    {"step", 256, 36, false, false, 0},
    {"step, arrays move", 256, 36, true, false, 0},
};

struct Times {
  double median, least, most;
  int64_t mallocs;
};

} // namespace

static Times measure(const std::function<void()> &step) {
  constexpr int warmUp = 100, rounds = 51, steps = 50;
  for (int i = 0; i < warmUp; ++i)
    step();
  double times[rounds];
  const int64_t before = numMallocs();
  for (double &time : times) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i)
      step();
    const std::chrono::duration<double, std::micro> took =
        std::chrono::steady_clock::now() - start;
    time = took.count() / steps;
  }
  const int64_t mallocs = numMallocs() - before;
  std::sort(times, times + rounds);
  return {times[rounds / 2], times[0], times[rounds - 1], mallocs};
}

int main(int argc, char **argv) {
  std::string image;
  bool checks = false, isJson = false;
  CLI::App app("The host's time for a decode step");
  app.add_option("image", image, "an image with an entry decode")->required();
  app.add_flag("--check", checks, "fail where a step is slow or allocates");
  app.add_flag("--json", isJson, "print JSON");
  CLI11_PARSE(app, argc, argv);
  bool isGood = true;
  const char *separator = "[";
  for (const Case &each : kCases) {
    DecodeStep step(image, each.batch, each.layers);
    Times times = measure([&] {
      if (each.requestsChange)
        step.exchangeRequest();
      step.run(each.arraysMove);
    });
    const bool isFast = each.limitUs == 0 || times.least <= each.limitUs;
    isGood &= isFast && times.mallocs == 0;
    if (isJson) {
      std::printf(
          "%s{\"suite\": \"host\", \"impl\": \"gdn\", \"config\": "
          "{\"variant\": \"%s\", \"N\": %lld, \"layers\": %lld}, "
          "\"us\": %.3f, \"us_min\": %.3f, \"us_max\": %.3f, "
          "\"mallocs\": %lld, \"limit_us\": %s}",
          separator, each.what, static_cast<long long>(each.batch),
          static_cast<long long>(each.layers), times.median, times.least,
          times.most, static_cast<long long>(times.mallocs),
          each.limitUs == 0 ? "null" : std::to_string(each.limitUs).c_str());
      separator = ",\n ";
    } else {
      std::printf("%-24s batch %3lld, %2lld layers: %7.2f us (%.2f to %.2f), "
                  "%lld allocations%s\n",
                  each.what, static_cast<long long>(each.batch),
                  static_cast<long long>(each.layers), times.median,
                  times.least, times.most,
                  static_cast<long long>(times.mallocs),
                  isFast ? "" : ", too slow");
    }
  }
  if (isJson)
    std::printf("]\n");
  return checks && !isGood ? 1 : 0;
}
