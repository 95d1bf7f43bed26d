// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times of single iterations, for machines that do other things as well.
#ifndef GDN_RUNTIME_BENCH_MEASURE_H
#define GDN_RUNTIME_BENCH_MEASURE_H

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace gdnbench {

/// Runs `work` for the iterations of `state` and reports, in microseconds, the
/// fastest, the median and the slowest. On a busy machine the fastest of many
/// short iterations is what the work takes when nothing else runs.
template <typename Work> void measure(benchmark::State &state, Work work) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  work(); // warm
  for (auto _ : state) {
    Clock::time_point start = Clock::now();
    work();
    times.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - start)
            .count());
  }
  std::sort(times.begin(), times.end());
  state.counters["us"] = times[times.size() / 2];
  state.counters["us_min"] = times.front();
  state.counters["us_max"] = times.back();
}

} // namespace gdnbench

#endif // GDN_RUNTIME_BENCH_MEASURE_H
