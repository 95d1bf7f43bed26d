// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rounding of states on the host against formulas in float64, all bits of the
// types of 16 bits, and what of a tier goes through it.

#include "gdnrt/narrow_state.h"

#include "../../../../runtime/src/serving/float_bits.h"
#include "tier_test.h"

#include <chrono>
#include <cmath>
#include <random>

using namespace gdnrt;
using namespace gdnrt::test;

namespace {

std::vector<float> someStates(size_t count) {
  std::mt19937 random(7);
  std::vector<float> values(count);
  for (float &value : values)
    value = floatOfBits(static_cast<uint32_t>(random()));
  return values;
}

std::vector<float> normalStates(size_t count, float size = 1) {
  std::mt19937 random(8);
  std::normal_distribution<float> normal(0, size);
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(random);
  return values;
}

/// A state in planes, or in one.
struct Planes {
  Planes(const std::vector<float> &from, int64_t size, StateFormat format)
      : format(format), size(size),
        rows(static_cast<int64_t>(from.size()) / size), upper(from.size()),
        low(from.size()), scales(static_cast<size_t>(rows)) {
    state.elements = upper.data();
    state.scales = scales.data();
    state.low = planesOf(format) == 2 ? low.data() : nullptr;
    narrowState(from.data(), rows, size, format, state);
  }
  std::vector<float> widened() const {
    std::vector<float> wide(upper.size());
    widenState(state, rows, size, format, wide.data());
    return wide;
  }
  StateFormat format;
  int64_t size, rows;
  std::vector<uint8_t> upper, low;
  std::vector<float> scales;
  NarrowState state;
};

} // namespace

TEST(NarrowState, SixteenBits) {
  std::vector<float> values = someStates(200000);
  // Halfway between neighbours, subnormals, and the edges.
  for (uint32_t half = 0; half < 0x7c00; ++half)
    values.push_back((floatOfHalf(static_cast<uint16_t>(half)) +
                      floatOfHalf(static_cast<uint16_t>(half + 1))) /
                     2);
  for (float edge : {65519.99f, 65520.0f, 65504.0f, 0x1p-25f, 0x1p-24f,
                     0x1.8p-24f, 0.0f, -0.0f, INFINITY, -INFINITY})
    values.push_back(edge);
  std::vector<uint16_t> narrow(values.size());
  std::vector<float> wide(values.size());
  const auto count = static_cast<int64_t>(values.size());
  NarrowState state;
  state.elements = narrow.data();
  for (StateFormat format : {StateFormat::bf16, StateFormat::f16}) {
    narrowState(values.data(), 1, count, format, state);
    widenState(state, 1, count, format, wide.data());
    for (size_t i = 0; i < values.size(); ++i) {
      const bool isHalf = format == StateFormat::f16;
      const uint16_t expected =
          isHalf ? halfOfFloat(values[i]) : bfloatOfFloat(values[i]);
      if (std::isnan(values[i]))
        ASSERT_TRUE(std::isnan(wide[i]));
      else
        ASSERT_EQ(narrow[i], expected) << values[i];
      const float back =
          readFloat(&narrow[i], isHalf ? DType::f16 : DType::bf16);
      ASSERT_TRUE(std::isnan(back) ? std::isnan(wide[i]) : back == wide[i]);
    }
  }
  // Every f16 comes back.
  narrow.resize(1 << 16);
  wide.resize(1 << 16);
  for (uint32_t i = 0; i < narrow.size(); ++i)
    narrow[i] = static_cast<uint16_t>(i);
  const auto all = narrow;
  state.elements = narrow.data();
  widenState(state, 1, 1 << 16, StateFormat::f16, wide.data());
  narrowState(wide.data(), 1, 1 << 16, StateFormat::f16, state);
  for (uint32_t i = 0; i < narrow.size(); ++i)
    if ((i & 0x7fff) <= 0x7c00)
      ASSERT_EQ(narrow[i], all[i]);
}

TEST(NarrowState, PlanesAreThoseOfTheSpecification) {
  constexpr int64_t size = 96;
  const std::vector<float> values = normalStates(500 * size, 3);
  for (StateFormat format : {StateFormat::i8x2, StateFormat::i8}) {
    const Planes planes(values, size, format);
    for (int64_t row = 0; row < planes.rows; ++row) {
      float largest = 0;
      for (int64_t i = 0; i < size; ++i)
        largest = std::max(largest, std::fabs(values[row * size + i]));
      const float scale = planes.scales[row];
      ASSERT_EQ(scale, largest / 127.0f);
      for (int64_t i = 0; i < size; ++i) {
        const auto at = static_cast<size_t>(row * size + i);
        const double steps = double(values[at]) / scale;
        if (format == StateFormat::i8) {
          // Quotients of f32 may be on the other side of a tie.
          ASSERT_NEAR(planes.upper[at] - 128, steps, 0.5 + 1e-4);
          continue;
        }
        const int value = 256 * (planes.upper[at] - 128) + planes.low[at] - 128;
        ASSERT_NEAR(value, 256 * steps, 0.5 + 1e-2);
        ASSERT_EQ(planes.upper[at] - 128, (value + 128) >> 8);
      }
    }
  }
}

