// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.plan_batch: what launches read of batches, written by hand.
#include "EvaluatorTest.h"

using namespace gdn::reference;

namespace {

/// A batch of an engine. A sequence with -1 drafts asks for no verify.
struct EngineBatch {
  std::vector<double> starts, lens, drafts, accepted;
  std::vector<double> table; ///< as many columns for each sequence
  int64_t tokens, columns = 4;
};

/// What the counts of a batch are.
enum class Counts { none, ofSlots, ofPrefillsPending, ofAllPending, inSlots };

struct Verified {
  std::vector<double> cuSeqlens, slots, accepted;
};
/// All elements, those behind the last one too.
struct Prefilled {
  std::vector<double> cuSeqlens, slots, writeSlots, hasInitial, taken;
};
struct Committed {
  std::vector<double> slots, accepted;
};

/// The results of the op.
class Plan {
public:
  explicit Plan(llvm::SmallVector<Tensor> results)
      : results(std::move(results)) {}

  void expectPrefills(const std::vector<double> &want) const {
    expect(0, {"is_prefill"}, {want});
  }
  void expectVerified(const Verified &want) const {
    expect(1, {"verify_cu_seqlens", "verify_slots", "verify_accepted"},
           {want.cuSeqlens, want.slots, want.accepted});
  }
  void expectPrefilled(const Prefilled &want) const {
    expect(4,
           {"prefill_cu_seqlens", "prefill_slots", "prefill_write_slots",
            "prefill_has_initial", "prefill_taken"},
           {want.cuSeqlens, want.slots, want.writeSlots, want.hasInitial,
            want.taken});
  }
  void expectCommitted(const Committed &want) const {
    expect(9, {"commit_slots", "commit_accepted"}, {want.slots, want.accepted});
  }
  void expectNoCommits() const {
    const size_t n = results[0].data.size();
    expectCommitted({std::vector<double>(n, -1), std::vector<double>(n, 0)});
  }

private:
  void expect(size_t first, llvm::ArrayRef<const char *> names,
              llvm::ArrayRef<std::vector<double>> wanted) const {
    ASSERT_EQ(results.size(), 11u);
    for (auto [i, name] : llvm::enumerate(names)) {
      SCOPED_TRACE(name);
      expectSame(results[first + i].data, wanted[i]);
    }
  }

  llvm::SmallVector<Tensor> results;
};

class PlanBatch : public EvaluatorTest {
protected:
  Plan plan(const EngineBatch &batch, Counts counts = Counts::ofSlots) {
    const int64_t n = batch.lens.size();
    const int64_t width = n == 0 ? 2 : int64_t(batch.table.size()) / n;
    llvm::SmallVector<Argument> arguments = {
        vector(batch.starts), vector(batch.lens),
        Tensor({n, width}, batch.table), vector(batch.drafts)};
    if (counts != Counts::none)
      arguments.push_back(vector(batch.accepted));
    arguments.append({batch.tokens, batch.columns});
    return Plan(run(functionOf(counts), arguments));
  }
  static std::string functionOf(Counts counts) {
    const bool isGiven = counts != Counts::none;
    std::string commits = counts == Counts::ofPrefillsPending
                              ? "commits prefill"
                          : counts == Counts::ofAllPending ? "commits all"
                          : counts == Counts::inSlots      ? "commits counted"
                                                           : "";
    return std::string(R"(
    func.func @f(%starts: tensor<?xi32>, %lens: tensor<?xi32>,
        %table: tensor<?x?xi32>, %drafts: tensor<?xi32>,)") +
           (isGiven ? "%counts: tensor<?xi32>," : "") +
           R"(%tokens: index, %columns: index)
        -> (tensor<?xi1>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>,
            tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi1>,
            tensor<?xi1>, tensor<?xi32>, tensor<?xi32>) {
      %p:11 = gdn.plan_batch sequences(%starts, %lens) table(%table)
          drafts(%drafts) limits(%tokens, %columns) )" +
           (isGiven ? "accepted(%counts) " : "") + commits +
           R"( : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>)" +
           (isGiven ? ", accepted tensor<?xi32>" : "") + R"(
      return %p#0, %p#1, %p#2, %p#3, %p#4, %p#5, %p#6, %p#7, %p#8, %p#9, %p#10
          : tensor<?xi1>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>,
            tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi1>,
            tensor<?xi1>, tensor<?xi32>, tensor<?xi32>
    })";
  }
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
                       tableOf(7),
                       /*tokens=*/22};
  const Plan made = plan(batch);
  made.expectPrefills({0, 1, 1, 0, 0, 1, 0});
  made.expectVerified({{0, 2, 7, 11, 13, 16, 20, 22},
                       {10, -1, -1, 40, 50, -1, 70},
                       {1, 0, 0, 2, 1, 0, 1}});
  made.expectPrefilled({{0, 2, 7, 11, 16, 20, 22, 22},
                        {-1, 20, 31, -1, 60, -1, -1},
                        {-1, 20, 30, -1, 60, -1, -1},
                        {1, 0, 1, 1, 1, 1, 1},
                        {0, 1, 1, 0, 1, 0, 0}});
  made.expectNoCommits();
}

