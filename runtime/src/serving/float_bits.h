// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// f32, bf16 and f16 in memory as float. By integers and exact products alone:
// compilers' own f16 conversions may be calls of a library that is too new.

#ifndef GDNRT_SRC_SERVING_FLOAT_BITS_H
#define GDNRT_SRC_SERVING_FLOAT_BITS_H

#include "gdnrt/entry_schema.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace gdnrt {

inline float floatOfBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline uint32_t bitsOfFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// The f16 with these bits.
inline float floatOfHalf(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  uint32_t rest = half & 0x7fff;
  if (rest >= 0x7c00) // infinite or NaN
    return floatOfBits(sign | 0x7f800000 | (rest & 0x3ff) << 13);
  // 112 is the difference of the exponents' biases; subnormals come out right.
  float magnitude = std::ldexp(floatOfBits(rest << 13), 112);
  return sign ? -magnitude : magnitude;
}

/// The nearest f16, ties to even.
inline uint16_t halfOfFloat(float value) {
  auto sign = static_cast<uint16_t>(bitsOfFloat(value) >> 16 & 0x8000);
  float magnitude = std::fabs(value);
  if (magnitude != magnitude)
    return sign | 0x7e00;
  if (magnitude >= 65520.0f) // halfway between the largest f16 and 2^16
    return sign | 0x7c00;
  if (magnitude < 0x1p-14f) // steps of 2^-24
    return sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24f));
  uint32_t bits = bitsOfFloat(magnitude) - (uint32_t{112} << 23);
  return sign | static_cast<uint16_t>((bits + 0xfff + (bits >> 13 & 1)) >> 13);
}

/// The nearest bf16, ties to even; a NaN stays one.
inline uint16_t bfloatOfFloat(float value) {
  uint32_t bits = bitsOfFloat(value);
  if (value != value)
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Reads an element of f32, bf16 or f16.
inline float readFloat(const void *data, DType dtype) {
  if (dtype == DType::f32) {
    float value;
    std::memcpy(&value, data, sizeof(value));
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, data, sizeof(bits));
  return dtype == DType::f16 ? floatOfHalf(bits)
                             : floatOfBits(static_cast<uint32_t>(bits) << 16);
}

/// Writes an element, rounded to nearest.
inline void writeFloat(void *data, float value, DType dtype) {
  if (dtype == DType::f32) {
    std::memcpy(data, &value, sizeof(value));
    return;
  }
  uint16_t bits =
      dtype == DType::f16 ? halfOfFloat(value) : bfloatOfFloat(value);
  std::memcpy(data, &bits, sizeof(bits));
}

} // namespace gdnrt

#endif // GDNRT_SRC_SERVING_FLOAT_BITS_H
