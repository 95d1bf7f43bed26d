// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times of single iterations, for machines that do other things as well.
#ifndef GDN_RUNTIME_BENCH_MEASURE_H
#define GDN_RUNTIME_BENCH_MEASURE_H

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

namespace gdnbench {

/// Time that this process was running, on all its threads together. For work on
/// one thread: what other programs take in between does not count.
struct ProcessClock {
  using duration = std::chrono::nanoseconds;
  using time_point = std::chrono::time_point<ProcessClock, duration>;
  static time_point now() {
    timespec at;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return time_point(std::chrono::seconds(at.tv_sec) +
                      std::chrono::nanoseconds(at.tv_nsec));
  }
};

/// Runs `work` for the iterations of `state` and reports, in microseconds, the
/// fastest, the median and the slowest. On a busy machine the fastest of many
/// short iterations is what the work takes when nothing else runs.
template <typename Clock = std::chrono::steady_clock, typename Work>
void measure(benchmark::State &state, Work work) {
  std::vector<double> times;
  work(); // warm
  for (auto _ : state) {
    typename Clock::time_point start = Clock::now();
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
