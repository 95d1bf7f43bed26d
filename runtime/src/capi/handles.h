// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What stands behind the handles of the C ABI, and the wall that no exception
// passes. A gdnrt_entry is an EntrySchema under another name.

#ifndef GDNRT_SRC_CAPI_HANDLES_H
#define GDNRT_SRC_CAPI_HANDLES_H

#include "log.h"

#include "gdn-c/runtime.h"
#include "gdnrt/binding.h"
#include "gdnrt/device.h"
#include "gdnrt/image.h"
#include "gdnrt/loaded_kernel.h"
#include "gdnrt/slot_check.h"
#include "gdnrt/status.h"

#include <exception>
#include <memory>
#include <new>
#include <optional>

struct gdnrt_image {
  std::shared_ptr<const gdnrt::Image> image;
};

struct gdnrt_device {
  std::shared_ptr<gdnrt::Device> device;
  std::string features;
  bool debugChecks = false;
  gdnrt::Log log;
};

using gdnrt::LoadedKernel;

struct gdnrt_kernel {
  std::shared_ptr<LoadedKernel> loaded;
};

struct gdnrt_binding {
  std::shared_ptr<LoadedKernel> kernel;
  std::unique_ptr<gdnrt::Binding> binding;
  gdnrt::SlotReport lastReport;
};

namespace gdnrt {

inline const gdnrt_entry *wrap(const EntrySchema *entry) {
  return reinterpret_cast<const gdnrt_entry *>(entry);
}
inline const EntrySchema *unwrap(const gdnrt_entry *entry) {
  return reinterpret_cast<const EntrySchema *>(entry);
}

inline Argument toArgument(const gdnrt_arg &arg) {
  Argument result;
  result.data = arg.data;
  result.dtype = arg.dtype;
  result.rank = arg.rank;
  result.sizes = arg.sizes;
  result.strides = arg.strides;
  result.nullSlot = arg.null_slot;
  return result;
}

/// Loads entry number `entry` of the image, or its code number `code`.
Result<std::shared_ptr<LoadedKernel>> loadKernel(const gdnrt_device &device,
                                                 const Image &image,
                                                 size_t entry,
                                                 std::optional<size_t> code);

/// Copies the status into `error` if there is one.
gdnrt_status report(const Status &status, gdnrt_error *error) noexcept;

/// As above, for when there is no memory to make a message.
gdnrt_status reportText(StatusCode code, const char *message,
                        gdnrt_error *error) noexcept;

/// Runs `body`, which returns a Status, and turns what it throws into a
/// status. Every function of the ABI that can fail goes through here.
template <typename Body>
gdnrt_status guarded(gdnrt_error *error, Body &&body) noexcept {
  try {
    return report(body(), error);
  } catch (const std::bad_alloc &) {
    return reportText(StatusCode::outOfMemory, "no memory", error);
  } catch (const std::exception &exception) {
    return reportText(StatusCode::internal, exception.what(), error);
  } catch (...) {
    return reportText(StatusCode::internal, "unknown exception", error);
  }
}

/// INVALID_ARGUMENT: `what`: expected a pointer, got null.
inline Status nullPointer(const char *what) {
  return invalid(what, ": expected a pointer, got null");
}

} // namespace gdnrt

#endif // GDNRT_SRC_CAPI_HANDLES_H
