// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States inside sequences: each is, bit for bit, the state of a sequence that
// ends there; what writes nothing; what the evaluator refuses.
#include "EvaluatorTest.h"

using namespace gdn::reference;

/// A convolution and the delta rule with two value heads, on one set of
/// sequences. CHECKPOINTS and CTYPE are for the operands that ask for
/// checkpoints.
static const char *const text = R"(
  func.func @f(%q: tensor<?x?x8xf32>, %k: tensor<?x?x8xf32>,
      %v: tensor<?x?x8xf32>, %w: tensor<?x4xf32>, %g: tensor<?x?xf32>,
      %b: tensor<?x?xf32>, %cp: !gdn.pool<?x?x3xf32>,
      %sp: !gdn.pool<?x?x8x8xf32>, %s: tensor<?xi32>, %into: tensor<?xi32>,
      %cu: tensor<?xi32>, %cc: tensor<?xi32>, %ct: tensor<?xi32>,
      %cs: tensor<?xi32>) -> tensor<?x?x8xf32> {
    %qc, %kc, %vc = gdn.conv1d %q, %k, %v weight(%w) silu pool(%cp)
        slots(%s -> %into) sequences(%cu) CHECKPOINTS
        : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>),
          tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> into
          tensor<?xi32>, tensor<?xi32> CTYPE
          -> tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>
    %o = gdn.delta_rule %qc, %kc, %vc gates(%g, %b) pool(%sp)
        slots(%s -> %into) sequences(%cu) CHECKPOINTS
        : tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x8x8xf32>,
          tensor<?xi32> into tensor<?xi32>, tensor<?xi32> CTYPE
          -> tensor<?x?x8xf32>
    return %o : tensor<?x?x8xf32>
  })";

static std::string source(bool checkpoints) {
  std::string result = text;
  auto replace = [&](llvm::StringRef from, llvm::StringRef to) {
    for (size_t at; (at = result.find(from)) != std::string::npos;)
      result.replace(at, from.size(), to.str());
  };
  replace("CHECKPOINTS", checkpoints ? "checkpoints(%cc, %ct, %cs)" : "");
  replace("CTYPE", checkpoints ? "checkpoints tensor<?xi32>, tensor<?xi32>, "
                                 "tensor<?xi32>"
                               : "");
  return result;
}

namespace {
/// Both pools: 12 slots, of which 0 is null; NaN where nothing is read.
struct Pools {
  Pool conv = {filled({12, 32, 3}, qNaN), 0};
  Pool state = {filled({12, 2, 8, 8}, qNaN), 0};

  Pools() {
    for (int64_t slot : {1, 2, 3}) {
      llvm::copy(random({32, 3}, slot).data, conv.data.row(slot).begin());
      llvm::copy(random({2, 8, 8}, 9 + slot, 0.3).data,
                 state.data.row(slot).begin());
    }
  }
};

struct Batch {
  std::vector<double> bounds, slots, into, cc, ct, cs;
};

class Checkpoints : public EvaluatorTest {
protected:
  static constexpr int64_t tokens = 330;

  llvm::SmallVector<Argument> arguments(const Batch &batch, Pools &pools) {
    return {random({tokens, 1, 8}, 1),
            random({tokens, 1, 8}, 2, 0.4),
            random({tokens, 2, 8}, 3),
            random({32, 4}, 4, 0.5),
            filled({tokens, 2}, -0.05),
            filled({tokens, 2}, 0.7),
            &pools.conv,
            &pools.state,
            vector(batch.slots),
            vector(batch.into),
            vector(batch.bounds),
            vector(batch.cc),
            vector(batch.ct),
            vector(batch.cs)};
  }
  Tensor evaluate(const Batch &batch, Pools &pools, bool checkpoints = true) {
    return run(source(checkpoints), arguments(batch, pools))[0];
  }
  std::string error(const Batch &batch) {
    Pools pools;
    return errorOf(source(true), arguments(batch, pools));
  }
};
} // namespace

static void expectSameSlot(Pools &a, int64_t slot, Pools &b, int64_t other) {
  expectSame(a.conv.data.row(slot), b.conv.data.row(other));
  expectSame(a.state.data.row(slot), b.state.data.row(other));
}

/// Two sequences of 200 and 130 tokens in slots 1 and 2, and an empty one
/// between.
static const Batch rows = {{0, 200, 200, 330}, {1, 3, 2}, {1, 3, 2},
                           {0, 3, 3, 4},       {},        {}};

