// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Grows, never shrinks.

#include "device_array.h"

#include <utility>

using namespace gdnrt::traces;

DeviceArray::~DeviceArray() { gdnrt_device_free(device_, data_, nullptr); }

DeviceArray::DeviceArray(DeviceArray &&other) noexcept
    : device_(other.device_), data_(std::exchange(other.data_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)) {}

void DeviceArray::write(const void *from, size_t bytes) {
  gdnrt_error error;
  if (bytes > capacity_ || !data_) {
    check(gdnrt_device_free(device_, data_, &error), error);
    data_ = nullptr;
    capacity_ = bytes + 64;
    check(gdnrt_device_allocate(device_, capacity_, &data_, &error), error);
  }
  check(gdnrt_device_write(device_, data_, from, bytes, &error), error);
}

void DeviceArray::read(void *to, size_t bytes) const {
  gdnrt_error error;
  check(gdnrt_device_read(device_, to, data_, bytes, &error), error);
}
