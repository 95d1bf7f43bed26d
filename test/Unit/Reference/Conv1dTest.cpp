// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.conv1d by hand, for every width, and at the edges of rows and pools.
#include "EvaluatorTest.h"

#include <cmath>

using namespace gdn::reference;

using Conv1d = EvaluatorTest;

/// One input [T, C] without activation; `extra` are further operands.
static std::string convolution(int64_t width, const char *activation,
                               bool bias = false, bool rows = true,
                               bool into = false, bool initial = false) {
  std::string k = std::to_string(width), k1 = std::to_string(width - 1);
  std::string text = "func.func @f(%x: tensor<?x?xf32>, %w: tensor<?x" + k +
                     "xf32>, %pool: !gdn.pool<?x?x" + k1 +
                     "xf32>, %slots: tensor<?xi32>";
  text += bias ? ", %bias: tensor<?xf32>" : "";
  text += into ? ", %into: tensor<?xi32>" : "";
  text += rows ? ", %cu: tensor<?xi32>" : "";
  text += initial ? ", %has: tensor<?xi1>" : "";
  text += ") -> tensor<?x?xf32> { %y = gdn.conv1d %x weight(%w)";
  text += bias ? " bias(%bias)" : "";
  text += std::string(" ") + activation + " pool(%pool) slots(%slots";
  text += into ? " -> %into)" : ")";
  text += rows ? " sequences(%cu)" : "";
  text += initial ? " initial(%has)" : "";
  text += " : (tensor<?x?xf32>), tensor<?x" + k + "xf32>";
  text += bias ? " bias tensor<?xf32>" : "";
  text += ", !gdn.pool<?x?x" + k1 + "xf32>, tensor<?xi32>";
  text += into ? " into tensor<?xi32>" : "";
  text += rows ? ", tensor<?xi32>" : "";
  text += initial ? " initial tensor<?xi1>" : "";
  return text + " -> tensor<?x?xf32> return %y : tensor<?x?xf32> }";
}

// Weights 1 10 100, state 7 8, inputs 1 2 3:
//   y0 = 7 + 80 + 100, y1 = 8 + 10 + 200, y2 = 1 + 20 + 300; state 2 3.
TEST_F(Conv1d, ByHand) {
  Pool pool = {Tensor({2, 1, 2}, {0, 0, 7, 8})};
  auto results = run(convolution(3, "identity"),
                     {Tensor({3, 1}, {1, 2, 3}), Tensor({1, 3}, {1, 10, 100}),
                      &pool, vector({1}), vector({0, 3})});
  expectSame(results[0].data, {187, 218, 321});
  expectSame(pool.data.data, {0, 0, 2, 3});
}

// A row shorter than the state shifts it: 7 8 9, then 1 2 gives 9 1 2.
TEST_F(Conv1d, ShortRowShiftsTheState) {
  Pool pool = {Tensor({1, 1, 3}, {7, 8, 9})};
  run(convolution(4, "silu"), {Tensor({2, 1}, {1, 2}), filled({1, 4}, 1), &pool,
                               vector({0}), vector({0, 2})});
  expectSame(pool.data.data, {9, 1, 2});
}

// silu(ln 3) = ln 3 * 3/4, with ln 3 out of the bias alone.
TEST_F(Conv1d, BiasAndSilu) {
  Pool pool = {Tensor::zeros({1, 1, 3})};
  const double ln3 = std::log(3.0);
  auto results = run(convolution(4, "silu", /*bias=*/true),
                     {Tensor::zeros({1, 1}), filled({1, 4}, 1), &pool,
                      vector({0}), vector({ln3}), vector({0, 1})});
  expectNear(results[0].data, {0.75 * ln3}, 1e-15);
}

// Sections share the channels in order: channel 0 is x, 1 to 8 are the head y.
TEST_F(Conv1d, SectionsAreConsecutiveChannels) {
  Pool pool = {Tensor::zeros({1, 9, 1})};
  Tensor weight = Tensor::zeros({9, 2});
  for (int64_t c = 0; c < 9; ++c)
    weight.data[2 * c + 1] = c + 1; // newest input times c + 1
  auto results = run(
      R"(
    func.func @f(%x: tensor<?x1xf32>, %y: tensor<?x?x8xf32>,
        %w: tensor<?x2xf32>, %pool: !gdn.pool<?x?x1xf32>, %s: tensor<?xi32>)
        -> (tensor<?x1xf32>, tensor<?x?x8xf32>) {
      %a, %b = gdn.conv1d %x, %y weight(%w) identity pool(%pool) slots(%s)
          : (tensor<?x1xf32>, tensor<?x?x8xf32>), tensor<?x2xf32>,
            !gdn.pool<?x?x1xf32>, tensor<?xi32>
            -> tensor<?x1xf32>, tensor<?x?x8xf32>
      return %a, %b : tensor<?x1xf32>, tensor<?x?x8xf32>
    })",
      {filled({1, 1}, 10), filled({1, 1, 8}, 100), weight, &pool, vector({0})});
  expectSame(results[0].data, {10});
  expectSame(results[1].data, {200, 300, 400, 500, 600, 700, 800, 900});
  expectSame(pool.data.data, {10, 100, 100, 100, 100, 100, 100, 100, 100});
}

