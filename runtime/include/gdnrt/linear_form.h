// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear forms over an entry's symbols and their quotients: the language in
// which a schema gives dimensions, grids and workspaces. All arithmetic reports
// overflow.

#ifndef GDNRT_LINEAR_FORM_H
#define GDNRT_LINEAR_FORM_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gdnrt {

/// constant + sum of coefficient * floor(value of symbol / divisor). Pairs of
/// symbol and divisor are distinct, coefficients and divisors are not 0, and
/// forms of dimensions have no divisors but 1, which the image reader has
/// checked.
struct LinearForm {
  struct Term {
    uint16_t symbol;
    int64_t coefficient;
    uint32_t divisor = 1;
  };
  int64_t constant = 0;
  std::vector<Term> terms;

  /// The value, or nothing if it does not fit in 64 bits.
  std::optional<int64_t> evaluate(const std::vector<int64_t> &symbols) const;

  /// Text as in gdn.dims, for example "256*Hk + 256*Hv" or "N + 1";
  /// quotients as in grids, "T floordiv 64 + N".
  std::string toString(const std::vector<std::string> &symbolNames) const;
};

} // namespace gdnrt

#endif // GDNRT_LINEAR_FORM_H
