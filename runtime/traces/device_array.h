// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of a device for one argument, kept from launch to launch, and the end
// of the program where the runtime refuses what it should not.

#ifndef GDNRT_TRACES_DEVICE_ARRAY_H
#define GDNRT_TRACES_DEVICE_ARRAY_H

#include "gdn-c/runtime.h"

#include <cstddef>
#include <stdexcept>
#include <vector>

namespace gdnrt::traces {

/// A call of the runtime failed; the message is its own.
struct RuntimeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws RuntimeError unless `status` is GDNRT_OK.
inline void check(gdnrt_status status, const gdnrt_error &error) {
  if (status != GDNRT_OK)
    throw RuntimeError(error.message);
}

class DeviceArray {
public:
  explicit DeviceArray(gdnrt_device *device) : device_(device) {}
  ~DeviceArray();
  DeviceArray(DeviceArray &&other) noexcept;
  DeviceArray(const DeviceArray &) = delete;
  DeviceArray &operator=(const DeviceArray &) = delete;

  void *data() const { return data_; }
  void write(const void *from, size_t bytes);
  void read(void *to, size_t bytes) const;

private:
  gdnrt_device *device_;
  void *data_ = nullptr;
  size_t capacity_ = 0;
};

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_DEVICE_ARRAY_H
