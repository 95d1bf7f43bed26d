// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs whose tiles could be confused if two of them shared a place.
#include "TileProgram.h"

#include "gtest/gtest.h"

using namespace gdn::test;

namespace {

const std::string kLoads =
    "%a = gdn_tile.load %x[%c0] dims [0] : memref<4xf32>, vector<4xf32>\n"
    "%b = gdn_tile.load %y[%c0] dims [0] : memref<4xf32>, vector<4xf32>\n";
const std::string kStores =
    "gdn_tile.store %r#0, %x[%c0] dims [0] : vector<4xf32>, memref<4xf32>\n"
    "gdn_tile.store %r#1, %y[%c0] dims [0] : vector<4xf32>, memref<4xf32>\n";
const std::string kViews = "%x: memref<4xf32>, %y: memref<4xf32>";
const std::string kPair = "(vector<4xf32>, vector<4xf32>)";

std::string plusOne(const std::string &to, const std::string &from) {
  return to + " = gdn_tile.map_rows " + from +
         " : vector<4xf32> -> vector<4xf32> {\n^bb0(%i: index, %e: f32):\n"
         "%one = arith.constant 1.0 : f32\n%s = arith.addf %e, %one : f32\n"
         "gdn_tile.yield %s : f32\n}\n";
}

/// First elements of the two tiles after the program, from 10 and 20.
std::pair<float, float> run(const std::string &body, int64_t n) {
  Program program(kViews, kLoads + body + kStores, 8);
  if (!program.compiled())
    return {};
  std::vector<float> x(4, 10), y(4, 20);
  program.run(n, {{x.data(), {4}, {1}}, {y.data(), {4}, {1}}});
  for (int i = 1; i < 4; ++i) {
    EXPECT_EQ(x[i], x[0]);
    EXPECT_EQ(y[i], y[0]);
  }
  return {x[0], y[0]};
}

using Pair = std::pair<float, float>;

TEST(BuffersTest, CarriedTilesSwap) {
  std::string body = "%r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%p = "
                     "%a, %q = %b) -> " +
                     kPair +
                     " {\nscf.yield %q, %p : vector<4xf32>, "
                     "vector<4xf32>\n}\n";
  EXPECT_EQ(run(body, 0), Pair(10, 20));
  EXPECT_EQ(run(body, 1), Pair(20, 10));
  EXPECT_EQ(run(body, 2), Pair(10, 20));
}

TEST(BuffersTest, UpdatedTilesSwap) {
  std::string body = "%r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%p = "
                     "%a, %q = %b) -> " +
                     kPair + " {\n" + plusOne("%u", "%p") +
                     plusOne("%v", "%q") +
                     "scf.yield %v, %u : vector<4xf32>, vector<4xf32>\n}\n";
  EXPECT_EQ(run(body, 1), Pair(21, 11));
  EXPECT_EQ(run(body, 3), Pair(23, 13));
}

TEST(BuffersTest, OneTileForBoth) {
  std::string body = "%r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%p = "
                     "%a, %q = %a) -> " +
                     kPair + " {\n" + plusOne("%u", "%q") +
                     "scf.yield %u, %u : vector<4xf32>, vector<4xf32>\n}\n";
  EXPECT_EQ(run(body, 0), Pair(10, 10));
  EXPECT_EQ(run(body, 2), Pair(12, 12));
}

TEST(BuffersTest, UsedAfterAnUpdate) {
  std::string body = plusOne("%u", "%a") + plusOne("%v", "%a") +
                     plusOne("%w", "%v") +
                     "%r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%p = "
                     "%u, %q = %w) -> " +
                     kPair +
                     " {\nscf.yield %p, %q : vector<4xf32>, "
                     "vector<4xf32>\n}\n";
  EXPECT_EQ(run(body, 5), Pair(11, 12));
}

TEST(BuffersTest, NestedLoops) {
  // The inner loop starts from a tile of the outer body and from one that is
  // the same in each of its rounds.
  std::string body =
      "%r:2 = scf.for %t = %c0 to %n step %c1 iter_args(%p = %a, %q = %a) -> " +
      kPair +
      " {\n%in:2 = scf.for %k = %c0 to %n step %c1 iter_args(%f = %p, %g = "
      "%b) -> " +
      kPair + " {\n" + plusOne("%u", "%f") + plusOne("%v", "%g") +
      "scf.yield %v, %u : vector<4xf32>, vector<4xf32>\n}\n"
      "scf.yield %in#0, %in#1 : vector<4xf32>, vector<4xf32>\n}\n";
  // Each outer round: (p, 20) two swaps with +1 each.
  EXPECT_EQ(run(body, 2), Pair(14, 22));
  EXPECT_EQ(run(body, 1), Pair(21, 11));
}

} // namespace
