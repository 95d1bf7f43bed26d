// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which arrays may share memory: none with a written one, except interleaved
// layouts that meet in no byte, such as pages of two pools.

#include "arrays.h"
#include "gdnrt/footprint.h"
#include "schemas.h"

#include <algorithm>
#include <random>
#include <set>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

std::string bindTwo(fb::Access a, const Array &first, fb::Access b,
                    const Array &second) {
  auto dims = [](const Array &array, const char *prefix) {
    std::vector<std::string> texts;
    for (size_t d = 0; d < array.sizes.size(); ++d)
      texts.push_back(prefix + std::to_string(d));
    return texts;
  };
  auto entry = makeEntry([&](EntryBuilder builder) {
    builder
        .tensor("a", a, static_cast<fb::DType>(first.dtype), dims(first, "A"))
        .tensor("b", b, static_cast<fb::DType>(second.dtype), dims(second, "B"))
        .code("code", {});
  });
  Argument args[] = {first, second};
  return Binding::make(entry, {}, args, 2).status().toString();
}

constexpr auto kRead = fb::Access::read;
constexpr auto kWrite = fb::Access::write;
constexpr auto kBoth = fb::Access::read_write;

} // namespace

TEST(Aliasing, ReadersMayShare) {
  Array x(address(0x1000), DType::f32, {4, 4});
  EXPECT_EQ(bindTwo(kRead, x, kRead, x), "OK");
}

TEST(Aliasing, AWriterSharesWithNobody) {
  Array x(address(0x1000), DType::f32, {4, 4});
  Array lastByte(address(0x103c), DType::f32, {1});
  EXPECT_EQ(bindTwo(kWrite, x, kRead, x), "INVALID_ARGUMENT: a: the memory "
                                          "overlaps that of b, but a is "
                                          "written");
  EXPECT_EQ(bindTwo(kRead, x, kBoth, x), "INVALID_ARGUMENT: b: the memory "
                                         "overlaps that of a, but b is "
                                         "written");
  EXPECT_EQ(bindTwo(kWrite, x, kWrite, x), "INVALID_ARGUMENT: a: the memory "
                                           "overlaps that of b, but a is "
                                           "written");
  EXPECT_EQ(bindTwo(kWrite, x, kRead, lastByte),
            "INVALID_ARGUMENT: a: the memory overlaps that of b, but a is "
            "written");
}

TEST(Aliasing, NeighboursTouchNothing) {
  Array x(address(0x1000), DType::f32, {4, 4});
  Array next(address(0x1040), DType::f32, {4});
  EXPECT_EQ(bindTwo(kWrite, x, kWrite, next), "OK");
}

TEST(Aliasing, EmptyArraysShareWithAnyone) {
  Array x(address(0x1000), DType::f32, {4, 4});
  Array empty(address(0x1000), DType::f32, {0, 4});
  EXPECT_EQ(bindTwo(kWrite, x, kWrite, empty), "OK");
}

TEST(Aliasing, PoolsInOnePageAreApart) {
  // A page of 64 bytes: 24 bytes of conv state (bf16), 32 of recurrent state.
  Array conv(address(0x1000), DType::bf16, {5, 4, 3}, {32, 3, 1});
  Array state(address(0x1020), DType::f32, {5, 8}, {16, 1});
  EXPECT_EQ(bindTwo(kBoth, conv, kBoth, state), "OK");
  // Two elements more would reach into the next page's conv state.
  Array wide(address(0x1020), DType::f32, {5, 9}, {16, 1});
  EXPECT_EQ(bindTwo(kBoth, conv, kBoth, wide),
            "INVALID_ARGUMENT: a: the memory overlaps that of b, but a is "
            "written");
}

TEST(Aliasing, ColumnsOfOneMatrixAreApart) {
  Array left(address(0x1000), DType::f32, {6, 4}, {10, 1});
  Array right(address(0x1010), DType::f32, {6, 6}, {10, 1});
  EXPECT_EQ(bindTwo(kWrite, left, kRead, right), "OK");
  Array everySecond(address(0x1010), DType::f32, {3, 6}, {20, 1});
  EXPECT_EQ(bindTwo(kWrite, left, kRead, everySecond), "OK");
  Array backwards(address(0x1010 + 40 * 5), DType::f32, {6, 6}, {-10, 1});
  EXPECT_EQ(bindTwo(kWrite, left, kRead, backwards), "OK");
}

TEST(Aliasing, DifferentPeriodsCountAsOverlap) {
  Array left(address(0x1000), DType::f32, {6, 4}, {10, 1});
  Array right(address(0x1010), DType::f32, {6, 2}, {11, 1});
  EXPECT_EQ(bindTwo(kWrite, left, kRead, right),
            "INVALID_ARGUMENT: a: the memory overlaps that of b, but a is "
            "written");
}

namespace {

struct RandomArray {
  int64_t start;
  std::vector<int64_t> sizes, strides;

  explicit RandomArray(std::mt19937 &random) {
    auto pick = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    start = 1000 + pick(0, 12);
    for (int d = pick(0, 3); d > 0; --d) {
      sizes.push_back(pick(0, 4) == 0 ? pick(0, 1) : pick(1, 4));
      strides.push_back(pick(-12, 12));
    }
  }
  /// Every byte offset that an element of `bytes` bytes touches, repeated if
  /// several elements do.
  std::multiset<int64_t> touched(int64_t bytes) const {
    std::vector<int64_t> offsets = {start * bytes};
    for (size_t d = 0; d < sizes.size(); ++d) {
      std::vector<int64_t> next;
      for (int64_t offset : offsets)
        for (int64_t i = 0; i < sizes[d]; ++i)
          next.push_back(offset + i * strides[d] * bytes);
      offsets = next;
    }
    std::multiset<int64_t> all;
    for (int64_t offset : offsets)
      for (int64_t byte = 0; byte < bytes; ++byte)
        all.insert(offset + byte);
    return all;
  }
  Footprint footprint(int64_t bytes) const {
    return *Footprint::make(address(start * bytes), bytes,
                            static_cast<int>(sizes.size()), sizes.data(),
                            strides.data());
  }
};

} // namespace

// Sound: an overlap is never missed. (The other direction is approximate.)
TEST(Aliasing, RandomArraysAgainstEnumeration) {
  std::mt19937 random(1);
  int apart = 0;
  for (int i = 0; i < 50000; ++i) {
    RandomArray a(random), b(random);
    int64_t bytesA = i % 2 ? 2 : 4, bytesB = i % 3 ? 4 : 2;
    std::multiset<int64_t> touchedA = a.touched(bytesA);
    std::multiset<int64_t> touchedB = b.touched(bytesB);
    bool selfOverlap =
        std::adjacent_find(touchedA.begin(), touchedA.end()) != touchedA.end();
    if (selfOverlap)
      ASSERT_TRUE(a.footprint(bytesA).findSelfOverlap().has_value()) << i;
    bool share = std::any_of(touchedA.begin(), touchedA.end(),
                             [&](int64_t x) { return touchedB.count(x); });
    bool claimed =
        Footprint::mayOverlap(a.footprint(bytesA), b.footprint(bytesB));
    if (share)
      ASSERT_TRUE(claimed) << i;
    apart += !claimed;
  }
  EXPECT_GT(apart, 1000);
}
