// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arithmetic without subnormal numbers. Decays make them in masses: a product
// of many is first tiny, then subnormal, then 0. Processors do not lose a cycle
// over the first and the last, but 100 to 200 over an instruction that meets
// the second: strong gates made a prefill four to eight times slower.
#ifndef GDNRT_SRC_CPU_SUBNORMALS_H
#define GDNRT_SRC_CPU_SUBNORMALS_H

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace gdnrt {

/// While it lives, arithmetic of this thread takes subnormal operands for 0
/// and gives 0 for subnormal results. Copies and integers are not concerned,
/// nor is what is converted from and to f16.
class NoSubnormals {
public:
#if defined(__x86_64__)
  NoSubnormals() : before_(_mm_getcsr()) {
    constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
    _mm_setcsr(before_ | kFlushToZero | kDenormalsAreZero);
  }
  ~NoSubnormals() { _mm_setcsr(before_); }

private:
  unsigned before_;

public:
#else
  NoSubnormals() = default;
  ~NoSubnormals() {}
#endif
  NoSubnormals(const NoSubnormals &) = delete;
  NoSubnormals &operator=(const NoSubnormals &) = delete;
};

} // namespace gdnrt

#endif // GDNRT_SRC_CPU_SUBNORMALS_H
