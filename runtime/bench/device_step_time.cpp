// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times of the host are taken step by step. The GPU has nothing to do when a
// step begins, or it is busy for longer than eight steps take the host. What
// the driver is asked, and what is allocated, is counted in steps of their own.

#include "device_step_time.h"
#include "counting_driver.h"
#include "counting_malloc.h"
#include "served_step.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

using Clock = std::chrono::steady_clock;

namespace {

constexpr int kCounted = 50, kWarmUp = 50;
/// Steps behind one piece of work of the GPU: few enough that no queue of the
/// driver is full.
constexpr int kInFlight = 8;

struct DeviceCase {
  const char *what;
  StepShape shape;
  /// Whether each step has another slot than the one before.
  bool changes;
};

std::vector<DeviceCase> casesOf(bool isMixed, bool hasPlan) {
  StepShape one;
  one.keyHeads = 16;
  one.valueHeads = 32;
  StepShape many = one, mixed = one;
  many.decodes = 256;
  mixed.decodes = 64;
  mixed.verifies = 16;
  mixed.prefills = 4;
  if (isMixed) {
    std::vector<DeviceCase> cases = {{"mixed", mixed, false},
                                     {"mixed", mixed, true}};
    mixed.isPlanned = true;
    if (hasPlan)
      cases.push_back({"planned", mixed, false});
    return cases;
  }
  return {{"decode", one, false},
          {"decode", one, true},
          {"decode", many, false},
          {"decode", many, true}};
}

/// Sorted microseconds.
struct Samples {
  std::vector<double> us;
  double median() const { return us[us.size() / 2]; }
};

struct Parts {
  Samples step, build, upload, forward, launch;
};

double since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start)
      .count();
}

} // namespace

/// Calls `once` with the GPU as busy as is asked.
static void repeat(ServedStep &step, bool isIdle, bool changes, int rounds,
                   const std::function<void()> &once) {
  for (int round = 0; round < rounds; ++round) {
    if (isIdle || round % kInFlight == 0)
      step.synchronize();
    if (!isIdle && round % kInFlight == 0)
      occupy(step.stream());
    if (changes)
      step.changeSlot();
    once();
  }
  step.synchronize();
}

static Parts measureParts(ServedStep &step, bool isIdle, bool changes,
                          int rounds) {
  Parts parts;
  for (Samples *times : {&parts.step, &parts.build, &parts.upload,
                         &parts.forward, &parts.launch})
    times->us.reserve(static_cast<size_t>(rounds));
  repeat(step, isIdle, changes, kWarmUp, [&] { step.run(false); });
  repeat(step, isIdle, changes, rounds, [&] {
    const auto start = Clock::now();
    step.run(false);
    parts.step.us.push_back(since(start));
  });
  repeat(step, isIdle, changes, rounds, [&] {
    const auto start = Clock::now();
    step.build();
    parts.build.us.push_back(since(start));
    const auto built = Clock::now();
    step.upload();
    parts.upload.us.push_back(since(built));
    const auto uploaded = Clock::now();
    step.forward();
    parts.forward.us.push_back(since(uploaded));
  });
  step.launch();
  repeat(step, isIdle, changes, rounds, [&] {
    const auto start = Clock::now();
    step.launch();
    parts.launch.us.push_back(since(start));
  });
  for (Samples *times : {&parts.step, &parts.build, &parts.upload,
                         &parts.forward, &parts.launch})
    std::sort(times->us.begin(), times->us.end());
  return parts;
}

static double perStep(int64_t count) {
  return static_cast<double>(count) / kCounted;
}

