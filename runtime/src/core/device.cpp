// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The home of the interfaces' virtual tables.

#include "gdnrt/device.h"

using namespace gdnrt;

LoadedCode::~LoadedCode() = default;
Device::~Device() = default;
