// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dense arrays and the conversion of their elements.
#include "gdn/Data/Array.h"

#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

using namespace gdn::data;

std::optional<int64_t> gdn::data::elementCount(llvm::ArrayRef<int64_t> shape) {
  int64_t count = 1;
  bool overflow = false, empty = false;
  for (int64_t size : shape) {
    if (size < 0)
      return std::nullopt;
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(count, size, &count);
  }
  if (empty)
    return 0;
  if (overflow)
    return std::nullopt;
  return count;
}

std::string gdn::data::shapeString(llvm::ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (int64_t size : shape)
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

int64_t Array::size() const { return *elementCount(shape); }

std::string Array::typeString() const {
  return name(dtype).str() + shapeString(shape);
}

Array Array::zeros(DType dtype, llvm::ArrayRef<int64_t> shape) {
  std::optional<int64_t> count = elementCount(shape);
  assert(count && "expects sizes that are not negative");
  return {dtype, shape.vec(), std::vector<char>(*count * byteSize(dtype))};
}

/// Truncates and clamps to the range of Int.
template <typename Int> static Int toInt(double value) {
  if (std::isnan(value))
    return 0;
  // 2^31 or 2^63: exact as a double, and the first value out of range.
  const double limit = -double(std::numeric_limits<Int>::min());
  if (value >= limit)
    return std::numeric_limits<Int>::max();
  if (value <= -limit)
    return std::numeric_limits<Int>::min();
  return Int(value);
}

/// Stores `convert(values[i])` one after another.
template <typename T, typename Convert>
static void store(std::vector<char> &bytes, llvm::ArrayRef<double> values,
                  Convert convert) {
  for (size_t i = 0; i < values.size(); ++i) {
    const T element = convert(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
  }
}

Array Array::fromDoubles(DType dtype, llvm::ArrayRef<int64_t> shape,
                         llvm::ArrayRef<double> values) {
  Array array = zeros(dtype, shape);
  assert(values.size() == size_t(array.size()) && "expects a value each");
  switch (dtype) {
  case DType::f32:
    store<float>(array.bytes, values, [](double v) { return float(v); });
    break;
  case DType::bf16:
    store<uint16_t>(array.bytes, values, toBF16);
    break;
  case DType::f16:
    store<uint16_t>(array.bytes, values, toF16);
    break;
  case DType::i32:
    store<int32_t>(array.bytes, values, toInt<int32_t>);
    break;
  case DType::i64:
    store<int64_t>(array.bytes, values, toInt<int64_t>);
    break;
  case DType::i1:
    store<char>(array.bytes, values, [](double v) { return char(v != 0); });
    break;
  case DType::f64:
    store<double>(array.bytes, values, [](double v) { return v; });
    break;
  case DType::u8:
    store<uint8_t>(array.bytes, values, [](double v) {
      return uint8_t(std::clamp(std::isnan(v) ? 0.0 : v, 0.0, 255.0));
    });
    break;
  }
  return array;
}

template <typename T, typename Convert>
static void load(llvm::ArrayRef<char> bytes, std::vector<double> &values,
                 Convert convert) {
  for (size_t i = 0; i < values.size(); ++i) {
    T element;
    std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = convert(element);
  }
}

std::vector<double> Array::toDoubles() const {
  std::vector<double> values(size());
  auto plain = [](auto element) { return double(element); };
  switch (dtype) {
  case DType::f32:
    load<float>(bytes, values, plain);
    break;
  case DType::bf16:
    load<uint16_t>(bytes, values, fromBF16);
    break;
  case DType::f16:
    load<uint16_t>(bytes, values, fromF16);
    break;
  case DType::i32:
    load<int32_t>(bytes, values, plain);
    break;
  case DType::i64:
    load<int64_t>(bytes, values, plain);
    break;
  case DType::i1:
    load<char>(bytes, values, [](char c) { return double(c != 0); });
    break;
  case DType::f64:
    load<double>(bytes, values, plain);
    break;
  case DType::u8:
    load<uint8_t>(bytes, values, plain);
    break;
  }
  return values;
}

Array Array::as(DType other) const {
  if (other == dtype)
    return *this;
  return fromDoubles(other, shape, toDoubles());
}
