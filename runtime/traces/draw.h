// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a step leaves to chance, from its seed.

#ifndef GDNRT_TRACES_DRAW_H
#define GDNRT_TRACES_DRAW_H

#include "model.h"
#include "trace.h"

#include <cstddef>

namespace gdnrt::traces {

/// A number below `bound` that depends on the step, on who asks, and what for.
inline size_t draw(const Step &step, int who, uint64_t what, size_t bound) {
  return mix(step.seed, static_cast<uint64_t>(who) + 1, what) % bound;
}

/// Whether a step of batches names the sequence at a place.
inline bool isNamed(const Step &step, size_t place) {
  return (step.which >> (place % 12)) & 1;
}

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_DRAW_H
