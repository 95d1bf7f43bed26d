// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Zeroes rows of an array that nobody computes.

#ifndef GDNRT_ZERO_ROWS_H
#define GDNRT_ZERO_ROWS_H

#include "gdn-c/runtime.h"
#include "gdnrt/device.h"

namespace gdnrt {

/// Whether zeroRows can do its work: elements of a row are neighbours.
Status checkRowsToZero(const char *name, const gdnrt_arg &arg, int64_t first);

/// Zeroes the rows of `arg` from `first` on, in the order of `stream`. Rows may
/// be apart.
Status zeroRows(Device &device, const char *name, const gdnrt_arg &arg,
                int64_t first, void *stream);

} // namespace gdnrt

#endif // GDNRT_ZERO_ROWS_H
