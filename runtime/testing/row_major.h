// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row-major arrays as functions of C take them.

#ifndef GDNRT_TESTING_ROW_MAJOR_H
#define GDNRT_TESTING_ROW_MAJOR_H

#include "gdn-c/runtime.h"

#include <cstdint>
#include <vector>

namespace gdnrt {

/// An array without a null slot. Valid as long as `sizes` lives as it is.
inline gdnrt_arg toRowMajor(void *data, gdnrt_dtype dtype,
                            const std::vector<int64_t> &sizes) {
  gdnrt_arg made = {};
  made.data = data;
  made.dtype = dtype;
  made.rank = static_cast<int32_t>(sizes.size());
  made.sizes = sizes.data();
  made.null_slot = -1;
  return made;
}

} // namespace gdnrt

#endif // GDNRT_TESTING_ROW_MAJOR_H
