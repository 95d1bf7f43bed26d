// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.delta_rule by hand, and at the edges of rows and pools.
#include "EvaluatorTest.h"

#include <cmath>

using namespace gdn::reference;

using DeltaRule = EvaluatorTest;

static const double ln2 = std::log(2.0);

/// The op with heads of 8 and optional operands.
static std::string deltaRule(const char *attributes, bool rows = true,
                             bool into = false, bool initial = false,
                             bool perChannel = false) {
  const std::string heads = "tensor<?x?x8xf32>";
  const std::string decay = perChannel ? heads : "tensor<?x?xf32>";
  std::string text = "func.func @f(%q: " + heads + ", %k: " + heads +
                     ", %v: " + heads + ", %g: " + decay +
                     ", %b: tensor<?x?xf32>, %pool: !gdn.pool<?x?x8x8xf32>, "
                     "%slots: tensor<?xi32>";
  text += into ? ", %into: tensor<?xi32>" : "";
  text += rows ? ", %cu: tensor<?xi32>" : "";
  text += initial ? ", %has: tensor<?xi1>" : "";
  text += ") -> " + heads +
          " { %o = gdn.delta_rule %q, %k, %v gates(%g, %b) pool(%pool) "
          "slots(%slots";
  text += into ? " -> %into)" : ")";
  text += rows ? " sequences(%cu)" : "";
  text += initial ? " initial(%has)" : "";
  text += std::string(" ") + attributes + " : " + heads + ", " + heads + ", " +
          heads + ", " + decay +
          ", tensor<?x?xf32>, !gdn.pool<?x?x8x8xf32>, tensor<?xi32>";
  text += into ? " into tensor<?xi32>" : "";
  text += rows ? ", tensor<?xi32>" : "";
  text += initial ? " initial tensor<?xi1>" : "";
  return text + " -> " + heads + " return %o : " + heads + " }";
}

static const char *const unitScale = "{scale = 1.0 : f32}";

// From M = 0. Token 0: k = e0, v0 = 4, beta 1/2: d = 2, M00 = 2; q = e0: 2.
// Token 1: decay 1/2: M00 = 1. k = (0.6, 0.8): M k = 0.6; v0 = 2.6, beta 1:
// d = 2; M0 = (1 + 1.2, 1.6); q = (1, 10): 2.2 + 16.
TEST_F(DeltaRule, ByHand) {
  Pool pool = {Tensor::zeros({2, 1, 8, 8})};
  Tensor q = Tensor::zeros({2, 1, 8}), k = q, v = q;
  q.row(0)[0] = 1, k.row(0)[0] = 1, v.row(0)[0] = 4;
  q.row(1)[0] = 1, q.row(1)[1] = 10;
  k.row(1)[0] = 0.6, k.row(1)[1] = 0.8, v.row(1)[0] = 2.6;
  auto results = run(deltaRule(unitScale), {q, k, v, tensor({2, 1}, {0, -ln2}),
                                            tensor({2, 1}, {0.5, 1}), &pool,
                                            vector({1}), vector({0, 2})});
  Tensor want = Tensor::zeros({2, 1, 8});
  want.row(0)[0] = 2, want.row(1)[0] = 18.2;
  expectNear(results[0].data, want.data, 1e-15);
  Tensor state = Tensor::zeros({2, 1, 8, 8});
  state.row(1)[0] = 2.2, state.row(1)[1] = 1.6;
  expectNear(pool.data.data, state.data, 1e-15);
}

// The default scale is 8^(-1/2), on the query alone.
TEST_F(DeltaRule, DefaultScale) {
  Pool pool = {filled({1, 1, 8, 8}, 3)};
  Tensor zero = Tensor::zeros({1, 1, 8});
  auto results = run(deltaRule(""),
                     {tensor({1, 1, 8}, {1}), zero, zero, tensor({1, 1}, {0}),
                      tensor({1, 1}, {1}), &pool, vector({0}), vector({0, 1})});
  expectNear(results[0].data, filled({8}, 3 / std::sqrt(8.0)).data, 1e-15);
  expectSame(pool.data.data, filled({1, 1, 8, 8}, 3).data); // zero key
}