static void print(const DeviceCase &each, const char *where, const Parts &parts,
                  const DriverCalls &calls, int64_t mallocs, bool isJson,
                  const char *separator) {
  const double launch = parts.launch.median();
  const int64_t launches = calls.count("cuLaunchKernelEx");
  const int64_t contexts = calls.count("cuCtxGetCurrent");
  const double others = perStep(calls.all() - launches - contexts);
  const double waits = perStep(calls.count("cuStreamSynchronize"));
  if (!isJson) {
    std::printf("%s, %s, %lld sequences: %.2f us beside launches of %.2f (%.2f "
                "in the driver): build %.2f, upload %.2f, forward %.2f; %g "
                "calls, %g allocations, %g waits\n",
                each.what, where, static_cast<long long>(each.shape.rows()),
                parts.step.median() - launch, launch, calls.launchUs / kCounted,
                parts.build.median(), parts.upload.median(),
                parts.forward.median(), others, perStep(mallocs), waits);
    return;
  }
  std::printf(
      "%s{\"suite\": \"host\", \"impl\": \"gdn layer\", \"config\": "
      "{\"variant\": \"%s\", \"step\": \"%s\", \"N\": %lld, \"T\": %lld, "
      "\"Hk\": %lld, \"Hv\": %lld, \"layers\": %lld}, \"us\": %.3f, "
      "\"us_min\": %.3f, \"us_max\": %.3f, \"step_us\": %.3f, "
      "\"build_us\": %.3f, \"upload_us\": %.3f, \"forward_us\": %.3f, "
      "\"launch_us\": %.3f, \"driver_launch_us\": %.3f, \"launches\": %g, "
      "\"driver_calls\": %g, \"context_queries\": %g, \"allocations\": %g, "
      "\"driver_allocations\": %g, \"synchronisations\": %g, \"calls\": {",
      separator, where, each.what, static_cast<long long>(each.shape.rows()),
      static_cast<long long>(each.shape.tokens()),
      static_cast<long long>(each.shape.keyHeads),
      static_cast<long long>(each.shape.valueHeads),
      static_cast<long long>(each.shape.layers), parts.step.median() - launch,
      parts.step.us.front() - launch, parts.step.us.back() - launch,
      parts.step.median(), parts.build.median(), parts.upload.median(),
      parts.forward.median(), launch, calls.launchUs / kCounted,
      perStep(launches), others, perStep(contexts), perStep(mallocs),
      perStep(calls.mallocs), waits);
  const char *comma = "";
  for (const auto &[name, count] : calls.byName) {
    std::printf("%s\"%s\": %g", comma, name.c_str(), perStep(count));
    comma = ", ";
  }
  std::printf("}}");
}

/// Whether an entry of the image has a parameter of that name.
static bool hasParam(const std::string &path, const char *name) {
  gdnrt_error error;
  gdnrt_image *image = nullptr;
  if (gdnrt_image_load_file(path.c_str(), &image, &error) != GDNRT_OK) {
    std::fprintf(stderr, "%s\n", error.message);
    std::exit(1);
  }
  bool found = false;
  for (size_t entry = 0; entry < gdnrt_image_entry_count(image); ++entry) {
    size_t param = 0;
    found |= gdnrt_entry_find_param(gdnrt_image_entry(image, entry), name,
                                    &param, nullptr) == GDNRT_OK;
  }
  gdnrt_image_destroy(image);
  return found;
}

bool measureOnDevice(const DeviceStepOptions &options) {
  void *stream = makeStream(options.driver.c_str());
  gdnrt_cuda_options cuda = gdnrt_cuda_options_default();
  cuda.driver = options.driver.c_str();
  gdnrt_device *device = nullptr;
  gdnrt_error error;
  if (gdnrt_device_create_cuda(&cuda, &device, &error) != GDNRT_OK) {
    std::fprintf(stderr, "%s\n", error.message);
    std::exit(1);
  }
  bool isGood = true;
  const char *separator = "[";
  for (const DeviceCase &each : casesOf(hasParam(options.image, "is_prefill"),
                                        hasParam(options.image, "limits"))) {
    ServedStep step(device, options.image, each.shape, stream);
    for (bool isIdle : {true, false}) {
      const Parts parts =
          measureParts(step, isIdle, each.changes, options.rounds);
      const int64_t before = numMallocs();
      startCounting();
      for (int round = 0; round < kCounted; ++round) {
        if (each.changes)
          step.changeSlot();
        step.run(false);
      }
      const int64_t all = numMallocs() - before;
      const DriverCalls calls = stopCounting();
      const int64_t mallocs = all - calls.mallocs;
      const std::string where = std::string(isIdle ? "idle" : "behind work") +
                                (each.changes ? ", a slot changes" : "");
      print(each, where.c_str(), parts, calls, mallocs, options.isJson,
            separator);
      separator = ",\n ";
      isGood &= mallocs <= 0 && calls.count("cuStreamSynchronize") == 0 &&
                calls.all() - calls.count("cuLaunchKernelEx") -
                        calls.count("cuCtxGetCurrent") <=
                    3 * kCounted;
    }
  }
  if (options.isJson)
    std::printf("]\n");
  gdnrt_device_destroy(device);
  return isGood;
}
