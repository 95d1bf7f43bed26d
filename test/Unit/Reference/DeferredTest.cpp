// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tokens that are pending over several steps: outputs and states are those of
// steps in place, whatever is pending and is accepted; when the state is
// written; what the evaluator refuses.
#include "EvaluatorTest.h"

#include <random>

using namespace gdn::reference;

namespace {

constexpr int64_t slots = 5, keyHeads = 2, heads = 4, room = 5, dk = 8, dv = 16;

/// A rule over `N` sequences with the operands of `states`.
std::string rule(const std::string &states, const std::string &types) {
  return "%o = gdn.delta_rule %q, %k, %v gates(%g, %b) pool(%p) slots(%s) " +
         states + R"(
        : tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x16xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x16x8xf32>,
          tensor<?xi32> )" +
         types + " -> tensor<?x?x16xf32>\n";
}

const std::string inputs =
    "func.func @f(%q: tensor<?x?x8xf32>, %k: tensor<?x?x8xf32>, "
    "%v: tensor<?x?x16xf32>, %g: tensor<?x?xf32>, %b: tensor<?x?xf32>, "
    "%p: !gdn.pool<?x?x16x8xf32>, %s: tensor<?xi32>";
const std::string pending =
    ", %pk: !gdn.pool<?x?x?x8xf32>, %pd: !gdn.pool<?x?x?x16xf32>, "
    "%pg: !gdn.pool<?x?x?xf32>, %pc: !gdn.pool<?x?xi32>";
const std::string pools = "pending(%pk, %pd, %pg) counts(%pc)";
const std::string poolTypes =
    "pending !gdn.pool<?x?x?x8xf32>, !gdn.pool<?x?x?x16xf32>, "
    "!gdn.pool<?x?x?xf32> counts !gdn.pool<?x?xi32>";
const std::string result = ") -> tensor<?x?x16xf32> {\n";
const std::string end = "return %o : tensor<?x?x16xf32>\n}";

const std::string inPlace = inputs + ", %cu: tensor<?xi32>" + result +
                            rule("sequences(%cu)", ", tensor<?xi32>") + end;
const std::string decode =
    inputs + pending + result + rule(pools, poolTypes) + end;
const std::string verify =
    inputs + ", %cu: tensor<?xi32>, %a: tensor<?xi32>" + pending + result +
    rule("sequences(%cu) accepted(%a) " + pools,
         ", tensor<?xi32> accepted tensor<?xi32> " + poolTypes) +
    end;
const std::string commit = R"(
  func.func @f(%p: !gdn.pool<?x?x16x8xf32>, %s: tensor<?xi32>)" +
                           pending + R"() {
    gdn.commit_delta_rule %p[%s] pending(%pk, %pd, %pg) counts(%pc)
        : !gdn.pool<?x?x16x8xf32>, tensor<?xi32> pending !gdn.pool<?x?x?x8xf32>,
          !gdn.pool<?x?x?x16xf32>, !gdn.pool<?x?x?xf32> counts !gdn.pool<?x?xi32>
    return
  })";

/// Pools of which slot 0 is null; what is pending of nobody is NaN.
struct Slots {
  Pool state = {random({slots, heads, dv, dk}, 7, 0.3), 0};
  Pool keys = {filled({slots, keyHeads, room, dk}, qNaN), 0};
  Pool deltas = {filled({slots, heads, room, dv}, qNaN), 0};
  Pool decays = {filled({slots, heads, room}, qNaN), 0};
  Pool counts = {filled({slots, keyHeads}, 0), 0};
};

/// The inputs of some tokens.
struct Tokens {
  Tensor q, k, v, g, b;
  Tokens(int64_t count, uint64_t seed)
      : q(random({count, keyHeads, dk}, seed)),
        k(random({count, keyHeads, dk}, seed + 1, 0.4)),
        v(random({count, heads, dv}, seed + 2)),
        g(random({count, heads}, seed + 3, 0.5)),
        b(filled({count, heads}, 0.7)) {
    for (double &x : g.data)
      x = -std::abs(x);
  }
};

