// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.plan_batch: the lists of batches, written by hand.
#include "EvaluatorTest.h"

using namespace gdn::reference;

namespace {

/// A batch of an engine; `table` has two columns. A sequence with -1 drafts
/// asks for no verify.
struct EngineBatch {
  std::vector<double> starts, lens, drafts, accepted;
  std::vector<double> table;
};

/// What is expected of the list: all elements, those behind the last one too.
struct Plan {
  std::vector<double> isPrefill, cuSeqlens, slots, writeSlots, hasInitial,
      taken;
};

class PlanBatch : public EvaluatorTest {
protected:
  llvm::SmallVector<Tensor> plan(const EngineBatch &batch,
                                 bool withCounts = true) {
    const int64_t n = batch.lens.size();
    const int64_t columns = n == 0 ? 2 : int64_t(batch.table.size()) / n;
    llvm::SmallVector<Argument> arguments = {
        vector(batch.starts), vector(batch.lens),
        Tensor({n, columns}, batch.table), vector(batch.drafts)};
    if (withCounts)
      arguments.push_back(vector(batch.accepted));
    return run(withCounts ? withAccepted : withoutAccepted, arguments);
  }
  void expectPlan(const EngineBatch &batch, const Plan &want,
                  bool withCounts = true) {
    llvm::SmallVector<Tensor> got = plan(batch, withCounts);
    ASSERT_EQ(got.size(), 6u);
    const std::vector<double> *lists[] = {&want.isPrefill,  &want.cuSeqlens,
                                          &want.slots,      &want.writeSlots,
                                          &want.hasInitial, &want.taken};
    const char *names[] = {"is_prefill",  "cu_seqlens",  "slots",
                           "write_slots", "has_initial", "taken"};
    for (auto [list, name, tensor] : llvm::zip_equal(lists, names, got)) {
      SCOPED_TRACE(name);
      expectSame(tensor.data, *list);
    }
  }

  static constexpr const char *withAccepted = R"(
    func.func @f(%starts: tensor<?xi32>, %lens: tensor<?xi32>,
        %table: tensor<?x?xi32>, %drafts: tensor<?xi32>, %counts: tensor<?xi32>)
        -> (tensor<?xi1>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>,
            tensor<?xi1>, tensor<?xi1>) {
      %p:6 = gdn.plan_batch sequences(%starts, %lens) table(%table)
          drafts(%drafts) accepted(%counts)
          : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>,
            accepted tensor<?xi32>
            -> tensor<?xi1>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>,
               tensor<?xi1>, tensor<?xi1>
      return %p#0, %p#1, %p#2, %p#3, %p#4, %p#5
          : tensor<?xi1>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>,
            tensor<?xi1>, tensor<?xi1>
    })";
  static constexpr const char *withoutAccepted = R"(
    func.func @f(%starts: tensor<?xi32>, %lens: tensor<?xi32>,
        %table: tensor<?x?xi32>, %drafts: tensor<?xi32>)
        -> (tensor<?xi1>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>,
            tensor<?xi1>, tensor<?xi1>) {
      %p:6 = gdn.plan_batch sequences(%starts, %lens) table(%table)
          drafts(%drafts)
          : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>
            -> tensor<?xi1>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>,
               tensor<?xi1>, tensor<?xi1>
      return %p#0, %p#1, %p#2, %p#3, %p#4, %p#5
          : tensor<?xi1>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>,
            tensor<?xi1>, tensor<?xi1>
    })";
};

/// Slots 10 and 11 of the first sequence, 20 and 21 of the second, and so on.
std::vector<double> tableOf(int64_t n) {
  std::vector<double> table;
  for (int64_t i = 1; i <= n; ++i) {
    table.push_back(10.0 * i);
    table.push_back(10.0 * i + 1);
  }
  return table;
}

// Verify, prompt, prompt, two verifies, prompt, verify: gaps before, between
// and behind prompts, and none between two of them.
TEST_F(PlanBatch, GapsOnAllSides) {
  EngineBatch batch = {{0, 2, 7, 11, 13, 16, 20, 22},
                       {9, 5, 10, 9, 9, 8, 9},
                       {1, -1, -1, 1, 2, -1, 1},
                       {1, 1, 2, 2, 1, 1, 1},
                       tableOf(7)};
  expectPlan(batch, {{0, 1, 1, 0, 0, 1, 0},
                     {0, 2, 7, 11, 16, 20, 22, 22},
                     {-1, 20, 31, -1, 60, -1, -1},
                     {-1, 20, 30, -1, 60, -1, -1},
                     {1, 0, 1, 1, 1, 1, 1},
                     {0, 1, 1, 0, 1, 0, 0}});
}

// Sequences without tokens are in no element, and do not end a gap; the first
// start of an element is that of its first sequence with tokens.
TEST_F(PlanBatch, EmptySequencesDoNotSplitAGap) {
  EngineBatch batch = {{3, 3, 5, 5, 7, 7, 10, 10},
                       {9, 9, 0, 9, 4, 3, 6},
                       {-1, 1, -1, 1, 0, -1, -1},
                       {1, 1, 1, 1, 1, 1, 1},
                       tableOf(7)};
  expectPlan(batch, {{0, 0, 0, 0, 0, 1, 0},
                     {3, 7, 10, 10, 10, 10, 10, 10},
                     {-1, 60, -1, -1, -1, -1, -1},
                     {-1, 60, -1, -1, -1, -1, -1},
                     {1, 0, 1, 1, 1, 1, 1},
                     {0, 1, 0, 0, 0, 0, 0}});
}

