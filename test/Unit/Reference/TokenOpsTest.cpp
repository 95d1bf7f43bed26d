// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Token ops on numbers small enough to check by hand.
#include "EvaluatorTest.h"

#include <cmath>

using namespace gdn::reference;

using TokenOps = EvaluatorTest;

static const double ln2 = std::log(2.0), ln3 = std::log(3.0);

/// A tensor [1, columns] whose elements are their own column.
static Tensor columnNumbers(int64_t columns) {
  Tensor result = Tensor::zeros({1, columns});
  for (int64_t i = 0; i < columns; ++i)
    result.data[i] = i;
  return result;
}

// Two key heads of 8 columns, two value heads of 16 each: one block has
// 8 + 8 + 2*16 + 2*16 = 80 columns. In block g, q starts at 80g, k at 80g + 8,
// v of head 2g + r at 80g + 16 + 16r, z at 80g + 48 + 16r.
TEST_F(TokenOps, UnpackInterleaved) {
  auto results = run(R"(
    func.func @f(%x: tensor<?x?xf32>, %hk: index, %hv: index)
        -> (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x16xf32>,
            tensor<?x?x16xf32>) {
      %q, %k, %v, %z = gdn.unpack "qkvz" interleaved %x heads(%hk, %hv)
          : tensor<?x?xf32> -> tensor<?x?x8xf32>, tensor<?x?x8xf32>,
            tensor<?x?x16xf32>, tensor<?x?x16xf32>
      return %q, %k, %v, %z : tensor<?x?x8xf32>, tensor<?x?x8xf32>,
            tensor<?x?x16xf32>, tensor<?x?x16xf32>
    })",
                     {columnNumbers(160), int64_t(2), int64_t(4)});
  ASSERT_EQ(results.size(), 4u);
  for (int64_t g = 0; g < 2; ++g)
    for (int64_t i = 0; i < 8; ++i) {
      EXPECT_EQ(results[0].data[8 * g + i], 80 * g + i);
      EXPECT_EQ(results[1].data[8 * g + i], 80 * g + 8 + i);
    }
  for (int64_t g = 0; g < 2; ++g)
    for (int64_t r = 0; r < 2; ++r)
      for (int64_t i = 0; i < 16; ++i) {
        const int64_t at = 16 * (2 * g + r) + i;
        EXPECT_EQ(results[2].data[at], 80 * g + 16 + 16 * r + i);
        EXPECT_EQ(results[3].data[at], 80 * g + 48 + 16 * r + i);
      }
}

// Blocks of 2 b's and 2 a's: columns b0 b1 a0 a1 | b2 b3 a2 a3.
TEST_F(TokenOps, UnpackInterleavedGates) {
  auto results = run(R"(
    func.func @f(%x: tensor<?x?xf32>, %hk: index, %hv: index)
        -> (tensor<?x?xf32>, tensor<?x?xf32>) {
      %b, %a = gdn.unpack "ba" interleaved %x heads(%hk, %hv)
          : tensor<?x?xf32> -> tensor<?x?xf32>, tensor<?x?xf32>
      return %b, %a : tensor<?x?xf32>, tensor<?x?xf32>
    })",
                     {columnNumbers(8), int64_t(2), int64_t(4)});
  EXPECT_EQ(results[0].data, (std::vector<double>{0, 1, 4, 5}));
  EXPECT_EQ(results[1].data, (std::vector<double>{2, 3, 6, 7}));
}

// q: 1 head of 8, then v: 2 heads of 8, then a: 2 columns. Two tokens.
TEST_F(TokenOps, UnpackFlat) {
  Tensor x = Tensor::zeros({2, 26});
  for (int64_t i = 0; i < 52; ++i)
    x.data[i] = i;
  auto results = run(R"(
    func.func @f(%x: tensor<?x?xf32>, %hk: index, %hv: index)
        -> (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?xf32>) {
      %q, %v, %a = gdn.unpack "qva" flat %x heads(%hk, %hv)
          : tensor<?x?xf32> -> tensor<?x?x8xf32>, tensor<?x?x8xf32>,
            tensor<?x?xf32>
      return %q, %v, %a : tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?xf32>
    })",
                     {x, int64_t(1), int64_t(2)});
  EXPECT_EQ(results[0].shape, (llvm::SmallVector<int64_t>{2, 1, 8}));
  EXPECT_EQ(results[0].row(1)[3], 29);  // 26 + 3
  EXPECT_EQ(results[1].row(0)[8], 16);  // second head of v
  EXPECT_EQ(results[1].row(1)[15], 49); // last of v
  EXPECT_EQ(results[2].data, (std::vector<double>{24, 25, 50, 51}));
}

