// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies between a GPU and its host, in a context.

#ifndef GDNRT_CUDA_HOST_LINK_H
#define GDNRT_CUDA_HOST_LINK_H

#include "gdnrt/cuda_driver.h"
#include "gdnrt/host_link.h"

#include <memory>

namespace gdnrt::cuda {

/// UNSUPPORTED if the driver lacks a function that the link needs.
::gdnrt::Result<std::unique_ptr<HostLink>>
makeHostLink(std::shared_ptr<const DeviceContext> context);

} // namespace gdnrt::cuda

#endif // GDNRT_CUDA_HOST_LINK_H
