// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the evaluator refuses, and in which words.
#include "EvaluatorTest.h"

using namespace gdn::reference;

using Errors = EvaluatorTest;

static const char *const norm = R"(
  func.func @f(%x: tensor<?x?x8xf32> {gdn.name = "x"}, %n: index)
      -> tensor<?x?x8xf32> {
    %y = gdn.l2norm %x : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
    return %y : tensor<?x?x8xf32>
  })";

TEST_F(Errors, Arguments) {
  const Tensor good = Tensor::zeros({1, 1, 8});
  const Argument one = int64_t(1);
  EXPECT_EQ(errorOf(norm, {good}),
            "'func.func' op expects 2 arguments, but got 1");
  EXPECT_EQ(errorOf(norm, {one, one}),
            "'func.func' op argument 0 'x': expects a tensor, but got the "
            "index 1");
  EXPECT_EQ(errorOf(norm, {good, good}),
            "'func.func' op argument 1: expects an index, but got a tensor 1 x "
            "1 x 8");
  EXPECT_EQ(errorOf(norm, {Tensor::zeros({1, 8}), one}),
            "'func.func' op argument 0 'x': expects ? x ? x 8, but got 1 x 8");
  EXPECT_EQ(errorOf(norm, {Tensor::zeros({1, 1, 9}), one}),
            "'func.func' op argument 0 'x': expects ? x ? x 8, but got 1 x 1 x "
            "9");
  EXPECT_EQ(errorOf(norm, {Tensor({1, 1, 8}, {1, 2}), one}),
            "'func.func' op argument 0 'x': expects 8 elements for 1 x 1 x 8, "
            "but got 2");
  EXPECT_EQ(errorOf(norm, {Tensor({-1, -1, 8}, {}), one}),
            "'func.func' op argument 0 'x': expects sizes that can be counted, "
            "but got ? x ? x 8");
  const int64_t huge = int64_t(1) << 32;
  EXPECT_EQ(errorOf(norm, {Tensor({huge, huge, 8}, {}), one}),
            "'func.func' op argument 0 'x': expects sizes that can be counted, "
            "but got 4294967296 x 4294967296 x 8");
}

TEST_F(Errors, Pools) {
  const char *const read = R"(
    func.func @f(%pool: !gdn.pool<?x?x2xf32>, %s: tensor<?xi32>) {
      %y = gdn.pool_read %pool[%s]
          : !gdn.pool<?x?x2xf32>, tensor<?xi32> -> tensor<?x?x2xf32>
      return
    })";
  Pool pool = {Tensor::zeros({3, 2})};
  EXPECT_EQ(errorOf(read, {static_cast<Pool *>(nullptr), vector({})}),
            "'func.func' op argument 0: expects a pool, but got a null pool");
  EXPECT_EQ(errorOf(read, {vector({}), vector({})}),
            "'func.func' op argument 0: expects a pool, but got a tensor 0");
  EXPECT_EQ(errorOf(read, {&pool, vector({})}),
            "'func.func' op argument 0: expects ? x ? x 2, but got 3 x 2");
}

TEST_F(Errors, UnknownOp) {
  EXPECT_EQ(errorOf(R"(
    func.func @f(%i: index) {
      %j = arith.addi %i, %i : index
      return
    })",
                    {int64_t(1)}),
            "'arith.addi' op is not known to the reference evaluator");
  EXPECT_EQ(errorOf("func.func private @f()", {}),
            "'func.func' op expects a body of one block, but got 0");
  EXPECT_EQ(errorOf("func.func @f(%i: index) -> index { return %i : index }",
                    {int64_t(1)}),
            "'func.return' op expects tensors, but got 'index'");
}

