// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host's time for a step, and what it allocates: nothing.
//
//   gdnrt_step_time IMAGE [--check] [--json]
//   gdnrt_step_time IMAGE --device=cuda [--check] [--json]
//
// IMAGE has an entry decode, the first of which is taken. Times are the median,
// least and most of many rounds, per step, on a device that runs nothing.
// --check exits with 1 if one layer with a batch of 1 takes more than 5 us at
// its best, or of 256 more than 20 us, or anything allocates.
//
// On a GPU the time is what a step takes beside its bare launches, and --check
// is of allocations, waits and calls of the driver. An image of gdn-compile
// --mixed-batch --verify=slots has a step of all kinds of sequences there.

#include "counting_malloc.h"
#include "device_step_time.h"
#include "served_step.h"

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
  DeviceStepOptions options;
  std::string &image = options.image, device = "null";
  bool checks = false;
  bool &isJson = options.isJson;
  CLI::App app("The host's time for a step");
  app.add_option("image", image, "an image with an entry decode")->required();
  app.add_flag("--check", checks, "fail where a step is slow or allocates");
  app.add_flag("--json", isJson, "print JSON");
  app.add_option("--device", device, "null, or cuda: GPU 0")
      ->check(CLI::IsMember({"null", "cuda"}));
  app.add_option("--driver", options.driver, "the library of the driver");
  app.add_option("--rounds", options.rounds, "steps of each part, on a GPU")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  if (device == "cuda")
    return measureOnDevice(options) || !checks ? 0 : 1;
  gdnrt_device *null = nullptr;
  if (gdnrt_device_create_null(&null, nullptr) != GDNRT_OK)
    return 1;
  bool isGood = true;
  const char *separator = "[";
  for (const Case &each : kCases) {
    StepShape shape;
    shape.decodes = each.batch;
    shape.layers = each.layers;
    ServedStep step(null, image, shape);
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
  gdnrt_device_destroy(null);
  return checks && !isGood ? 1 : 0;
}
