// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Error measures, above all that nothing bad passes as small.
#include "gdn/Data/Compare.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace gdn::data;

static const double notANumber = std::nan(""), infinity = HUGE_VAL;

// Errors 0 and 5 against 3 and 4: 5 / 5.
TEST(Compare, ByHand) {
  Difference d = compare({3, 9}, {3, 4});
  EXPECT_EQ(d.relativeRMSE, 1);
  EXPECT_EQ(d.maxAbs, 5);
  EXPECT_EQ(d.worst, 1);
  EXPECT_EQ(d.firstNonFinite, -1);
}

TEST(Compare, Zeros) {
  EXPECT_EQ(compare({0, 0}, {0, 0}).relativeRMSE, 0);
  EXPECT_EQ(compare({0, 1e-30}, {0, 0}).relativeRMSE, infinity);
  EXPECT_EQ(compare({}, {}).relativeRMSE, 0);
  EXPECT_EQ(compare({}, {}).worst, -1);
}

TEST(Compare, NotFinite) {
  for (double bad : {notANumber, infinity, -infinity}) {
    Difference d = compare({1, bad}, {1, 2});
    EXPECT_EQ(d.relativeRMSE, infinity);
    EXPECT_EQ(d.maxAbs, infinity);
    EXPECT_EQ(d.firstNonFinite, 1);
    EXPECT_EQ(compare({2}, {bad}).firstNonFinite, 0);
    EXPECT_EQ(compare({bad, 1}, {bad, 1}).relativeRMSE, 0);
  }
  EXPECT_EQ(compare({infinity}, {-infinity}).firstNonFinite, 0);
}

TEST(Compare, Bits) {
  EXPECT_FALSE(bitEqual({0.0}, {-0.0}));
  EXPECT_TRUE(bitEqual({notANumber}, {notANumber}));
  EXPECT_FALSE(bitEqual({1}, {1, 1}));
  Array a = Array::fromDoubles(DType::f32, {2}, {1, 2}), b = a;
  EXPECT_TRUE(bitEqual(a, b));
  b.shape = {2, 1};
  EXPECT_FALSE(bitEqual(a, b));
}
