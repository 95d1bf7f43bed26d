// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows that follow each other are zeroed at once, others by their distance.

#include "gdnrt/zero_rows.h"

#include <algorithm>

using namespace gdnrt;

static bool hasRows(const gdnrt_arg &arg, int64_t first) {
  // Arrays without elements have any strides.
  return arg.sizes[0] > first &&
         std::none_of(arg.sizes, arg.sizes + arg.rank,
                      [](int64_t size) { return size <= 0; });
}

Status gdnrt::checkRowsToZero(const char *name, const gdnrt_arg &arg,
                              int64_t first) {
  if (!hasRows(arg, first))
    return {};
  int64_t dense = 1;
  for (int d = arg.rank; d-- > 1;) {
    if (arg.strides && arg.sizes[d] != 1 && arg.strides[d] != dense)
      return invalid(name, ": expected rows of neighbouring elements");
    dense *= arg.sizes[d];
  }
  if (!arg.data)
    return invalid(name, ": expected an array, got null");
  return {};
}

Status gdnrt::zeroRows(Device &device, const char *name, const gdnrt_arg &arg,
                       int64_t first, void *stream) {
  if (Status s = checkRowsToZero(name, arg, first); !s.isOk())
    return s;
  if (!hasRows(arg, first))
    return {};
  int64_t bytes = sizeInBytes(static_cast<DType>(arg.dtype)), dense = 1;
  for (int d = arg.rank; d-- > 1;)
    dense *= arg.sizes[d];
  int64_t rows = arg.sizes[0] - first;
  int64_t stride = arg.strides ? arg.strides[0] : dense;
  char *data = static_cast<char *>(arg.data) + first * stride * bytes;
  if (stride < 0) { // from the last row on
    data += (rows - 1) * stride * bytes;
    stride = -stride;
  }
  // Rows that follow each other or overlap leave nothing between them.
  if (stride <= dense)
    return device.fill(
        data, 0, static_cast<uint64_t>(((rows - 1) * stride + dense) * bytes),
        stream);
  return device.fillRows(data, 0, static_cast<uint64_t>(dense * bytes),
                         static_cast<uint64_t>(rows),
                         static_cast<uint64_t>(stride * bytes), stream);
}