static const char *const gates = R"(
  func.func @f(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %al: tensor<?xf32>,
               %dt: tensor<?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
    %g, %beta = gdn.gates %a, %b, %al, %dt ATTRS
        : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
          -> tensor<?x?xf32>, tensor<?x?xf32>
    return %g, %beta : tensor<?x?xf32>, tensor<?x?xf32>
  })";

static std::string withAttributes(std::string text, const char *attributes) {
  return text.replace(text.find("ATTRS"), 5, attributes);
}

// softplus(0) = ln 2; times exp(ln 3) = 3. u = ln(e - 1): softplus = 1.
// sigmoid(0) = 1/2, sigmoid(ln 3) = 3/4.
TEST_F(TokenOps, Gates) {
  const double u = std::log(std::exp(1.0) - 1);
  auto results =
      run(withAttributes(gates, ""),
          {tensor({2, 2}, {1, u - 2, 0, 0}), tensor({2, 2}, {0, ln3, -ln3, 0}),
           vector({ln3, 0}), vector({-1, 2})});
  // Token 0: u = 0 and u. Token 1: u = -1 and 2.
  expectNear(results[0].data,
             {-3 * ln2, -1, -3 * std::log(1 + std::exp(-1.0)),
              -std::log(1 + std::exp(2.0))},
             1e-15);
  expectNear(results[1].data, {0.5, 0.75, 0.25, 0.5}, 1e-15);
}

// Past the threshold softplus is the identity, below it is not: at 21 the
// difference is e^-21, about 8e-10. Far below zero it is exp(u), not 0.
TEST_F(TokenOps, GatesThresholdAndDoubledBeta) {
  auto arguments = [](double u) {
    return llvm::SmallVector<Argument>{
        tensor({1, 1}, {u}), tensor({1, 1}, {ln3}), vector({0}), vector({0})};
  };
  auto above = run(withAttributes(gates, "{double_beta}"), arguments(21));
  EXPECT_EQ(above[0].data[0], -21);
  expectNear(above[1].data, {1.5}, 1e-15);
  auto below = run(withAttributes(gates, "{softplus_threshold = 30.0 : f32}"),
                   arguments(21));
  EXPECT_NEAR(-21 - below[0].data[0], std::exp(-21.0), 1e-14);
  auto small = run(withAttributes(gates, ""), arguments(-40));
  EXPECT_NEAR(-small[0].data[0] / std::exp(-40.0), 1, 1e-15);
}

// exp(800) is infinite and softplus(-800) is 0; their product is 1.
TEST_F(TokenOps, GatesOfAnInfiniteRate) {
  auto results = run(withAttributes(gates, ""),
                     {tensor({1, 1}, {-800}), tensor({1, 1}, {0}),
                      vector({800}), vector({0})});
  EXPECT_EQ(results[0].data[0], -1);
}

static const char *const boundedGates = R"(
  func.func @f(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %al: tensor<?xf32>,
               %dt: tensor<?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
    %g, %beta = gdn.gates %a, %b, RATE%dt {lower_bound = -5.0 : f32}
        : tensor<?x?xf32>, tensor<?x?xf32>, TYPEtensor<?xf32>
          -> tensor<?x?xf32>, tensor<?x?xf32>
    return %g, %beta : tensor<?x?xf32>, tensor<?x?xf32>
  })";

static std::string bounded(bool hasRate) {
  std::string text = boundedGates;
  text.replace(text.find("RATE"), 4, hasRate ? "%al, " : "");
  return text.replace(text.find("TYPE"), 4, hasRate ? "tensor<?xf32>, " : "");
}

