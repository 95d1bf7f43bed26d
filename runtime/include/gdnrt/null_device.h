// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A device whose launches do nothing, for measuring the time that the host
// takes.

#ifndef GDNRT_NULL_DEVICE_H
#define GDNRT_NULL_DEVICE_H

#include "gdnrt/device.h"

#include <memory>

namespace gdnrt {

/// Creates the device. It loads the first code of any entry, for any target.
/// Its memory is on the host, but counts as memory that the host cannot read,
/// as on a GPU.
std::shared_ptr<Device> createNullDevice();

} // namespace gdnrt

#endif // GDNRT_NULL_DEVICE_H
