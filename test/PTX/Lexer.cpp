// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cuts PTX text into tokens with their lines: comments are left out, words have
// their dots, and numbers are bits, those of floats, too.

#include "Lexer.h"

#include <cctype>
#include <cstring>

using namespace ptx;

static bool isWordStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) ||
         (c != 0 && std::strchr("_$%.", c));
}

static bool isWord(char c) {
  return isWordStart(c) || std::isdigit(static_cast<unsigned char>(c));
}

/// Reads the number at `at`: decimal, 0x, 0f (float) and 0d (double).
static uint64_t readNumber(const std::string &text, size_t &at) {
  bool isHex = text[at] == '0' && at + 1 < text.size() &&
               std::strchr("xXfFdD", text[at + 1]);
  size_t begin = isHex ? at + 2 : at;
  char *end = nullptr;
  uint64_t bits = std::strtoull(text.c_str() + begin, &end, isHex ? 16 : 10);
  at = static_cast<size_t>(end - text.c_str());
  while (at < text.size() && (text[at] == 'U' || text[at] == 'u'))
    ++at;
  return bits;
}

std::vector<Token> ptx::readTokens(const std::string &text) {
  std::vector<Token> tokens;
  int line = 1;
  for (size_t at = 0; at < text.size();) {
    char c = text[at];
    if (c == '\n')
      ++line;
    if (std::isspace(static_cast<unsigned char>(c))) {
      ++at;
      continue;
    }
    if (text.compare(at, 2, "//") == 0) {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (text.compare(at, 2, "/*") == 0) {
      size_t end = std::min(text.find("*/", at), text.size());
      for (; at < end; ++at)
        line += text[at] == '\n';
      at += 2;
      continue;
    }
    Token token;
    token.line = line;
    size_t begin = at;
    if (isWordStart(c)) {
      token.kind = Token::word;
      // shared::cta is one word; a label's colon is none of it.
      while (
          at < text.size() &&
          (isWord(text[at]) || (text.compare(at, 2, "::") == 0 &&
                                at + 2 < text.size() && isWord(text[at + 2]))))
        at += text[at] == ':' ? 2 : 1;
    } else if (std::isdigit(static_cast<unsigned char>(c))) {
      token.kind = Token::number;
      token.bits = readNumber(text, at);
    } else if (c == '"') {
      token.kind = Token::word;
      at = text.find('"', at + 1);
      if (at == std::string::npos)
        throw Fault("line " + std::to_string(line) + ": a text has no end");
      ++at;
    } else {
      token.kind = Token::sign;
      ++at;
    }
    token.text = text.substr(begin, at - begin);
    tokens.push_back(std::move(token));
  }
  tokens.push_back({Token::end, "", 0, line});
  return tokens;
}
