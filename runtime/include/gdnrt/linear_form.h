// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear forms over an entry's symbols: the language in which a schema gives
// dimensions and grids. All arithmetic reports overflow.

#ifndef GDNRT_LINEAR_FORM_H
#define GDNRT_LINEAR_FORM_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gdnrt {

/// constant + sum of coefficient * value of symbol. Symbols are distinct and
/// coefficients are not 0, which the image reader has checked.
struct LinearForm {
  struct Term {
    uint16_t symbol;
    int64_t coefficient;
  };
  int64_t constant = 0;
  std::vector<Term> terms;

  /// The value, or nothing if it does not fit in 64 bits.
  std::optional<int64_t> evaluate(const std::vector<int64_t> &symbols) const;

  /// Text as in gdn.dims, for example "256*Hk + 256*Hv" or "N + 1".
  std::string toString(const std::vector<std::string> &symbolNames) const;
};

} // namespace gdnrt

#endif // GDNRT_LINEAR_FORM_H