TEST_F(Errors, Unpack) {
  const char *const unpack = R"(
    func.func @f(%x: tensor<?x?xf32>, %hk: index, %hv: index) {
      %v = gdn.unpack "v" interleaved %x heads(%hk, %hv)
          : tensor<?x?xf32> -> tensor<?x?x8xf32>
      return
    })";
  auto with = [](int64_t columns, int64_t hk, int64_t hv) {
    return llvm::SmallVector<Argument>{Tensor::zeros({1, columns}), hk, hv};
  };
  EXPECT_EQ(errorOf(unpack, with(24, 2, 3)),
            "'gdn.unpack' op expects the value heads to be a multiple of the "
            "key heads, but got 3 value heads and 2 key heads");
  EXPECT_EQ(errorOf(unpack, with(24, -2, 3)),
            "'gdn.unpack' op expects heads that are not negative, but got -2 "
            "key heads and 3 value heads");
  EXPECT_EQ(errorOf(unpack, with(24, 2, 4)),
            "'gdn.unpack' op expects 'packed' to be 1 x 32, but got 1 x 24");
  EXPECT_EQ(errorOf(unpack, with(24, 1, int64_t(1) << 40)),
            "'gdn.unpack' op expects 'packed' to be 1 x 8796093022208, but got "
            "1 x 24");
  EXPECT_EQ(errorOf(unpack, with(24, 1, int64_t(1) << 61)),
            "'gdn.unpack' op expects heads whose columns can be counted, but "
            "got 1 key heads and 2305843009213693952 value heads");
}

namespace {
/// Arguments of the delta rule below, with one of them wrong.
struct Delta {
  int64_t hk = 1, hv = 2, dv = 8, p = 4;
  std::vector<double> bounds = {0, 1, 3}, slots = {0, 1}, into = {0, 1},
                      has = {1, 1};
};
} // namespace

TEST_F(Errors, DeltaRule) {
  auto error = [&](const Delta &d) {
    Pool pool = {Tensor::zeros({d.p, d.hv, 8, 8})};
    Tensor key = Tensor::zeros({3, d.hk, 8});
    return errorOf(R"(
      func.func @f(%q: tensor<?x?x8xf32>, %k: tensor<?x?x8xf32>,
          %v: tensor<?x?x8xf32>, %g: tensor<?x?xf32>, %b: tensor<?x?xf32>,
          %pool: !gdn.pool<?x?x8x8xf32>, %s: tensor<?xi32>, %w: tensor<?xi32>,
          %cu: tensor<?xi32>, %has: tensor<?xi1>) {
        %o = gdn.delta_rule %q, %k, %v gates(%g, %b) pool(%pool)
            slots(%s -> %w) sequences(%cu) initial(%has)
            : tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>,
              tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x8x8xf32>,
              tensor<?xi32> into tensor<?xi32>, tensor<?xi32>
              initial tensor<?xi1> -> tensor<?x?x8xf32>
        return
      })",
                   {key, key, Tensor::zeros({3, d.hv, 8}),
                    Tensor::zeros({3, d.hv}), Tensor::zeros({3, 2}), &pool,
                    vector(d.slots), vector(d.into), vector(d.bounds),
                    vector(d.has)});
  };
  const std::string op = "'gdn.delta_rule' op expects ";
  Delta d;
  d.hk = 3;
  EXPECT_EQ(error(d), op + "the value heads to be a multiple of the key heads, "
                           "but got 2 value heads and 3 key heads");
  d = {}, d.hv = 3;
  EXPECT_EQ(error(d), op + "'beta' to be 3 x 3, but got 3 x 2");
  d = {}, d.bounds = {0, 2, 1};
  EXPECT_EQ(error(d), op + "'cu_seqlens' to start at 0 or more and never to "
                           "fall, but got 1 for element 2 after 2");
  d = {}, d.bounds = {-1, 2, 3};
  EXPECT_EQ(error(d), op + "'cu_seqlens' to start at 0 or more and never to "
                           "fall, but got -1 for element 0 after 0");
  d = {}, d.bounds = {0, 1, 4};
  EXPECT_EQ(error(d),
            op + "'cu_seqlens' to stay within T = 3, but got 4 for element 2");
  d = {}, d.bounds = {0, 3};
  EXPECT_EQ(error(d), op + "'cu_seqlens' to be 3, but got 2");
  d = {}, d.into = {1};
  EXPECT_EQ(error(d), op + "'write_slots' to be 2, but got 1");
  d = {}, d.has = {1, 1, 1};
  EXPECT_EQ(error(d), op + "'has_initial' to be 2, but got 3");
  d = {}, d.slots = {1, 1}, d.into = {2, 2};
  EXPECT_EQ(error(d),
            op + "every slot to be written by one sequence, but got slot "
                 "2 for sequences 0 and 1");
  d = {}, d.slots = {1, 3}, d.into = {2, 1};
  EXPECT_EQ(error(d),
            op + "no sequence to read a slot that another writes, but got "
                 "slot 1, read by sequence 0 and written by sequence 1");
}

