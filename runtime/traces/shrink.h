// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes a trace that fails as short and as plain as can be.

#ifndef GDNRT_TRACES_SHRINK_H
#define GDNRT_TRACES_SHRINK_H

#include "trace.h"

#include <functional>

namespace gdnrt::traces {

/// The smallest trace found that still `fails`, which `trace` does; tries at
/// most a few thousand.
Trace shrink(Trace trace, const std::function<bool(const Trace &)> &fails);

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_SHRINK_H
