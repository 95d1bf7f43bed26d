// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the launches of a mixed batch read.
#include "Ops.h"

#include <algorithm>

using namespace mlir;
using namespace gdn::reference;

namespace {
/// Elements of results, as the spec names them. Nothing of a batch is written
/// before it is known: first sequences, then what is behind them.
class Plan {
public:
  Plan(gdn::PlanBatchOp op, Environment &env)
      : op(op), countsSlots(op.countsSlots()),
        starts(env.tensor(op.getQueryStartLoc())),
        lens(env.tensor(op.getSeqLens())),
        table(env.tensor(op.getBlockTable())),
        drafts(env.tensor(op.getDrafts())),
        accepted(env.optional(op.getAccepted())),
        tokens(env.index(op.getTokens())), columns(env.index(op.getColumns())),
        n(lens.dim(0)) {}

  LogicalResult checkShapes();
  void make();
  LogicalResult define(Environment &env);

private:
  /// What is said of a sequence.
  struct Sequence {
    double first, length;
    bool isPrefill, begins, isValid;
  };

  Sequence describe(int64_t i, double first, double next) const;
  void addPrefill(int64_t i, const Sequence &s);
  void addGap(double first);
  void sharePadding(int64_t live, double end);

  double limit(double start) const { return std::min(start, tokens); }
  double slotOf(int64_t i, double column) const {
    return column >= 0 && column < double(table.dim(1))
               ? table.row(i)[int64_t(column)]
               : -1;
  }
  static Tensor filled(int64_t size, double value) {
    Tensor made = Tensor::zeros({size});
    std::fill(made.data.begin(), made.data.end(), value);
    return made;
  }

  gdn::PlanBatchOp op;
  const bool countsSlots;
  const Tensor &starts, &lens, &table, &drafts;
  const Tensor *accepted;
  double tokens, columns;
  int64_t n;

  Tensor isPrefill = filled(n, 0);
  Tensor verifyStarts = filled(n + 1, 0), verifySlots = filled(n, -1),
         verifyAccepted = filled(n, 0);
  Tensor prefillStarts = filled(n + 1, 0), slots = filled(n, -1),
         writeSlots = filled(n, -1), hasInitial = filled(n, 1),
         taken = filled(n, 0);
  Tensor commitSlots = filled(n, -1), commitAccepted = filled(n, 0);
  int64_t count = 0; // of elements of prefill
  bool isGapOpen = false;
};
} // namespace

LogicalResult Plan::checkShapes() {
  return failure(
      failed(expectShape(op, "query_start_loc", starts.shape, {n + 1})) ||
      failed(expectShape(op, "block_table", table.shape, {n, table.dim(1)})) ||
      failed(expectShape(op, "drafts", drafts.shape, {n})) ||
      (accepted && failed(expectShape(op, "accepted", accepted->shape, {n}))));
}

Plan::Sequence Plan::describe(int64_t i, double first, double next) const {
  const double length = next - first, all = lens.data[i];
  const bool goesOnByOne = countsSlots && length == 1 && all > 1;
  Sequence s = {first, length, drafts.data[i] < 0 && !goesOnByOne,
                /*begins=*/all == length, /*isValid=*/true};
  const double least = countsSlots ? 1 : 0;
  const bool isCounted =
      !accepted || (accepted->data[i] >= least && accepted->data[i] <= columns);
  s.isValid = all >= length && next <= tokens &&
              (isCounted || (s.isPrefill && s.begins)) &&
              (s.isPrefill || length <= columns);
  return s;
}

void Plan::addGap(double first) {
  if (isGapOpen)
    return;
  isGapOpen = true;
  prefillStarts.data[count++] = limit(first);
}

void Plan::addPrefill(int64_t i, const Sequence &s) {
  isGapOpen = false;
  const int64_t e = count++;
  prefillStarts.data[e] = limit(s.first);
  taken.data[e] = 1;
  hasInitial.data[e] = lens.data[i] > s.length;
  if (!s.isValid)
    return;
  const bool isCounted = countsSlots && !s.begins;
  writeSlots.data[e] = slotOf(i, 0);
  slots.data[e] = slotOf(i, isCounted ? accepted->data[i] - 1 : 0);
}

/// Sequences from `live` on have no tokens but those from `end`.
void Plan::sharePadding(int64_t live, double end) {
  const double sharers = double(n - live);
  const double share = sharers > 0 ? std::ceil((tokens - end) / sharers) : 0;
  for (int64_t i = live; i < n; ++i)
    verifyStarts.data[i] = limit(end + double(i - live) * share);
  const double last = sharers > 0 ? tokens : end;
  verifyStarts.data[n] = last;
  if (last > end)
    addGap(end);
  for (int64_t e = count; e <= n; ++e)
    prefillStarts.data[e] = last;
}

void Plan::make() {
  double next = std::max(0.0, starts.data[0]);
  int64_t live = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double first = next;
    next = std::max(first, starts.data[i + 1]);
    verifyStarts.data[i] = limit(first);
    if (next == first)
      continue;
    live = i + 1;
    const Sequence s = describe(i, first, next);
    isPrefill.data[i] = s.isPrefill;
    if (s.isPrefill)
      addPrefill(i, s);
    else
      addGap(first);
    if (!s.isValid)
      continue;
    if (!s.isPrefill) {
      verifySlots.data[i] = slotOf(i, 0);
      verifyAccepted.data[i] = accepted ? accepted->data[i] : 1;
    }
    const gdn::Commits commits = op.getCommits();
    const double waits =
        commits == gdn::Commits::none || s.begins ? 0 : accepted->data[i];
    if (commits == gdn::Commits::counted
            ? s.isPrefill
            : waits > 0 && (s.isPrefill || commits == gdn::Commits::all)) {
      commitSlots.data[i] = slotOf(i, 0);
      commitAccepted.data[i] = waits;
    }
  }
  sharePadding(live, limit(next));
}

LogicalResult Plan::define(Environment &env) {
  Tensor *results[] = {&isPrefill,      &verifyStarts,  &verifySlots,
                       &verifyAccepted, &prefillStarts, &slots,
                       &writeSlots,     &hasInitial,    &taken,
                       &commitSlots,    &commitAccepted};
  for (auto [result, tensor] : llvm::zip_equal(op->getResults(), results))
    if (failed(env.defineResult(result, std::move(*tensor))))
      return failure();
  return success();
}

LogicalResult gdn::reference::evaluateOp(gdn::PlanBatchOp op,
                                         Environment &env) {
  Plan plan(op, env);
  if (failed(plan.checkShapes()))
    return failure();
  plan.make();
  return plan.define(env);
}
