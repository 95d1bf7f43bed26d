// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums of log decays and scores with a decay per channel in CPU code against
// plain double loops.
#include "TileProgram.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace gdn::test;

namespace {

/// Runs `op` on a matrix; the result has the same shape.
std::vector<float> runSum(const std::string &op, std::vector<float> x,
                          int64_t rows, int64_t columns, int64_t lanes) {
  Program program("%x: " + view(rows, columns) + ", %y: " + view(rows, columns),
                  load("x", rows, columns) + "%s = gdn_tile." + op +
                      " %xt : " + tile(rows, columns) + "\n" +
                      store("s", "y", rows, columns),
                  lanes);
  std::vector<float> y(x.size(), NAN);
  if (program.compiled())
    program.run(1, {of(x, rows, columns), of(y, rows, columns)});
  return y;
}

TEST(DecayTest, SumsOfARow) {
  std::string row = "memref<16xf32, strided<[?]>>";
  for (bool fromEnd : {false, true}) {
    Program program("%x: " + row + ", %y: " + row,
                    "%t = gdn_tile.load %x[%c0] dims [0] : " + row +
                        ", vector<16xf32>\n%s = gdn_tile." +
                        (fromEnd ? "suffix_sum" : "prefix_sum") +
                        " %t : vector<16xf32>\ngdn_tile.store %s, %y[%c0] "
                        "dims [0] : vector<16xf32>, " +
                        row,
                    8);
    ASSERT_TRUE(program.compiled());
    std::vector<float> x = randomValues(16, 1, 5), y(16, NAN);
    program.run(1, {{x.data(), {16}, {1}}, {y.data(), {16}, {1}}});
    float sum = 0;
    for (int i = 0; i < 16 && !fromEnd; ++i)
      EXPECT_EQ(y[i], sum += x[i]) << i;
    for (int i = 15; i >= 0 && fromEnd; --i, sum += x[i + 1])
      EXPECT_EQ(y[i], sum) << i;
  }
}

// In the order that the ops promise: the same bits.
TEST(DecayTest, SumsPerColumn) {
  for (auto [rows, columns] : {std::pair{16, 64}, {5, 24}, {64, 3}}) {
    std::vector<float> x = randomValues(rows * columns, 1, 7);
    std::vector<float> prefix = runSum("prefix_sum", x, rows, columns, 16);
    std::vector<float> suffix = runSum("suffix_sum", x, rows, columns, 16);
    for (int c = 0; c < columns; ++c) {
      float sum = 0;
      for (int i = 0; i < rows; ++i)
        ASSERT_EQ(prefix[i * columns + c], sum += x[i * columns + c]);
      sum = 0;
      for (int i = rows - 1; i >= 0; --i) {
        ASSERT_EQ(suffix[i * columns + c], sum);
        sum += x[i * columns + c];
      }
    }
  }
}

TEST(DecayTest, ExtractRow) {
  std::string row = "memref<24xf32, strided<[?]>>";
  Program program("%x: " + view(8, 24) + ", %y: " + row,
                  load("x", 8, 24) +
                      "%r = gdn_tile.extract_row %xt[5] : " + tile(8, 24) +
                      " -> vector<24xf32>\ngdn_tile.store %r, %y[%c0] dims "
                      "[0] : vector<24xf32>, " +
                      row,
                  16);
  ASSERT_TRUE(program.compiled());
  std::vector<float> x = randomValues(8 * 24, 1, 8), y(24, NAN);
  program.run(1, {of(x, 8, 24), {y.data(), {24}, {1}}});
  for (int c = 0; c < 24; ++c)
    EXPECT_EQ(y[c], x[5 * 24 + c]);
}

/// Log decays of one kind per case.
struct Decays {
  const char *name;
  float (*of)(float uniform, int64_t token);
};

const Decays kinds[] = {
    {"NearOne", [](float u, int64_t) { return -2e-4f * u; }},
    {"Realistic", [](float u, int64_t) { return -0.4f * u; }},
    {"Strong", [](float u, int64_t) { return -5 * u; }},
    {"VeryStrong", [](float u, int64_t) { return -50 * u; }},
    // Running sums are large where decays are small: what is taken from their
    // differences would be off by 1e-4.
    {"ForgetsThenKeeps",
     [](float u, int64_t t) { return t % 8 < 6 ? -100 * u : -1e-3f * u; }},
    {"Underflows", [](float, int64_t) { return -1e4f; }},
    {"None", [](float, int64_t) { return 0.0f; }}};

/// `count` log decays for each of `tokens`.
std::vector<float> logDecays(const Decays &kind, int64_t tokens,
                             int64_t count) {
  std::vector<float> g = randomValues(tokens * count, 1, 3);
  for (int64_t i = 0; i < tokens * count; ++i)
    g[i] = kind.of(0.5f * std::erfc(g[i] * float(M_SQRT1_2)), i / count);
  return g;
}

class DecaysTest : public testing::TestWithParam<std::tuple<Decays, int64_t>> {
};

TEST_P(DecaysTest, MatrixAgreesWithDoubles) {
  auto [kind, lanes] = GetParam();
  for (int64_t c : {8, 40, 64}) {
    std::string row = "memref<" + std::to_string(c) + "xf32, strided<[?]>>";
    std::string values = "vector<" + std::to_string(c) + "xf32>";
    Program program("%g: " + row + ", %y: " + view(c, c),
                    "%t = gdn_tile.load %g[%c0] dims [0] : " + row + ", " +
                        values + "\n%e = gdn_tile.decay_matrix %t : " + values +
                        " -> " + tile(c, c) + "\n" + store("e", "y", c, c),
                    lanes);
    ASSERT_TRUE(program.compiled());
    std::vector<float> g = logDecays(kind, c, 1), y(c * c, NAN);
    program.run(1, {{g.data(), {c}, {1}}, of(y, c, c)});
    for (int64_t i = 0; i < c; ++i)
      for (int64_t j = 0; j < c; ++j) {
        double sum = 0;
        for (int64_t m = j + 1; m <= i; ++m)
          sum += g[m];
        double want = j <= i ? std::exp(sum) : 0;
        ASSERT_NEAR(y[i * c + j], want, 1e-5 * want + 1e-37) << i << " " << j;
      }
  }
}

// Each score is a sum of dk products, so its error is compared with the sum of
// their magnitudes: a sum may cancel.
TEST_P(DecaysTest, ScoresAgreeWithDoubles) {
  auto [kind, lanes] = GetParam();
  for (auto [c, dk] : {std::pair{16, 8}, {64, 128}, {32, 40}}) {
    Program program(
        "%q: " + view(c, dk) + ", %k: " + view(c, dk) + ", %g: " + view(c, dk) +
            ", %y: " + view(c, c) + ", %z: " + view(c, c),
        load("q", c, dk) + load("k", c, dk) + load("g", c, dk) +
            "%p, %l = gdn_tile.decay_scores %qt, %kt decay(%gt) : " +
            tile(c, dk) + " -> " + tile(c, c) + "\n" + store("p", "y", c, c) +
            store("l", "z", c, c),
        lanes);
    ASSERT_TRUE(program.compiled());
    std::vector<float> q = randomValues(c * dk, 1, 1);
    std::vector<float> k = randomValues(c * dk, 1, 2);
    std::vector<float> g = logDecays(kind, c, dk);
    std::vector<float> y(c * c, NAN), z(c * c, NAN);
    program.run(1, {of(q, c, dk), of(k, c, dk), of(g, c, dk), of(y, c, c),
                    of(z, c, c)});
    for (int i = 0; i < c; ++i)
      for (int j = 0; j < c; ++j) {
        if (j > i) {
          ASSERT_EQ(y[i * c + j], 0);
          ASSERT_EQ(z[i * c + j], 0);
          continue;
        }
        double want[2] = {0, 0}, size[2] = {1e-30, 1e-30};
        for (int d = 0; d < dk; ++d) {
          double sum = 0;
          for (int m = j + 1; m <= i; ++m)
            sum += g[m * dk + d];
          double fades = k[j * dk + d] * std::exp(sum);
          for (int n : {0, 1}) {
            double product = (n ? k : q)[i * dk + d] * fades;
            want[n] += product;
            size[n] += std::fabs(product);
          }
        }
        ASSERT_LT(std::fabs(y[i * c + j] - want[0]), 1e-5 * size[0])
            << i << " " << j;
        ASSERT_LT(std::fabs(z[i * c + j] - want[1]), 1e-5 * size[1])
            << i << " " << j;
      }
  }
}

// Scores within blocks of 16 tokens and between them, and the operands with the
// decay of a chunk; f16 rounds each factor and each operand.
TEST_P(DecaysTest, OperandsAgreeWithDoubles) {
  auto [kind, lanes] = GetParam();
  for (auto [c, dk] : {std::pair{16, 16}, {64, 128}, {32, 48}}) {
    std::string narrow =
        "vector<" + std::to_string(c) + "x" + std::to_string(dk) + "xf16>";
    std::string row = "vector<" + std::to_string(dk) + "xf";
    std::string ends = "memref<" + std::to_string(dk) + "xf32, strided<[?]>>";
    auto cast = [&](const std::string &to, const std::string &from,
                    bool narrows) {
      std::string wide = row + "32>", small = row + "16>";
      return "%" + to + " = gdn_tile.map_rows %" + from + " : " +
             (narrows ? tile(c, dk) + " -> " + narrow
                      : narrow + " -> " + tile(c, dk)) +
             " {\n^bb0(%i: index, %x: " + (narrows ? wide : small) +
             "):\n%y = arith." + (narrows ? "truncf" : "extf") + " %x : " +
             (narrows ? wide + " to " + small : small + " to " + wide) +
             "\ngdn_tile.yield %y : " + (narrows ? small : wide) + "\n}\n";
    };
    std::string m = view(c, dk), s = view(c, c);
    Program program(
        "%q: " + m + ", %k: " + m + ", %g: " + m + ", %a: " + s + ", %b: " + s +
            ", %d: " + m + ", %e: " + m + ", %f: " + m + ", %h: " + ends,
        load("q", c, dk) + load("k", c, dk) + load("g", c, dk) +
            cast("qn", "qt", true) + cast("kn", "kt", true) +
            "%p, %l, %fq, %fk, %te, %end = gdn_tile.decay_operands %qn, %kn "
            "decay(%gt) : " +
            narrow + " -> " + tile(c, c) + ", " + narrow + ", " + row +
            "32>\n" + cast("fqw", "fq", false) + cast("fkw", "fk", false) +
            cast("tew", "te", false) + store("p", "a", c, c) +
            store("l", "b", c, c) + store("fqw", "d", c, dk) +
            store("fkw", "e", c, dk) + store("tew", "f", c, dk) +
            "gdn_tile.store %end, %h[%c0] dims [0] : " + row + "32>, " + ends,
        lanes);
    ASSERT_TRUE(program.compiled());
    std::vector<float> q = randomValues(c * dk, 1, 1);
    std::vector<float> k = randomValues(c * dk, 1, 2);
    std::vector<float> g = logDecays(kind, c, dk);
    std::vector<float> a(c * c, NAN), b(c * c, NAN), h(dk, NAN);
    std::vector<float> d(c * dk, NAN), e(c * dk, NAN), f(c * dk, NAN);
    program.run(1, {of(q, c, dk),
                    of(k, c, dk),
                    of(g, c, dk),
                    of(a, c, c),
                    of(b, c, c),
                    of(d, c, dk),
                    of(e, c, dk),
                    of(f, c, dk),
                    {h.data(), {dk}, {1}}});
    auto decay = [&](int from, int to, int channel) {
      double sum = 0;
      for (int t = from; t < to; ++t)
        sum += g[t * dk + channel];
      return std::exp(sum);
    };
    // A product of f16, of decays whose logs are f16, and what the smallest f16
    // leaves out. A decay of scores within a block is not less than 2^-14.
    auto expectNear = [&](double got, double want, double size) {
      ASSERT_LT(std::fabs(got - want), size + 4e-7) << c << " " << dk;
    };
    auto sizeOf = [&](double product, double factor) {
      return std::fabs(product) * (3e-3 - 5e-4 * std::log(factor + 1e-37));
    };
    for (int i = 0; i < c; ++i) {
      for (int j = 0; j < c; ++j) {
        double want[2] = {0, 0}, size[2] = {0, 0};
        for (int n = 0; n < dk && j <= i; ++n) {
          double between = decay(j + 1, i + 1, n);
          double fades = k[j * dk + n] * between;
          for (int x : {0, 1}) {
            double product = (x ? k : q)[i * dk + n] * fades;
            want[x] += product;
            size[x] += sizeOf(product, between);
            if (i / 16 == j / 16)
              size[x] +=
                  7e-5 * std::fabs((x ? k : q)[i * dk + n] * k[j * dk + n]);
          }
        }
        expectNear(a[i * c + j], want[0], size[0]);
        expectNear(b[i * c + j], j < i ? want[1] : 0, size[1]);
      }
      for (int n = 0; n < dk; ++n) {
        int at = i * dk + n;
        double before = decay(0, i + 1, n), behind = decay(i + 1, c, n);
        expectNear(d[at], q[at] * before, sizeOf(q[at] * before, before));
        expectNear(e[at], k[at] * before, sizeOf(k[at] * before, before));
        expectNear(f[at], k[at] * behind, sizeOf(k[at] * behind, behind));
      }
    }
    for (int n = 0; n < dk; ++n)
      ASSERT_NEAR(h[n], decay(0, c, n), 1e-5 * decay(0, c, n) + 1e-37);
  }
}

std::string
nameOf(const testing::TestParamInfo<std::tuple<Decays, int64_t>> &info) {
  return std::string(std::get<0>(info.param).name) +
         std::to_string(std::get<1>(info.param));
}
const auto all =
    testing::Combine(testing::ValuesIn(kinds), testing::Values(8, 16));
INSTANTIATE_TEST_SUITE_P(Kinds, DecaysTest, all, nameOf);

} // namespace
