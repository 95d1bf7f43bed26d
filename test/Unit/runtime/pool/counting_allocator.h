// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts what this program allocates, so that a test can say that something
// does not.

#ifndef GDNRT_TEST_COUNTING_ALLOCATOR_H
#define GDNRT_TEST_COUNTING_ALLOCATOR_H

#include <cstdint>

namespace gdnrt::test {

/// False under a sanitizer, whose operator new cannot be replaced.
bool countsAllocations();

/// Calls of operator new and malloc's kin by C++ code, in all threads, so far.
uint64_t numAllocations();

} // namespace gdnrt::test

#endif // GDNRT_TEST_COUNTING_ALLOCATOR_H
