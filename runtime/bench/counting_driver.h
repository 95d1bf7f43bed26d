// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts the calls of the CUDA driver that the runtime makes, in one thread.
// The runtime finds them by name, with the dlsym of this program.

#ifndef GDNRT_BENCH_COUNTING_DRIVER_H
#define GDNRT_BENCH_COUNTING_DRIVER_H

#include <cstdint>
#include <map>
#include <string>

/// What the driver was asked for between two moments.
struct DriverCalls {
  /// Calls by the names of the driver's functions, those without a call left
  /// out.
  std::map<std::string, int64_t> byName;
  /// Allocations of host memory that the driver made itself.
  int64_t mallocs = 0;
  /// Microseconds inside of launches.
  double launchUs = 0;

  int64_t count(const char *name) const;
  int64_t all() const;
};

/// Starts to count, and to take the time of launches.
void startCounting();
/// Ends that, and what was counted.
DriverCalls stopCounting();

/// Makes the primary context of GPU 0 current on this thread, as it is in an
/// engine, and a stream in it: null if the driver, a library, gives none.
void *makeStream(const char *library);
/// Gives the stream work for some hundred microseconds. Stand-ins of the driver
/// have none.
void occupy(void *stream);

#endif // GDNRT_BENCH_COUNTING_DRIVER_H
