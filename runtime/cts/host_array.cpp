// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element addressing and conversion to the float types.

#include "host_array.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace gdnrt::cts;

static size_t bytesOf(gdnrt_dtype dtype) {
  switch (dtype) {
  case GDNRT_I1:
  case GDNRT_U8:
    return 1;
  case GDNRT_BF16:
  case GDNRT_F16:
    return 2;
  case GDNRT_I64:
  case GDNRT_F64:
    return 8;
  default:
    return 4;
  }
}

static Sizes rowMajor(const Sizes &sizes) {
  Sizes strides(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

/// The bytes that the elements span; an empty array has none.
static size_t spanOf(const Sizes &sizes, const Sizes &strides,
                     size_t elementBytes) {
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0)
      return 0;
    last += (sizes[d] - 1) * strides[d];
  }
  return static_cast<size_t>(last + 1) * elementBytes;
}

HostArray::HostArray(gdnrt_dtype dtype, Sizes sizes)
    : dtype_(dtype), elementBytes_(bytesOf(dtype)), sizes_(std::move(sizes)),
      strides_(rowMajor(sizes_)),
      bytes_(spanOf(sizes_, strides_, elementBytes_), 0xff) {}

int64_t HostArray::count() const {
  int64_t product = 1;
  for (int64_t size : sizes_)
    product *= size;
  return product;
}

size_t HostArray::offsetOf(int64_t index) const {
  if (isDense_)
    return static_cast<size_t>(index) * elementBytes_;
  int64_t offset = 0;
  for (size_t d = sizes_.size(); d-- > 0;) {
    offset += index % sizes_[d] * strides_[d];
    index /= sizes_[d];
  }
  return static_cast<size_t>(offset) * elementBytes_;
}

/// The upper half of a float, rounded to nearest even; finite values only.
static uint16_t toBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Enough for values that are normal in f16: scale the significand to 11 bits.
static uint16_t toF16(float value) {
  if (std::fabs(value) < 6.2e-5f)
    return 0;
  int exponent;
  float significand = std::frexp(std::fabs(value), &exponent);
  int32_t rounded =
      static_cast<int32_t>(std::nearbyint(std::ldexp(significand, 11)));
  int32_t bits = (exponent + 14) * 1024 + (rounded - 1024);
  return static_cast<uint16_t>(bits | (value < 0 ? 0x8000 : 0));
}

void HostArray::setNumber(int64_t index, double value) {
  uint8_t *at = bytes_.data() + offsetOf(index);
  float single = static_cast<float>(value);
  uint16_t half;
  switch (dtype_) {
  case GDNRT_F32:
    std::memcpy(at, &single, 4);
    return;
  case GDNRT_F64:
    std::memcpy(at, &value, 8);
    return;
  case GDNRT_BF16:
  case GDNRT_F16:
    half = dtype_ == GDNRT_BF16 ? toBf16(single) : toF16(single);
    std::memcpy(at, &half, 2);
    return;
  default:
    setInteger(index, static_cast<int64_t>(value));
  }
}

void HostArray::setInteger(int64_t index, int64_t value) {
  uint8_t *at = bytes_.data() + offsetOf(index);
  // Little-endian: the low bytes come first.
  std::memcpy(at, &value, elementBytes_);
}

void HostArray::setNan(int64_t index) {
  std::memset(bytes_.data() + offsetOf(index), 0xff, elementBytes_);
}

void HostArray::shiftIntegers(int64_t by) {
  for (int64_t i = 0; i < count(); ++i) {
    int64_t value = 0;
    std::memcpy(&value, bytes_.data() + offsetOf(i), elementBytes_);
    setInteger(i, value + by); // ids are not negative
  }
}

double HostArray::number(int64_t index) const {
  const uint8_t *at = bytes_.data() + offsetOf(index);
  uint32_t bits = 0;
  std::memcpy(&bits, at, std::min<size_t>(elementBytes_, 4));
  if (dtype_ == GDNRT_BF16)
    bits <<= 16;
  if (dtype_ == GDNRT_F16) {
    const auto exponent = static_cast<int>(bits >> 10 & 31);
    const auto fraction = static_cast<int>(bits & 1023);
    if (exponent == 31)
      return NAN;
    const double magnitude = exponent
                                 ? std::ldexp(1024 + fraction, exponent - 25)
                                 : std::ldexp(fraction, -24);
    return bits & 0x8000 ? -magnitude : magnitude;
  }
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

bool HostArray::isZero(int64_t index) const {
  const uint8_t *at = bytes_.data() + offsetOf(index);
  return std::all_of(at, at + elementBytes_,
                     [](uint8_t byte) { return byte == 0; });
}

bool HostArray::isFinite(int64_t index) const {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes_.data() + offsetOf(index), elementBytes_);
  auto exponentIsFull = [&](uint64_t mask) { return (bits & mask) == mask; };
  switch (dtype_) {
  case GDNRT_F32:
    return !exponentIsFull(0x7f800000);
  case GDNRT_BF16:
    return !exponentIsFull(0x7f80);
  case GDNRT_F16:
    return !exponentIsFull(0x7c00);
  case GDNRT_F64:
    return !exponentIsFull(0x7ff0000000000000);
  default:
    return true;
  }
}

Bytes HostArray::elements() const {
  if (isDense_)
    return bytes_;
  Bytes result;
  result.reserve(static_cast<size_t>(count()) * elementBytes_);
  for (int64_t i = 0; i < count(); ++i) {
    const uint8_t *at = bytes_.data() + offsetOf(i);
    result.insert(result.end(), at, at + elementBytes_);
  }
  return result;
}

void HostArray::relayout(Sizes strides) {
  Bytes dense = elements();
  strides_ = std::move(strides);
  isDense_ = strides_ == rowMajor(sizes_);
  bytes_.assign(spanOf(sizes_, strides_, elementBytes_), 0xff);
  for (int64_t i = 0; i < count(); ++i)
    std::memcpy(bytes_.data() + offsetOf(i),
                dense.data() + static_cast<size_t>(i) * elementBytes_,
                elementBytes_);
}

bool HostArray::paddingIsIntact() const {
  Bytes padding = bytes_;
  for (int64_t i = 0; i < count(); ++i)
    std::memset(padding.data() + offsetOf(i), 0xff, elementBytes_);
  return std::all_of(padding.begin(), padding.end(),
                     [](uint8_t byte) { return byte == 0xff; });
}

void HostArray::copyFrom(const HostArray &other, int64_t first) {
  if (isDense_ && other.isDense_ && count() > 0) {
    std::memcpy(bytes_.data(), other.bytes_.data() + other.offsetOf(first),
                bytes_.size());
    return;
  }
  for (int64_t i = 0; i < count(); ++i)
    copyElement(i, other, first + i);
}

void HostArray::copyElement(int64_t index, const HostArray &other,
                            int64_t from) {
  std::memcpy(bytes_.data() + offsetOf(index),
              other.bytes_.data() + other.offsetOf(from), elementBytes_);
}

gdnrt_arg HostArray::arg() const {
  gdnrt_arg result = {};
  // The data of an empty array is null on purpose.
  result.data = bytes_.empty() ? nullptr : bytes_.data();
  result.dtype = dtype_;
  result.rank = static_cast<int32_t>(sizes_.size());
  result.sizes = sizes_.data();
  result.strides = strides_.data();
  result.null_slot = nullSlot;
  return result;
}