// Sequences without tokens are in no element, and do not end a gap; the first
// start of an element is that of its first sequence with tokens.
TEST_F(PlanBatch, EmptySequencesDoNotSplitAGap) {
  EngineBatch batch = {{3, 3, 5, 5, 7, 7, 10, 10},
                       {9, 9, 0, 9, 4, 3, 6},
                       {-1, 1, -1, 1, 0, -1, -1},
                       {1, 1, 1, 1, 1, 1, 1},
                       tableOf(7),
                       /*tokens=*/10};
  const Plan made = plan(batch);
  made.expectPrefills({0, 0, 0, 0, 0, 1, 0});
  made.expectVerified({{3, 3, 5, 5, 7, 7, 10, 10},
                       {-1, 20, -1, 40, -1, -1, -1},
                       {0, 1, 0, 1, 0, 0, 0}});
  made.expectPrefilled({{3, 7, 10, 10, 10, 10, 10, 10},
                        {-1, 60, -1, -1, -1, -1, -1},
                        {-1, 60, -1, -1, -1, -1, -1},
                        {1, 0, 1, 1, 1, 1, 1},
                        {0, 1, 0, 0, 0, 0, 0}});
}

// Rows of padding, whose starts stay or fall, share its tokens. For prefill
// they are a gap of their own behind a prompt.
TEST_F(PlanBatch, SequencesBehindTheLastShareThePadding) {
  for (double start : {9, 0, -7}) {
    SCOPED_TRACE(start);
    EngineBatch batch = {{0, 2, 9, start, start, 0, start},
                         {7, 12, 0, 5, 0, 0},
                         {1, -1, -1, 2, -1, 0},
                         {1, 2, 0, 1, 0, 0},
                         tableOf(6),
                         /*tokens=*/20};
    const Plan made = plan(batch);
    made.expectPrefills({0, 1, 0, 0, 0, 0});
    made.expectVerified({{0, 2, 9, 12, 15, 18, 20},
                         {10, -1, -1, -1, -1, -1},
                         {1, 0, 0, 0, 0, 0}});
    made.expectPrefilled({{0, 2, 9, 20, 20, 20, 20},
                          {-1, 21, -1, -1, -1, -1},
                          {-1, 20, -1, -1, -1, -1},
                          {1, 1, 1, 1, 1, 1},
                          {0, 1, 0, 0, 0, 0}});
  }
}

TEST_F(PlanBatch, PaddingIsPartOfTheLastGap) {
  EngineBatch batch = {{0, 7, 9, 0}, {7, 9, 0},  {-1, 1, -1},
                       {1, 1, 1},    tableOf(3), /*tokens=*/13};
  const Plan made = plan(batch);
  made.expectVerified({{0, 7, 9, 13}, {-1, 20, -1}, {0, 1, 0}});
  made.expectPrefilled(
      {{0, 7, 13, 13}, {10, -1, -1}, {10, -1, -1}, {0, 1, 1}, {1, 0, 0}});
}

