// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays whose innermost dimension in memory is not the last.
#ifndef GDN_RUN_MEMORYORDER_H
#define GDN_RUN_MEMORYORDER_H

#include "gdn/Data/Array.h"

#include <cstdint>
#include <vector>

namespace gdn::run {

/// Strides in elements of an array of `shape` without gaps, in whose memory the
/// dimension `innermost` stands behind the last one, and others in order.
std::vector<int64_t> stridesOf(const std::vector<int64_t> &shape,
                               int innermost);

/// The bytes of `array`, which are row-major, in that order.
std::vector<char> toMemoryOrder(const data::Array &array, int innermost);

/// Sets the bytes of `array` to those that `memory` has in that order.
void fromMemoryOrder(const std::vector<char> &memory, int innermost,
                     data::Array &array);

} // namespace gdn::run

#endif // GDN_RUN_MEMORYORDER_H
