// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States after every token: each is, bit for bit, the state of a sequence that
// ends there; the sequence may start from one of the slots that it writes; what
// writes nothing; what the evaluator refuses.
#include "EvaluatorTest.h"

using namespace gdn::reference;

/// A convolution and the delta rule with two value heads, which start from the
/// slot after the last accepted token.
static const char *const text = R"(
  func.func @f(%q: tensor<?x?x8xf32>, %k: tensor<?x?x8xf32>,
      %v: tensor<?x?x8xf32>, %w: tensor<?x4xf32>, %g: tensor<?x?xf32>,
      %b: tensor<?x?xf32>, %cp: !gdn.pool<?x?x3xf32>,
      %sp: !gdn.pool<?x?x8x8xf32>, %cu: tensor<?xi32>, %table: tensor<?x?xi32>,
      %a: tensor<?xi32>) -> tensor<?x?x8xf32> {
    %s = gdn.accepted_slots %table[%a]
        : tensor<?x?xi32>, tensor<?xi32> -> tensor<?xi32>
    %qc, %kc, %vc = gdn.conv1d %q, %k, %v weight(%w) silu pool(%cp)
        slots(%s) sequences(%cu) TOKENS
        : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>),
          tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32>
          TYPE -> tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>
    %o = gdn.delta_rule %qc, %kc, %vc gates(%g, %b) pool(%sp)
        slots(%s) sequences(%cu) TOKENS
        : tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x8x8xf32>,
          tensor<?xi32>, tensor<?xi32> TYPE -> tensor<?x?x8xf32>
    return %o : tensor<?x?x8xf32>
  })";

static std::string source(bool tokenSlots) {
  std::string result = text;
  auto replace = [&](llvm::StringRef from, llvm::StringRef to) {
    for (size_t at; (at = result.find(from)) != std::string::npos;)
      result.replace(at, from.size(), to.str());
  };
  replace("TOKENS", tokenSlots ? "token_slots(%table)" : "");
  replace("TYPE", tokenSlots ? "token_slots tensor<?x?xi32>" : "");
  return result;
}

namespace {
/// Both pools: 12 slots, of which 0 is null; NaN where nothing is read.
struct Pools {
  Pool conv = {filled({12, 32, 3}, qNaN), 0};
  Pool state = {filled({12, 2, 8, 8}, qNaN), 0};

  explicit Pools(llvm::ArrayRef<int64_t> slots) {
    for (int64_t slot : slots) {
      llvm::copy(random({32, 3}, slot).data, conv.data.row(slot).begin());
      llvm::copy(random({2, 8, 8}, 20 + slot, 0.3).data,
                 state.data.row(slot).begin());
    }
  }
};

struct Batch {
  std::vector<double> bounds;
  int64_t steps;
  std::vector<double> table, accepted;
};

class TokenSlots : public EvaluatorTest {
protected:
  static constexpr int64_t tokens = 9;

  llvm::SmallVector<Argument> arguments(const Batch &batch, Pools &pools) {
    const auto rows = int64_t(batch.accepted.size());
    return {random({tokens, 1, 8}, 1),
            random({tokens, 1, 8}, 2, 0.4),
            random({tokens, 2, 8}, 3),
            random({32, 4}, 4, 0.5),
            filled({tokens, 2}, -0.05),
            filled({tokens, 2}, 0.7),
            &pools.conv,
            &pools.state,
            vector(batch.bounds),
            tensor({rows, batch.steps}, batch.table),
            vector(batch.accepted)};
  }
  Tensor evaluate(const Batch &batch, Pools &pools, bool tokenSlots = true) {
    return run(source(tokenSlots), arguments(batch, pools))[0];
  }
  std::string error(const Batch &batch) {
    Pools pools({1, 2, 3, 4});
    return errorOf(source(true), arguments(batch, pools));
  }
};
} // namespace

/// Sequences of 4, 0 and 5 tokens in tables of 4 slots, from slots 2, 5 and 9.
static const Batch rows = {
    {0, 4, 4, 9}, 4, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0}, {2, 1, 1}};

TEST_F(TokenSlots, AreStatesOfRowsThatEndThere) {
  Pools pools({2, 9});
  Tensor output = evaluate(rows, pools);
  for (auto [begin, from, count, first] :
       {std::tuple(0, 2, 4, 1), {4, 9, 3, 9}})
    for (int64_t t = 0; t < count; ++t) {
      SCOPED_TRACE(first + t);
      Pools ending({2, 9});
      Tensor part = evaluate(
          {{double(begin), double(begin + t + 1)}, 1, {double(from)}, {1}},
          ending, false);
      expectSame(pools.conv.data.row(first + t), ending.conv.data.row(from));
      expectSame(pools.state.data.row(first + t), ending.state.data.row(from));
      expectSame(output.row(begin + t), part.row(begin + t));
    }
  // The empty sequence wrote nothing, nor did tokens without a live slot.
  Pools fresh({});
  for (int64_t slot : {0, 5, 6, 7, 8})
    expectSame(pools.state.data.row(slot), fresh.state.data.row(slot));
}

