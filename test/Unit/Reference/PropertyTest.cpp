// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What must hold for a whole layer, whatever its numbers: cutting a row in two,
// rows side by side, decode as a row of one token, memory that is not a row's.
#include "EvaluatorTest.h"

#include "gdn/Data/RandomInputs.h"

using namespace gdn::reference;

/// A layer of 2 key and 4 value heads, dk 8 and dv 16. ROWS, TYPE and ARG are
/// for cu_seqlens.
static const char *const layer = R"(
  func.func @f(%hk: index {gdn.name = "Hk"}, %hv: index {gdn.name = "Hv"},
      %x: tensor<?x?xf32> {gdn.name = "qkvz"},
      %y: tensor<?x?xf32> {gdn.name = "ba"},
      %w: tensor<?x4xf32> {gdn.name = "w"},
      %al: tensor<?xf32> {gdn.name = "A_log"},
      %dt: tensor<?xf32> {gdn.name = "dt_bias"},
      %nw: tensor<16xf32> {gdn.name = "norm"},
      %cp: !gdn.pool<?x?x3xf32> {gdn.name = "conv"},
      %sp: !gdn.pool<?x?x16x8xf32> {gdn.name = "state"},
      %s: tensor<?xi32> {gdn.name = "slots"} ARG) -> tensor<?x?x16xf32> {
    %q, %k, %v, %z = gdn.unpack "qkvz" interleaved %x heads(%hk, %hv)
        : tensor<?x?xf32> -> tensor<?x?x8xf32>, tensor<?x?x8xf32>,
          tensor<?x?x16xf32>, tensor<?x?x16xf32>
    %b, %a = gdn.unpack "ba" interleaved %y heads(%hk, %hv)
        : tensor<?x?xf32> -> tensor<?x?xf32>, tensor<?x?xf32>
    %qc, %kc, %vc = gdn.conv1d %q, %k, %v weight(%w) silu pool(%cp) slots(%s)
        ROWS : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x16xf32>),
          tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> TYPE
          -> tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x16xf32>
    %qn = gdn.l2norm %qc : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
    %kn = gdn.l2norm %kc : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
    %g, %beta = gdn.gates %a, %b, %al, %dt {double_beta}
        : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>
          -> tensor<?x?xf32>, tensor<?x?xf32>
    %o = gdn.delta_rule %qn, %kn, %vc gates(%g, %beta) pool(%sp) slots(%s)
        ROWS : tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x16xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x16x8xf32>,
          tensor<?xi32> TYPE -> tensor<?x?x16xf32>
    %n = gdn.gated_rms_norm %o, %z, %nw silu
        : tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<16xf32>
          -> tensor<?x?x16xf32>
    %r = gdn.mask_sequences %n of(%sp) slots(%s) ROWS
        : tensor<?x?x16xf32>, !gdn.pool<?x?x16x8xf32>, tensor<?xi32> TYPE
          -> tensor<?x?x16xf32>
    return %r : tensor<?x?x16xf32>
  })";

static std::string replaced(std::string text, llvm::StringRef from,
                            llvm::StringRef to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to.str());
  return text;
}

namespace {
/// Both states of five slots; slot 0 is null.
struct Pools {
  Pool conv = {random({5, 96, 3}, 1), 0};
  Pool state = {random({5, 4, 16, 8}, 2, 0.3), 0};
};

class Property : public EvaluatorTest {
protected:
  Property() {
    std::string text = replaced(layer, "TYPE", ", tensor<?xi32>");
    text = replaced(text, "ROWS", "sequences(%cu)");
    prefill = function(parse(replaced(
        text, "ARG", ", %cu: tensor<?xi32> {gdn.name = \"cu_seqlens\"}")));
    text = replaced(replaced(layer, "TYPE", ""), "ROWS", "");
    decode = function(parse(replaced(text, "ARG", "")));
  }

  /// The layer over tokens `begin` to `end` of the inputs.
  Tensor evaluateTokens(mlir::func::FuncOp function, int64_t begin, int64_t end,
                        std::vector<double> slots, std::vector<double> bounds,
                        Pools &pools) {
    return runByName(function, {{"Hk", int64_t(2)},
                                {"Hv", int64_t(4)},
                                {"qkvz", slice(qkvz, begin, end)},
                                {"ba", slice(ba, begin, end)},
                                {"w", random({96, 4}, 3, 0.5)},
                                {"A_log", vector({0, 1, 2, -1})},
                                {"dt_bias", random({4}, 4)},
                                {"norm", random({16}, 5)},
                                {"conv", &pools.conv},
                                {"state", &pools.state},
                                {"slots", vector(std::move(slots))},
                                {"cu_seqlens", vector(std::move(bounds))}})[0];
  }

