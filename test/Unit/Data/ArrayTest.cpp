// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays: sizes, and conversion of elements at the ends of their ranges.
#include "gdn/Data/Array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace gdn::data;

TEST(Array, ElementCount) {
  EXPECT_EQ(elementCount({}), 1);
  EXPECT_EQ(elementCount({3, 4}), 12);
  EXPECT_EQ(elementCount({-1}), std::nullopt);
  EXPECT_EQ(elementCount({0, -1}), std::nullopt);
  EXPECT_EQ(elementCount({int64_t(1) << 62, 2}), std::nullopt);
  EXPECT_EQ(elementCount({int64_t(1) << 62, 2, 0}), 0);
}

TEST(Array, IntegersTruncateAndClamp) {
  const double values[] = {-1.9, 1.9, 1e300, -1e300, std::nan("")};
  EXPECT_EQ(Array::fromDoubles(DType::i32, {5}, values).toDoubles(),
            (std::vector<double>{-1, 1, 2147483647, -2147483648.0, 0}));
  EXPECT_EQ(Array::fromDoubles(DType::i64, {5}, values).toDoubles()[2],
            9223372036854775807.0);
  EXPECT_EQ(Array::fromDoubles(DType::i1, {5}, values).toDoubles(),
            (std::vector<double>{1, 1, 1, 1, 1}));
}

TEST(Array, FloatsRoundOnce) {
  const double values[] = {1.0 / 3, -70000, 1e-9};
  Array f32 = Array::fromDoubles(DType::f32, {3}, values);
  EXPECT_EQ(f32.toDoubles()[0], double(float(1.0 / 3)));
  Array f16 = f32.as(DType::f16);
  EXPECT_EQ(f16.toDoubles()[1], -HUGE_VAL);
  EXPECT_EQ(f16.toDoubles()[2], 0);
  EXPECT_EQ(Array::fromDoubles(DType::f64, {3}, values).toDoubles(),
            std::vector<double>(values, values + 3));
}

TEST(Array, Prints) {
  EXPECT_EQ(Array::zeros(DType::bf16, {3, 0, 2}).typeString(), "bf16[3, 0, 2]");
  EXPECT_EQ(Array::zeros(DType::i64, {}).bytes.size(), 8u);
}
