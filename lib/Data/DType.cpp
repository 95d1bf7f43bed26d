// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions to and from the 16-bit formats, by one routine for any binary
// format with a sign, an exponent and a fraction.
#include "gdn/Data/DType.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/ErrorHandling.h"

#include <cmath>

using namespace gdn::data;

size_t gdn::data::byteSize(DType dtype) {
  switch (dtype) {
  case DType::f64:
  case DType::i64:
    return 8;
  case DType::f32:
  case DType::i32:
    return 4;
  case DType::bf16:
  case DType::f16:
    return 2;
  case DType::i1:
  case DType::u8:
    return 1;
  }
  llvm_unreachable("covered switch");
}

bool gdn::data::isFloat(DType dtype) {
  return dtype != DType::i32 && dtype != DType::i64 && dtype != DType::i1 &&
         dtype != DType::u8;
}

llvm::StringRef gdn::data::name(DType dtype) {
  switch (dtype) {
  case DType::f32:
    return "f32";
  case DType::bf16:
    return "bf16";
  case DType::f16:
    return "f16";
  case DType::i32:
    return "i32";
  case DType::i64:
    return "i64";
  case DType::i1:
    return "i1";
  case DType::f64:
    return "f64";
  case DType::u8:
    return "u8";
  }
  llvm_unreachable("covered switch");
}

std::optional<DType> gdn::data::parseDType(llvm::StringRef text) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i32,
                      DType::i64, DType::i1, DType::f64, DType::u8})
    if (text == name(dtype))
      return dtype;
  return std::nullopt;
}

/// Rounds `value` to a format of `exponentBits` and `fractionBits` behind the
/// sign, with gradual underflow.
static uint16_t encode(double value, int exponentBits, int fractionBits) {
  const uint64_t bits = llvm::bit_cast<uint64_t>(value);
  const uint16_t sign = (bits >> 63) << (exponentBits + fractionBits);
  const uint64_t fraction = bits & ((uint64_t(1) << 52) - 1);
  const int biased = (bits >> 52) & 0x7ff;
  const int bias = (1 << (exponentBits - 1)) - 1;
  const uint16_t infinity = ((1 << exponentBits) - 1) << fractionBits;

  if (biased == 0x7ff) {
    if (!fraction)
      return sign | infinity;
    // The quiet bit keeps a NaN whose payload lies in the lost bits a NaN.
    return sign | infinity | uint16_t(fraction >> (52 - fractionBits)) |
           (1 << (fractionBits - 1));
  }
  if (biased == 0) // far below the smallest value of any format here
    return sign;

  const int exponent = biased - 1023;
  const int minExponent = 1 - bias;
  const bool subnormal = exponent < minExponent;
  // value = significand * 2^(exponent - 52); drop the bits below the format's
  // last place.
  const uint64_t significand = (uint64_t(1) << 52) | fraction;
  const int drop = 52 - fractionBits + (subnormal ? minExponent - exponent : 0);
  if (drop > 53) // less than half of the smallest subnormal
    return sign;
  uint64_t kept = significand >> drop;
  const uint64_t rest = significand & ((uint64_t(1) << drop) - 1);
  const uint64_t half = uint64_t(1) << (drop - 1);
  if (rest > half || (rest == half && (kept & 1)))
    ++kept;
  // `kept` holds the leading one, which adds 1 to the exponent field; a carry
  // out of the fraction does the same, also from subnormal to normal.
  const int64_t field = subnormal ? 0 : exponent + bias - 1;
  const uint64_t code = (uint64_t(field) << fractionBits) + kept;
  return sign |
         (field >= (1 << exponentBits) || code >= infinity ? infinity
                                                           : uint16_t(code));
}

uint16_t gdn::data::toBF16(double value) { return encode(value, 8, 7); }
uint16_t gdn::data::toF16(double value) { return encode(value, 5, 10); }

double gdn::data::fromBF16(uint16_t bits) {
  return llvm::bit_cast<float>(uint32_t(bits) << 16);
}

double gdn::data::fromF16(uint16_t bits) {
  const double sign = bits >> 15 ? -1.0 : 1.0;
  const int exponent = (bits >> 10) & 0x1f;
  const int fraction = bits & 0x3ff;
  if (exponent == 0x1f)
    return std::copysign(fraction ? std::nan("") : HUGE_VAL, sign);
  if (exponent == 0)
    return sign * std::ldexp(double(fraction), -24);
  return sign * std::ldexp(double(fraction | 0x400), exponent - 25);
}