// Value heads 0 and 1 share key head 0, heads 2 and 3 key head 1. The key of
// head h' is the unit vector h', so value head h writes column h/2.
TEST_F(DeltaRule, GroupedHeads) {
  Pool pool = {Tensor::zeros({1, 4, 8, 8})};
  Tensor k = Tensor::zeros({1, 2, 8}), v = Tensor::zeros({1, 4, 8});
  k.data[0] = 1, k.data[8 + 1] = 1;
  for (int64_t h = 0; h < 4; ++h)
    v.data[8 * h] = h + 1;
  auto results =
      run(deltaRule(unitScale), {k, k, v, tensor({1, 4}, {}), filled({1, 4}, 1),
                                 &pool, vector({0}), vector({0, 1})});
  expectSame(results[0].data, v.data); // recalled with the key as query
  for (int64_t h = 0; h < 4; ++h)
    EXPECT_EQ(pool.data.data[64 * h + h / 2], h + 1);
}

// Column j decays by exp(-j ln 2); nothing is written as beta is 0. The query
// of ones adds the columns up: 1 + 1/2 + ... + 1/128.
TEST_F(DeltaRule, DecayPerChannel) {
  Pool pool = {filled({1, 1, 8, 8}, 1)};
  Tensor g = Tensor::zeros({1, 1, 8});
  for (int64_t j = 0; j < 8; ++j)
    g.data[j] = -ln2 * j;
  auto results =
      run(deltaRule(unitScale, true, false, false, /*perChannel=*/true),
          {filled({1, 1, 8}, 1), filled({1, 1, 8}, 5), filled({1, 1, 8}, 9), g,
           tensor({1, 1}, {0}), &pool, vector({0}), vector({0, 1})});
  expectNear(results[0].data, filled({8}, 255.0 / 128).data, 1e-15);
  EXPECT_NEAR(pool.data.data[8 + 3], 0.125, 1e-16);
}

// From M0 = (3, 5, 0..): erased along e = (0, 2): M e = 10; v0 = 12, beta 1/2:
// d = 1, written along k = e0: M0 = (4, 5). The query (1, 1) gives 9.
TEST_F(DeltaRule, ErasesAlongAnotherKey) {
  std::string text = deltaRule(unitScale, /*rows=*/false);
  text.insert(text.find(", %pool: "), ", %e: tensor<?x?x8xf32>");
  text.insert(text.find(" pool(%pool)"), " erase(%e)");
  text.insert(text.rfind(", !gdn.pool"), " erase tensor<?x?x8xf32>");
  Pool pool = {tensor({1, 1, 8, 8}, {3, 5})};
  const Tensor e = tensor({1, 1, 8}, {0, 2});
  auto results = run(text, {tensor({1, 1, 8}, {1, 1}), tensor({1, 1, 8}, {1}),
                            tensor({1, 1, 8}, {12}), tensor({1, 1}, {0}),
                            tensor({1, 1}, {0.5}), e, &pool, vector({0})});
  expectSame(results[0].data, tensor({8}, {9}).data);
  expectSame(pool.data.data, tensor({1, 1, 8, 8}, {4, 5}).data);
  const Tensor one = tensor({1, 1, 8}, {1}), gate = tensor({1, 1}, {0});
  EXPECT_EQ(
      errorOf(text, {one, one, one, gate, gate, filled({2, 1, 8}, 1), &pool,
                     vector({0})}),
      "'gdn.delta_rule' op expects 'erase' to be 1 x 1 x 8, but got 2 x 1 x 8");
}

// beta = 2 with a unit key reflects: k is an eigenvector of -1, so the state
// -M k + 2v; twice brings it back when v = 0.
TEST_F(DeltaRule, DoubledBetaReflects) {
  Pool pool = {random({1, 1, 8, 8}, 1)};
  const Pool before = pool;
  Tensor k = filled({2, 1, 8}, std::sqrt(0.125));
  Tensor zero = Tensor::zeros({2, 1, 8});
  run(deltaRule(unitScale),
      {zero, k, zero, tensor({2, 1}, {}), filled({2, 1}, 2), &pool, vector({0}),
       vector({0, 2})});
  expectNear(pool.data.data, before.data.data, 1e-14);
}

// exp(g) underflows to 0: the old state is gone, the new write is exact.
TEST_F(DeltaRule, StrongDecayForgets) {
  Pool pool = {filled({1, 1, 8, 8}, 1e30)};
  auto results = run(deltaRule(unitScale),
                     {tensor({1, 1, 8}, {1}), tensor({1, 1, 8}, {1}),
                      tensor({1, 1, 8}, {7}), tensor({1, 1}, {-1e6}),
                      tensor({1, 1}, {1}), &pool, vector({0}), vector({0, 1})});
  expectSame(results[0].data, tensor({8}, {7}).data);
}

