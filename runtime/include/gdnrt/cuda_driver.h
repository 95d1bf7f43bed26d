// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The CUDA driver, which is loaded at run time: the table of its entry points,
// its errors as statuses, and a guard that makes a context current. The driver
// is not looked for before a CUDA device is created.

#ifndef GDNRT_CUDA_DRIVER_H
#define GDNRT_CUDA_DRIVER_H

#include "gdnrt/cuda_abi.h"
#include "gdnrt/status.h"

#include <memory>
#include <string_view>

namespace gdnrt::cuda {

/// The usual name of the driver's library.
constexpr char kDriverLibrary[] = "libcuda.so.1";

struct Driver {
  /// Loads `library` and initialises the driver. UNSUPPORTED if there is no
  /// such library or no device, or if the driver is too old. The library is
  /// never unloaded.
  static ::gdnrt::Result<std::shared_ptr<const Driver>>
  load(const char *library);

  /// OK for success; otherwise
  /// "<what>: cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE (1): invalid argument"
  Status check(Result result, const char *call, std::string_view what) const;

  /// Whether one copy of the driver can take rows that are `distance` bytes
  /// apart: its pitches end below 2^31.
  bool takesRows(uint64_t distance) const {
    return copyRows && distance < (uint64_t{1} << 31);
  }

  /// The version of the driver's CUDA: 12080 for CUDA 12.8.
  int version = 0;

  // NOLINTBEGIN(bugprone-macro-parentheses): of a list of parameters
#define GDNRT_CUDA_MEMBER(MEMBER, SYMBOL, PARAMETERS)                          \
  Result(*MEMBER) PARAMETERS = nullptr;
  GDNRT_CUDA_REQUIRED(GDNRT_CUDA_MEMBER)
  GDNRT_CUDA_OPTIONAL(GDNRT_CUDA_MEMBER)
#undef GDNRT_CUDA_MEMBER
  // NOLINTEND(bugprone-macro-parentheses)
};

/// A context of one device: the caller's context, or the primary context, which
/// is retained as long as the object exists.
class DeviceContext {
public:
  /// The context that is current on this thread if it belongs to `device`,
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

/// Makes a context current on this thread, and restores the previous one in its
/// destructor. Costs one call of the driver if the context is current already.
class CurrentContext {
public:
  explicit CurrentContext(const DeviceContext &context);
  ~CurrentContext();
  CurrentContext(const CurrentContext &) = delete;
  CurrentContext &operator=(const CurrentContext &) = delete;

  /// OK if the context is current now, otherwise the failure of the driver.
  const Status &status() const { return status_; }

private:
  const Driver &driver_;
  Status status_;
  bool isPushed_ = false;
};

/// Allows this thread to load and allocate while another thread captures a
/// graph. The driver forbids that in the default capture mode.
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
