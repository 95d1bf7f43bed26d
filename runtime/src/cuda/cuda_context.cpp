// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which context calls run in. The caller's current context is what it was
// whenever a function of the runtime returns.

#include "gdnrt/cuda_driver.h"

using namespace gdnrt;
using namespace gdnrt::cuda;

::gdnrt::Result<std::shared_ptr<DeviceContext>>
DeviceContext::find(std::shared_ptr<const Driver> driver, Device device) {
  Context current = nullptr;
  if (Status s = driver->check(driver->contextCurrent(&current),
                               "cuCtxGetCurrent", "cuda");
      !s.isOk())
    return s;
  Device currentDevice = -1;
  if (current && driver->contextDevice(&currentDevice) == kSuccess &&
      currentDevice == device)
    return std::make_shared<DeviceContext>(std::move(driver), device, current,
                                           false);
  Context primary = nullptr;
  if (Status s = driver->check(driver->primaryRetain(&primary, device),
                               "cuDevicePrimaryCtxRetain", "cuda");
      !s.isOk())
    return s;
  return std::make_shared<DeviceContext>(std::move(driver), device, primary,
                                         true);
}

DeviceContext::~DeviceContext() {
  // At the end of the process the driver may be gone, and says so.
  if (isRetained_)
    driver_->primaryRelease(device_);
}

CurrentContext::CurrentContext(const DeviceContext &context)
    : driver_(context.driver()) {
  Context current = nullptr;
  cuda::Result result = driver_.contextCurrent(&current);
  if (result == kSuccess && current == context.handle())
    return;
  status_ = driver_.check(driver_.contextPush(context.handle()),
                          "cuCtxPushCurrent", "cuda");
  isPushed_ = status_.isOk();
}

CurrentContext::~CurrentContext() {
  Context popped = nullptr;
  if (isPushed_)
    driver_.contextPop(&popped);
}

RelaxedCapture::RelaxedCapture(const Driver &driver) : driver_(driver) {
  driver_.exchangeCaptureMode(&mode_);
}

RelaxedCapture::~RelaxedCapture() { driver_.exchangeCaptureMode(&mode_); }
