// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads, stores and map_rows in CPU code: strides, tails, transposed tiles.
#include "TileProgram.h"

#include "gtest/gtest.h"

using namespace gdn::test;

namespace {

const char *kStrided = "memref<?x?x8xf32, strided<[?, ?, 1], offset: ?>>";

/// Rows of a head in a view with gaps go to a transposed view, twice as large.
TEST(MemoryTest, StridesAndTails) {
  std::string wide = kStrided, any = "memref<?x?xf32, strided<[?, ?]>>";
  Program program(
      "%x: " + wide + ", %y: " + any,
      "%t = gdn_tile.load %x[%c1, %c1, %c0] dims [0, 2] rows(%n) : " + wide +
          ", vector<4x8xf32>\n"
          "%u = gdn_tile.map_rows %t : vector<4x8xf32> -> vector<4x8xf32> {\n"
          "^bb0(%i: index, %row: vector<8xf32>):\n"
          "%r = arith.addf %row, %row : vector<8xf32>\n"
          "gdn_tile.yield %r : vector<8xf32>\n}\n"
          "gdn_tile.store %u, %y[%c0, %c0] dims [1, 0] : vector<4x8xf32>, " +
          any,
      8);
  ASSERT_TRUE(program.compiled());
  // 6 tokens, 3 heads of 8 with 2 unused columns each, rows of 40.
  std::vector<float> x = randomValues(6 * 40, 1, 1), y(8 * 5, -7);
  for (int64_t valid : {0, 3, 4}) {
    std::fill(y.begin(), y.end(), -7);
    program.run(valid, {{x.data(), {6, 3, 8}, {40, 10, 1}},
                        {y.data(), {8, 4}, {5, 1}}});
    for (int64_t column = 0; column < 8; ++column) {
      for (int64_t row = 0; row < 4; ++row)
        EXPECT_EQ(y[column * 5 + row],
                  row < valid ? 2 * x[(1 + row) * 40 + 10 + column] : 0);
      EXPECT_EQ(y[column * 5 + 4], -7) << "past the tile";
    }
  }
}

/// The valid rows of a store are written, the others stay.
TEST(MemoryTest, StoreOfATail) {
  Program program("%y: memref<?xf32, strided<[?]>>",
                  "%two = arith.constant 2.0 : f32\n"
                  "%t = gdn_tile.fill %two : f32 -> vector<5xf32>\n"
                  "gdn_tile.store %t, %y[%c1] dims [0] rows(%n) : "
                  "vector<5xf32>, memref<?xf32, strided<[?]>>",
                  8);
  ASSERT_TRUE(program.compiled());
  std::vector<float> y(20, -7);
  program.run(3, {{y.data(), {6}, {3}}});
  for (int64_t i = 0; i < 20; ++i)
    EXPECT_EQ(y[i], i == 3 || i == 6 || i == 9 ? 2 : -7) << i;
}

/// A row of a rank-1 tile is a scalar; a whole tile is used in every row.
TEST(MemoryTest, MixedRanksAndCaptures) {
  Program program(
      "%x: memref<4x8xf32>, %s: memref<4xf32>, %w: memref<8xf32>",
      "%t = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<4x8xf32>, "
      "vector<4x8xf32>\n"
      "%f = gdn_tile.load %s[%c0] dims [0] : memref<4xf32>, vector<4xf32>\n"
      "%v = gdn_tile.load %w[%c0] dims [0] : memref<8xf32>, vector<8xf32>\n"
      "%y, %z = gdn_tile.map_rows %t, %f : vector<4x8xf32>, vector<4xf32> -> "
      "vector<4x8xf32>, vector<4xf32> {\n"
      "^bb0(%i: index, %row: vector<8xf32>, %e: f32):\n"
      "%b = vector.broadcast %e : f32 to vector<8xf32>\n"
      "%p = vector.fma %row, %b, %v : vector<8xf32>\n"
      "%sum = vector.reduction <add>, %row : vector<8xf32> into f32\n"
      "gdn_tile.yield %p, %sum : vector<8xf32>, f32\n}\n"
      "gdn_tile.store %y, %x[%c0, %c0] dims [0, 1] : vector<4x8xf32>, "
      "memref<4x8xf32>\n"
      "gdn_tile.store %z, %s[%c0] dims [0] : vector<4xf32>, memref<4xf32>",
      8);
  ASSERT_TRUE(program.compiled());
  std::vector<float> x(32), s = {1, 2, 3, 4}, w = {8, 7, 6, 5, 4, 3, 2, 1};
  for (int i = 0; i < 32; ++i)
    x[i] = i;
  program.run(
      1,
      {{x.data(), {4, 8}, {8, 1}}, {s.data(), {4}, {1}}, {w.data(), {8}, {1}}});
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(x[i], i * (i / 8 + 1) + 8 - i % 8);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(s[i], 64 * i + 28);
}

/// One element of a row, and of a whole tile that is as long as the row.
TEST(MemoryTest, ElementOfARow) {
  Program program(
      "%x: memref<4x8xf32>, %w: memref<8xf32>",
      "%t = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<4x8xf32>, "
      "vector<4x8xf32>\n"
      "%v = gdn_tile.load %w[%c0] dims [0] : memref<8xf32>, vector<8xf32>\n"
      "%y = gdn_tile.map_rows %t : vector<4x8xf32> -> vector<4x8xf32> {\n"
      "^bb0(%i: index, %row: vector<8xf32>):\n"
      "%e = vector.extract %v[5] : f32 from vector<8xf32>\n"
      "%f = vector.extract %row[2] : f32 from vector<8xf32>\n"
      "%g = arith.addf %e, %f : f32\n"
      "%b = vector.broadcast %g : f32 to vector<8xf32>\n"
      "%p = arith.addf %row, %b : vector<8xf32>\n"
      "gdn_tile.yield %p : vector<8xf32>\n}\n"
      "gdn_tile.store %y, %x[%c0, %c0] dims [0, 1] : vector<4x8xf32>, "
      "memref<4x8xf32>",
      8);
  ASSERT_TRUE(program.compiled());
  std::vector<float> x(32), w = {8, 7, 6, 5, 4, 3, 2, 1};
  for (int i = 0; i < 32; ++i)
    x[i] = i;
  program.run(1, {{x.data(), {4, 8}, {8, 1}}, {w.data(), {8}, {1}}});
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(x[i], i + 3 + (i / 8 * 8 + 2));
}

} // namespace
