// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products, transposes and triangular inverses in CPU code against plain double
// loops.
#include "TileProgram.h"

#include "gdn/Data/DType.h"

#include "gtest/gtest.h"

using namespace gdn::test;

namespace {

struct Product {
  int64_t m, k, n;
  bool transposed, accumulates;
};

/// Compares the code of one product with plain loops.
void expectProduct(Product p, int64_t lanes) {
  int64_t rows = p.transposed ? p.k : p.m, columns = p.transposed ? p.m : p.k;
  std::string body =
      load("a", rows, columns) + load("b", p.k, p.n) + load("c", p.m, p.n) +
      "%r = gdn_tile.matmul " + (p.transposed ? "transpose " : "") +
      "%at, %bt " + (p.accumulates ? "acc(%ct : " + tile(p.m, p.n) + ")" : "") +
      " : " + tile(rows, columns) + ", " + tile(p.k, p.n) + " -> " +
      tile(p.m, p.n) + "\n" + store("r", "y", p.m, p.n);
  Program program("%a: " + view(rows, columns) + ", %b: " + view(p.k, p.n) +
                      ", %c: " + view(p.m, p.n) + ", %y: " + view(p.m, p.n),
                  body, lanes);
  ASSERT_TRUE(program.compiled());
  std::vector<float> a = randomValues(rows * columns, 1, 1);
  std::vector<float> b = randomValues(p.k * p.n, 1, 2);
  std::vector<float> c = randomValues(p.m * p.n, 1, 3), y(p.m * p.n, NAN);
  program.run(1, {of(a, rows, columns), of(b, p.k, p.n), of(c, p.m, p.n),
                  of(y, p.m, p.n)});
  std::vector<double> want(p.m * p.n);
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = p.accumulates ? c[i * p.n + j] : 0;
      for (int64_t k = 0; k < p.k; ++k)
        sum += double(p.transposed ? a[k * columns + i] : a[i * columns + k]) *
               b[k * p.n + j];
      want[i * p.n + j] = sum;
    }
  EXPECT_LT(relativeError(y, want), 1e-6)
      << p.m << " " << p.k << " " << p.n << ", lanes " << lanes;
}

class MatmulTest : public testing::TestWithParam<std::tuple<Product, int64_t>> {
};

TEST_P(MatmulTest, AgreesWithDoubles) {
  auto [product, lanes] = GetParam();
  expectProduct(product, lanes);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, MatmulTest,
    testing::Combine(testing::Values(Product{64, 128, 64, false, false},
                                     Product{64, 64, 192, false, true},
                                     Product{96, 16, 40, true, true},
                                     Product{24, 32, 8, true, false},
                                     Product{7, 3, 12, false, true}),
                     testing::Values(4, 8, 16)));

/// Every head size: whole vectors in panels of 3, 2 and 1, and a tail of 8.
TEST(MatrixTest, ProductsOfEveryWidth) {
  for (int64_t lanes : {8, 16})
    for (int64_t n = 8; n <= 256; n += 8)
      expectProduct({8, 8, n, /*transposed=*/true, /*accumulates=*/true},
                    lanes);
}

/// Zeros above the diagonal of `lhs` may be skipped.
TEST(MatrixTest, LowerLhs) {
  for (int64_t lanes : {8, 16})
    for (auto [m, n] : {std::pair{64, 128}, {16, 40}, {24, 8}}) {
      std::string body =
          load("a", m, m) + load("b", m, n) +
          "%r = gdn_tile.matmul %at, %bt {lower_lhs} : " + tile(m, m) + ", " +
          tile(m, n) + " -> " + tile(m, n) + "\n" + store("r", "y", m, n);
      Program program("%a: " + view(m, m) + ", %b: " + view(m, n) +
                          ", %y: " + view(m, n),
                      body, lanes);
      ASSERT_TRUE(program.compiled());
      std::vector<float> a = randomValues(m * m, 1, 1);
      std::vector<float> b = randomValues(m * n, 1, 2), y(m * n, NAN);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t k = i + 1; k < m; ++k)
          a[i * m + k] = 0;
      program.run(1, {of(a, m, m), of(b, m, n), of(y, m, n)});
      std::vector<double> want(m * n);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
          for (int64_t k = 0; k <= i; ++k)
            want[i * n + j] += double(a[i * m + k]) * b[k * n + j];
      EXPECT_LT(relativeError(y, want), 1e-6) << m << "x" << n;
    }
}