// The last of those that share have fewer tokens, or none.
TEST_F(PlanBatch, FewerTokensOfPaddingThanShares) {
  EngineBatch batch = {
      {0, 4, 4, 4, 4, 4, 4}, {4, 0, 0, 0, 0, 0}, {-1, -1, -1, -1, -1, -1},
      {1, 1, 1, 1, 1, 1},    tableOf(6),         /*tokens=*/6};
  const Plan made = plan(batch);
  made.expectVerified(
      {{0, 4, 5, 6, 6, 6, 6}, {-1, -1, -1, -1, -1, -1}, {0, 0, 0, 0, 0, 0}});
  made.expectPrefilled({{0, 4, 6, 6, 6, 6, 6},
                        {10, -1, -1, -1, -1, -1},
                        {10, -1, -1, -1, -1, -1},
                        {0, 1, 1, 1, 1, 1},
                        {1, 0, 0, 0, 0, 0}});
}

// A sequence without tokens ahead of the last one with tokens takes none.
TEST_F(PlanBatch, WithoutASequenceBehindNobodyHasThePadding) {
  EngineBatch batch = {{0, 4, 4, 6}, {4, 0, 9},  {-1, -1, 1},
                       {1, 1, 1},    tableOf(3), /*tokens=*/9};
  const Plan made = plan(batch);
  made.expectVerified({{0, 4, 4, 6}, {-1, -1, 30}, {0, 0, 1}});
  made.expectPrefilled(
      {{0, 4, 6, 6}, {10, -1, -1}, {10, -1, -1}, {0, 1, 1}, {1, 0, 0}});
}

// A start below one ahead of it counts as that one, also if it is above the
// start just ahead of it. Starts below 0 count as 0.
TEST_F(PlanBatch, StartsThatFallAndRise) {
  EngineBatch batch = {{-3, 2, 1, 6, 4, 5, 9},
                       {2, 5, 4, 6, 6, 8},
                       {-1, -1, -1, 1, -1, -1},
                       {1, 1, 1, 1, 1, 1},
                       tableOf(6),
                       /*tokens=*/9};
  const Plan made = plan(batch);
  made.expectPrefills({1, 0, 1, 0, 0, 1});
  made.expectVerified(
      {{0, 2, 2, 6, 6, 6, 9}, {-1, -1, -1, -1, -1, -1}, {0, 0, 0, 0, 0, 0}});
  made.expectPrefilled({{0, 2, 6, 9, 9, 9, 9},
                        {10, 30, 60, -1, -1, -1},
                        {10, 30, 60, -1, -1, -1},
                        {0, 0, 1, 1, 1, 1},
                        {1, 1, 1, 0, 0, 0}});
}

// Starts are cut at T. A sequence that ends behind T is skipped, whosever it
// is, and so are all behind it.
TEST_F(PlanBatch, SequencesPastTheTokens) {
  EngineBatch batch = {{0, 4, 8, 12, 14, 14, 17, 5},
                       {9, 9, 9, 9, 9, 9, 9},
                       {-1, 3, -1, 1, -1, -1, -1},
                       {1, 1, 1, 1, 1, 1, 1},
                       tableOf(7),
                       /*tokens=*/10};
  for (Counts counts : {Counts::ofSlots, Counts::none, Counts::ofAllPending}) {
    const Plan made = plan(batch, counts);
    made.expectPrefills({1, 0, 1, 0, 0, 1, 0});
    made.expectVerified({{0, 4, 8, 10, 10, 10, 10, 10},
                         {-1, 20, -1, -1, -1, -1, -1},
                         {0, 1, 0, 0, 0, 0, 0}});
    made.expectPrefilled({{0, 4, 8, 10, 10, 10, 10, 10},
                          {10, -1, -1, -1, -1, -1, -1},
                          {10, -1, -1, -1, -1, -1, -1},
                          {1, 1, 1, 1, 1, 1, 1},
                          {1, 0, 1, 0, 1, 0, 0}});
    if (counts == Counts::ofAllPending)
      made.expectCommitted(
          {{10, 20, -1, -1, -1, -1, -1}, {1, 1, 0, 0, 0, 0, 0}});
  }
}

