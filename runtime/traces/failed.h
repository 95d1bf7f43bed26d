// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A difference between the model and what ran.

#ifndef GDNRT_TRACES_FAILED_H
#define GDNRT_TRACES_FAILED_H

#include <stdexcept>

namespace gdnrt::traces {

struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_FAILED_H
