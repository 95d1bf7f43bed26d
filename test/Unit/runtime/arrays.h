// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Short ways to describe arrays in tests: Array("x", f32, {2, 3}) owns its
// sizes and strides and turns into an argument.

#ifndef GDN_TEST_UNIT_RUNTIME_ARRAYS_H
#define GDN_TEST_UNIT_RUNTIME_ARRAYS_H

#include "gdn-c/runtime.h"
#include "gdnrt/binding.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace gdnrt::test {

struct Array {
  Array(void *data, DType dtype, std::vector<int64_t> sizes,
        std::vector<int64_t> strides = {}, int64_t nullSlot = 0)
      : data(data), dtype(static_cast<int32_t>(dtype)), sizes(std::move(sizes)),
        strides(std::move(strides)), nullSlot(nullSlot) {}

  /// Valid while the Array lives.
  operator Argument() const {
    Argument arg;
    arg.data = data;
    arg.dtype = dtype;
    arg.rank = static_cast<int32_t>(sizes.size());
    arg.sizes = sizes.data();
    arg.strides = strides.empty() ? nullptr : strides.data();
    arg.nullSlot = nullSlot;
    return arg;
  }
  operator gdnrt_arg() const {
    gdnrt_arg arg = {};
    arg.data = data;
    arg.dtype = dtype;
    arg.rank = static_cast<int32_t>(sizes.size());
    arg.sizes = sizes.data();
    arg.strides = strides.empty() ? nullptr : strides.data();
    arg.null_slot = nullSlot;
    return arg;
  }

  void *data;
  int32_t dtype;
  std::vector<int64_t> sizes, strides;
  int64_t nullSlot;
};

/// An address that nothing reads: binding never looks behind pointers.
inline void *address(uintptr_t value) {
  return reinterpret_cast<void *>(value);
}

inline std::vector<Argument> toArguments(const std::vector<Array> &arrays) {
  return std::vector<Argument>(arrays.begin(), arrays.end());
}

} // namespace gdnrt::test

#endif // GDN_TEST_UNIT_RUNTIME_ARRAYS_H