class Deferred : public EvaluatorTest {
protected:
  llvm::SmallVector<Argument> arguments(const Tokens &t, Pool &state,
                                        std::vector<double> ids) {
    return {t.q, t.k, t.v, t.g, t.b, &state, vector(std::move(ids))};
  }
  void addPools(llvm::SmallVector<Argument> &arguments, Slots &slots) {
    for (Pool *pool :
         {&slots.keys, &slots.deltas, &slots.decays, &slots.counts})
      arguments.push_back(pool);
  }
  Tensor runDecode(const Tokens &t, Slots &slots, std::vector<double> ids) {
    auto given = arguments(t, slots.state, std::move(ids));
    addPools(given, slots);
    return run(decode, given)[0];
  }
  Tensor runVerify(const Tokens &t, Slots &slots, std::vector<double> ids,
                   std::vector<double> bounds, std::vector<double> accepted) {
    auto given = arguments(t, slots.state, std::move(ids));
    given.push_back(vector(std::move(bounds)));
    given.push_back(vector(std::move(accepted)));
    addPools(given, slots);
    return run(verify, given)[0];
  }
  Tensor runInPlace(const Tokens &t, Pool &state, std::vector<double> ids,
                    std::vector<double> bounds) {
    auto given = arguments(t, state, std::move(ids));
    given.push_back(vector(std::move(bounds)));
    return run(inPlace, given)[0];
  }
  void runCommit(Slots &slots, std::vector<double> ids) {
    llvm::SmallVector<Argument> given = {&slots.state, vector(std::move(ids))};
    addPools(given, slots);
    run(commit, given);
  }
};

} // namespace

TEST_F(Deferred, StepsGiveTheResultsOfStepsInPlace) {
  Slots slots;
  Pool state = slots.state;
  // Phases of slots and of key heads differ: tokens of zero strength and decay
  // are none.
  const Tensor before = slots.state.data;
  for (double &x : slots.keys.data.data)
    x = 0;
  slots.deltas.data = filled({::slots, heads, room, dv}, 0);
  slots.decays.data = filled({::slots, heads, room}, 0);
  slots.counts.data = tensor({::slots, keyHeads}, {0, 0, 1, 4, 0, 2, 5, 3});
  for (uint64_t step = 0; step < 3 * room; ++step) {
    Tokens t(4, 100 + 10 * step);
    Tensor got = runDecode(t, slots, {1, 3, 0, 2});
    Tensor want = runInPlace(t, state, {1, 3, 0, 2}, {0, 1, 2, 3, 4});
    expectNear(got.data, want.data, 1e-12);
  }
  // Slot 4 is nobody's.
  expectSame(slots.state.data.row(4), before.row(4));
  runCommit(slots, {1, 2, -1, 3});
  expectNear(slots.state.data.data, state.data.data, 1e-12);
  for (int64_t slot : {1, 2, 3})
    expectSame(slots.counts.data.row(slot), {0, 0});
}

TEST_F(Deferred, TheStateIsWrittenWhenThereIsNoRoom) {
  Slots slots;
  const Tensor before = slots.state.data;
  for (int64_t step = 0; step < room; ++step) {
    runDecode(Tokens(1, 10 * step), slots, {2});
    expectSame(slots.state.data.data, before.data);
    expectSame(slots.counts.data.row(2), {double(step + 1), double(step + 1)});
  }
  runDecode(Tokens(1, 99), slots, {2});
  EXPECT_NE(slots.state.data.row(2)[0], before.row(2)[0]);
  expectSame(slots.counts.data.row(2), {1, 1});
  expectSame(slots.state.data.row(1), before.row(1));
}

TEST_F(Deferred, VerifyDropsWhatIsNotAccepted) {
  std::mt19937 random(1);
  auto upTo = [&](int64_t most) { return int64_t(random() % (most + 1)); };
  Slots slots;
  Pool state = slots.state;
  std::vector<double> accepted = {0, 0, 0};
  // What the last step of each slot had, for the accepted ones of it.
  std::vector<double> bounds = {0, 0, 0, 0};
  Tokens last(1, 1);
  const std::vector<double> ids = {3, 1, 4};
  for (int step = 0; step < 40; ++step) {
    // In place: the accepted tokens of the last step, one sequence each.
    for (int n = 0; n < 3; ++n)
      if (accepted[n] > 0) {
        Tokens part = last;
        for (Tensor *x : {&part.q, &part.k, &part.v, &part.g, &part.b})
          *x = slice(*x, int64_t(bounds[n]), int64_t(bounds[n] + accepted[n]));
        runInPlace(part, state, {ids[n]}, {0, accepted[n]});
      }
    std::vector<double> next = {0};
    for (int n = 0; n < 3; ++n)
      next.push_back(next.back() + double(upTo(3)));
    Tokens t(std::max<int64_t>(int64_t(next.back()), 1), 1000 + 10 * step);
    // A sequence without tokens keeps what it has.
    Tensor got = runVerify(t, slots, ids, next, accepted);
    Pool copy = state;
    Tensor want = runInPlace(t, copy, ids, next);
    expectNear(got.data, want.data, 1e-11);
    // Of a sequence without tokens the same tokens stay accepted: they are in
    // `state` already, so its slot counts them.
    for (int n = 0; n < 3; ++n)
      if (const auto length = int64_t(next[n + 1] - next[n])) {
        accepted[n] = double(upTo(length));
      } else {
        for (double &count : slots.counts.data.row(int64_t(ids[n])))
          count += accepted[n];
        accepted[n] = 0;
      }
    bounds = next;
    last = t;
  }
}

