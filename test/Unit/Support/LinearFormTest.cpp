// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear forms: what reads as what, the text of every error, and the ends of
// the 64-bit range.
#include "gdn/Support/LinearForm.h"

#include "gtest/gtest.h"

#include <map>

using gdn::LinearForm;

namespace {

LinearForm parse(llvm::StringRef text) {
  return llvm::cantFail(LinearForm::parse(text));
}

/// The form as printed, or the error.
std::string roundTrip(llvm::StringRef text) {
  llvm::Expected<LinearForm> form = LinearForm::parse(text);
  return form ? form->str() : "error: " + llvm::toString(form.takeError());
}

/// The value, or the error.
std::string evaluate(llvm::StringRef text,
                     const std::map<std::string, int64_t> &values) {
  llvm::Expected<int64_t> value =
      parse(text).evaluate([&](llvm::StringRef symbol) {
        auto it = values.find(symbol.str());
        return it == values.end() ? std::nullopt
                                  : std::optional<int64_t>(it->second);
      });
  return value ? std::to_string(*value)
               : "error: " + llvm::toString(value.takeError());
}

TEST(LinearForm, ReadsTerms) {
  EXPECT_EQ(roundTrip("128"), "128");
  EXPECT_EQ(roundTrip("T"), "T");
  EXPECT_EQ(roundTrip("2*Hv"), "2*Hv");
  EXPECT_EQ(roundTrip("Hv*2"), "2*Hv");
  EXPECT_EQ(roundTrip("_a1"), "_a1");
  EXPECT_EQ(roundTrip("0"), "0");
}

TEST(LinearForm, ReadsSums) {
  EXPECT_EQ(roundTrip("256*Hk + 128*Hv"), "256*Hk + 128*Hv");
  EXPECT_EQ(roundTrip("N+1"), "N + 1");
  EXPECT_EQ(roundTrip(" N\t- 1 "), "N - 1");
  EXPECT_EQ(roundTrip("-N"), "-N");
  EXPECT_EQ(roundTrip("- 2 * N - 3"), "-2*N - 3");
}

TEST(LinearForm, HasOneShape) {
  EXPECT_EQ(roundTrip("1 + b + a"), "a + b + 1");
  EXPECT_EQ(roundTrip("a + 2*a - 4*a"), "-a");
  EXPECT_EQ(roundTrip("a - a"), "0");
  EXPECT_EQ(roundTrip("0*a + 3 - 1"), "2");
  EXPECT_EQ(parse("a + b*2 + 1"), parse("1 + 2*b + a"));
  EXPECT_NE(parse("a"), parse("b"));
  EXPECT_NE(parse("a"), parse("a + 1"));
}

TEST(LinearForm, ReadsQuotients) {
  EXPECT_EQ(roundTrip("T floordiv 64 + N"), "N + T floordiv 64");
  EXPECT_EQ(roundTrip("2*(T floordiv 64)"), "2*(T floordiv 64)");
  EXPECT_EQ(roundTrip("(T floordiv 64)*3 - (T floordiv 64)"),
            "2*(T floordiv 64)");
  EXPECT_EQ(roundTrip("-T floordiv 2 + T - T floordiv 3"),
            "T - T floordiv 2 - T floordiv 3");
  EXPECT_EQ(roundTrip("N floordiv 1"), "N");
  EXPECT_EQ(roundTrip("N floordiv 4294967295"), "N floordiv 4294967295");
  EXPECT_EQ(roundTrip("floordiv floordiv 2"), "floordiv floordiv 2");
  EXPECT_NE(parse("N floordiv 2"), parse("N floordiv 3"));
  EXPECT_TRUE(parse("N + N floordiv 2").hasQuotients());
  EXPECT_FALSE(parse("N").hasQuotients());
  EXPECT_EQ(parse("N floordiv 2").getCoefficient("N"), 0);
}

TEST(LinearForm, AnswersQuestions) {
  LinearForm form = parse("3*a - b + 7");
  EXPECT_EQ(form.getConstant(), 7);
  EXPECT_EQ(form.getCoefficient("a"), 3);
  EXPECT_EQ(form.getCoefficient("b"), -1);
  EXPECT_EQ(form.getCoefficient("c"), 0);
  EXPECT_FALSE(form.isConstant());
  EXPECT_EQ(parse("4"), LinearForm(4));
  EXPECT_TRUE(parse("4").isConstant());
}

TEST(LinearForm, SaysWhatItExpected) {
  EXPECT_EQ(roundTrip(""), "error: expected a number or a symbol at column 1 "
                           "of \"\", but the form ends");
  EXPECT_EQ(roundTrip("N +"), "error: expected a number or a symbol at column "
                              "4 of \"N +\", but the form ends");
  EXPECT_EQ(roundTrip("N M"), "error: expected '+' or '-' at column 3 of \"N "
                              "M\", but got 'M'");
  EXPECT_EQ(roundTrip("2*3"), "error: expected a symbol after '*' at column 3 "
                              "of \"2*3\", but got '3'");
  EXPECT_EQ(roundTrip("N*"), "error: expected a number after '*' at column 3 "
                             "of \"N*\", but the form ends");
  EXPECT_EQ(roundTrip("N*M"),
            "error: expected a number after '*', as a form is linear, at "
            "column 3 of \"N*M\", but got 'M'");
  EXPECT_EQ(roundTrip("2 * 3 * N"), "error: expected a symbol after '*' at "
                                    "column 5 of \"2 * 3 * N\", but got '3'");
  EXPECT_EQ(roundTrip("--N"), "error: expected a number or a symbol at column "
                              "2 of \"--N\", but got '-'");
  EXPECT_EQ(roundTrip("+N"), "error: expected a number or a symbol at column "
                             "1 of \"+N\", but got '+'");
  EXPECT_EQ(roundTrip("2N"), "error: expected '+' or '-' at column 2 of "
                             "\"2N\", but got 'N'");
  EXPECT_EQ(roundTrip("(N)"), "error: expected 'floordiv' at column 3 of "
                              "\"(N)\", but got ')'");
  EXPECT_EQ(roundTrip("(2"), "error: expected a symbol after '(' at column 2 "
                             "of \"(2\", but got '2'");
  EXPECT_EQ(roundTrip("(N floordiv 2"),
            "error: expected ')' at column 14 of \"(N floordiv 2\", but the "
            "form ends");
  EXPECT_EQ(roundTrip("N floordiv M"),
            "error: expected a number after 'floordiv' at column 12 of \"N "
            "floordiv M\", but got 'M'");
  EXPECT_EQ(roundTrip("2*N floordiv 4"),
            "error: expected '+' or '-' at column 5 of \"2*N floordiv 4\", but "
            "got 'f'");
  EXPECT_EQ(roundTrip("N floordiv 0"),
            "error: expected a divisor of at least 1 and less than 2^32 in \"N "
            "floordiv 0\", but got 0");
  EXPECT_EQ(roundTrip("N floordiv 4294967296"),
            "error: expected a divisor of at least 1 and less than 2^32 in \"N "
            "floordiv 4294967296\", but got 4294967296");
}

TEST(LinearForm, KeepsTo64Bits) {
  EXPECT_EQ(roundTrip("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(roundTrip("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(roundTrip("-9223372036854775808*N"), "-9223372036854775808*N");
  EXPECT_EQ(roundTrip("9223372036854775808"),
            "error: number in \"9223372036854775808\" does not fit 64 bits");
  EXPECT_EQ(roundTrip("99999999999999999999*N"),
            "error: number in \"99999999999999999999*N\" does not fit 64 bits");
  EXPECT_EQ(roundTrip("9223372036854775807 + 1"),
            "error: sum in \"9223372036854775807 + 1\" does not fit 64 bits");
  EXPECT_EQ(roundTrip("9223372036854775807*N + N"),
            "error: sum in \"9223372036854775807*N + N\" does not fit 64 bits");
}

TEST(LinearForm, Evaluates) {
  EXPECT_EQ(evaluate("256*Hk + 128*Hv - 1", {{"Hk", 2}, {"Hv", 4}}), "1023");
  EXPECT_EQ(evaluate("T floordiv 64 + N", {{"T", 127}, {"N", 3}}), "4");
  EXPECT_EQ(evaluate("3*(T floordiv 64)", {{"T", 128}}), "6");
  EXPECT_EQ(evaluate("T floordiv 64", {{"T", -1}}), "-1");
  EXPECT_EQ(evaluate("5", {}), "5");
  EXPECT_EQ(evaluate("-N", {{"N", 3}}), "-3");
  EXPECT_EQ(evaluate("2*N", {}), "error: symbol 'N' of \"2*N\" has no value");
  EXPECT_EQ(evaluate("4*N", {{"N", int64_t(1) << 61}}),
            "error: \"4*N\" does not fit 64 bits with N = 2305843009213693952");
}

TEST(LinearForm, KnowsIdentifiers) {
  EXPECT_TRUE(gdn::isIdentifier("conv_weight"));
  EXPECT_TRUE(gdn::isIdentifier("_"));
  EXPECT_TRUE(gdn::isIdentifier("A2"));
  EXPECT_FALSE(gdn::isIdentifier(""));
  EXPECT_FALSE(gdn::isIdentifier("2A"));
  EXPECT_FALSE(gdn::isIdentifier("a.b"));
  EXPECT_FALSE(gdn::isIdentifier("a b"));
}

} // namespace
