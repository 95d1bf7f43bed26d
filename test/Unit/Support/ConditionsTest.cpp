// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conditions of variants: what their text says, and what numbers decide.

#include "gdn/Support/Conditions.h"

#include <gtest/gtest.h>

using namespace gdn;
using llvm::StringRef;

namespace {

std::string toText(const Conditions &conditions) {
  auto ofAll = [](llvm::ArrayRef<Inequality> all) {
    std::string text;
    for (const Inequality &one : all) {
      text += text.empty() ? "" : " & ";
      for (const auto &factor : one.left)
        text += (&factor == one.left.begin() ? "" : "*") + factor;
      text += " <= ";
      for (const auto &factor : one.right)
        text += (&factor == one.right.begin() ? "" : "*") + factor;
    }
    return text;
  };
  std::string text = ofAll(conditions.all);
  for (const auto &one : conditions.alternatives)
    text +=
        (&one == conditions.alternatives.begin() ? (text.empty() ? "(" : " & (")
                                                 : " | ") +
        ofAll(one);
  return text + (conditions.alternatives.empty() ? "" : ")");
}

std::string parse(StringRef text) {
  auto read = Conditions::parse(text);
  return read ? toText(*read) : llvm::toString(read.takeError());
}

/// With 64 for `keys` and N for `sequences`.
std::string substitute(StringRef text) {
  auto made = llvm::cantFail(Conditions::parse(text))
                  .substitute([](StringRef symbol) -> std::string {
                    return symbol == "keys"        ? "64"
                           : symbol == "sequences" ? "N"
                                                   : symbol.str();
                  });
  return made ? toText(*made) : "never";
}

} // namespace

TEST(Conditions, Text) {
  EXPECT_EQ(parse(""), "");
  EXPECT_EQ(parse("2*sequences<=workers"), "2*sequences <= workers");
  EXPECT_EQ(parse(" a <= b & (c <= 1 | d * d <= e & 2 <= c) & 3 <= a"),
            "a <= b & 3 <= a & (c <= 1 | d*d <= e & 2 <= c)");
}

TEST(Conditions, WhatIsNoCondition) {
  EXPECT_EQ(parse("a"), "expected 'product <= product', got 'a'");
  EXPECT_EQ(parse("a <= "), "expected a number or a symbol, got ''");
  EXPECT_EQ(parse("a <= -1"), "expected a number or a symbol, got '-1'");
  EXPECT_EQ(parse("a <= 2147483648"),
            "expected a number or a symbol, got '2147483648'");
  EXPECT_EQ(parse("a <= 2 + b"), "expected a number or a symbol, got '2+b'");
  EXPECT_EQ(parse("(a <= 2 | b <= 1"), "expected ')' at the end of "
                                       "'(a<=2|b<=1'");
  EXPECT_EQ(parse("(a <= 2)"),
            "expected two alternatives at least, got '(a<=2)'");
  EXPECT_EQ(parse("(a <= 2 | b <= 1) & (a <= 1 | b <= 2)"),
            "expected alternatives once at most, got '(a<=1|b<=2)' besides");
}

TEST(Conditions, NumbersDecide) {
  EXPECT_EQ(substitute("keys <= 128"), "");
  EXPECT_EQ(substitute("keys <= 63"), "never");
  EXPECT_EQ(substitute("2*sequences*keys <= workers & 1 <= 2"),
            "128*N <= workers");
  EXPECT_EQ(substitute("sequences <= 1*workers"), "N <= workers");
  // An alternative that holds is enough; one that does not is none.
  EXPECT_EQ(substitute("sequences <= 3 & (keys <= 64 | sequences <= 2)"),
            "N <= 3");
  EXPECT_EQ(substitute("sequences <= 3 & (keys <= 1 | sequences <= 2)"),
            "N <= 3 & N <= 2");
  EXPECT_EQ(substitute("(keys <= 1 | 65 <= keys)"), "never");
  EXPECT_EQ(substitute("(2 <= sequences & keys <= 64 | sequences <= tokens)"),
            "(2 <= N | N <= tokens)");
}

TEST(Conditions, NoNumberOfMoreThan64Bits) {
  const std::string most = "2147483647";
  EXPECT_EQ(substitute(most + "*" + most + "*" + most + "*sequences <= 1"),
            "4611686014132420609*" + most + "*N <= 1");
}

TEST(Conditions, Symbols) {
  std::string symbols;
  llvm::cantFail(Conditions::parse("2*a <= b & (c <= 1 | 4 <= a)"))
      .forEachSymbol([&](StringRef symbol) { symbols += symbol; });
  EXPECT_EQ(symbols, "abca");
}
