// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A CUDA GPU as a device. Launches go to the caller's streams, in the context
// in which the device was created. A launch neither waits nor allocates, so it
// can be captured into a graph.

#ifndef GDNRT_CUDA_DEVICE_H
#define GDNRT_CUDA_DEVICE_H

#include "gdnrt/device.h"

#include <memory>

namespace gdnrt {

struct CudaOptions {
  /// The number of the GPU.
  int ordinal = 0;
  /// The library of the driver. Null means the usual name. Tests use another
  /// one.
  const char *driver = nullptr;
};

/// Creates a device for a GPU. UNSUPPORTED without a driver or without a GPU.
Result<std::shared_ptr<Device>> createCudaDevice(const CudaOptions &options);

} // namespace gdnrt

#endif // GDNRT_CUDA_DEVICE_H
