// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Element types of tensors that are kept outside of a program, and the
// conversions between them. Every conversion from double rounds once, to
// nearest even; there is no double rounding through float.
#ifndef GDN_DATA_DTYPE_H
#define GDN_DATA_DTYPE_H

#include "llvm/ADT/StringRef.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace gdn::data {

enum class DType : uint8_t { f32, bf16, f16, i32, i64, i1, f64, u8 };

/// Bytes of one element; `i1` takes one byte that is 0 or 1.
size_t byteSize(DType dtype);

/// True for f32, bf16, f16 and f64.
bool isFloat(DType dtype);

/// The name in IR: `f32`, `bf16`, ...; there `u8` is an `i8`.
llvm::StringRef name(DType dtype);

/// The element type that `name` names in IR, if any.
std::optional<DType> parseDType(llvm::StringRef name);

/// Rounds to nearest even. Overflow gives infinity, a NaN stays a (quiet) NaN
/// of the same sign.
uint16_t toBF16(double value);
uint16_t toF16(double value);

/// Exact.
double fromBF16(uint16_t bits);
double fromF16(uint16_t bits);

} // namespace gdn::data

#endif // GDN_DATA_DTYPE_H
