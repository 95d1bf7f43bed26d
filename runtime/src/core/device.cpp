// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What devices have in common.

#include "gdnrt/device.h"

#include <algorithm>

using namespace gdnrt;

LoadedCode::~LoadedCode() = default;
Device::~Device() = default;

Result<bool> Device::isCapturing(void *) { return false; }

Status Device::keepForGraph(void *, const std::shared_ptr<const void> &) {
  return {};
}

Status Device::fillRows(void *data, uint8_t value, uint64_t bytes,
                        uint64_t rows, uint64_t distance, void *stream) {
  for (uint64_t row = 0; row < rows; ++row)
    if (Status s = fill(static_cast<char *>(data) + row * distance, value,
                        bytes, stream);
        !s.isOk())
      return s;
  return {};
}

Status Device::copyRows(void *to, const void *from, uint64_t bytes,
                        uint64_t rows, uint64_t distance, void *stream) {
  for (uint64_t row = 0; row < rows; ++row)
    if (Status status = copy(
            static_cast<uint8_t *>(to) + row * distance,
            static_cast<const uint8_t *>(from) + row * distance, bytes, stream);
        !status.isOk())
      return status;
  return {};
}

/// Streams and captures that are remembered; a launch on a forgotten one waits.
static constexpr size_t kMostOrders = 64;

bool Device::isOrdered(void *order, uint64_t writes) {
  std::lock_guard<std::mutex> guard(orderedLock_);
  auto found = ordered_.find(order);
  return found != ordered_.end() && found->second >= writes;
}

void Device::setOrdered(void *order, uint64_t writes) {
  std::lock_guard<std::mutex> guard(orderedLock_);
  if (ordered_.size() >= kMostOrders && !ordered_.count(order))
    ordered_.clear();
  uint64_t &known = ordered_[order];
  known = std::max(known, writes);
}

Status gdnrt::captureRefused(const char *what) {
  return failure(StatusCode::unsupported, what,
                 ": expected a stream that is not captured");
}

Status gdnrt::refuseCapture(Device &device, void *stream, const char *what) {
  auto capturing = device.isCapturing(stream);
  if (capturing.isOk() && *capturing)
    return captureRefused(what);
  return capturing.status();
}
