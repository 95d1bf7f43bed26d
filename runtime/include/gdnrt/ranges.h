// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Named ranges of the host's time, for a profiler of the caller's.

#ifndef GDNRT_RANGES_H
#define GDNRT_RANGES_H

namespace gdnrt {

/// The caller's functions, or none.
struct Ranges {
  void (*push)(void *user, const char *name) = nullptr;
  void (*pop)(void *user) = nullptr;
  void *user = nullptr;
};

/// A range from here to the end of the scope.
class Range {
public:
  Range(const Ranges &ranges, const char *name) : ranges_(ranges) {
    if (ranges_.push)
      ranges_.push(ranges_.user, name);
  }
  ~Range() {
    if (ranges_.push)
      ranges_.pop(ranges_.user);
  }
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;

private:
  /// A copy: what was pushed is popped where it was.
  const Ranges ranges_;
};

} // namespace gdnrt

#endif // GDNRT_RANGES_H
