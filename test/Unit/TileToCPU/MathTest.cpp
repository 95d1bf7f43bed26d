// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Accuracy of exp, log1p and sigmoid in CPU code, over what gates give them,
// scalar and vector.
#include "TileProgram.h"

#include "gtest/gtest.h"

#include <cmath>
#include <functional>

using namespace gdn::test;

namespace {

/// Values of `body` (a row %x of 8 floats to %y) at evenly spaced points.
struct Samples {
  std::vector<float> x, y;
};

Samples evaluate(const std::string &body, double low, double high,
                 bool scalar = false) {
  const int64_t count = 1 << 17;
  std::string type = scalar ? "f32" : "vector<8xf32>";
  std::string tile = scalar ? "vector<8xf32>" : "vector<1x8xf32>";
  std::string at = scalar ? "[%i] dims [0]" : "[%c0, %i] dims [0, 1]";
  std::string view =
      scalar ? "memref<?xf32>" : "memref<1x?xf32, strided<[?, 1]>>";
  Program program("%in: " + view + ", %out: " + view,
                  "%c8 = arith.constant 8 : index\n"
                  "scf.for %i = %c0 to %n step %c8 {\n"
                  "%t = gdn_tile.load %in" +
                      at + " : " + view + ", " + tile +
                      "\n%r = gdn_tile.map_rows %t : " + tile + " -> " + tile +
                      " {\n^bb0(%row: index, %x: " + type + "):\n" + body +
                      "\ngdn_tile.yield %y : " + type +
                      "\n}\n"
                      "gdn_tile.store %r, %out" +
                      at + " : " + tile + ", " + view + "\n}",
                  8);
  Samples samples{std::vector<float>(count), std::vector<float>(count)};
  for (int64_t i = 0; i < count; ++i)
    samples.x[i] = low + (high - low) * i / (count - 1);
  if (!program.compiled())
    return {};
  std::vector<int64_t> sizes = {1, count}, strides = {count, 1};
  if (scalar)
    sizes = {count}, strides = {1};
  program.run(count, {{samples.x.data(), sizes, strides},
                      {samples.y.data(), sizes, strides}});
  return samples;
}

/// Largest relative error against `want`, where it is a normal float.
double worst(const Samples &samples, std::function<double(double)> want,
             const char *name) {
  double largest = 0;
  float where = 0;
  for (size_t i = 0; i < samples.x.size(); ++i) {
    double exact = want(samples.x[i]);
    if (std::fabs(exact) < 1.2e-38)
      continue;
    double error = std::fabs(samples.y[i] - exact) / std::fabs(exact);
    if (!(error <= largest))
      largest = error, where = samples.x[i];
  }
  ::testing::Test::RecordProperty(name, std::to_string(largest / 0x1p-24));
  printf("%s: %.3g relative, %.2f half ulp, at %g\n", name, largest,
         largest / 0x1p-24, where);
  return largest;
}

std::string vectorOne = "%one = arith.constant dense<1.0> : vector<8xf32>\n";
constexpr double kLimit = 4 * 0x1p-23; // four ulp

TEST(MathTest, ExpOfDecays) {
  std::string body = "%y = math.exp %x : vector<8xf32>";
  Samples samples = evaluate(body, -200, 0);
  EXPECT_LE(worst(
                samples, [](double x) { return std::exp(x); }, "exp[-200,0]"),
            kLimit);
  for (size_t i = 0; i < samples.x.size(); ++i) {
    ASSERT_TRUE(std::isfinite(samples.y[i])) << "exp " << samples.x[i];
    ASSERT_GE(samples.y[i], 0.0f) << "exp " << samples.x[i];
    if (samples.x[i] < -90)
      ASSERT_LE(samples.y[i], 1e-37f) << "exp " << samples.x[i];
  }
}

TEST(MathTest, ExpOfRates) {
  std::string body = "%y = math.exp %x : vector<8xf32>";
  EXPECT_LE(worst(
                evaluate(body, 0, 88), [](double x) { return std::exp(x); },
                "exp[0,88]"),
            kLimit);
}

TEST(MathTest, ExpNearZero) {
  std::string body = "%y = math.exp %x : f32";
  EXPECT_LE(worst(
                evaluate(body, -0.1, 0.1, /*scalar=*/true),
                [](double x) { return std::exp(x); }, "exp[-0.1,0.1] scalar"),
            kLimit);
}

TEST(MathTest, ExpAtTheEnds) {
  const float inf = INFINITY;
  Samples high = evaluate("%y = math.exp %x : vector<8xf32>", 89, 1000);
  for (size_t i = 0; i < high.x.size(); ++i)
    ASSERT_EQ(high.y[i], inf) << "exp " << high.x[i];
  Samples low = evaluate("%y = math.exp %x : vector<8xf32>", -1e6, -104);
  for (size_t i = 0; i < low.x.size(); ++i)
    ASSERT_LE(low.y[i], 1e-37f) << "exp " << low.x[i];
}

TEST(MathTest, Softplus) {
  std::string body = "%e = math.exp %x : vector<8xf32>\n"
                     "%y = math.log1p %e : vector<8xf32>";
  EXPECT_LE(worst(
                evaluate(body, -40, 20),
                [](double u) { return std::log1p(std::exp(u)); },
                "log1p(exp)[-40,20]"),
            kLimit);
  EXPECT_LE(worst(
                evaluate("%e = math.exp %x : f32\n"
                         "%y = math.log1p %e : f32",
                         -2, 2, /*scalar=*/true),
                [](double u) { return std::log1p(std::exp(u)); },
                "log1p(exp)[-2,2] scalar"),
            kLimit);
}

TEST(MathTest, Sigmoid) {
  std::string body = vectorOne + "%m = arith.negf %x : vector<8xf32>\n"
                                 "%e = math.exp %m : vector<8xf32>\n"
                                 "%s = arith.addf %one, %e : vector<8xf32>\n"
                                 "%y = arith.divf %one, %s : vector<8xf32>";
  auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_LE(worst(evaluate(body, -80, 80), sigmoid, "sigmoid[-80,80]"), kLimit);
  Samples low = evaluate(body, -1e4, -89);
  for (size_t i = 0; i < low.x.size(); ++i)
    ASSERT_LE(low.y[i], 1e-37f) << "sigmoid " << low.x[i];
}

} // namespace
