// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host's time for a step on a GPU, part by part, beside its bare launches.

#ifndef GDNRT_BENCH_DEVICE_STEP_TIME_H
#define GDNRT_BENCH_DEVICE_STEP_TIME_H

#include <string>

struct DeviceStepOptions {
  std::string image, driver = "libcuda.so.1";
  int rounds = 2000;
  bool isJson = false;
};

/// Measures steps of decode, or of all kinds with an image of --mixed-batch,
/// and prints them. Whether none allocates or waits, and none calls the driver
/// more than three times beside its launches.
bool measureOnDevice(const DeviceStepOptions &options);

#endif // GDNRT_BENCH_DEVICE_STEP_TIME_H
