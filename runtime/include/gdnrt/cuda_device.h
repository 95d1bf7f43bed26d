// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A CUDA GPU as a device. Launches go to the caller's streams, in the context
// that the device was created in; nothing in a launch waits or allocates, so
// that it can be captured into a graph.

#ifndef GDNRT_CUDA_DEVICE_H
#define GDNRT_CUDA_DEVICE_H

#include "gdnrt/device.h"

#include <memory>

namespace gdnrt {

struct CudaOptions {
  /// The number of the GPU.
  int ordinal = 0;
  /// The driver's library; null means its usual name. Tests give another.
  const char *driver = nullptr;
};

/// A GPU as a device. UNSUPPORTED where there is no driver or no GPU.
Result<std::shared_ptr<Device>> createCudaDevice(const CudaOptions &options);

} // namespace gdnrt

#endif // GDNRT_CUDA_DEVICE_H
