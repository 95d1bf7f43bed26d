// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear forms over the symbols of an entry and quotients of symbols. A schema
// gives sizes, grids, conditions and workspaces in this form. All arithmetic
// reports overflow.

#ifndef GDNRT_LINEAR_FORM_H
#define GDNRT_LINEAR_FORM_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gdnrt {

/// The value constant + sum of coefficient * floor(value of symbol / divisor).
/// The image reader has checked that pairs of symbol and divisor are distinct,
/// that coefficients and divisors are not 0, and that forms of dimensions have
/// only the divisor 1.
struct LinearForm {
  struct Term {
    uint16_t symbol;
    int64_t coefficient;
    uint32_t divisor = 1;
  };
  int64_t constant = 0;
  std::vector<Term> terms;

  /// The value. No value if it does not fit in 64 bits.
  std::optional<int64_t> evaluate(const std::vector<int64_t> &symbols) const;

  /// The form as text, as in gdn.dims, for example "256*Hk + 256*Hv" or "N +
  /// 1". Quotients are written as in grids: "T floordiv 64 + N".
  std::string toString(const std::vector<std::string> &symbolNames) const;
};

} // namespace gdnrt

#endif // GDNRT_LINEAR_FORM_H