TEST_F(Errors, Conv1d) {
  auto error = [&](Tensor y, Tensor w, Tensor state, Tensor slots) {
    Pool pool = {std::move(state)};
    return errorOf(
        R"(
      func.func @f(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>,
          %w: tensor<?x4xf32>, %bias: tensor<?xf32>,
          %pool: !gdn.pool<?x?x3xf32>, %s: tensor<?xi32>) {
        %a, %b = gdn.conv1d %x, %y weight(%w) bias(%bias) silu pool(%pool)
            slots(%s)
            : (tensor<?x?xf32>, tensor<?x?xf32>), tensor<?x4xf32>
              bias tensor<?xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>
              -> tensor<?x?xf32>, tensor<?x?xf32>
        return
      })",
        {Tensor::zeros({2, 3}), y, w, Tensor::zeros({5}), &pool, slots});
  };
  const Tensor y = Tensor::zeros({2, 2}), w = Tensor::zeros({5, 4}),
               state = Tensor::zeros({3, 5, 3}), slots = vector({0, 1});
  const std::string op = "'gdn.conv1d' op expects ";
  EXPECT_EQ(error(Tensor::zeros({3, 2}), w, state, slots),
            op + "input 1 to have T = 2 tokens, but got 3");
  EXPECT_EQ(error(Tensor::zeros({2, 3}), w, state, slots),
            op + "'weight' to be 6 x 4, but got 5 x 4");
  EXPECT_EQ(error(y, w, Tensor::zeros({3, 4, 3}), slots),
            op + "'pool' to be 3 x 5 x 3, but got 3 x 4 x 3");
  EXPECT_EQ(error(y, w, state, vector({0})), op + "'slots' to be 2, but got 1");
  EXPECT_EQ(error(y, w, state, vector({2, 2})),
            op + "every slot to be written by one sequence, but got slot 2 for "
                 "sequences "
                 "0 and 1");
}

// Results must fit the static sizes that the IR gives them.
TEST_F(Errors, Result) {
  EXPECT_EQ(errorOf(R"(
    func.func @f(%x: tensor<?x?x8xf32>) {
      %y = gdn.l2norm %x : tensor<?x?x8xf32> -> tensor<3x?x8xf32>
      return
    })",
                    {Tensor::zeros({2, 1, 8})}),
            "'gdn.l2norm' op result 0 expects 3 x ? x 8, but got 2 x 1 x 8");
}

// Ids and bounds that are no integers cannot come out of a file, but a caller
// may pass them; NaN is skipped as a slot and refused as a bound.
TEST_F(Errors, NaNBound) {
  Pool pool = {Tensor::zeros({1, 1, 1})};
  for (double bad : {qNaN, 1e300})
    EXPECT_NE(
        errorOf(R"(
    func.func @f(%x: tensor<?x?xf32>, %pool: !gdn.pool<?x?x1xf32>,
                 %s: tensor<?xi32>, %cu: tensor<?xi32>) {
      %y = gdn.mask_sequences %x of(%pool) slots(%s) sequences(%cu)
          : tensor<?x?xf32>, !gdn.pool<?x?x1xf32>, tensor<?xi32>, tensor<?xi32>
            -> tensor<?x?xf32>
      return
    })",
                {Tensor::zeros({1, 1}), &pool, vector({bad}), vector({0, bad})})
            .find("expects 'cu_seqlens' to "),
        std::string::npos);
}