// For every width: tokens one at a time, without rows, equal one row, and the
// first output is weight times (state, token).
TEST_F(Conv1d, EveryWidth) {
  for (int64_t width = 2; width <= 8; ++width) {
    const int64_t tokens = 11, channels = 3;
    Tensor x = random({tokens, channels}, 1), w = random({channels, width}, 2);
    Pool once = {random({3, channels, width - 1}, 3)}, steps = once;
    const Pool before = once;
    Tensor whole = run(convolution(width, "identity"),
                       {x, w, &once, vector({2}), vector({0, tokens})})[0];
    double first = 0;
    for (int64_t j = 0; j < width; ++j)
      first += w.data[j] * (j < width - 1 ? before.data.row(2)[j] : x.data[0]);
    EXPECT_NEAR(whole.data[0], first, 1e-14);
    for (int64_t t = 0; t < tokens; ++t) {
      Tensor y = run(convolution(width, "identity", false, /*rows=*/false),
                     {slice(x, t, t + 1), w, &steps, vector({2})})[0];
      expectSame(y.data, whole.row(t));
    }
    expectSame(steps.data.data, once.data.data);
  }
}

// Row 1 has no tokens, row 2 starts from zeros: NaN in its slot is not read.
TEST_F(Conv1d, EmptyRowAndFreshRow) {
  Pool pool = {Tensor({4, 1, 1}, {5, 6, qNaN, qNaN})};
  auto results =
      run(convolution(2, "identity", false, true, false, /*initial=*/true),
          {Tensor({2, 1}, {1, 2}), Tensor({1, 2}, {100, 1}), &pool,
           vector({0, 1, 2}), vector({0, 1, 1, 2}), vector({1, 0, 0})});
  expectSame(results[0].data, {501, 2});
  expectSame(pool.data.data, {1, 6, 2, qNaN});
}

// Skipped: negative, null (0), and P. Their tokens and padding hold NaN.
TEST_F(Conv1d, SkippedRowsAndPadding) {
  Pool pool = {Tensor({3, 1, 1}, {qNaN, 10, qNaN}), /*nullSlot=*/0};
  const Tensor before = pool.data;
  auto results =
      run(convolution(2, "identity"),
          {Tensor({6, 1}, {qNaN, qNaN, 2, qNaN, qNaN, qNaN}), filled({1, 2}, 1),
           &pool, vector({-1, 0, 1, 3}), vector({0, 1, 2, 3, 4})});
  expectSame(results[0].data, {0, 0, 12, 0, 0, 0});
  expectSame(pool.data.data, {qNaN, 2, qNaN});
}

// The state goes elsewhere, or nowhere; two rows may start from one slot.
TEST_F(Conv1d, WriteSlots) {
  Pool pool = {Tensor({4, 1, 1}, {5, 6, 7, 8}), 0};
  auto results =
      run(convolution(2, "identity", false, true, /*into=*/true),
          {Tensor({3, 1}, {1, 2, 3}), Tensor({1, 2}, {1, 0}), &pool,
           vector({1, 1, 3}), vector({2, 0, -5}), vector({0, 1, 2, 3})});
  expectSame(results[0].data, {6, 6, 8});
  expectSame(pool.data.data, {5, 6, 1, 8});
}

TEST_F(Conv1d, NoRowsNoTokens) {
  Pool pool = {filled({2, 3, 3}, 4)};
  auto results =
      run(convolution(4, "silu"), {Tensor::zeros({0, 3}), random({3, 4}, 1),
                                   &pool, vector({}), vector({0})});
  EXPECT_TRUE(results[0].data.empty());
  expectSame(pool.data.data, filled({2, 3, 3}, 4).data);
  // Without rows every token is padding.
  auto padded =
      run(convolution(4, "silu"), {filled({2, 3}, qNaN), random({3, 4}, 1),
                                   &pool, vector({}), vector({0})});
  expectSame(padded[0].data, {0, 0, 0, 0, 0, 0});
}
