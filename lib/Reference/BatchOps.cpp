// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The list of a batch's sequences of prefill.
#include "Ops.h"

using namespace mlir;
using namespace gdn::reference;

namespace {
/// The lists, filled from their first element on.
struct PrefillList {
  explicit PrefillList(int64_t n)
      : cuSeqlens(Tensor::zeros({n + 1})), slots(Tensor::zeros({n})),
        writeSlots(slots), hasInitial(slots), taken(slots) {
    for (int64_t e = 0; e < n; ++e) {
      slots.data[e] = writeSlots.data[e] = -1;
      hasInitial.data[e] = 1;
    }
  }
  Tensor cuSeqlens, slots, writeSlots, hasInitial, taken;
  int64_t count = 0;
};
} // namespace

LogicalResult gdn::reference::evaluateOp(gdn::PlanBatchOp op,
                                         Environment &env) {
  const Tensor &starts = env.tensor(op.getQueryStartLoc());
  const Tensor &lens = env.tensor(op.getSeqLens());
  const Tensor &table = env.tensor(op.getBlockTable());
  const Tensor &drafts = env.tensor(op.getDrafts());
  const Tensor *accepted = env.optional(op.getAccepted());
  const int64_t n = lens.dim(0), columns = table.dim(1);
  if (failed(expectShape(op, "query_start_loc", starts.shape, {n + 1})) ||
      failed(expectShape(op, "block_table", table.shape, {n, columns})) ||
      failed(expectShape(op, "drafts", drafts.shape, {n})) ||
      (accepted && failed(expectShape(op, "accepted", accepted->shape, {n}))))
    return failure();

  Tensor isPrefill = Tensor::zeros({n});
  PrefillList list(n);
  double end = 0;
  bool isGapOpen = false;
  for (int64_t i = 0; i < n; ++i) {
    const double first = starts.data[i], next = starts.data[i + 1];
    const double tokens = next - first;
    if (tokens <= 0)
      continue;
    end = next;
    const bool isDecode = accepted && tokens == 1 && lens.data[i] > 1;
    const bool isOwn = drafts.data[i] < 0 && !isDecode;
    isPrefill.data[i] = isOwn;
    if (!isOwn && isGapOpen)
      continue;
    isGapOpen = !isOwn;
    const int64_t e = list.count++;
    list.cuSeqlens.data[e] = first;
    list.taken.data[e] = isOwn;
    if (!isOwn)
      continue;
    const bool hasInitial = lens.data[i] > tokens;
    const double count = accepted && hasInitial ? accepted->data[i] : 1;
    list.hasInitial.data[e] = hasInitial;
    if (columns > 0)
      list.writeSlots.data[e] = table.row(i)[0];
    if (lens.data[i] >= tokens && count >= 1 && count <= double(columns))
      list.slots.data[e] = table.row(i)[int64_t(count) - 1];
  }
  for (int64_t e = list.count; e <= n; ++e)
    list.cuSeqlens.data[e] = end;
  Tensor *results[] = {&isPrefill,       &list.cuSeqlens,  &list.slots,
                       &list.writeSlots, &list.hasInitial, &list.taken};
  for (auto [result, tensor] : llvm::zip_equal(op->getResults(), results))
    if (failed(env.defineResult(result, std::move(*tensor))))
      return failure();
  return success();
}
