// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.mask_sequences, gdn.counted_slots, gdn.pool_read, gdn.pool_write,
// gdn.pool_copy and gdn.pool_zero.
#include "EvaluatorTest.h"

using namespace gdn::reference;

using PoolOps = EvaluatorTest;

// Tokens: padding, sequence 0 (null slot), sequence 1 (live, two tokens),
// padding.
TEST_F(PoolOps, MaskSequences) {
  Pool pool = {filled({3, 1, 1}, qNaN), /*nullSlot=*/1};
  auto results =
      run(R"(
    func.func @f(%x: tensor<?x?xf32>, %pool: !gdn.pool<?x?x1xf32>,
                 %s: tensor<?xi64>, %cu: tensor<?xi64>) -> tensor<?x?xf32> {
      %y = gdn.mask_sequences %x of(%pool) slots(%s) sequences(%cu)
          : tensor<?x?xf32>, !gdn.pool<?x?x1xf32>, tensor<?xi64>, tensor<?xi64>
            -> tensor<?x?xf32>
      return %y : tensor<?x?xf32>
    })",
          {Tensor({5, 2}, {qNaN, qNaN, qNaN, qNaN, 1, 2, 3, qNaN, qNaN, 9}),
           &pool, vector({1, 2}), vector({1, 2, 4})});
  expectSame(results[0].data, {0, 0, 0, 0, 1, 2, 3, qNaN, 0, 0});
}

TEST_F(PoolOps, MaskSequencesOfDecode) {
  Pool pool = {filled({3, 1, 1}, qNaN), 0};
  auto results = run(
      R"(
    func.func @f(%x: tensor<?x?xf32>, %pool: !gdn.pool<?x?x1xf32>,
                 %s: tensor<?xi32>) -> tensor<?x?xf32> {
      %y = gdn.mask_sequences %x of(%pool) slots(%s)
          : tensor<?x?xf32>, !gdn.pool<?x?x1xf32>, tensor<?xi32>
            -> tensor<?x?xf32>
      return %y : tensor<?x?xf32>
    })",
      {Tensor({4, 1}, {qNaN, 7, qNaN, qNaN}), &pool, vector({0, 2, -1, 3})});
  expectSame(results[0].data, {0, 7, 0, 0});
}

// Counts from 1 to 2, sequences of up to 3 tokens.
TEST_F(PoolOps, AcceptedSlots) {
  Tensor table({4, 2}, {5, 6, 7, 8, 9, 10, 11, 12});
  auto results = run(R"(
    func.func @f(%t: tensor<?x?xi32>, %a: tensor<?xi32>, %cu: tensor<?xi32>)
        -> (tensor<?xi32>, tensor<?xi32>) {
      %x = gdn.accepted_slots %t[%a]
          : tensor<?x?xi32>, tensor<?xi32> -> tensor<?xi32>
      %y = gdn.accepted_slots %t[%a] sequences(%cu) max_tokens(3)
          : tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?xi32>
      return %x, %y : tensor<?xi32>, tensor<?xi32>
    })",
                     {table, vector({1, 2, 3, 2}), vector({0, 3, 7, 8, 8})});
  expectSame(results[0].data, {5, 8, -1, 12});
  expectSame(results[1].data, {5, -1, -1, 12});
}

// Counts from 0 to 2, sequences of up to 3 tokens; ids that are skipped are
// passed on.
TEST_F(PoolOps, CountedSlots) {
  auto results = run(R"(
    func.func @f(%s: tensor<?xi32>, %a: tensor<?xi32>, %most: index,
                 %cu: tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) {
      %x = gdn.counted_slots %s[%a] up_to(%most)
          : tensor<?xi32>, tensor<?xi32>
      %y = gdn.counted_slots %s[%a] up_to(%most) sequences(%cu) max_tokens(3)
          : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
      return %x, %y : tensor<?xi32>, tensor<?xi32>
    })",
                     {vector({5, 6, 7, 8, -1, 9}), vector({0, 3, 2, 1, 1, -1}),
                      int64_t(2), vector({1, 4, 5, 9, 9, 12, 13})});
  expectSame(results[0].data, {5, -1, 7, 8, -1, -1});
  expectSame(results[1].data, {5, -1, -1, 8, -1, -1});
}