// Rows of padding whose starts stay, or fall back to 0.
TEST_F(PlanBatch, PaddingBehindTheSequences) {
  for (double padding : {9, 0}) {
    EngineBatch batch = {{0, 2, 9, padding, padding},
                         {7, 12, 0, 0},
                         {1, -1, -1, -1},
                         {1, 2, 0, 0},
                         tableOf(4)};
    expectPlan(batch, {{0, 1, 0, 0},
                       {0, 2, 9, 9, 9},
                       {-1, 21, -1, -1},
                       {-1, 20, -1, -1},
                       {1, 1, 1, 1},
                       {0, 1, 0, 0}});
  }
}

// A sequence that goes on by one token is a verify where counts are given, a
// first token is a prompt, and drafts make a verify of anything.
TEST_F(PlanBatch, OneToken) {
  EngineBatch batch = {
      {0, 1, 2, 3}, {6, 1, 1}, {-1, -1, 0}, {2, 2, 2}, tableOf(3)};
  expectPlan(batch, {{0, 1, 0},
                     {0, 1, 2, 3},
                     {-1, 20, -1},
                     {-1, 20, -1},
                     {1, 0, 1},
                     {0, 1, 0}});
  // Without counts all have one slot, that of the first column.
  expectPlan(batch,
             {{1, 1, 0},
              {0, 1, 2, 3},
              {10, 20, -1},
              {10, 20, -1},
              {1, 0, 1},
              {1, 1, 0}},
             /*withCounts=*/false);
}

// Prompts that go on: the slot of the last accepted token, or none. A prompt
// that begins reads no count.
TEST_F(PlanBatch, CountsOfAcceptedTokens) {
  EngineBatch batch = {{0, 2, 4, 6, 8, 10, 12},
                       {9, 9, 9, 9, 2, 2},
                       {-1, -1, -1, -1, -1, -1},
                       {1, 2, 3, 0, -5, 3},
                       tableOf(6)};
  expectPlan(batch, {{1, 1, 1, 1, 1, 1},
                     {0, 2, 4, 6, 8, 10, 12},
                     {10, 21, -1, -1, 50, 60},
                     {10, 20, 30, 40, 50, 60},
                     {1, 1, 1, 1, 0, 0},
                     {1, 1, 1, 1, 1, 1}});
}

// More tokens than the sequence has are an engine's mistake.
TEST_F(PlanBatch, FewerTokensThanInTheStep) {
  EngineBatch batch = {
      {0, 4, 5, 9}, {3, 0, 4}, {-1, -1, -1}, {1, 1, 1}, tableOf(3)};
  expectPlan(batch, {{1, 1, 1},
                     {0, 4, 5, 9},
                     {-1, -1, 30},
                     {10, 20, 30},
                     {0, 0, 0},
                     {1, 1, 1}});
}

// Slots that ops skip are passed on.
TEST_F(PlanBatch, SkippedSlots) {
  EngineBatch batch = {{0, 4, 8}, {9, 4}, {-1, -1}, {2, 1}, {10, -1, 0, 21}};
  expectPlan(batch, {{1, 1}, {0, 4, 8}, {-1, 0}, {10, 0}, {1, 0}, {1, 1}});
}

TEST_F(PlanBatch, NothingToDo) {
  EngineBatch none = {{0}, {}, {}, {}, {}};
  expectPlan(none, {{}, {0}, {}, {}, {}, {}});
  EngineBatch empty = {{5, 5, 5}, {3, 4}, {-1, 2}, {1, 1}, tableOf(2)};
  expectPlan(empty, {{0, 0}, {0, 0, 0}, {-1, -1}, {-1, -1}, {1, 1}, {0, 0}});
  EngineBatch verified = {{0, 2, 4}, {8, 9}, {1, 1}, {1, 1}, tableOf(2)};
  expectPlan(verified, {{0, 0}, {0, 4, 4}, {-1, -1}, {-1, -1}, {1, 1}, {0, 0}});
}

// A table without columns has no slots.
TEST_F(PlanBatch, NoColumns) {
  EngineBatch batch = {{0, 4, 8}, {9, 4}, {-1, -1}, {1, 1}, {}};
  expectPlan(batch, {{1, 1}, {0, 4, 8}, {-1, -1}, {-1, -1}, {1, 0}, {1, 1}});
}

TEST_F(PlanBatch, ShapesThatDisagree) {
  auto errorWith = [&](llvm::ArrayRef<int64_t> sizes) {
    return errorOf(withAccepted,
                   {Tensor::zeros({sizes[0]}), Tensor::zeros({3}),
                    Tensor::zeros({sizes[1], 2}), Tensor::zeros({sizes[2]}),
                    Tensor::zeros({sizes[3]})});
  };
  EXPECT_EQ(errorWith({3, 3, 3, 3}),
            "'gdn.plan_batch' op expects 'query_start_loc' to be 4, but got 3");
  EXPECT_EQ(errorWith({4, 2, 3, 3}),
            "'gdn.plan_batch' op expects 'block_table' to be 3 x 2, but got 2 "
            "x 2");
  EXPECT_EQ(errorWith({4, 3, 4, 3}),
            "'gdn.plan_batch' op expects 'drafts' to be 3, but got 4");
  EXPECT_EQ(errorWith({4, 3, 3, 2}),
            "'gdn.plan_batch' op expects 'accepted' to be 3, but got 2");
}

} // namespace
