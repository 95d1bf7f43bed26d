// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that a thread does not get, so that a test can say what others are
// told then.
#ifndef GDN_TEST_UNIT_RUNTIME_EXCHANGE_FAILING_ALLOCATOR_H
#define GDN_TEST_UNIT_RUNTIME_EXCHANGE_FAILING_ALLOCATOR_H

#include <cstdint>

namespace gdnrt::test {

/// False under a sanitizer, whose operator new cannot be replaced.
bool failsAllocations();

/// Of this thread, while it lives: operator new and aligned_alloc, with which
/// the CPU's device allocates, give memory `successes` times and then no more,
/// or once not.
class FailingAllocations {
public:
  FailingAllocations(int64_t successes, bool once);
  ~FailingAllocations();
  FailingAllocations(const FailingAllocations &) = delete;
  FailingAllocations &operator=(const FailingAllocations &) = delete;
  /// Whether any has failed.
  bool hasFailed() const;
};

} // namespace gdnrt::test

#endif // GDN_TEST_UNIT_RUNTIME_EXCHANGE_FAILING_ALLOCATOR_H