TEST_F(TokenSlots, CountsOutOfRangeSkipTheRow) {
  for (double count : {0., -1., 5., -2147483648., 2147483647.}) {
    SCOPED_TRACE(count);
    Batch batch = rows;
    batch.accepted[0] = count;
    Pools pools({1, 2, 3, 4, 9}), before({1, 2, 3, 4, 9});
    Tensor output = evaluate(batch, pools);
    expectSame(slice(output, 0, 4).data, filled({4, 2, 8}, 0).data);
    for (int64_t slot : {1, 2, 3, 4}) {
      expectSame(pools.state.data.row(slot), before.state.data.row(slot));
      expectSame(pools.conv.data.row(slot), before.conv.data.row(slot));
    }
  }
}

TEST_F(TokenSlots, ThatRowsCannotShare) {
  Batch batch = rows;
  batch.table[1] = 3; // slots 1, 3, 3, 4
  batch.accepted[0] = 1;
  EXPECT_NE(error(batch).find("expects every slot to be written once, but got "
                              "slot 3 for two tokens of sequence 0"),
            std::string::npos);
  batch = rows;
  batch.table[9] = 3;
  EXPECT_NE(
      error(batch).find("expects every slot to be written by one sequence, "
                        "but got slot 3 for sequences 0 and 2"),
      std::string::npos);
  batch = rows;
  batch.bounds = {0, 4, 4, 5}; // row 2 writes slot 9 and reads slot 3
  batch.table[9] = 3;
  batch.accepted[2] = 2;
  EXPECT_NE(error(batch).find("expects no sequence to read a slot that another "
                              "writes, but got slot 3, read by sequence 2 and "
                              "written by sequence 0"),
            std::string::npos);
  // Past the sequence's tokens the table is not looked at.
  batch = rows;
  batch.table[6] = batch.table[7] = 3;
  Pools pools({2, 9});
  evaluate(batch, pools);
}

/// The rule and the convolution on trees, from the slots %s.
static std::string treeSource() {
  std::string result = source(true);
  auto replace = [&](llvm::StringRef from, llvm::StringRef to) {
    for (size_t at = 0; (at = result.find(from, at)) != std::string::npos;
         at += to.size())
      result.replace(at, from.size(), to.str());
  };
  replace("%a: tensor<?xi32>)", "%s: tensor<?xi32>, %p: tensor<?x?xi32>)");
  replace("%s = gdn.accepted_slots %table[%a]\n        "
          ": tensor<?x?xi32>, tensor<?xi32> -> tensor<?xi32>",
          "");
  replace("token_slots(%table)", "token_slots(%table) parents(%p)");
  replace("token_slots tensor<?x?xi32>",
          "token_slots tensor<?x?xi32> parents tensor<?x?xi32>");
  return result;
}

// Every way from the sequence's state to a token is a sequence of its own.
TEST_F(TokenSlots, OfTreesAreThoseOfTheirWays) {
  const Batch batch = {{0, 5}, 5, {2, 3, 4, 5, 6}, {1}};
  const std::vector<double> parents = {-1, 0, 0, 2, 9}; // 9 is no parent
  const std::vector<std::vector<int64_t>> ways = {
      {0}, {0, 1}, {0, 2}, {0, 2, 3}, {4}};
  Pools pools({1});
  llvm::SmallVector<Argument> args = arguments(batch, pools);
  args.back() = vector({1});
  args.push_back(tensor({1, 5}, parents));
  Tensor output = run(treeSource(), args)[0];
  for (auto [t, way] : llvm::enumerate(ways)) {
    SCOPED_TRACE(t);
    const auto length = int64_t(way.size());
    Pools plain({1});
    Batch row = {{0, double(length)}, 1, {1}, {1}};
    llvm::SmallVector<Argument> alone = arguments(row, plain);
    for (Argument &argument : llvm::MutableArrayRef(alone).take_front(6)) {
      auto &whole = std::get<Tensor>(argument);
      if (whole.dim(0) != tokens)
        continue; // the weights
      const Tensor all = whole;
      for (auto [i, token] : llvm::enumerate(way))
        llvm::copy(all.row(token), whole.row(i).begin());
    }
    Tensor part = run(source(false), alone)[0];
    expectSame(output.row(t), part.row(length - 1));
    const auto slot = int64_t(batch.table[t]);
    expectSame(pools.conv.data.row(slot), plain.conv.data.row(1));
    expectSame(pools.state.data.row(slot), plain.state.data.row(1));
  }
}

TEST_F(TokenSlots, OfTreesAreNotWhatTheRowReads) {
  const Batch batch = {{0, 2}, 2, {2, 1}, {1}};
  Pools pools({1});
  llvm::SmallVector<Argument> args = arguments(batch, pools);
  args.back() = vector({1});
  args.push_back(tensor({1, 2}, {-1, 0}));
  EXPECT_NE(
      errorOf(treeSource(), args)
          .find("expects a sequence with parents to write another slot than "
                "it reads, but got slot 1 for sequence 0"),
      std::string::npos);
}
