// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// PTX text as words, numbers and signs.

#ifndef GDN_TEST_PTX_LEXER_H
#define GDN_TEST_PTX_LEXER_H

#include "Program.h"

namespace ptx {

struct Token {
  enum Kind { word, number, sign, end } kind = end;
  std::string text;
  /// Of numbers: their bits; 0f and 0d numbers those of the float.
  uint64_t bits = 0;
  int line = 0;

  bool is(const char *what) const {
    return kind != end && text[0] == what[0] && text == what;
  }
};

std::vector<Token> readTokens(const std::string &text);

} // namespace ptx

#endif // GDN_TEST_PTX_LEXER_H
