// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States of f32 in fewer bytes, and back, on the host: bf16, f16, and planes of
// bytes with a scale for each row. docs/spec/slots.md has the formulas.

#ifndef GDNRT_NARROW_STATE_H
#define GDNRT_NARROW_STATE_H

#include <cstdint>

namespace gdnrt {

/// What a state is stored as.
enum class StateFormat { f32, bf16, f16, i8x2, i8 };

/// "f32", "bf16", "f16", "i8x2" or "i8".
const char *toString(StateFormat format);

/// 2, 1, or 0 for formats of elements.
inline int64_t planesOf(StateFormat format) {
  return format == StateFormat::i8x2 ? 2 : format == StateFormat::i8 ? 1 : 0;
}

/// A state in a format: `rows` rows of `size` elements, dense.
struct NarrowState {
  /// Elements of 16 bits, or the upper plane.
  void *elements = nullptr;
  /// With planes: one scale for each row. With two: the lower plane.
  float *scales = nullptr;
  uint8_t *low = nullptr;
};

/// Rounds a state of f32 to `format`, to nearest, ties to even. f16 has
/// infinity for what is 65520 or more. With planes, a row whose largest element
/// is below 1e-30 is zero, and one with an element that is not finite has a
/// scale of NaN.
void narrowState(const float *from, int64_t rows, int64_t size,
                 StateFormat format, const NarrowState &to);

/// The state of f32 that `from` stands for.
void widenState(const NarrowState &from, int64_t rows, int64_t size,
                StateFormat format, float *to);

} // namespace gdnrt

#endif // GDNRT_NARROW_STATE_H