// Of verify a sequence has S tokens at most, of prefill as many as it likes.
TEST_F(PlanBatch, VerifiedSequencesLongerThanTheColumns) {
  EngineBatch batch = {{0, 3, 5, 8}, {9, 9, 9},    {2, 1, -1},   {1, 1, 1},
                       tableOf(3),   /*tokens=*/8, /*columns=*/2};
  for (Counts counts : {Counts::ofSlots, Counts::none, Counts::ofAllPending}) {
    const Plan made = plan(batch, counts);
    made.expectPrefills({0, 0, 1});
    made.expectVerified({{0, 3, 5, 8}, {-1, 20, -1}, {0, 1, 0}});
    made.expectPrefilled(
        {{0, 5, 8, 8}, {-1, 30, -1}, {-1, 30, -1}, {1, 1, 1}, {0, 1, 0}});
    if (counts == Counts::ofAllPending)
      made.expectCommitted({{-1, 20, 30}, {0, 1, 1}});
  }
}

// More tokens than the sequence has are an engine's mistake: it is skipped.
TEST_F(PlanBatch, LengthsBelowTheTokens) {
  EngineBatch batch = {{0, 4, 5, 9, 11, 13}, {3, 0, 4, 1, 2},
                       {-1, -1, -1, 1, 1},   {1, 1, 1, 1, 1},
                       tableOf(5),           /*tokens=*/13};
  for (Counts counts : {Counts::ofSlots, Counts::none, Counts::ofAllPending}) {
    const Plan made = plan(batch, counts);
    made.expectPrefills({1, 1, 1, 0, 0});
    made.expectVerified(
        {{0, 4, 5, 9, 11, 13}, {-1, -1, -1, -1, 50}, {0, 0, 0, 0, 1}});
    made.expectPrefilled({{0, 4, 5, 9, 13, 13},
                          {-1, -1, 30, -1, -1},
                          {-1, -1, 30, -1, -1},
                          {0, 0, 0, 1, 1},
                          {1, 1, 1, 0, 0}});
    made.expectNoCommits(); // those that are valid begin
  }
}

// A sequence that goes on by one token is a verify where counts are of slots,
// a first token is a prompt, and drafts make a verify of anything.
TEST_F(PlanBatch, OneToken) {
  EngineBatch batch = {{0, 1, 2, 3}, {6, 1, 1},  {-1, -1, 0},
                       {2, 2, 2},    tableOf(3), /*tokens=*/3};
  const Plan ofSlots = plan(batch);
  ofSlots.expectPrefills({0, 1, 0});
  ofSlots.expectVerified({{0, 1, 2, 3}, {10, -1, 30}, {2, 0, 2}});
  ofSlots.expectPrefilled(
      {{0, 1, 2, 3}, {-1, 20, -1}, {-1, 20, -1}, {1, 0, 1}, {0, 1, 0}});
  ofSlots.expectNoCommits();
  // Otherwise all have one slot, that of the first column.
  for (Counts counts :
       {Counts::none, Counts::ofPrefillsPending, Counts::ofAllPending}) {
    const Plan made = plan(batch, counts);
    const double count = counts == Counts::none ? 1 : 2;
    made.expectPrefills({1, 1, 0});
    made.expectVerified({{0, 1, 2, 3}, {-1, -1, 30}, {0, 0, count}});
    made.expectPrefilled(
        {{0, 1, 2, 3}, {10, 20, -1}, {10, 20, -1}, {1, 0, 1}, {1, 1, 0}});
    if (counts == Counts::none)
      made.expectNoCommits();
    else
      made.expectCommitted({{10, -1, -1}, {2, 0, 0}});
  }
}

