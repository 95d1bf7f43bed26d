// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An entry that is loaded on a device: its schema and its code. Bindings and
// layers share ownership of it, so handles may be destroyed in any order.

#ifndef GDNRT_LOADED_KERNEL_H
#define GDNRT_LOADED_KERNEL_H

#include "gdnrt/device.h"
#include "gdnrt/entry_schema.h"

#include <memory>

namespace gdnrt {

struct LoadedKernel {
  std::shared_ptr<Device> device;
  std::shared_ptr<const EntrySchema> entry;
  std::unique_ptr<LoadedCode> code;
  bool debugChecks = false;
};

} // namespace gdnrt

#endif // GDNRT_LOADED_KERNEL_H
