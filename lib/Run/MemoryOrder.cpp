// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element by element; see MemoryOrder.h.
#include "gdn/Run/MemoryOrder.h"

#include <cstring>

using namespace gdn;
using namespace gdn::run;

std::vector<int64_t> run::stridesOf(const std::vector<int64_t> &shape,
                                    int innermost) {
  std::vector<int64_t> strides(shape.size());
  strides[innermost] = 1;
  int64_t next = shape[innermost];
  for (int d = int(shape.size()) - 1; d >= 0; --d) {
    if (d == innermost)
      continue;
    strides[d] = next;
    next *= shape[d];
  }
  return strides;
}

/// Calls `visit(from, to)` with the byte offsets of each element: row-major,
/// and in the order of memory.
template <typename Visit>
static void forElements(const std::vector<int64_t> &shape, int innermost,
                        int64_t bytes, Visit visit) {
  const std::vector<int64_t> strides = stridesOf(shape, innermost);
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, to = 0;
    for (int d = int(shape.size()) - 1; d >= 0; --d) {
      to += rest % shape[d] * strides[d];
      rest /= shape[d];
    }
    visit(i * bytes, to * bytes);
  }
}

std::vector<char> run::toMemoryOrder(const data::Array &array, int innermost) {
  std::vector<char> memory(array.bytes.size());
  const auto bytes = int64_t(data::byteSize(array.dtype));
  forElements(array.shape, innermost, bytes, [&](int64_t from, int64_t to) {
    std::memcpy(memory.data() + to, array.bytes.data() + from, bytes);
  });
  return memory;
}

void run::fromMemoryOrder(const std::vector<char> &memory, int innermost,
                          data::Array &array) {
  const auto bytes = int64_t(data::byteSize(array.dtype));
  forElements(array.shape, innermost, bytes, [&](int64_t to, int64_t from) {
    std::memcpy(array.bytes.data() + to, memory.data() + from, bytes);
  });
}
