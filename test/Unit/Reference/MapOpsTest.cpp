// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.combine_maps and gdn.apply_maps, with heads of one number.
#include "EvaluatorTest.h"

using namespace gdn::reference;

namespace {

class MapOps : public EvaluatorTest {
protected:
  static constexpr const char *combine = R"(
    func.func @f(%h: tensor<?x?x1x1xf32>, %p: tensor<?x?x1x1xf32>,
                 %first: tensor<?xi32>, %count: tensor<?xi32>)
        -> tensor<?x?x2x1xf32> {
      %y = gdn.combine_maps segments(%h, %p) of(%first, %count)
          : tensor<?x?x1x1xf32>, tensor<?x?x1x1xf32>, tensor<?xi32>,
            tensor<?xi32>
      return %y : tensor<?x?x2x1xf32>
    })";
  static constexpr const char *apply = R"(
    func.func @f(%pool: !gdn.pool<?x?x1x1xf32>, %s: tensor<?xi32>,
        %to: tensor<?xi32>, %maps: tensor<?x?x?x2x1xf32>, %rank: tensor<1xi32>,
        %h: tensor<?x?x1x1xf32>, %p: tensor<?x?x1x1xf32>,
        %first: tensor<?xi32>, %count: tensor<?xi32>) -> tensor<?x?x1x1xf32> {
      %y = gdn.apply_maps %pool[%s to %to] ranks(%maps, %rank)
          segments(%h, %p) of(%first, %count)
          : !gdn.pool<?x?x1x1xf32>, tensor<?xi32>, tensor<?xi32>,
            tensor<?x?x?x2x1xf32>, tensor<1xi32>, tensor<?x?x1x1xf32>,
            tensor<?x?x1x1xf32>, tensor<?xi32>, tensor<?xi32>
      return %y : tensor<?x?x1x1xf32>
    })";
};

} // namespace

// Of the second sequence there is no segment, and the third one is nobody's.
TEST_F(MapOps, Combine) {
  auto results = run(combine, {Tensor({3, 1, 1, 1}, {2, 3, qNaN}),
                               Tensor({3, 1, 1, 1}, {10, 100, qNaN}),
                               vector({0, 9}), vector({2, 0})});
  expectSame(results[0].data, {203, 1000, 0, 1});
}

// Sequence 0 goes on from slot 1, sequence 1 from zeros, and its state goes
// nowhere. This is the second of two ranks.
TEST_F(MapOps, Apply) {
  Pool pool = {Tensor({3, 1, 1, 1}, {7, 5, 6}), /*nullSlot=*/2};
  auto results =
      run(apply, {&pool, vector({1, -1}), vector({0, 2}),
                  Tensor({2, 2, 1, 2, 1}, {1, 2, 20, 30, 3, 4, 40, 50}),
                  vector({1}), Tensor({3, 1, 1, 1}, {2, 3, 4}),
                  Tensor({3, 1, 1, 1}, {10, 100, 1000}), vector({0, 2}),
                  vector({2, 1})});
  expectSame(results[0].data, {11, 112, 20});
  expectSame(pool.data.data, {47, 5, 6});
}

TEST_F(MapOps, WhatCallersPromise) {
  Tensor one({1, 1, 1, 1}, {1});
  EXPECT_EQ(errorOf(combine, {one, one, vector({0}), vector({2})}),
            "'gdn.combine_maps' op expects segments below 1, but got 2 from 0");
  EXPECT_EQ(errorOf(combine, {one, Tensor({2, 1, 1, 1}, {1, 1}), vector({0}),
                              vector({1})}),
            "'gdn.combine_maps' op expects 'linear' to be 1 x 1 x 1 x 1, but "
            "got 2 x 1 x 1 x 1");
  Pool pool = {one, -1};
  Tensor maps({1, 1, 1, 2, 1}, {1, 1});
  EXPECT_EQ(errorOf(apply, {&pool, vector({0}), vector({0}), maps, vector({1}),
                            one, one, vector({0}), vector({1})}),
            "'gdn.apply_maps' op expects a rank below 1, but got 1");
}
