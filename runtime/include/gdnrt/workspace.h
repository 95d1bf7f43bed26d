// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A workspace that the launches of several layers share, one launch at a time.
// Its counters are zero between launches, whatever the other bytes hold.

#ifndef GDNRT_WORKSPACE_H
#define GDNRT_WORKSPACE_H

#include "gdn-c/serving.h"
#include "gdnrt/device.h"

#include <memory>

namespace gdnrt {

class Workspace {
public:
  static Result<std::shared_ptr<const Workspace>>
  make(const std::shared_ptr<Device> &device, const gdnrt_workspace_size &size);
  /// Makes a workspace in memory of the caller, and fills its counters with
  /// zeros in the order of `stream`.
  static Result<std::shared_ptr<const Workspace>>
  wrap(const std::shared_ptr<Device> &device, const gdnrt_workspace_size &size,
       void *data, void *stream);
  ~Workspace();
  Workspace(const Workspace &) = delete;
  Workspace &operator=(const Workspace &) = delete;

  void *data() const { return data_; }
  const gdnrt_workspace_size &size() const { return size_; }
  const Device &device() const { return *device_; }

private:
  Workspace(std::shared_ptr<Device> device, void *data,
            const gdnrt_workspace_size &size, bool isOwned)
      : device_(std::move(device)), data_(data), size_(size),
        isOwned_(isOwned) {}

  std::shared_ptr<Device> device_;
  void *data_;
  gdnrt_workspace_size size_;
  bool isOwned_;
};

} // namespace gdnrt

#endif // GDNRT_WORKSPACE_H
