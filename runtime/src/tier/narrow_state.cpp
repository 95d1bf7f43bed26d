// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops without branches over elements, which compilers make vectors of.

#include "gdnrt/narrow_state.h"

#include <algorithm>
#include <cstring>
#include <limits>

using namespace gdnrt;

static uint32_t toBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static float toFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

constexpr uint32_t kInfinity = 0x7f800000;

static uint16_t toBfloat(float value) {
  const uint32_t bits = toBits(value);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const uint32_t nan = bits >> 16 | 0x40;
  return static_cast<uint16_t>((bits & 0x7fffffff) > kInfinity ? nan : rounded);
}

static uint16_t toHalf(float value) {
  const uint32_t bits = toBits(value), magnitude = bits & 0x7fffffff;
  const uint32_t normal =
      (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // The unit of 0.5 is 2^-24, as that of subnormals is.
  const uint32_t small = toBits(toFloat(magnitude) + 0.5f) - toBits(0.5f);
  constexpr uint32_t smallestNormal = 113u << 23, tooLarge = 0x477ff000;
  uint32_t half = magnitude < smallestNormal ? small : normal;
  half = magnitude >= tooLarge ? 0x7c00 : half;
  half = magnitude > kInfinity ? 0x7e00 : half;
  return static_cast<uint16_t>(half | (bits >> 16 & 0x8000));
}

static float ofHalf(uint16_t half) {
  const uint32_t rest = half & 0x7fff;
  const uint32_t normal = (rest << 13) + (112u << 23);
  const uint32_t infinite = (rest << 13) + (224u << 23);
  const uint32_t small = toBits(static_cast<float>(rest) * 0x1p-24f);
  uint32_t bits = rest < 0x400 ? small : normal;
  bits = rest >= 0x7c00 ? infinite : bits;
  return toFloat(bits | static_cast<uint32_t>(half & 0x8000) << 16);
}

/// The nearest integer, ties to even, of a number below 2^22.
static int32_t toInteger(float value) {
  constexpr float unit = 12582912.0f; // 1.5 * 2^23, whose unit is 1
  return static_cast<int32_t>(toBits(value + unit) - toBits(unit));
}

/// The scale of a row: 0 if it is zero, NaN if an element is not finite.
static float scaleOf(const float *row, int64_t size) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < size; ++i)
    largest = std::max(largest, toBits(row[i]) & 0x7fffffff);
  if (largest >= kInfinity)
    return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = toFloat(largest);
  return magnitude < 1e-30f ? 0.0f : magnitude / 127.0f;
}

static void toPlanes(const float *row, int64_t size, float scale,
                     uint8_t *upper, uint8_t *low) {
  for (int64_t i = 0; i < size; ++i) {
    const int32_t value = toInteger(row[i] / scale * 256.0f);
    const int32_t high = (value + 128) >> 8;
    upper[i] = static_cast<uint8_t>(high + 128);
    low[i] = static_cast<uint8_t>(value - high * 256 + 128);
  }
}

static void toPlane(const float *row, int64_t size, float scale,
                    uint8_t *upper) {
  for (int64_t i = 0; i < size; ++i)
    upper[i] = static_cast<uint8_t>(toInteger(row[i] / scale) + 128);
}

const char *gdnrt::toString(StateFormat format) {
  static constexpr const char *kNames[] = {"f32", "bf16", "f16", "i8x2", "i8"};
  return kNames[static_cast<int>(format)];
}

void gdnrt::narrowState(const float *from, int64_t rows, int64_t size,
                        StateFormat format, const NarrowState &to) {
  const int64_t count = rows * size;
  auto *shorts = static_cast<uint16_t *>(to.elements);
  auto *upper = static_cast<uint8_t *>(to.elements);
  switch (format) {
  case StateFormat::f32:
    std::memcpy(to.elements, from, static_cast<size_t>(count) * sizeof(float));
    return;
  case StateFormat::bf16:
    for (int64_t i = 0; i < count; ++i)
      shorts[i] = toBfloat(from[i]);
    return;
  case StateFormat::f16:
    for (int64_t i = 0; i < count; ++i)
      shorts[i] = toHalf(from[i]);
    return;
  case StateFormat::i8x2:
  case StateFormat::i8:
    break;
  }
  for (int64_t row = 0; row < rows; ++row, from += size, upper += size) {
    const float scale = to.scales[row] = scaleOf(from, size);
    uint8_t *low = to.low ? to.low + row * size : nullptr;
    if (!(scale > 0)) {
      std::fill_n(upper, size, uint8_t{128});
      if (low)
        std::fill_n(low, size, uint8_t{128});
    } else if (low) {
      toPlanes(from, size, scale, upper, low);
    } else {
      toPlane(from, size, scale, upper);
    }
  }
}

void gdnrt::widenState(const NarrowState &from, int64_t rows, int64_t size,
                       StateFormat format, float *to) {
  const int64_t count = rows * size;
  const auto *shorts = static_cast<const uint16_t *>(from.elements);
  const auto *upper = static_cast<const uint8_t *>(from.elements);
  switch (format) {
  case StateFormat::f32:
    std::memcpy(to, from.elements, static_cast<size_t>(count) * sizeof(float));
    return;
  case StateFormat::bf16:
    for (int64_t i = 0; i < count; ++i)
      to[i] = toFloat(static_cast<uint32_t>(shorts[i]) << 16);
    return;
  case StateFormat::f16:
    for (int64_t i = 0; i < count; ++i)
      to[i] = ofHalf(shorts[i]);
    return;
  case StateFormat::i8x2:
  case StateFormat::i8:
    break;
  }
  for (int64_t row = 0; row < rows; ++row, to += size, upper += size) {
    const float scale = from.scales[row];
    if (scale == 0) {
      // Whatever the bytes are.
      std::fill_n(to, size, 0.0f);
    } else if (const uint8_t *low =
                   from.low ? from.low + row * size : nullptr) {
      for (int64_t i = 0; i < size; ++i)
        to[i] = scale * (static_cast<float>(upper[i] - 128) +
                         static_cast<float>(low[i] - 128) * (1 / 256.0f));
    } else {
      for (int64_t i = 0; i < size; ++i)
        to[i] = scale * static_cast<float>(upper[i] - 128);
    }
  }
}