TEST(NarrowState, RowsThatAreZeroOrNotFinite) {
  constexpr int64_t size = 40;
  for (StateFormat format : {StateFormat::i8x2, StateFormat::i8}) {
    std::vector<float> values(6 * size);
    values[1 * size + 3] = 0x1p-110f; // below 1e-30
    values[2 * size + 39] = INFINITY;
    values[3 * size] = NAN;
    values[4 * size + 7] = -3e38f;
    values[5 * size + 7] = 2e-30f;
    const Planes planes(values, size, format);
    const std::vector<float> wide = planes.widened();
    for (int64_t i = 0; i < size; ++i) {
      EXPECT_EQ(wide[0 * size + i], 0);
      EXPECT_EQ(wide[1 * size + i], 0);
      EXPECT_TRUE(std::isnan(wide[2 * size + i]));
      EXPECT_TRUE(std::isnan(wide[3 * size + i]));
    }
    EXPECT_EQ(planes.scales[0], 0);
    EXPECT_FLOAT_EQ(wide[4 * size + 7], -3e38f);
    EXPECT_FLOAT_EQ(wide[5 * size + 7], 2e-30f);
    EXPECT_EQ(wide[5 * size + 8], 0);
    // Whatever bytes a row of scale 0 has.
    Planes other = planes;
    std::fill_n(other.upper.begin(), size, uint8_t{3});
    other.state.elements = other.upper.data();
    EXPECT_EQ(other.widened()[0], 0);
  }
}

// The figures of docs/guides/host-tier.md.
TEST(NarrowState, ErrorsOfStates) {
  constexpr int64_t size = 128;
  const std::vector<float> values = normalStates(1024 * size);
  auto errorOf = [&](const std::vector<float> &wide) {
    double error = 0, whole = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      error += std::pow(double(wide[i]) - values[i], 2);
      whole += std::pow(double(values[i]), 2);
    }
    return std::sqrt(error / whole);
  };
  EXPECT_LT(errorOf(Planes(values, size, StateFormat::i8x2).widened()), 3e-5);
  EXPECT_LT(errorOf(Planes(values, size, StateFormat::i8).widened()), 7e-3);
  std::vector<uint16_t> narrow(values.size());
  std::vector<float> wide(values.size());
  NarrowState state;
  state.elements = narrow.data();
  for (auto [format, most] :
       {std::pair(StateFormat::bf16, 1.8e-3), {StateFormat::f16, 2.2e-4}}) {
    narrowState(values.data(), 1024, size, format, state);
    widenState(state, 1024, size, format, wide.data());
    EXPECT_LT(errorOf(wide), most);
    EXPECT_GT(errorOf(wide), most / 2);
  }
}

// Whatever the number of threads, and of rows in the last block.
TEST(NarrowState, ThreadsGiveTheSameBytes) {
  constexpr int64_t size = 24;
  for (int64_t rows : {int64_t{1}, int64_t{63}, int64_t{64}, int64_t{1000}}) {
    const std::vector<float> values = normalStates(rows * size);
    for (StateFormat format : {StateFormat::bf16, StateFormat::f16,
                               StateFormat::i8x2, StateFormat::i8}) {
      std::vector<std::vector<uint8_t>> all;
      for (int64_t threads : {1, 2, 7}) {
        auto rounder = std::move(*StateRounder::make(threads));
        std::vector<uint8_t> elements(size_t(rows * size * 2), 3),
            low(size_t(rows * size), 5);
        std::vector<float> scales(size_t(rows), 7), wide(values.size(), 9);
        NarrowState state;
        state.elements = elements.data();
        state.scales = planesOf(format) > 0 ? scales.data() : nullptr;
        state.low = format == StateFormat::i8x2 ? low.data() : nullptr;
        rounder->narrow(values.data(), rows, size, format, state);
        rounder->widen(state, rows, size, format, wide.data());
        auto add = [&](const auto &more) {
          const auto *bytes = reinterpret_cast<const uint8_t *>(more.data());
          elements.insert(elements.end(), bytes,
                          bytes + more.size() * sizeof(more[0]));
        };
        add(low);
        add(scales);
        add(wide);
        all.push_back(std::move(elements));
      }
      EXPECT_EQ(all[0], all[1]);
      EXPECT_EQ(all[0], all[2]);
    }
  }
  for (int64_t threads : {0, -1, 1025})
    EXPECT_EQ(StateRounder::make(threads).status().toString(),
              "INVALID_ARGUMENT: host_tier: rounding_threads: expected 1 to "
              "1024, got " +
                  std::to_string(threads));
}

