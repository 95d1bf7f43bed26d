// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.gated_linear_attention by hand, against a plain loop, and beside the
// delta rule, whose states and sequences are the same code.
#include "EvaluatorTest.h"

#include <cmath>

using namespace gdn::reference;

using LinearAttention = EvaluatorTest;

static const double ln2 = std::log(2.0);

/// `op`, heads of 8, over ragged rows; `%b` is an argument of both rules.
static std::string ruleOf(const std::string &op, bool perChannel = false,
                          const char *attributes = "{scale = 1.0 : f32}",
                          const std::string &gateTypes = "") {
  const std::string heads = "tensor<?x?x8xf32>";
  const std::string decay = perChannel ? heads : "tensor<?x?xf32>";
  return "func.func @f(%q: " + heads + ", %k: " + heads + ", %v: " + heads +
         ", %g: " + decay +
         ", %b: tensor<?x?xf32>, %pool: !gdn.pool<?x?x8x8xf32>, "
         "%slots: tensor<?xi32>, %into: tensor<?xi32>, %cu: tensor<?xi32>, "
         "%has: tensor<?xi1>) -> " +
         heads + " { %o = " + op +
         " pool(%pool) slots(%slots -> %into) sequences(%cu) initial(%has) " +
         attributes + " : " + heads + ", " + heads + ", " + heads + ", " +
         decay + gateTypes +
         ", !gdn.pool<?x?x8x8xf32>, tensor<?xi32> into tensor<?xi32>, "
         "tensor<?xi32> initial tensor<?xi1> -> " +
         heads + " return %o : " + heads + " }";
}
static std::string linear(bool perChannel = false,
                          const char *attributes = "{scale = 1.0 : f32}") {
  return ruleOf("gdn.gated_linear_attention %q, %k, %v decay(%g)", perChannel,
                attributes);
}

// The example of docs/spec/gated_linear_attention.md.
TEST_F(LinearAttention, ByHand) {
  Pool pool = {Tensor::zeros({2, 1, 8, 8})};
  Tensor q = Tensor::zeros({2, 1, 8}), k = q, v = q;
  q.row(0)[0] = 1, k.row(0)[0] = 1, v.row(0)[0] = 4;
  q.row(1)[0] = 1, q.row(1)[1] = 10;
  k.row(1)[0] = 0.5, k.row(1)[1] = 1, v.row(1)[0] = 2;
  auto results = run(linear(), {q, k, v, tensor({2, 1}, {0, -ln2}),
                                filled({2, 1}, qNaN), &pool, vector({1}),
                                vector({1}), vector({0, 2}), vector({1})});
  Tensor want = Tensor::zeros({2, 1, 8});
  want.row(0)[0] = 4, want.row(1)[0] = 23;
  expectNear(results[0].data, want.data, 1e-15);
  Tensor state = Tensor::zeros({2, 1, 8, 8});
  state.row(1)[0] = 3, state.row(1)[1] = 2;
  expectNear(pool.data.data, state.data, 1e-15);
}

// Three rows of 5, 0 and 7 tokens, two value heads to a key head: a loop that
// knows nothing of heads or rows but their places.
TEST_F(LinearAttention, AsAPlainLoop) {
  for (bool perChannel : {false, true}) {
    const int64_t tokens = 12, heads = 4, width = perChannel ? 8 : 1;
    Tensor q = random({tokens, 2, 8}, 1), k = random({tokens, 2, 8}, 2),
           v = random({tokens, heads, 8}, 3);
    std::vector<int64_t> decays = {tokens, heads};
    if (perChannel)
      decays.push_back(8);
    Tensor g = random(decays, 4);
    for (double &x : g.data)
      x = -std::abs(x);
    Pool pool = {random({4, heads, 8, 8}, 5)};
    Tensor state = pool.data, want = Tensor::zeros({tokens, heads, 8});
    const std::vector<std::array<int64_t, 3>> rows = {{0, 5, 3}, {5, 12, 1}};
    for (auto [begin, end, slot] : rows)
      for (int64_t h = 0; h < heads; ++h) {
        std::vector<double> m(64);
        if (slot == 3) // the other starts from zeros
          llvm::copy(pool.data.row(slot).slice(h * 64, 64), m.begin());
        for (int64_t t = begin; t < end; ++t)
          for (int64_t i = 0; i < 8; ++i)
            for (int64_t j = 0; j < 8; ++j) {
              const double alpha = std::exp(
                  g.data[(t * heads + h) * width + (perChannel ? j : 0)]);
              double &x = m[i * 8 + j];
              x = alpha * x + v.row(t)[h * 8 + i] * k.row(t)[h / 2 * 8 + j];
              want.row(t)[h * 8 + i] +=
                  x * q.row(t)[h / 2 * 8 + j] / std::sqrt(8.0);
            }
        llvm::copy(m, state.row(slot).slice(h * 64, 64).begin());
      }
    auto results = run(linear(perChannel, ""),
                       {q, k, v, g, filled({tokens, heads}, qNaN), &pool,
                        vector({3, 2, 1}), vector({3, 2, 1}),
                        vector({0, 5, 5, 12}), vector({1, 1, 0})});
    expectNear(results[0].data, want.data, 1e-13);
    expectNear(pool.data.data, state.data, 1e-13);
  }
}

// Keys at right angles to all that the state holds have nothing to recall: with
// beta 1 the delta rule writes what this op writes.
TEST_F(LinearAttention, IsTheDeltaRuleOnNewKeys) {
  Tensor k = Tensor::zeros({3, 1, 8}), q = random({3, 1, 8}, 1);
  for (int64_t t = 0; t < 3; ++t)
    k.row(t)[t] = 1;
  Tensor v = random({3, 1, 8}, 2), g = tensor({3, 1}, {-1, -2, -0.5});
  Pool own = {Tensor::zeros({1, 1, 8, 8})}, other = own;
  auto arguments = [&](Pool *pool) -> std::vector<Argument> {
    return {q,
            k,
            v,
            g,
            filled({3, 1}, 1),
            pool,
            vector({0}),
            vector({0}),
            vector({0, 3}),
            vector({1})};
  };
  auto linearResults = run(linear(), arguments(&own));
  auto deltaResults =
      run(ruleOf("gdn.delta_rule %q, %k, %v gates(%g, %b)", false,
                 "{scale = 1.0 : f32}", ", tensor<?x?xf32>"),
          arguments(&other));
  expectNear(linearResults[0].data, deltaResults[0].data, 1e-15);
  expectNear(own.data.data, other.data.data, 1e-15);
}

// A decay that underflows forgets; a skipped row gives zeros and writes
// nothing; what it holds reaches nothing.
TEST_F(LinearAttention, ForgetsAndSkips) {
  Pool pool = {filled({3, 1, 8, 8}, qNaN), /*nullSlot=*/0};
  llvm::fill(pool.data.row(1), 1e30);
  Tensor x = filled({2, 1, 8}, qNaN), g = tensor({2, 1}, {-1e6, qNaN});
  llvm::fill(x.row(0), 0.0);
  x.row(0)[0] = 3;
  auto results =
      run(linear(), {x, x, x, g, filled({2, 1}, qNaN), &pool, vector({1, 0}),
                     vector({2, 1}), vector({0, 1, 2}), vector({1, 1})});
  expectSame(results[0].data, tensor({2, 1, 8}, {27}).data);
  expectSame(slice(pool.data, 2, 3).data, tensor({1, 1, 8, 8}, {9}).data);
  expectSame(slice(pool.data, 1, 2).data, filled({1, 1, 8, 8}, 1e30).data);
}
