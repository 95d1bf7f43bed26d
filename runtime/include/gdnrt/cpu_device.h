// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CPU as a device. It has one queue, and its launches have ended when they
// return.

#ifndef GDNRT_CPU_DEVICE_H
#define GDNRT_CPU_DEVICE_H

#include "gdnrt/device.h"

#include <memory>

namespace gdnrt {

/// Creates a CPU device with `numWorkers` threads, 0 to 1024, the thread that
/// calls launch included. 0 means one for each hardware thread, 1 means only
/// the calling thread.
Result<std::shared_ptr<Device>> createCpuDevice(int numWorkers);

} // namespace gdnrt

#endif // GDNRT_CPU_DEVICE_H