/// On and below the diagonal; the rest is not looked at.
TEST(MatrixTest, LowerResult) {
  for (int64_t lanes : {8, 16})
    for (auto [m, inner] : {std::pair{64, 128}, {16, 40}, {128, 8}}) {
      std::string body =
          load("a", m, inner) + load("b", inner, m) +
          "%r = gdn_tile.matmul %at, %bt {lower_result} : " + tile(m, inner) +
          ", " + tile(inner, m) + " -> " + tile(m, m) + "\n" +
          store("r", "y", m, m);
      Program program("%a: " + view(m, inner) + ", %b: " + view(inner, m) +
                          ", %y: " + view(m, m),
                      body, lanes);
      ASSERT_TRUE(program.compiled());
      std::vector<float> a = randomValues(m * inner, 1, 1);
      std::vector<float> b = randomValues(inner * m, 1, 2), y(m * m, NAN);
      program.run(1, {of(a, m, inner), of(b, inner, m), of(y, m, m)});
      std::vector<float> got;
      std::vector<double> want;
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j <= i; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < inner; ++k)
            sum += double(a[i * inner + k]) * b[k * m + j];
          got.push_back(y[i * m + j]);
          want.push_back(sum);
        }
      EXPECT_LT(relativeError(got, want), 1e-6) << m << "x" << inner;
    }
}

TEST(MatrixTest, Transpose) {
  for (auto [rows, columns] :
       {std::pair{16, 64}, {24, 40}, {8, 8}, {3, 5}, {128, 16}}) {
    Program program(
        "%x: " + view(rows, columns) + ", %y: " + view(columns, rows),
        load("x", rows, columns) +
            "%t = gdn_tile.transpose %xt : " + tile(rows, columns) + " -> " +
            tile(columns, rows) + "\n" + store("t", "y", columns, rows),
        8);
    ASSERT_TRUE(program.compiled());
    std::vector<float> x = randomValues(rows * columns, 1, 4),
                       y(rows * columns, NAN);
    program.run(1, {of(x, rows, columns), of(y, columns, rows)});
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j)
        ASSERT_EQ(y[j * rows + i], x[i * columns + j])
            << rows << "x" << columns;
  }
}

/// Times the triangle it came from, the inverse is the identity; what stands
/// on and above the diagonal is not read.
TEST(MatrixTest, TriangularInverse) {
  for (int64_t size : {8, 16, 64, 128})
    for (float scale : {0.1f, 0.5f}) {
      Program program("%x: " + view(size, size) + ", %y: " + view(size, size),
                      load("x", size, size) +
                          "%t = gdn_tile.tri_inverse %xt : " +
                          tile(size, size) + "\n" + store("t", "y", size, size),
                      16);
      ASSERT_TRUE(program.compiled());
      std::vector<float> x = randomValues(size * size, scale, 6),
                         y(size * size, NAN);
      for (int64_t i = 0; i < size; ++i)
        for (int64_t j = i; j < size; ++j)
          x[i * size + j] = NAN;
      program.run(1, {of(x, size, size), of(y, size, size)});
      // Column by column in double, by forward substitution.
      std::vector<double> want(size * size);
      for (int64_t c = 0; c < size; ++c)
        for (int64_t i = c; i < size; ++i) {
          double sum = i == c;
          for (int64_t j = c; j < i; ++j)
            sum -= double(x[i * size + j]) * want[j * size + c];
          want[i * size + c] = sum;
        }
      EXPECT_LT(relativeError(y, want), 2e-5) << size << " " << scale;
    }
}

std::string tileOf(const std::string &type, int64_t rows, int64_t columns) {
  std::string f32 = tile(rows, columns);
  return f32.substr(0, f32.size() - 4) + type + ">";
}
/// A map that rounds `from` to `type`, or widens it from there.
std::string cast(const std::string &result, const std::string &from,
                 const std::string &type, int64_t rows, int64_t columns,
                 bool widens) {
  std::string wide = tile(rows, columns), narrow = tileOf(type, rows, columns);
  std::string row = "vector<" + std::to_string(columns) + "x";
  std::string in = row + (widens ? type : "f32") + ">";
  std::string out = row + (widens ? "f32" : type) + ">";
  return "%" + result + " = gdn_tile.map_rows %" + from + " : " +
         (widens ? narrow + " -> " + wide : wide + " -> " + narrow) +
         " {\n^bb0(%i: index, %r: " + in + "):\n%c = arith." +
         (widens ? "extf" : "truncf") + " %r : " + in + " to " + out +
         "\ngdn_tile.yield %c : " + out + "\n}\n";
}
double toF16(double x) { return gdn::data::fromF16(gdn::data::toF16(x)); }
double toBF16(double x) { return gdn::data::fromBF16(gdn::data::toBF16(x)); }

