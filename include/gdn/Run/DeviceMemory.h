// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory of a device that holds a copy of what the host has. Runs go through
// it on every device, so that one path serves CPUs and GPUs.
#ifndef GDN_RUN_DEVICEMEMORY_H
#define GDN_RUN_DEVICEMEMORY_H

#include "gdn-c/runtime.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace gdn::run {

/// A device that its memory keeps alive.
using DeviceHandle = std::shared_ptr<gdnrt_device>;

/// The device that `text` names: "cpu", "cuda" or "cuda:1". `workers` threads
/// run a launch of a CPU; 0 means all.
llvm::Expected<DeviceHandle> createDevice(llvm::StringRef text, int workers);

/// A block of a device's memory, at least 64-byte aligned.
class DeviceMemory {
public:
  DeviceMemory() = default;
  /// A block that holds `bytes`.
  static llvm::Expected<DeviceMemory> copyOf(const DeviceHandle &device,
                                             llvm::ArrayRef<char> bytes);

  void *get() const { return data.get(); }
  size_t size() const { return numBytes; }
  /// Copies the block to `bytes`, which has its size.
  llvm::Error readTo(llvm::MutableArrayRef<char> bytes) const;

private:
  struct Free {
    DeviceHandle device;
    void operator()(void *data) const {
      gdnrt_device_free(device.get(), data, nullptr);
    }
  };
  std::unique_ptr<void, Free> data;
  size_t numBytes = 0;
};

} // namespace gdn::run

#endif // GDN_RUN_DEVICEMEMORY_H