// What is rounded once is not rounded again, and everything else of a slot has
// its bits.
TEST(NarrowState, TiersThatRound) {
  for (StateFormat format : {StateFormat::bf16, StateFormat::f16,
                             StateFormat::i8x2, StateFormat::i8}) {
    StatePoolShape shape = smallShape();
    shape.keyDim = 24;
    shape.pendingTokens = 2;
    auto pool = sharedPool(shape);
    HostTierOptions options;
    options.numSlots = 2;
    options.format = format;
    options.roundingThreads = 2;
    auto tier = makeTier(pool, options);
    const Ids slots = take(*pool, 2), hosts = takeHost(*tier, 2);
    fillSlot(*pool, slots[0], 1);
    const auto numbers = normalStates(3 * 2 * 5 * 24);
    size_t next = 0;
    for (int64_t layer = 0; layer < 3; ++layer)
      forEachElement(*pool, PoolBuffer::state, layer, slots[0],
                     [&](uint8_t *at, int64_t) {
                       std::memcpy(at, &numbers[next++], sizeof(float));
                     });
    const auto before = bytesOf(*pool, slots[0]);
    const size_t stateBytes = 3 * 2 * 5 * 24 * sizeof(float);
    ASSERT_TRUE(tier->store(slots.data(), hosts.data(), 1, nullptr).isOk());
    ASSERT_TRUE(tier->load(hosts.data(), &slots[1], 1, nullptr).isOk());
    const auto once = bytesOf(*pool, slots[1]);
    EXPECT_TRUE(std::equal(before.begin() + stateBytes, before.end(),
                           once.begin() + stateBytes));
    EXPECT_NE(before, once);
    double worst = 0;
    for (size_t i = 0; i < numbers.size(); ++i) {
      float found;
      std::memcpy(&found, once.data() + i * sizeof(float), sizeof(float));
      worst = std::max(worst, std::fabs(double(found) - numbers[i]));
    }
    EXPECT_LT(worst, format == StateFormat::i8     ? 2e-2
                     : format == StateFormat::bf16 ? 1e-2
                                                   : 2e-3);
    // Once more, by a file as well, for types of elements.
    ASSERT_TRUE(tier->store(&slots[1], hosts.data(), 1, nullptr).isOk());
    ASSERT_EQ(restore(*tier, hosts[1], {save(*tier, hosts[0])}).toString(),
              "OK");
    ASSERT_TRUE(tier->load(&hosts[1], slots.data(), 1, nullptr).isOk());
    if (planesOf(format) == 0)
      EXPECT_EQ(bytesOf(*pool, slots[0]), once);
    EXPECT_LT(tier->slotBytes(), before.size());
  }
}

// Prints rates; the limit is far below them, also with sanitizers and beside
// other work.
TEST(NarrowState, Speed) {
  constexpr int64_t size = 128, rows = 32 * 128;
  const std::vector<float> values = normalStates(rows * size);
  std::vector<uint8_t> memory(values.size() * 4), low(values.size());
  std::vector<float> scales(rows), wide(values.size());
  NarrowState state;
  state.elements = memory.data();
  state.scales = scales.data();
  state.low = low.data();
  for (StateFormat format : {StateFormat::bf16, StateFormat::f16,
                             StateFormat::i8x2, StateFormat::i8}) {
    state.low = format == StateFormat::i8x2 ? low.data() : nullptr;
    auto gigabytes = [&](auto &&work) {
      double best = 0;
      for (int i = 0; i < 5; ++i) {
        const auto start = std::chrono::steady_clock::now();
        work();
        const std::chrono::duration<double> took =
            std::chrono::steady_clock::now() - start;
        best = std::max(best, double(values.size() * 4) / took.count() / 1e9);
      }
      return best;
    };
    const double down = gigabytes(
        [&] { narrowState(values.data(), rows, size, format, state); });
    const double up =
        gigabytes([&] { widenState(state, rows, size, format, wide.data()); });
    RecordProperty(std::string(toString(format)) + "_narrow", int(down * 1000));
    RecordProperty(std::string(toString(format)) + "_widen", int(up * 1000));
    std::printf("%s: %.2f GB/s of f32 narrowed, %.2f widened\n",
                toString(format), down, up);
    EXPECT_GT(std::min(down, up), 0.01);
  }
}
