// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What devices have in common.

#include "gdnrt/device.h"

using namespace gdnrt;

LoadedCode::~LoadedCode() = default;
Device::~Device() = default;

Result<bool> Device::isCapturing(void *) { return false; }

Status Device::keepForGraph(void *, const std::shared_ptr<const void> &) {
  return {};
}

Status gdnrt::refuseCapture(Device &device, void *stream, const char *what) {
  auto capturing = device.isCapturing(stream);
  if (capturing.isOk() && *capturing)
    return failure(StatusCode::unsupported, what,
                   ": expected a stream that is not captured");
  return capturing.status();
}