// sigmoid(ln 3) = 3/4. The rate of the first head is 3, that of the second 1:
// u = ln 3 / 3 and ln 3.
TEST_F(TokenOps, GatesWithABound) {
  llvm::SmallVector<Argument> arguments = {
      tensor({2, 2}, {ln3 / 3 + 1, -ln3 - 2, 1, -2}),
      tensor({2, 2}, {0, ln3, -ln3, 0}), vector({ln3, 0}), vector({-1, 2})};
  auto results = run(bounded(true), arguments);
  expectNear(results[0].data, {-3.75, -1.25, -2.5, -2.5}, 1e-14);
  expectNear(results[1].data, {0.5, 0.75, 0.25, 0.5}, 1e-15);
  // Without the rate the head's u is as it is.
  results = run(bounded(false), arguments);
  expectNear(results[0].data,
             {-5 / (1 + std::exp(-ln3 / 3)), -1.25, -2.5, -2.5}, 1e-14);
}

// Slow decays are exp(x) to 1e-15 of themselves, and at the ends the bound and
// 0 are reached, also by an infinite rate.
TEST_F(TokenOps, BoundedGatesAtTheEnds) {
  auto decay = [&](double aLog, double u) {
    auto results = run(bounded(true), {tensor({1, 1}, {u}), tensor({1, 1}, {0}),
                                       vector({aLog}), vector({0})});
    return results[0].data[0];
  };
  EXPECT_NEAR(decay(0, -40) / (-5 * std::exp(-40.0)), 1, 1e-15);
  EXPECT_NEAR(decay(ln2, -20) / (-5 * std::exp(-40.0)), 1, 1e-14);
  EXPECT_EQ(decay(0, 50), -5);
  EXPECT_EQ(decay(0, -1000), 0);
  EXPECT_EQ(decay(800, 1e-6), -5);
  EXPECT_EQ(decay(800, -1e-6), 0);
  EXPECT_EQ(decay(800, 0), -2.5);
}

// Whatever the numbers: from the bound to 0, not less for a larger u, and the
// same as that of a rate of one.
TEST_F(TokenOps, BoundedGatesKeepTheirBound) {
  const int64_t tokens = 64, heads = 4;
  Tensor a = random({tokens, heads}, 7, 8.0), b = random({tokens, heads}, 8);
  std::vector<double> zeros(heads, 0);
  for (double aLog : {-3.0, 0.0, 1.0, 2.77}) {
    auto results = run(bounded(true),
                       {a, b, vector({aLog, aLog, aLog, aLog}), vector(zeros)});
    const std::vector<double> &g = results[0].data;
    for (size_t i = 0; i < g.size(); ++i) {
      EXPECT_LE(g[i], 0);
      EXPECT_GE(g[i], -5);
      for (size_t j = 0; j < i; ++j)
        EXPECT_EQ(a.data[i] > a.data[j] && g[i] > g[j], false);
    }
  }
  auto with = run(bounded(true), {a, b, vector(zeros), vector(zeros)});
  auto without = run(bounded(false), {a, b, vector(zeros), vector(zeros)});
  EXPECT_EQ(with[0].data, without[0].data);
}

// Eight channels with biases 0, ln(e-1), then 0: one decay each, one beta.
TEST_F(TokenOps, GatesPerChannel) {
  auto results =
      run(R"(
    func.func @f(%a: tensor<?x?x8xf32>, %b: tensor<?x?xf32>, %al: tensor<?xf32>,
                 %dt: tensor<?x8xf32>) -> (tensor<?x?x8xf32>, tensor<?x?xf32>) {
      %g, %beta = gdn.gates %a, %b, %al, %dt
          : tensor<?x?x8xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?x8xf32>
            -> tensor<?x?x8xf32>, tensor<?x?xf32>
      return %g, %beta : tensor<?x?x8xf32>, tensor<?x?xf32>
    })",
          {tensor({1, 2, 8}, {}), tensor({1, 2}, {}), vector({0, ln2}),
           tensor({2, 8}, {0, std::log(std::exp(1.0) - 1)})});
  EXPECT_NEAR(results[0].data[0], -ln2, 1e-15);
  EXPECT_NEAR(results[0].data[1], -1, 1e-15);
  EXPECT_NEAR(results[0].data[8], -2 * ln2, 1e-15); // head 1: exp(ln 2) = 2
  EXPECT_EQ(results[1].data, (std::vector<double>{0.5, 0.5}));
}

