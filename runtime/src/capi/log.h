// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages to the caller's function: what was made, and how long that took.

#ifndef GDNRT_SRC_CAPI_LOG_H
#define GDNRT_SRC_CAPI_LOG_H

#include "gdn-c/runtime.h"

#include <chrono>
#include <cstdio>
#include <sstream>

namespace gdnrt {

/// A caller's function, or nobody.
struct Log {
  gdnrt_log_function function = nullptr;
  void *user = nullptr;

  /// One message of these parts, if somebody takes it.
  template <typename... Parts>
  void operator()(gdnrt_log_level level, const Parts &...parts) const {
    if (!function)
      return;
    std::ostringstream message;
    (message << ... << parts);
    function(user, level, message.str().c_str());
  }
};

/// Milliseconds since it was made, as text with one digit behind the point.
class Stopwatch {
public:
  std::string milliseconds() const {
    std::chrono::duration<double, std::milli> passed =
        std::chrono::steady_clock::now() - start_;
    char text[32];
    std::snprintf(text, sizeof(text), "%.1f", passed.count());
    return text;
  }

private:
  std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
};

} // namespace gdnrt

#endif // GDNRT_SRC_CAPI_LOG_H
