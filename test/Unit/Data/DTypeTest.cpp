// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions of the 16-bit formats: every value there and back, every tie and
// the doubles beside it, and the ends of the ranges.
#include "gdn/Data/DType.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace gdn::data;

namespace {
struct Format {
  const char *name;
  uint16_t (*to)(double);
  double (*from)(uint16_t);
  uint16_t infinity;
};
class SixteenBits : public ::testing::TestWithParam<Format> {};
} // namespace

TEST_P(SixteenBits, EveryValueThereAndBack) {
  const Format &f = GetParam();
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double value = f.from(bits);
    if (std::isnan(value)) {
      EXPECT_GT(bits & 0x7fff, f.infinity);
      EXPECT_TRUE(std::isnan(f.from(f.to(value))));
      continue;
    }
    EXPECT_EQ(f.to(value), bits);
  }
}

// Between neighbours a < b: the middle goes to the even one, a double beside
// the middle to the nearer one. Above the largest finite value the neighbour
// stands for infinity.
TEST_P(SixteenBits, TiesToEven) {
  const Format &f = GetParam();
  for (uint32_t a = 0; a < f.infinity; ++a) {
    const uint32_t b = a + 1;
    const double low = f.from(a);
    const double step = b == f.infinity ? low - f.from(a - 1) : f.from(b) - low;
    const double middle = low + step / 2; // exact: two more bits of fraction
    const uint32_t even = a % 2 == 0 ? a : b;
    ASSERT_EQ(f.to(middle), even) << a;
    ASSERT_EQ(f.to(-middle), even | 0x8000) << a;
    ASSERT_EQ(f.to(std::nextafter(middle, 0)), a) << a;
    ASSERT_EQ(f.to(std::nextafter(middle, HUGE_VAL)), b) << a;
  }
}

TEST_P(SixteenBits, Extremes) {
  const Format &f = GetParam();
  EXPECT_EQ(f.to(HUGE_VAL), f.infinity);
  EXPECT_EQ(f.to(-HUGE_VAL), f.infinity | 0x8000);
  EXPECT_EQ(f.to(std::numeric_limits<double>::max()), f.infinity);
  EXPECT_EQ(f.to(std::numeric_limits<double>::denorm_min()), 0);
  EXPECT_EQ(f.to(-std::numeric_limits<double>::denorm_min()), 0x8000);
  EXPECT_EQ(f.to(-0.0), 0x8000);
  EXPECT_TRUE(std::signbit(f.from(0x8000)));
  // A NaN whose payload is in the low bits only, quiet or signalling.
  EXPECT_TRUE(std::isnan(f.from(f.to(std::nan("1")))));
  EXPECT_TRUE(
      std::isnan(f.from(f.to(std::numeric_limits<double>::signaling_NaN()))));
  EXPECT_GE(f.to(-std::nan("")), 0x8000);
}

INSTANTIATE_TEST_SUITE_P(
    Formats, SixteenBits,
    ::testing::Values(Format{"bf16", toBF16, fromBF16, 0x7f80},
                      Format{"f16", toF16, fromF16, 0x7c00}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(DType, KnownValues) {
  EXPECT_EQ(toBF16(1.0), 0x3f80);
  EXPECT_EQ(toF16(1.0), 0x3c00);
  EXPECT_EQ(toF16(65504), 0x7bff); // largest
  EXPECT_EQ(toF16(65520), 0x7c00); // tie above it: infinity
  EXPECT_EQ(fromF16(0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(fromBF16(0x0001), std::ldexp(1.0, -133));
}

// 1 + 2^-8 + 2^-40: through float the last term would be lost, and the tie
// that is left would go down to 1.
TEST(DType, RoundsOnce) {
  EXPECT_EQ(toBF16(1 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40)), 0x3f81);
}

TEST(DType, Names) {
  for (DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i32,
                      DType::i64, DType::i1, DType::f64})
    EXPECT_EQ(parseDType(name(dtype)), dtype);
  EXPECT_EQ(parseDType("f8"), std::nullopt);
}
