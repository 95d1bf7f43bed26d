// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cvt: between integers, floats and pairs of narrow floats.

#include "LaneOps.h"

#include <limits>

using namespace ptx;

template <typename T>
static constexpr bool isFloat =
    std::is_same_v<T, float> || std::is_same_v<T, double> ||
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat>;

template <typename T> static double asDouble(T value) {
  if constexpr (std::is_same_v<T, BFloat> || std::is_same_v<T, Half>)
    return static_cast<double>(toFloat(value));
  else
    return static_cast<double>(value);
}

namespace {
/// Whole ones (rni, rzi, rmi, rpi) make integers of floats that stay floats.
template <bool whole> struct NearestOf {
  static constexpr bool isWhole = whole;
  static double round(double value) { return std::nearbyint(value); }
};
template <bool whole> struct ToZeroOf {
  static constexpr bool isWhole = whole;
  static double round(double value) { return std::trunc(value); }
};
struct Down {
  static constexpr bool isWhole = true;
  static double round(double value) { return std::floor(value); }
};
struct Up {
  static constexpr bool isWhole = true;
  static double round(double value) { return std::ceil(value); }
};
using Nearest = NearestOf<false>;
using ToZero = ToZeroOf<false>;
} // namespace

/// A float towards 0, which the host's conversions round to nearest.
template <typename To> static To truncated(float value) {
  uint32_t bits = static_cast<uint32_t>(toBits(value));
  if constexpr (std::is_same_v<To, BFloat>)
    return value != value ? BFloat{0x7fff}
                          : BFloat{static_cast<uint16_t>(bits >> 16)};
  else
    return toHalf(fromBits<float>(bits & 0xffffe000));
}

template <typename To, typename From, typename Rounding, bool saturates>
static To convert(From value) {
  if constexpr (!isFloat<From> && !isFloat<To>) {
    if constexpr (saturates) {
      using Limits = std::numeric_limits<To>;
      __int128 wide = +value; // an int of what is shorter
      return wide < __int128(Limits::min())   ? Limits::min()
             : wide > __int128(Limits::max()) ? Limits::max()
                                              : static_cast<To>(value);
    }
    return static_cast<To>(value);
  } else if constexpr (!isFloat<To>) {
    // Past the ends the end, and 0 for what is no number.
    double rounded = Rounding::round(asDouble(value));
    if (rounded != rounded)
      return To(0);
    using Limits = std::numeric_limits<To>;
    if (rounded <= static_cast<double>(Limits::min()))
      return Limits::min();
    if (rounded >= static_cast<double>(Limits::max()))
      return Limits::max();
    return static_cast<To>(rounded);
  } else if constexpr (isFloat<From> && Rounding::isWhole) {
    double rounded = Rounding::round(asDouble(value));
    return convert<To, double, Nearest, saturates>(rounded);
  } else if constexpr (std::is_same_v<To, double>) {
    return asDouble(value);
  } else {
    float narrow;
    if constexpr (!isFloat<From>)
      narrow = static_cast<float>(value);
    else
      narrow = static_cast<float>(asDouble(value));
    if constexpr (saturates)
      narrow = narrow > 1 ? 1.0f : narrow > 0 ? narrow : 0.0f;
    if constexpr (std::is_same_v<To, float>)
      return narrow;
    else if constexpr (std::is_same_v<Rounding, ToZero>)
      return truncated<To>(narrow);
    else if constexpr (std::is_same_v<To, BFloat>)
      return toBFloat(narrow);
    else
      return toHalf(narrow);
  }
}

template <typename To, typename From, typename Rounding, bool saturates>
static Step apply(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  const Lanes &from = warp.at(i.operands[1]);
  forLanes(mask, [&](unsigned l) {
    to[l] =
        toBits(convert<To, From, Rounding, saturates>(fromBits<From>(from[l])));
  });
  return Step::next;
}

/// cvt.rn.bf16x2.f32 d, a, b: a is the upper half.
template <typename To, typename Rounding>
static Step packPair(Warp &warp, const Instruction &i, Mask mask) {
  Lanes &to = warp.at(i.operands[0]);
  const Lanes &high = warp.at(i.operands[1]), &low = warp.at(i.operands[2]);
  forLanes(mask, [&](unsigned l) {
    auto bits = [&](uint64_t value) {
      return toBits(
          convert<To, float, Rounding, false>(fromBits<float>(value)));
    };
    to[l] = bits(high[l]) << 16 | bits(low[l]);
  });
  return Step::next;
}

template <typename To, typename From>
static Execute withRounding(const Parts &parts) {
  bool saturates = has(parts, "sat");
  if (has(parts, "rni"))
    return saturates ? apply<To, From, NearestOf<true>, true>
                     : apply<To, From, NearestOf<true>, false>;
  if (has(parts, "rzi"))
    return saturates ? apply<To, From, ToZeroOf<true>, true>
                     : apply<To, From, ToZeroOf<true>, false>;
  if (has(parts, "rz"))
    return saturates ? apply<To, From, ToZero, true>
                     : apply<To, From, ToZero, false>;
  if (has(parts, "rmi"))
    return apply<To, From, Down, false>;
  if (has(parts, "rpi"))
    return apply<To, From, Up, false>;
  return saturates ? apply<To, From, Nearest, true>
                   : apply<To, From, Nearest, false>;
}

template <typename To>
static Execute fromType(const Parts &parts, const std::string &from) {
  if (from == "s8")
    return withRounding<To, int8_t>(parts);
  if (from == "u8")
    return withRounding<To, uint8_t>(parts);
  if (from == "s16")
    return withRounding<To, int16_t>(parts);
  if (from == "u16")
    return withRounding<To, uint16_t>(parts);
  if (from == "s32")
    return withRounding<To, int32_t>(parts);
  if (from == "u32")
    return withRounding<To, uint32_t>(parts);
  if (from == "s64")
    return withRounding<To, int64_t>(parts);
  if (from == "u64")
    return withRounding<To, uint64_t>(parts);
  if (from == "f32")
    return withRounding<To, float>(parts);
  if (from == "f64")
    return withRounding<To, double>(parts);
  if (from == "f16")
    return withRounding<To, Half>(parts);
  if (from == "bf16")
    return withRounding<To, BFloat>(parts);
  return nullptr;
}

Execute ptx::findConversion(const Parts &parts, Instruction &) {
  if (parts[0] != "cvt" || parts.size() < 3)
    return nullptr;
  const std::string &to = parts[parts.size() - 2], &from = parts.back();
  bool cuts = has(parts, "rz");
  if (to == "bf16x2")
    return cuts ? packPair<BFloat, ToZero> : packPair<BFloat, Nearest>;
  if (to == "f16x2")
    return cuts ? packPair<Half, ToZero> : packPair<Half, Nearest>;
  if (to == "s8")
    return fromType<int8_t>(parts, from);
  if (to == "u8")
    return fromType<uint8_t>(parts, from);
  if (to == "s16")
    return fromType<int16_t>(parts, from);
  if (to == "u16")
    return fromType<uint16_t>(parts, from);
  if (to == "s32")
    return fromType<int32_t>(parts, from);
  if (to == "u32")
    return fromType<uint32_t>(parts, from);
  if (to == "s64")
    return fromType<int64_t>(parts, from);
  if (to == "u64")
    return fromType<uint64_t>(parts, from);
  if (to == "f32")
    return fromType<float>(parts, from);
  if (to == "f64")
    return fromType<double>(parts, from);
  if (to == "f16")
    return fromType<Half>(parts, from);
  if (to == "bf16")
    return fromType<BFloat>(parts, from);
  return nullptr;
}
