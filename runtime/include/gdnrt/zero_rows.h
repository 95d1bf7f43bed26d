// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fills rows of an array with zeros that no kernel writes.

#ifndef GDNRT_ZERO_ROWS_H
#define GDNRT_ZERO_ROWS_H

#include "gdn-c/runtime.h"
#include "gdnrt/device.h"

namespace gdnrt {

/// Checks that zeroRows can fill the rows of `arg` from `first` on: the
/// elements of a row must be dense.
Status checkRowsToZero(const char *name, const gdnrt_arg &arg, int64_t first);

/// Fills the rows of `arg` from `first` on with zeros, in the order of
/// `stream`. There may be gaps between rows.
Status zeroRows(Device &device, const char *name, const gdnrt_arg &arg,
                int64_t first, void *stream);

} // namespace gdnrt

#endif // GDNRT_ZERO_ROWS_H
