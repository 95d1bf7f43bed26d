// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linear forms: text, value, overflow.

#include "gdnrt/linear_form.h"

#include <gtest/gtest.h>

using namespace gdnrt;

static const std::vector<std::string> kNames = {"Hk", "Hv"};

TEST(LinearForm, Text) {
  EXPECT_EQ((LinearForm{0, {}}).toString(kNames), "0");
  EXPECT_EQ((LinearForm{128, {}}).toString(kNames), "128");
  EXPECT_EQ((LinearForm{1, {{0, 1}}}).toString(kNames), "Hk + 1");
  EXPECT_EQ((LinearForm{0, {{0, 256}, {1, 256}}}).toString(kNames),
            "256*Hk + 256*Hv");
  EXPECT_EQ((LinearForm{-2, {{0, -1}, {1, -3}}}).toString(kNames),
            "-Hk - 3*Hv - 2");
  EXPECT_EQ((LinearForm{INT64_MIN, {}}).toString(kNames),
            "-9223372036854775808");
  EXPECT_EQ((LinearForm{0, {{0, 1, 64}, {1, 1}}}).toString(kNames),
            "Hk floordiv 64 + Hv");
  EXPECT_EQ((LinearForm{1, {{0, -2, 64}}}).toString(kNames),
            "-2*(Hk floordiv 64) + 1");
}

TEST(LinearForm, Value) {
  EXPECT_EQ((LinearForm{5, {{0, 2}, {1, -3}}}).evaluate({10, 4}), 13);
  EXPECT_EQ((LinearForm{0, {{0, 2, 64}, {1, 1}}}).evaluate({127, 4}), 6);
  EXPECT_EQ((LinearForm{0, {{0, 2, 64}, {1, 1}}}).evaluate({128, 4}), 8);
  EXPECT_EQ((LinearForm{0, {{0, 1, 64}}}).evaluate({-1, 0}), -1);
}

TEST(LinearForm, OverflowHasNoValue) {
  EXPECT_FALSE((LinearForm{0, {{0, 2}}}).evaluate({INT64_MAX, 0}));
  EXPECT_FALSE((LinearForm{1, {{0, 1}}}).evaluate({INT64_MAX, 0}));
}
