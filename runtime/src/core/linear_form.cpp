// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Value and text of linear forms.

#include "gdnrt/linear_form.h"

using namespace gdnrt;

std::optional<int64_t>
LinearForm::evaluate(const std::vector<int64_t> &symbols) const {
  int64_t sum = constant;
  for (const Term &term : terms) {
    int64_t product, value = symbols[term.symbol], divisor = term.divisor;
    int64_t quotient = value / divisor - (value % divisor < 0 ? 1 : 0);
    if (__builtin_mul_overflow(term.coefficient, quotient, &product) ||
        __builtin_add_overflow(sum, product, &sum))
      return std::nullopt;
  }
  return sum;
}

/// The absolute value; INT64_MIN has one too.
static uint64_t magnitude(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value)
                   : static_cast<uint64_t>(value);
}

std::string
LinearForm::toString(const std::vector<std::string> &symbolNames) const {
  std::string text;
  auto sign = [&](bool negative) {
    if (text.empty())
      text += negative ? "-" : "";
    else
      text += negative ? " - " : " + ";
  };
  for (const Term &term : terms) {
    sign(term.coefficient < 0);
    std::string value = symbolNames[term.symbol];
    if (term.divisor != 1)
      value += " floordiv " + std::to_string(term.divisor);
    if (uint64_t factor = magnitude(term.coefficient); factor != 1)
      value = std::to_string(factor) + "*" +
              (term.divisor == 1 ? value : "(" + value + ")");
    text += value;
  }
  if (constant != 0 || terms.empty()) {
    sign(constant < 0);
    text += std::to_string(magnitude(constant));
  }
  return text;
}
