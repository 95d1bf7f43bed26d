// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CPU as a device: one queue, whose launches have run when they return.

#ifndef GDNRT_CPU_DEVICE_H
#define GDNRT_CPU_DEVICE_H

#include "gdnrt/device.h"

#include <memory>

namespace gdnrt {

/// A CPU device with `numWorkers` threads, the caller of launch included; 0
/// means one for each hardware thread, 1 means no other thread.
Result<std::shared_ptr<Device>> createCpuDevice(int numWorkers);

} // namespace gdnrt

#endif // GDNRT_CPU_DEVICE_H
