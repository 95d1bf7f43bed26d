// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counts all allocations of the process, those of shared libraries included.

#ifndef GDNRT_BENCH_COUNTING_MALLOC_H
#define GDNRT_BENCH_COUNTING_MALLOC_H

#include <cstdint>

/// Calls of malloc and its kin so far, in all threads; -1 where they cannot be
/// counted (another libc, sanitizers).
int64_t numMallocs();

#endif // GDNRT_BENCH_COUNTING_MALLOC_H