TEST_F(Deferred, ScaledDeltasStandForTheSame) {
  auto narrow = [](std::string text) {
    for (std::string type : {"x8x", "x16x"})
      for (std::string pool : {"?x?x?" + type}) {
        size_t at = 0;
        while ((at = text.find(pool + "f32", at)) != std::string::npos)
          text.replace(at + pool.size(), 3, "f16");
      }
    const std::string counts = "counts(%pc)",
                      types = "counts !gdn.pool<?x?xi32>",
                      given = "%pc: !gdn.pool<?x?xi32>";
    text.insert(text.find(given) + given.size(), ", %ps: !gdn.pool<?x?x?xf32>");
    text.insert(text.find(counts) + counts.size(), " delta_scales(%ps)");
    text.insert(text.find(types) + types.size(),
                " delta_scales !gdn.pool<?x?x?xf32>");
    return text;
  };
  Slots wide, scaled;
  Pool scales = {filled({slots, heads, room}, qNaN), 0};
  // Of another size in each step, and once nothing at all.
  for (int64_t step = 0; step < 2 * room + 1; ++step) {
    Tokens t(1, 10 * step);
    for (double &x : t.v.data)
      x *= step == 3 ? 0 : std::ldexp(1.0, int(5 * step - 20));
    Tensor want = runDecode(t, wide, {2});
    auto given = arguments(t, scaled.state, {2});
    addPools(given, scaled);
    given.push_back(&scales);
    Tensor got = run(narrow(decode), given)[0];
    expectNear(got.data, want.data, 1e-12);
  }
  // The numbers of what is pending, one token: from 1 to 2 in the largest.
  for (int64_t head = 0; head < heads; ++head) {
    double most = 0;
    const double scale = scales.data.row(2)[head * room];
    for (int64_t i = 0; i < dv; ++i) {
      const double number = scaled.deltas.data.row(2)[head * room * dv + i];
      most = std::max(most, std::abs(number));
      EXPECT_NEAR(number * scale, wide.deltas.data.row(2)[head * room * dv + i],
                  1e-9 * scale);
    }
    EXPECT_GE(most, 1);
    EXPECT_LT(most, 2);
    EXPECT_EQ(std::exp2(std::round(std::log2(scale))), scale);
  }
  runCommit(wide, {2});
  llvm::SmallVector<Argument> given = {&scaled.state, vector({2})};
  addPools(given, scaled);
  given.push_back(&scales);
  run(narrow(commit), given);
  expectNear(scaled.state.data.data, wide.state.data.data, 1e-9);
}

TEST_F(Deferred, CountsOutOfRangeAreRefused) {
  Slots slots;
  slots.counts.data.row(2)[1] = 6;
  Tokens t(1, 1);
  auto given = arguments(t, slots.state, {2});
  addPools(given, slots);
  EXPECT_EQ(errorOf(decode, given),
            "'gdn.delta_rule' op expects from 0 to 5 pending tokens, but key "
            "head 1 of slot 2 has 6");
  slots.counts.data.row(2)[1] = 0;
  Tokens many(room + 1, 1);
  given = arguments(many, slots.state, {2});
  given.push_back(vector({0, room + 1}));
  given.push_back(vector({0}));
  addPools(given, slots);
  EXPECT_EQ(errorOf(verify, given),
            "'gdn.delta_rule' op expects sequences of at most 5 tokens, but "
            "sequence 0 has 6");
}