// 3^2 + 4^2 + eps 11 = 6^2.
TEST_F(TokenOps, L2Norm) {
  auto results = run(R"(
    func.func @f(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
      %y = gdn.l2norm %x {eps = 11.0 : f32}
          : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
      return %y : tensor<?x?x8xf32>
    })",
                     {tensor({1, 2, 8}, {3, 4})});
  Tensor want = tensor({1, 2, 8}, {3.0 / 6, 4.0 / 6});
  expectNear(results[0].data, want.data, 1e-15); // the zero head stays zero
}

static const char *const norm = R"(
  func.func @f(%x: tensor<?x?x8xf32>, %z: tensor<?x?x8xf32>,
               %w: tensor<8xf32>) -> tensor<?x?x8xf32> {
    %y = gdn.gated_rms_norm %x, %z, %w ATTRS
        : tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<8xf32>
          -> tensor<?x?x8xf32>
    return %y : tensor<?x?x8xf32>
  })";

// mean(x^2) = 16/8 = 2; with eps 2 the norm is 2. So x/norm = 2, times the
// weight 3 gives 6. silu(ln 3) = ln 3 * 3/4, sigmoid(ln 3) = 3/4.
TEST_F(TokenOps, GatedRMSNorm) {
  llvm::SmallVector<Argument> arguments = {
      tensor({1, 1, 8}, {4}), filled({1, 1, 8}, ln3), tensor({8}, {3, 5})};
  auto silu = run(withAttributes(norm, "silu {eps = 2.0 : f32}"), arguments);
  EXPECT_NEAR(silu[0].data[0], 6 * 0.75 * ln3, 1e-14);
  EXPECT_EQ(silu[0].data[1], 0);
  auto sigmoid =
      run(withAttributes(norm, "sigmoid {eps = 2.0 : f32}"), arguments);
  EXPECT_NEAR(sigmoid[0].data[0], 6 * 0.75, 1e-14);
}

// x*sigmoid(ln 3) = 8 * 3/4 = 6; mean of squares 36/8 = 4.5; eps 4.5: norm 3.
TEST_F(TokenOps, GatedRMSNormAfterGate) {
  auto results =
      run(withAttributes(norm, "sigmoid {norm_after_gate, eps = 4.5 : f32}"),
          {tensor({1, 1, 8}, {8}), filled({1, 1, 8}, ln3), filled({8}, 7)});
  EXPECT_NEAR(results[0].data[0], 2 * 7, 1e-14);
}

TEST_F(TokenOps, CastKeepsValues) {
  auto results = run(R"(
    func.func @f(%x: tensor<?x8xf32>) -> tensor<?x8xbf16> {
      %y = gdn.cast %x : tensor<?x8xf32> -> tensor<?x8xbf16>
      return %y : tensor<?x8xbf16>
    })",
                     {tensor({1, 8}, {1.0 / 3})});
  EXPECT_EQ(results[0].data[0], 1.0 / 3); // not rounded
}

// A kernel is its body in place; it has constants and dims.
TEST_F(TokenOps, KernelAndIndexOps) {
  auto results = run(R"(
    func.func @f(%x: tensor<?x?xf32>, %like: tensor<?xf32>)
        -> tensor<?x?x8xf32> {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %h = tensor.dim %like, %c0 : tensor<?xf32>
      %y = gdn.kernel "k" {
        %q = gdn.unpack "q" flat %x heads(%c2, %h)
            : tensor<?x?xf32> -> tensor<?x?x8xf32>
        %n = gdn.l2norm %q {eps = 11.0 : f32}
            : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
        gdn.yield %n : tensor<?x?x8xf32>
      } : tensor<?x?x8xf32>
      return %y : tensor<?x?x8xf32>
    })",
                     {tensor({1, 16}, {3, 4}), vector({1, 2, 3})});
  EXPECT_EQ(results[0].shape, (llvm::SmallVector<int64_t>{1, 2, 8}));
  EXPECT_NEAR(results[0].data[0], 0.5, 1e-15);
}

TEST_F(TokenOps, NoTokens) {
  auto results =
      run(withAttributes(norm, "silu"),
          {Tensor::zeros({0, 4, 8}), Tensor::zeros({0, 4, 8}), filled({8}, 1)});
  EXPECT_EQ(results[0].shape, (llvm::SmallVector<int64_t>{0, 4, 8}));
}
