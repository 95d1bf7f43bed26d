// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Generated inputs: fixed values for fixed seeds, the distributions that the
// header promises, and ragged lengths that are ragged.
#include "gdn/Data/RandomInputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

using namespace gdn::data;

static double mean(const std::vector<double> &values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / values.size();
}

// Pinned: a change here changes every recorded check.
TEST(RandomInputs, SameEverywhere) {
  const RandomStream stream(42, "q");
  EXPECT_EQ(stream.bits(0), 14692998477059866801u);
  EXPECT_EQ(stream.bits(1), 8823676048799487604u);
  EXPECT_EQ(stream.normal(7), 0.709716796875);
}

TEST(RandomInputs, StreamsDiffer) {
  std::set<uint64_t> seen;
  for (uint64_t seed : {0, 1, 2})
    for (const char *name : {"", "q", "k", "qk", "kq"})
      for (uint64_t i = 0; i < 100; ++i)
        seen.insert(RandomStream(seed, name).bits(i));
  EXPECT_EQ(seen.size(), 1500u);
}

TEST(RandomInputs, NormalMoments) {
  const std::vector<double> x = normalValues(200000, 1, RandomStream(1, "x"));
  std::vector<double> square, fourth, product;
  for (size_t i = 0; i < x.size(); ++i) {
    square.push_back(x[i] * x[i]);
    fourth.push_back(square.back() * square.back());
    product.push_back(x[i] * x[(i + 1) % x.size()]);
  }
  EXPECT_NEAR(mean(x), 0, 0.01);
  EXPECT_NEAR(mean(square), 1, 0.02);
  EXPECT_NEAR(mean(fourth), 2.9, 0.1); // of a sum of twelve: 3 - 1.2/12
  EXPECT_NEAR(mean(product), 0, 0.01);
  EXPECT_LE(*std::max_element(x.begin(), x.end()), 6);
}

// -exp(A_log) * softplus(a + dt_bias), over the heads.
static double meanDecay(GateKind kind) {
  GateWeights gates = gateWeights(kind, 8, 1, 3);
  std::vector<double> a = normalValues(8000, 0.5, RandomStream(3, "a")), g;
  for (size_t i = 0; i < a.size(); ++i) {
    const double u = a[i] + gates.dtBias[i % 8];
    g.push_back(-std::exp(gates.aLog[i % 8]) * std::log1p(std::exp(u)));
  }
  return mean(g);
}

TEST(RandomInputs, Gates) {
  EXPECT_NEAR(meanDecay(GateKind::nearOne), -1e-4, 3e-5);
  EXPECT_NEAR(meanDecay(GateKind::strong), -2.5, 0.4);
  EXPECT_NEAR(meanDecay(GateKind::veryStrong), -25, 3);
  const double realistic = meanDecay(GateKind::realistic);
  EXPECT_LT(realistic, -0.01);
  EXPECT_GT(realistic, -1);
  EXPECT_NEAR(mean(logDecays(GateKind::strong, 10000, 1)), -2.5, 0.05);
  GateWeights gates = gateWeights(GateKind::strong, 4, 8, 0);
  EXPECT_EQ(gates.dtBias.size(), 32u);
  EXPECT_EQ(gates.aLog.front(), 0);
  EXPECT_NEAR(std::exp(gates.aLog.back()), 16, 1e-12);
  for (GateKind kind : {GateKind::realistic, GateKind::nearOne,
                        GateKind::strong, GateKind::veryStrong})
    EXPECT_EQ(parseGateKind(name(kind)), kind);
}

TEST(RandomInputs, CorrelatedKeys) {
  for (double correlation : {0.0, 0.5, 1.0}) {
    const int64_t d = 256;
    std::vector<double> k =
        correlatedKeys(2, 1, d, correlation, RandomStream(1, "k"));
    double dot = 0, square = 0;
    for (int64_t i = 0; i < d; ++i) {
      dot += k[i] * k[d + i];
      square += k[i] * k[i];
    }
    EXPECT_NEAR(dot / d, correlation, 0.2);
    EXPECT_NEAR(square / d, 1, 0.2);
  }
}

TEST(RandomInputs, RaggedLengths) {
  std::set<size_t> emptyRows;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<int64_t> lengths = raggedLengths(5, 1000, seed);
    ASSERT_EQ(lengths.size(), 5u);
    EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), int64_t(0)),
              1000);
    EXPECT_GE(*std::min_element(lengths.begin(), lengths.end()), 0);
    emptyRows.insert(std::find(lengths.begin(), lengths.end(), 0) -
                     lengths.begin());
  }
  EXPECT_EQ(emptyRows, (std::set<size_t>{0, 2, 4}));
  EXPECT_TRUE(raggedLengths(0, 0, 1).empty());
  EXPECT_EQ(raggedLengths(1, 7, 1), (std::vector<int64_t>{7}));
  EXPECT_EQ(runningSum({2, 0, 3}), (std::vector<int64_t>{0, 2, 2, 5}));
  EXPECT_EQ(runningSum({}), (std::vector<int64_t>{0}));
}

TEST(RandomInputs, DistinctSlots) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<int64_t> slots = distinctSlots(7, 8, 3, seed);
    std::set<int64_t> set(slots.begin(), slots.end());
    EXPECT_EQ(set, (std::set<int64_t>{0, 1, 2, 4, 5, 6, 7}));
  }
  EXPECT_EQ(distinctSlots(2, 100, -1, 0).size(), 2u);
}

TEST(RandomInputs, Parameters) {
  InputOptions options;
  options.gates = GateKind::strong;
  for (const char *name :
       {"qkvz", "ba", "q", "k", "a", "conv_weight", "A_log", "dt_bias",
        "norm_weight", "conv_pool", "state_pool", "something"}) {
    Array array = randomParameter(name, DType::bf16, {4}, options);
    EXPECT_EQ(array.typeString(), "bf16[4]") << name;
    EXPECT_EQ(randomParameter(name, DType::f32, {0}, options).size(), 0);
    EXPECT_EQ(randomParameter(name, DType::f32, {3, 8}, options).size(), 24);
  }
}