// Prompts that go on: the slot of the last accepted token, which the table may
// not have. With a count that is none they are skipped. A prompt that begins
// reads no count.
TEST_F(PlanBatch, CountsOfSlotsOfPrompts) {
  EngineBatch batch = {{0, 2, 4, 6, 8, 10, 12, 14},
                       {9, 9, 9, 9, 9, 2, 2},
                       {-1, -1, -1, -1, -1, -1, -1},
                       {1, 2, 3, 0, 4, -5, 4},
                       tableOf(7),
                       /*tokens=*/14,
                       /*columns=*/3};
  const Plan made = plan(batch);
  made.expectPrefills({1, 1, 1, 1, 1, 1, 1});
  made.expectPrefilled({{0, 2, 4, 6, 8, 10, 12, 14},
                        {10, 21, -1, -1, -1, 60, 70},
                        {10, 20, 30, -1, -1, 60, 70},
                        {1, 1, 1, 1, 1, 0, 0},
                        {1, 1, 1, 1, 1, 1, 1}});
}

// Verified sequences with counts that are none are skipped, even if they
// begin. A count of slots is 1 or more, one of pending tokens may be 0.
TEST_F(PlanBatch, CountsOfVerifiedSequences) {
  EngineBatch batch = {{0, 2, 4, 6, 8, 10, 12, 14},
                       {9, 9, 9, 9, 9, 2, 2},
                       {1, 1, 1, 1, 1, 1, 1},
                       {-1, 0, 1, 2, 3, 3, 2},
                       tableOf(7),
                       /*tokens=*/14,
                       /*columns=*/2};
  const std::vector<double> starts = batch.starts;
  plan(batch).expectVerified(
      {starts, {-1, -1, 30, 40, -1, -1, 70}, {0, 0, 1, 2, 0, 0, 2}});
  plan(batch, Counts::none)
      .expectVerified(
          {starts, {10, 20, 30, 40, 50, 60, 70}, {1, 1, 1, 1, 1, 1, 1}});
  for (Counts counts : {Counts::ofPrefillsPending, Counts::ofAllPending})
    plan(batch, counts)
        .expectVerified(
            {starts, {-1, 20, 30, 40, -1, -1, 70}, {0, 0, 1, 2, 0, 0, 2}});
  // Verify takes pending tokens in by itself, or they are committed.
  plan(batch, Counts::ofPrefillsPending).expectNoCommits();
  plan(batch, Counts::ofAllPending)
      .expectCommitted({{-1, -1, 30, 40, -1, -1, -1}, {0, 0, 1, 2, 0, 0, 0}});
}

// Ahead of all prefills, those that begin included.
TEST_F(PlanBatch, SlotsOfPromptsThatCount) {
  plan({{0, 2, 4, 6}, {9, 9, 2}, {-1, 1, -1}, {1, 2, 3}, tableOf(3), 6, 2},
       Counts::inSlots)
      .expectCommitted({{10, -1, 30}, {1, 0, 0}});
}

// Pending tokens of prompts that go on are committed, whichever sequences
// commit, and the slot is that of the first column.
TEST_F(PlanBatch, PendingTokensOfPrompts) {
  EngineBatch batch = {{0, 2, 4, 6, 8, 10, 12, 14},
                       {9, 9, 9, 9, 9, 2, 2},
                       {-1, -1, -1, -1, -1, -1, -1},
                       {-1, 0, 1, 2, 3, 3, 2},
                       tableOf(7),
                       /*tokens=*/14,
                       /*columns=*/2};
  for (Counts counts : {Counts::ofPrefillsPending, Counts::ofAllPending}) {
    const Plan made = plan(batch, counts);
    made.expectVerified(
        {batch.starts, {-1, -1, -1, -1, -1, -1, -1}, {0, 0, 0, 0, 0, 0, 0}});
    made.expectPrefilled({batch.starts,
                          {-1, 20, 30, 40, -1, 60, 70},
                          {-1, 20, 30, 40, -1, 60, 70},
                          {1, 1, 1, 1, 1, 0, 0},
                          {1, 1, 1, 1, 1, 1, 1}});
    made.expectCommitted({{-1, -1, 30, 40, -1, -1, -1}, {0, 0, 1, 2, 0, 0, 0}});
  }
}

