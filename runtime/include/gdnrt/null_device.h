// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A device that takes launches and runs nothing: what is left is the host.

#ifndef GDNRT_NULL_DEVICE_H
#define GDNRT_NULL_DEVICE_H

#include "gdnrt/device.h"

#include <memory>

namespace gdnrt {

/// Loads the first code of any entry, for whatever target. Its memory is the
/// host's, but, as on a GPU, nobody but the device reads it.
std::shared_ptr<Device> createNullDevice();

} // namespace gdnrt

#endif // GDNRT_NULL_DEVICE_H