TEST_F(Checkpoints, AreStatesOfRowsThatEndThere) {
  Batch batch = rows;
  batch.ct = {64, 128, 192, 128};
  batch.cs = {5, 6, 7, 8};
  Pools pools, plain;
  Tensor with = evaluate(batch, pools);
  expectSame(with.data, evaluate(batch, plain, false).data);
  for (int64_t slot : {1, 2, 3})
    expectSameSlot(pools, slot, plain, slot);
  for (auto [c, begin, from] :
       {std::tuple(0, 0, 1), {1, 0, 1}, {2, 0, 1}, {3, 200, 2}}) {
    SCOPED_TRACE(c);
    Pools ending;
    evaluate({{double(begin), begin + batch.ct[c]},
              {double(from)},
              {double(from)},
              {0, 0},
              {},
              {}},
             ending, false);
    expectSameSlot(pools, int64_t(batch.cs[c]), ending, from);
  }
}

TEST_F(Checkpoints, OneCanBeContinued) {
  Batch batch = rows;
  batch.cc = {0, 1, 1, 1};
  batch.ct = {128};
  batch.cs = {5};
  Pools pools;
  Tensor whole = evaluate(batch, pools);
  Tensor rest = evaluate({{128, 200}, {5}, {6}, {0, 0}, {}, {}}, pools, false);
  expectSame(slice(rest, 128, 200).data, slice(whole, 128, 200).data);
  expectSameSlot(pools, 6, pools, 1);
}

TEST_F(Checkpoints, AtTheEndOfARowAndWithoutAWriteSlot) {
  Pools pools;
  evaluate({{0, 128}, {1}, {0}, {0, 2}, {64, 128}, {5, 6}}, pools);
  Pools plain;
  evaluate({{0, 128}, {1}, {6}, {0, 0}, {}, {}}, plain, false);
  expectSameSlot(pools, 6, plain, 6);
  expectSameSlot(pools, 1, plain, 1);
}

// What is no checkpoint changes nothing, not even the ones beside it.
TEST_F(Checkpoints, ThatWriteNothing) {
  Batch batch = rows;
  batch.cc = {1, 9, 9, 11};
  batch.ct = {64, -64, 0, 63, 128, 128, 64, 256, 192, 192, 128};
  batch.cs = {11, 11, 11, 11, 6, 11, 11, 11, 0, 11, 8};
  // Not of a sequence; falling; null slot; past the sequence's end.
  Pools pools, plain;
  evaluate(batch, pools);
  evaluate(rows, plain, false);
  for (int64_t slot = 0; slot < 12; ++slot) {
    SCOPED_TRACE(slot);
    if (slot != 6 && slot != 8)
      expectSameSlot(pools, slot, plain, slot);
    else
      EXPECT_FALSE(std::isnan(pools.state.data.row(slot)[0]));
  }
}

TEST_F(Checkpoints, OfSkippedRows) {
  Batch batch = rows;
  batch.slots = {0, 3, -1};
  batch.ct = {64, 128, 192, 128};
  batch.cs = {5, 6, 7, 5};
  Pools pools, untouched;
  evaluate(batch, pools);
  for (int64_t slot = 0; slot < 12; ++slot)
    expectSameSlot(pools, slot, untouched, slot);
}

TEST_F(Checkpoints, Errors) {
  const std::string op = "'gdn.conv1d' op expects ";
  Batch batch = rows;
  batch.ct = {64, 128, 192, 128};
  batch.cs = {5, 6, 7, 6};
  EXPECT_EQ(error(batch),
            op + "the slot of a checkpoint to be that of nothing "
                 "else, but got slot 6 for a checkpoint of sequence 2 "
                 "and for sequence 0");
  batch.cs = {5, 2, 7, 6};
  EXPECT_EQ(error(batch),
            op + "the slot of a checkpoint to be that of nothing "
                 "else, but got slot 2 for a checkpoint of sequence 0 "
                 "and for sequence 2");
  batch.cs = {5, 1, 7, 6};
  batch.into = {9, 3, 2}; // read by its own row
  EXPECT_EQ(error(batch),
            op + "the slot of a checkpoint to be that of nothing "
                 "else, but got slot 1 for a checkpoint of sequence 0 "
                 "and for sequence 0");
  batch.cs = {5, 1, 7};
  EXPECT_EQ(error(batch), op + "'checkpoint_slots' to be 4, but got 3");
  batch = rows, batch.cc = {0, 1};
  EXPECT_EQ(error(batch), op + "'cu_checkpoints' to be 4, but got 2");
  batch.cc = {0, 1, 1, 1};
  EXPECT_EQ(error(batch), op + "'cu_checkpoints' to stay within C = 0, but got "
                               "1 for element 1");
  batch.cc = {0, -1, 0, 0};
  EXPECT_EQ(error(batch), op + "'cu_checkpoints' to start at 0 or more and "
                               "never to fall, but got -1 for element 1 after "
                               "0");
}