// Reading may repeat a slot; skipped ones give zeros.
TEST_F(PoolOps, Read) {
  Pool pool = {Tensor({3, 1, 2}, {qNaN, qNaN, 1, 2, 3, 4}), 0};
  auto results = run(R"(
    func.func @f(%pool: !gdn.pool<?x?x2xf32>, %s: tensor<?xi32>)
        -> tensor<?x?x2xf32> {
      %y = gdn.pool_read %pool[%s]
          : !gdn.pool<?x?x2xf32>, tensor<?xi32> -> tensor<?x?x2xf32>
      return %y : tensor<?x?x2xf32>
    })",
                     {&pool, vector({2, 0, 2, -1, 3, 1})});
  expectSame(results[0].data, {3, 4, 0, 0, 3, 4, 0, 0, 0, 0, 1, 2});
}

static const char *const poolWrite = R"(
  func.func @f(%x: tensor<?x?x2xf32>, %pool: !gdn.pool<?x?x2xf32>,
               %s: tensor<?xi32>) {
    gdn.pool_write %x, %pool[%s]
        : tensor<?x?x2xf32>, !gdn.pool<?x?x2xf32>, tensor<?xi32>
    return
  })";

TEST_F(PoolOps, Write) {
  Pool pool = {Tensor({3, 1, 2}, {1, 2, 3, 4, 5, 6}), 0};
  auto results = run(
      poolWrite, {Tensor({4, 1, 2}, {10, 11, qNaN, qNaN, 12, 13, qNaN, qNaN}),
                  &pool, vector({2, 0, 1, -1})});
  EXPECT_TRUE(results.empty());
  expectSame(pool.data.data, {1, 2, 12, 13, 10, 11});
}

// Skipped slots may repeat, live ones may not.
TEST_F(PoolOps, WriteTwice) {
  Pool pool = {Tensor::zeros({3, 1, 2}), 0};
  EXPECT_EQ(
      errorOf(poolWrite,
              {Tensor::zeros({4, 1, 2}), &pool, vector({0, 2, 0, 2})}),
      "'gdn.pool_write' op expects every slot to be written by one sequence, "
      "but got slot 2 for sequences 1 and 3");
}

static const char *const poolCopy = R"(
  func.func @f(%pool: !gdn.pool<?x?x2xf32>, %from: tensor<?xi32>,
               %to: tensor<?xi32>) {
    gdn.pool_copy %pool[%from] to %pool[%to]
        : !gdn.pool<?x?x2xf32>, tensor<?xi32>
          to !gdn.pool<?x?x2xf32>, tensor<?xi32>
    return
  })";

// One slot to two others, and one onto itself; a skipped slot on either side
// leaves the sequence alone.
TEST_F(PoolOps, Copy) {
  Pool pool = {Tensor({5, 1, 2}, {8, 9, 1, 2, 3, 4, 5, 6, 7, qNaN}), 0};
  run(poolCopy, {&pool, vector({1, 1, 4, 0, -1, 1, 1, 5}),
                 vector({2, 3, 4, 4, 4, 0, 5, 4})});
  expectSame(pool.data.data, {8, 9, 1, 2, 1, 2, 1, 2, 7, qNaN});
}

TEST_F(PoolOps, CopyWritesASlotTwice) {
  Pool pool = {Tensor({4, 1, 2}, {0, 0, 1, 2, 3, 4, 5, 6}), 0};
  EXPECT_EQ(
      errorOf(poolCopy, {&pool, vector({1, 2}), vector({3, 3})}),
      "'gdn.pool_copy' op expects every slot to be written by one sequence, "
      "but got slot 3 for sequences 0 and 1");
}

TEST_F(PoolOps, CopyReadsWhatAnotherRowWrites) {
  Pool pool = {Tensor({4, 1, 2}, {0, 0, 1, 2, 3, 4, 5, 6}), 0};
  EXPECT_EQ(
      errorOf(poolCopy, {&pool, vector({1, 3}), vector({3, 2})}),
      "'gdn.pool_copy' op expects no sequence to read a slot that another one "
      "writes, but got slot 3 for sequences 1 and 0");
}

TEST_F(PoolOps, Zero) {
  Pool pool = {Tensor({3, 1, 2}, {8, 9, qNaN, 2, 3, 4}), 0};
  run(R"(
    func.func @f(%pool: !gdn.pool<?x?x2xf32>, %slots: tensor<?xi32>) {
      gdn.pool_zero %pool[%slots] : !gdn.pool<?x?x2xf32>, tensor<?xi32>
      return
    })",
      {&pool, vector({1, 0, -1, 3, 0})});
  expectSame(pool.data.data, {8, 9, 0, 0, 3, 4});
}
