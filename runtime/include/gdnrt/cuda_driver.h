// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA driver, found at run time: a table of its entry points, its errors
// as statuses, and contexts that are current for a while. Nothing of it is
// looked for before a CUDA device is created.

#ifndef GDNRT_CUDA_DRIVER_H
#define GDNRT_CUDA_DRIVER_H

#include "gdnrt/cuda_abi.h"
#include "gdnrt/status.h"

#include <memory>
#include <string_view>

namespace gdnrt::cuda {

/// The driver's library under its usual name.
constexpr char kDriverLibrary[] = "libcuda.so.1";

struct Driver {
  /// Loads `library` and initialises it. UNSUPPORTED if there is no such
  /// library, or no device, or the driver is too old. It is never unloaded.
  static ::gdnrt::Result<std::shared_ptr<const Driver>>
  load(const char *library);

  /// OK for success; otherwise
  /// "<what>: cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE (1): invalid argument"
  Status check(Result result, const char *call, std::string_view what) const;

  /// 12080 for CUDA 12.8.
  int version = 0;

  // NOLINTBEGIN(bugprone-macro-parentheses): of a list of parameters
#define GDNRT_CUDA_MEMBER(MEMBER, SYMBOL, PARAMETERS)                          \
  Result(*MEMBER) PARAMETERS = nullptr;
  GDNRT_CUDA_REQUIRED(GDNRT_CUDA_MEMBER)
  GDNRT_CUDA_OPTIONAL(GDNRT_CUDA_MEMBER)
#undef GDNRT_CUDA_MEMBER
  // NOLINTEND(bugprone-macro-parentheses)
};

/// A context of one device: the caller's, or the primary one, which is then
/// retained as long as the object lives.
class DeviceContext {
public:
  /// The context that is current on this thread, if it belongs to `device`,
  /// otherwise the primary context of `device`.
  static ::gdnrt::Result<std::shared_ptr<DeviceContext>>
  find(std::shared_ptr<const Driver> driver, Device device);

  DeviceContext(std::shared_ptr<const Driver> driver, Device device,
                Context context, bool isRetained)
      : driver_(std::move(driver)), device_(device), context_(context),
        isRetained_(isRetained) {}
  ~DeviceContext();
  DeviceContext(const DeviceContext &) = delete;
  DeviceContext &operator=(const DeviceContext &) = delete;

  const Driver &driver() const { return *driver_; }
  Device device() const { return device_; }
  Context handle() const { return context_; }

private:
  std::shared_ptr<const Driver> driver_;
  Device device_;
  Context context_;
  bool isRetained_;
};

/// Makes a context current on this thread, and what was current again at the
/// end. Costs one call where the context is current already.
class CurrentContext {
public:
  explicit CurrentContext(const DeviceContext &context);
  ~CurrentContext();
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;

  /// Whether the context is current now.
  const Status &status() const { return status_; }

private:
  const Driver &driver_;
  Status status_;
  bool isPushed_ = false;
};

/// Lets this thread load and allocate while another one captures a graph,
/// which the driver otherwise forbids in the default capture mode.
class RelaxedCapture {
public:
  explicit RelaxedCapture(const Driver &driver);
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture &) = delete;
  RelaxedCapture &operator=(const RelaxedCapture &) = delete;

private:
  const Driver &driver_;
  int mode_ = kCaptureRelaxed;
};

} // namespace gdnrt::cuda

#endif // GDNRT_CUDA_DRIVER_H