  mlir::func::FuncOp prefill, decode;
  Tensor qkvz = random({20, 160}, 6), ba = random({20, 8}, 7);
};
} // namespace

static void expectSamePools(const Pools &a, const Pools &b) {
  expectSame(a.conv.data.data, b.conv.data.data);
  expectSame(a.state.data.data, b.state.data.data);
}

TEST_F(Property, SplitAnywhere) {
  Pools once;
  Tensor whole = evaluateTokens(prefill, 0, 20, {3}, {0, 20}, once);
  for (int64_t cut = 0; cut <= 20; ++cut) {
    Pools pools;
    const double size = cut;
    Tensor head = evaluateTokens(prefill, 0, cut, {3}, {0, size}, pools);
    Tensor tail = evaluateTokens(prefill, cut, 20, {3}, {0, 20 - size}, pools);
    head.data.insert(head.data.end(), tail.data.begin(), tail.data.end());
    expectSame(head.data, whole.data);
    expectSamePools(pools, once);
  }
}

TEST_F(Property, DecodeIsARowOfOneToken) {
  Pools extend, step;
  Tensor a = evaluateTokens(prefill, 0, 3, {3, 1, 4}, {0, 1, 2, 3}, extend);
  Tensor b = evaluateTokens(decode, 0, 3, {3, 1, 4}, {}, step);
  expectSame(a.data, b.data);
  expectSamePools(extend, step);
}

TEST_F(Property, DecodeStepsEqualOneRow) {
  Pools once, steps;
  Tensor whole = evaluateTokens(prefill, 0, 20, {2}, {0, 20}, once);
  for (int64_t t = 0; t < 20; ++t) {
    Tensor y = evaluateTokens(decode, t, t + 1, {2}, {}, steps);
    expectSame(y.data, whole.row(t));
  }
  expectSamePools(steps, once);
}

// Rows of 0, 7, 0, 12 and 0 tokens, one padding token at each end of the last;
// then each on its own. Slots need no order.
TEST_F(Property, RowsAreIndependent) {
  Pools batch, alone;
  Tensor all = evaluateTokens(prefill, 0, 20, {3, 4, 2, 1, 3},
                              {0, 0, 7, 7, 19, 19}, batch);
  Tensor first = evaluateTokens(prefill, 0, 7, {4}, {0, 7}, alone);
  Tensor second = evaluateTokens(prefill, 7, 19, {1}, {0, 12}, alone);
  expectSame(slice(all, 0, 7).data, first.data);
  expectSame(slice(all, 7, 19).data, second.data);
  expectSame(slice(all, 19, 20).data, Tensor::zeros({64}).data);
  expectSamePools(batch, alone);
}

// NaN wherever no live row may look: null slot, unused slots, skipped rows and
// padding. Live rows give what they give without.
TEST_F(Property, NaNDoesNotLeak) {
  Pools clean, dirty;
  for (int64_t slot : {0, 2, 4}) {
    llvm::fill(dirty.conv.data.row(slot), qNaN);
    llvm::fill(dirty.state.data.row(slot), qNaN);
  }
  Tensor want = evaluateTokens(prefill, 4, 9, {1}, {0, 5}, clean);
  const Pools before = dirty;
  for (int64_t t = 0; t < 20; ++t)
    if (t < 4 || t >= 9) {
      llvm::fill(qkvz.row(t), qNaN);
      llvm::fill(ba.row(t), qNaN);
    }
  // Rows: past the end, live, null, negative; padding before and behind.
  Tensor got =
      evaluateTokens(prefill, 0, 20, {5, 1, 0, -1}, {2, 4, 9, 12, 15}, dirty);
  Tensor zeros = Tensor::zeros(got.shape);
  expectSame(slice(got, 0, 4).data, slice(zeros, 0, 4).data);
  expectSame(slice(got, 4, 9).data, want.data);
  expectSame(slice(got, 9, 20).data, slice(zeros, 9, 20).data);
  for (int64_t slot : {0, 2, 3, 4})
    expectSame(dirty.state.data.row(slot), before.state.data.row(slot));
  expectSame(dirty.state.data.row(1), clean.state.data.row(1));
  expectSame(dirty.conv.data.row(1), clean.conv.data.row(1));
}

// The result does not depend on the context's threads.
TEST_F(Property, ThreadsDoNotMatter) {
  Pools threads, single;
  Tensor a = evaluateTokens(prefill, 0, 20, {1, 2}, {0, 9, 20}, threads);
  context.disableMultithreading();
  Tensor b = evaluateTokens(prefill, 0, 20, {1, 2}, {0, 9, 20}, single);
  expectSame(a.data, b.data);
  expectSamePools(threads, single);
}