// Sequences without tokens commit nothing, whatever waits for them.
TEST_F(PlanBatch, SequencesWithoutTokensDoNotCommit) {
  EngineBatch batch = {{0, 0, 2, 2}, {9, 9, 9},  {1, -1, -1},
                       {1, 1, 1},    tableOf(3), /*tokens=*/4};
  for (Counts counts : {Counts::ofPrefillsPending, Counts::ofAllPending})
    plan(batch, counts).expectCommitted({{-1, 20, -1}, {0, 1, 0}});
}

// Slots that ops skip are passed on.
TEST_F(PlanBatch, SkippedSlots) {
  EngineBatch batch = {
      {0, 4, 8, 10},           {9, 4, 5},    {-1, -1, 1}, {2, 1, 1},
      {10, -1, 0, 21, -1, 31}, /*tokens=*/10};
  const Plan ofSlots = plan(batch);
  ofSlots.expectVerified({{0, 4, 8, 10}, {-1, -1, -1}, {0, 0, 1}});
  ofSlots.expectPrefilled(
      {{0, 4, 8, 10}, {-1, 0, -1}, {10, 0, -1}, {1, 0, 1}, {1, 1, 0}});
  plan(batch, Counts::ofAllPending).expectCommitted({{10, -1, -1}, {2, 0, 1}});
}

TEST_F(PlanBatch, NoSequences) {
  for (auto [start, end] : {std::pair(-2, 0), {0, 0}, {4, 4}, {7, 5}}) {
    EngineBatch batch = {{double(start)}, {}, {}, {}, {}, /*tokens=*/5};
    const Plan made = plan(batch);
    made.expectPrefills({});
    made.expectVerified({{double(end)}, {}, {}});
    made.expectPrefilled({{double(end)}, {}, {}, {}, {}});
  }
}

// All tokens but those ahead of the first start are padding.
TEST_F(PlanBatch, NoSequenceWithTokens) {
  EngineBatch batch = {{2, 2, 1, 2}, {3, 4, 0},  {-1, 2, -1},
                       {1, 1, 1},    tableOf(3), /*tokens=*/6};
  const Plan made = plan(batch);
  made.expectPrefills({0, 0, 0});
  made.expectVerified({{2, 4, 6, 6}, {-1, -1, -1}, {0, 0, 0}});
  made.expectPrefilled(
      {{2, 6, 6, 6}, {-1, -1, -1}, {-1, -1, -1}, {1, 1, 1}, {0, 0, 0}});
}

// A limit of 0 makes sequences invalid, and a table without columns has no
// slots.
TEST_F(PlanBatch, NothingOfATableOrALimit) {
  EngineBatch batch = {{0, 4, 6}, {9, 9}, {-1, 1}, {1, 1}, {}, /*tokens=*/6};
  const Plan noSlots = plan(batch);
  noSlots.expectVerified({{0, 4, 6}, {-1, -1}, {0, 1}});
  noSlots.expectPrefilled({{0, 4, 6}, {-1, -1}, {-1, -1}, {1, 1}, {1, 0}});
  plan(batch, Counts::ofAllPending).expectCommitted({{-1, -1}, {1, 1}});
  batch.table = tableOf(2);
  batch.columns = 0;
  plan(batch).expectVerified({{0, 4, 6}, {-1, -1}, {0, 0}});
  plan(batch, Counts::none)
      .expectPrefilled({{0, 4, 6}, {10, -1}, {10, -1}, {1, 1}, {1, 0}});
  batch.columns = 4;
  batch.tokens = 0;
  const Plan noTokens = plan(batch);
  noTokens.expectVerified({{0, 0, 0}, {-1, -1}, {0, 0}});
  noTokens.expectPrefilled({{0, 0, 0}, {-1, -1}, {-1, -1}, {1, 1}, {1, 0}});
}

TEST_F(PlanBatch, ShapesThatDisagree) {
  auto errorWith = [&](llvm::ArrayRef<int64_t> sizes) {
    return errorOf(functionOf(Counts::ofSlots),
                   {Tensor::zeros({sizes[0]}), Tensor::zeros({3}),
                    Tensor::zeros({sizes[1], 2}), Tensor::zeros({sizes[2]}),
                    Tensor::zeros({sizes[3]}), int64_t(9), int64_t(4)});
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