/// Operands of 16 bits, one of them transposed: products are of the rounded
/// values, summed in f32.
TEST(MatrixTest, NarrowOperands) {
  for (const std::string type : {"bf16", "f16"}) {
    const int64_t m = 32, k = 64, n = 24;
    Program program(
        "%a: " + view(m, k) + ", %b: " + view(n, k) + ", %y: " + view(m, n),
        load("a", m, k) + load("b", n, k) +
            cast("an", "at", type, m, k, false) +
            cast("bn", "bt", type, n, k, false) +
            "%bnt = gdn_tile.transpose %bn : " + tileOf(type, n, k) + " -> " +
            tileOf(type, k, n) + "\n%r = gdn_tile.matmul %an, %bnt : " +
            tileOf(type, m, k) + ", " + tileOf(type, k, n) + " -> " +
            tile(m, n) + "\n" + store("r", "y", m, n),
        16);
    ASSERT_TRUE(program.compiled());
    std::vector<float> a = randomValues(m * k, 1, 7),
                       b = randomValues(n * k, 1, 8), y(m * n, NAN);
    program.run(1, {of(a, m, k), of(b, n, k), of(y, m, n)});
    auto round = type == "f16" ? toF16 : toBF16;
    std::vector<double> want(m * n);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t l = 0; l < k; ++l)
          want[i * n + j] += round(a[i * k + l]) * round(b[j * k + l]);
    EXPECT_LT(relativeError(y, want), 1e-6) << type;
  }
}

/// The inverse of an f16 matrix, by its definition: blocks of 16 with f16
/// operands. A rounding left out or added shows as an error of 1e-4.
TEST(MatrixTest, NarrowTriangularInverse) {
  for (int64_t size : {16, 32, 64, 128}) {
    Program program(
        "%x: " + view(size, size) + ", %y: " + view(size, size),
        load("x", size, size) + cast("h", "xt", "f16", size, size, false) +
            "%t = gdn_tile.tri_inverse %h : " + tileOf("f16", size, size) +
            "\n" + cast("w", "t", "f16", size, size, true) +
            store("w", "y", size, size),
        16);
    ASSERT_TRUE(program.compiled());
    std::vector<float> x = randomValues(size * size, 0.1f, 9),
                       y(size * size, NAN);
    for (int64_t i = 0; i < size; ++i)
      for (int64_t j = i; j < size; ++j)
        x[i * size + j] = NAN;
    program.run(1, {of(x, size, size), of(y, size, size)});

    auto l = [&](int64_t i, int64_t j) { return toF16(x[i * size + j]); };
    std::vector<double> want(size * size), b(size * size);
    for (int64_t first = 0; first < size; first += 16) {
      const int64_t end = first + 16;
      for (int64_t c = first; c < end; ++c)
        for (int64_t i = c; i < end; ++i) {
          double sum = i == c;
          for (int64_t j = c; j < i; ++j)
            sum -= l(i, j) * want[j * size + c];
          want[i * size + c] = sum;
        }
      for (int64_t i = first; i < end; ++i)
        for (int64_t c = first; c <= i; ++c)
          want[i * size + c] = toF16(want[i * size + c]);
      for (int64_t i = first; i < end; ++i)
        for (int64_t c = 0; c < first; ++c) {
          double sum = 0;
          for (int64_t j = first; j <= i; ++j)
            sum += want[i * size + j] * l(j, c);
          b[i * size + c] = toF16(sum);
        }
      for (int64_t i = first; i < end; ++i)
        for (int64_t c = 0; c < first; ++c) {
          double sum = 0;
          for (int64_t j = 0; j < first; ++j)
            sum -= b[i * size + j] * want[j * size + c];
          want[i * size + c] = toF16(sum);
        }
    }
    EXPECT_LT(relativeError(y, want), 5e-5) << size;
    for (int64_t i = 0; i < size; ++i)
      for (int64_t j = i + 1; j < size; ++j)
        ASSERT_EQ(y[i * size + j], 0) << i << ", " << j;
  }
}

} // namespace
