// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The recurrence against the same maths in another form: chunks of C tokens as
// matrix products and one triangular system each. With G_i the sum of g up to
// token i of the chunk and M0 the state before it,
//
//   A_ij = beta_i exp(G_i - G_j) k_i.k_j           for i > j
//   (I + A) X = diag(beta) (V - diag(exp G) K M0^T)
//   o_i  = scale (exp(G_i) M0 q_i + sum_{j<=i} exp(G_i - G_j) (q_i.k_j) X_j)
//   M1   = exp(G_last) M0 + sum_j exp(G_last - G_j) X_j k_j^T
//
// Written here on plain arrays and for one head.
#include "EvaluatorTest.h"

#include "gdn/Data/RandomInputs.h"

#include <cmath>

using namespace gdn::reference;

namespace {
struct Head {
  int64_t tokens, dk, dv;
  Tensor q, k, v;            ///< [T, 1, d]
  Tensor g, beta;            ///< [T, 1]
  std::vector<double> state; ///< [dv, dk]

  /// Runs all tokens in chunks of `chunk`; updates `state`, returns [T * dv].
  std::vector<double> run(int64_t chunk);
};
} // namespace

static double dot(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b) {
  double sum = 0;
  for (auto [x, y] : llvm::zip(a, b))
    sum += x * y;
  return sum;
}

std::vector<double> Head::run(int64_t chunk) {
  const double scale = 1 / std::sqrt(double(dk));
  std::vector<double> output(tokens * dv);
  for (int64_t first = 0; first < tokens; first += chunk) {
    const int64_t size = std::min(chunk, tokens - first);
    std::vector<double> sums(size), x(size * dv);
    double sum = 0;
    for (int64_t i = 0; i < size; ++i)
      sums[i] = sum += g.data[first + i];
    auto m0 = [&](int64_t c) {
      return llvm::ArrayRef(state).slice(c * dk, dk);
    };

    for (int64_t i = 0; i < size; ++i)
      for (int64_t c = 0; c < dv; ++c) {
        double right = v.row(first + i)[c] -
                       std::exp(sums[i]) * dot(m0(c), k.row(first + i));
        for (int64_t j = 0; j < i; ++j)
          right -= std::exp(sums[i] - sums[j]) *
                   dot(k.row(first + i), k.row(first + j)) * x[j * dv + c];
        x[i * dv + c] = beta.data[first + i] * right;
      }
    for (int64_t i = 0; i < size; ++i)
      for (int64_t c = 0; c < dv; ++c) {
        double out = std::exp(sums[i]) * dot(m0(c), q.row(first + i));
        for (int64_t j = 0; j <= i; ++j)
          out += std::exp(sums[i] - sums[j]) *
                 dot(q.row(first + i), k.row(first + j)) * x[j * dv + c];
        output[(first + i) * dv + c] = scale * out;
      }
    const double last = sums[size - 1];
    for (int64_t c = 0; c < dv; ++c)
      for (int64_t d = 0; d < dk; ++d) {
        double next = std::exp(last) * state[c * dk + d];
        for (int64_t j = 0; j < size; ++j)
          next +=
              std::exp(last - sums[j]) * x[j * dv + c] * k.row(first + j)[d];
        state[c * dk + d] = next;
      }
  }
  return output;
}

namespace {
/// Mean of g per token, correlation of the keys, factor of beta.
struct Case {
  double meanDecay, correlation, betaFactor;
};

class ChunkForm : public EvaluatorTest,
                  public ::testing::WithParamInterface<Case> {};
} // namespace

TEST_P(ChunkForm, EqualsTheRecurrence) {
  const Case &param = GetParam();
  Head head;
  head.tokens = 200, head.dk = 32, head.dv = 16;
  head.q = random({200, 1, 32}, 1);
  head.k = {{200, 1, 32},
            gdn::data::correlatedKeys(200, 1, 32, param.correlation,
                                      gdn::data::RandomStream(2, "k"))};
  for (Tensor *t : {&head.q, &head.k})
    for (int64_t i = 0; i < 200; ++i) {
      const double length = std::sqrt(dot(t->row(i), t->row(i)));
      for (double &value : t->row(i))
        value /= length;
    }
  head.v = random({200, 1, 16}, 3);
  head.g = Tensor::zeros({200, 1}), head.beta = head.g;
  const gdn::data::RandomStream uniform(4, "gates");
  for (int64_t t = 0; t < 200; ++t) {
    head.g.data[t] = 2 * param.meanDecay * uniform.uniform(t);
    head.beta.data[t] = param.betaFactor * uniform.uniform(1000 + t);
  }
  const Tensor state = random({1, 1, 16, 32}, 5);

  Pool pool = {state};
  auto results = run(R"(
    func.func @f(%q: tensor<?x?x32xf32>, %k: tensor<?x?x32xf32>,
        %v: tensor<?x?x16xf32>, %g: tensor<?x?xf32>, %b: tensor<?x?xf32>,
        %pool: !gdn.pool<?x?x16x32xf32>, %s: tensor<?xi32>, %cu: tensor<?xi32>)
        -> tensor<?x?x16xf32> {
      %o = gdn.delta_rule %q, %k, %v gates(%g, %b) pool(%pool) slots(%s)
          sequences(%cu)
          : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x16xf32>,
            tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x16x32xf32>,
            tensor<?xi32>, tensor<?xi32> -> tensor<?x?x16xf32>
      return %o : tensor<?x?x16xf32>
    })",
                     {head.q, head.k, head.v, head.g, head.beta, &pool,
                      vector({0}), vector({0, 200})});
  for (int64_t chunk : {1, 16, 64}) {
    head.state = state.data;
    expectNear(results[0].data, head.run(chunk), 1e-12);
    expectNear(pool.data.data, head.state, 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Decays, ChunkForm,
    ::testing::Values(Case{0, 0, 1}, Case{-0.025, 0, 1}, Case{-0.25, 0, 1},
                      Case{-2.5, 0, 1}, Case{-25, 0, 1}, Case{-0.025, 0.9, 1},
                      Case{-0.025, 0, 2}, Case{-2.5, 0.9, 2}));