// Slot 2 is null; NaN in slots that no row may read and in tokens of skipped
// rows and padding. Row 3 has no tokens and keeps its slot's NaN.
TEST_F(DeltaRule, SkippedRowsEmptyRowsAndPadding) {
  Pool pool = {filled({5, 1, 8, 8}, qNaN), /*nullSlot=*/2};
  llvm::fill(pool.data.row(1), 1.0);
  Tensor x = filled({6, 1, 8}, qNaN), gate = filled({6, 1}, qNaN);
  // Row 4 owns token 4.
  llvm::fill(x.row(4), 0.0);
  x.row(4)[0] = 1, gate.row(4)[0] = 0;
  const Tensor before = pool.data;
  auto results = run(deltaRule(unitScale),
                     {x, x, x, gate, gate, &pool, vector({-3, 2, 5, 3, 1}),
                      vector({1, 2, 3, 4, 4, 5})});
  Tensor want = Tensor::zeros({6, 1, 8});
  llvm::fill(want.row(4), 1.0); // M e0 with M of ones; beta 0
  expectSame(results[0].data, want.data);
  expectSame(pool.data.data, before.data);
}

// Two rows read slot 1; one writes slot 3, one nowhere. A row that starts from
// zeros does not read its slot's NaN, and may be written by another.
TEST_F(DeltaRule, WriteSlotsAndFreshRows) {
  Pool pool = {filled({4, 1, 8, 8}, qNaN), 0};
  llvm::fill(pool.data.row(1), 1.0);
  Tensor e0 = Tensor::zeros({3, 1, 8});
  for (int64_t t = 0; t < 3; ++t)
    e0.row(t)[0] = 1;
  auto results =
      run(deltaRule(unitScale, true, /*into=*/true, /*initial=*/true),
          {e0, e0, e0, tensor({3, 1}, {}), tensor({3, 1}, {}), &pool,
           vector({1, 1, 3}), vector({3, 0, 2}), vector({0, 1, 2, 3}),
           vector({1, 1, 0})});
  Tensor want = Tensor::zeros({3, 1, 8});
  llvm::fill(want.row(0), 1.0), llvm::fill(want.row(1), 1.0);
  expectSame(results[0].data, want.data);
  expectSame(pool.data.row(1), filled({64}, 1).data);
  expectSame(pool.data.row(3), filled({64}, 1).data);
  expectSame(pool.data.row(2), filled({64}, 0).data);
}

// Rows 0 and 1 have no tokens: nothing is copied to slot 2 and nothing zeroed
// in slot 3. Row 2 is skipped as its own slot is null: it does not count as a
// writer of slot 1, which row 3 writes.
TEST_F(DeltaRule, WritersThatAreNone) {
  Pool pool = {random({4, 1, 8, 8}, 1), 0};
  const Tensor before = pool.data;
  Tensor zero = Tensor::zeros({2, 1, 8});
  run(deltaRule(unitScale, true, /*into=*/true, /*initial=*/true),
      {zero, zero, zero, tensor({2, 1}, {}), tensor({2, 1}, {}), &pool,
       vector({1, 3, 0, 1}), vector({2, 3, 1, 1}), vector({0, 0, 0, 1, 2}),
       vector({1, 0, 1, 1})});
  expectSame(pool.data.data, before.data);
}

// Without rows every token is one; no token and no row at all is fine.
TEST_F(DeltaRule, NothingToDo) {
  Pool pool = {filled({2, 3, 8, 8}, 4)};
  Tensor none = Tensor::zeros({0, 3, 8}), gate = Tensor::zeros({0, 3});
  auto decode = run(deltaRule("", /*rows=*/false),
                    {none, none, none, gate, gate, &pool, vector({})});
  EXPECT_TRUE(decode[0].data.empty());
  auto prefill = run(deltaRule(""), {none, none, none, gate, gate, &pool,
                                     vector({0, 1}), vector({0, 0, 0})});
  EXPECT_TRUE(prefill[0].data.empty());
  expectSame(pool.data.data, filled({2, 3, 8, 8}, 4).data);
}
