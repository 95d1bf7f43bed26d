// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row bounds and slots, checked.
#include "Rows.h"

#include "mlir/IR/Diagnostics.h"

#include "llvm/ADT/DenseMap.h"

#include <cmath>

using namespace mlir;
using namespace gdn::reference;

/// An integer that may be out of range or, out of an odd caller, none at all.
static std::string print(double value) {
  return std::abs(value) < 0x1p53 ? std::to_string(int64_t(value))
                                  : std::to_string(value);
}

/// Checks bounds of parts of what `size` counts, whose end is `end`.
static LogicalResult checkBounds(Operation *op, StringRef name,
                                 const Tensor &bounds, StringRef size,
                                 int64_t end) {
  double last = 0;
  for (auto [n, bound] : llvm::enumerate(bounds.data)) {
    if (!(bound >= last))
      return op->emitOpError()
             << "expects '" << name
             << "' to start at 0 or more and never to fall, but got "
             << print(bound) << " for element " << n << " after "
             << print(last);
    if (!(bound <= double(end)))
      return op->emitOpError()
             << "expects '" << name << "' to stay within " << size << " = "
             << end << ", but got " << print(bound) << " for element " << n;
    last = bound;
  }
  return success();
}

/// Sets the tokens of `rows` from `bounds`.
static LogicalResult setBounds(Operation *op, MutableArrayRef<Row> rows,
                               const Tensor &bounds, int64_t tokens) {
  if (failed(checkBounds(op, "cu_seqlens", bounds, "T", tokens)))
    return failure();
  for (auto [n, row] : llvm::enumerate(rows)) {
    row.begin = int64_t(bounds.data[n]);
    row.end = int64_t(bounds.data[n + 1]);
  }
  return success();
}

/// Sets the checkpoints of live rows: those after a multiple of 64 tokens that
/// the row has, more than at the one before, whose slot is not skipped.
static LogicalResult setCheckpoints(Operation *op, MutableArrayRef<Row> rows,
                                    const Pool &pool,
                                    const RowOperands &operands) {
  const Tensor &bounds = *operands.checkpointBounds;
  const Tensor &tokens = *operands.checkpointTokens;
  const int64_t count = tokens.dim(0);
  if (failed(expectShape(op, "cu_checkpoints", bounds.shape,
                         {int64_t(rows.size()) + 1})) ||
      failed(expectShape(op, "checkpoint_slots",
                         operands.checkpointSlots->shape, {count})) ||
      failed(checkBounds(op, "cu_checkpoints", bounds, "C", count)))
    return failure();
  for (auto [n, row] : llvm::enumerate(rows)) {
    if (!row.live())
      continue;
    double last = 0;
    for (auto c = int64_t(bounds.data[n]); c < int64_t(bounds.data[n + 1]);
         ++c) {
      const double after = tokens.data[c];
      if (!(after > last && after <= double(row.length())) ||
          int64_t(after) % 64 != 0)
        continue;
      last = after;
      const double slot = operands.checkpointSlots->data[c];
      if (!pool.skips(slot))
        row.checkpoints.push_back({int64_t(after), int64_t(slot)});
    }
  }
  return success();
}

/// Sets the slots of the states after the tokens of live rows, which then write
/// no last state.
static LogicalResult setTokenSlots(Operation *op, MutableArrayRef<Row> rows,
                                   const Pool &pool, const Tensor &slots) {
  if (failed(expectShape(op, "token_slots", slots.shape,
                         {int64_t(rows.size()), -1})))
    return failure();
  for (auto [n, row] : llvm::enumerate(rows)) {
    row.writeSlot = -1;
    row.tokenSlots.assign(row.length(), -1);
    const int64_t steps = std::min(row.length(), slots.dim(1));
    for (int64_t t = 0; row.live() && t < steps; ++t)
      if (const double slot = slots.row(n)[t]; !pool.skips(slot))
        row.tokenSlots[t] = int64_t(slot);
  }
  return success();
}

/// Sets from which token's state each token of a row starts. A parent that does
/// not come before its token, or whose state is not kept, is none.
static LogicalResult setParents(Operation *op, MutableArrayRef<Row> rows,
                                const Tensor &slots, const Tensor &parents) {
  if (failed(expectShape(op, "parents", parents.shape, slots.shape)))
    return failure();
  for (auto [n, row] : llvm::enumerate(rows)) {
    row.parents.assign(row.length(), -1);
    const int64_t steps = std::min(row.length(), slots.dim(1));
    for (int64_t t = 0; t < steps; ++t)
      if (const double parent = parents.row(n)[t];
          parent >= 0 && parent < double(t) &&
          row.tokenSlots[int64_t(parent)] >= 0)
        row.parents[t] = int64_t(parent);
  }
  return success();
}

std::optional<int64_t> gdn::reference::acceptedOf(double count, int64_t steps) {
  if (!(count >= 0 && count <= double(steps)))
    return std::nullopt;
  return int64_t(count);
}

/// Sets how many pending tokens rows accept, and skips rows whose count is none
/// or whose pending tokens have no slot.
static LogicalResult setAccepted(Operation *op, MutableArrayRef<Row> rows,
                                 const RowOperands &operands) {
  if (failed(expectShape(op, "num_accepted", operands.accepted->shape,
                         {int64_t(rows.size())})))
    return failure();
  for (auto [n, row] : llvm::enumerate(rows)) {
    std::optional<int64_t> count =
        acceptedOf(operands.accepted->data[n], operands.steps);
    row.accepted = count.value_or(0);
    const auto slot = double(row.slot);
    if (!count || llvm::any_of(operands.pendingPools, [slot](const Pool *pool) {
          return pool->skips(slot);
        }))
      row.slot = row.writeSlot = -1;
  }
  return success();
}

SmallVector<int64_t> Row::written() const {
  SmallVector<int64_t> slots(tokenSlots);
  slots.push_back(length() > 0 ? writeSlot : -1);
  llvm::erase_if(slots, [](int64_t slot) { return slot < 0; });
  return slots;
}

FailureOr<SmallVector<Row>>
gdn::reference::makeRows(Operation *op, int64_t tokens, const Pool &pool,
                         const RowOperands &operands) {
  const Tensor &slots = *operands.slots;
  const int64_t count = slots.dim(0);
  SmallVector<Row> rows(count);

  if (operands.bounds) {
    if (failed(expectShape(op, "cu_seqlens", operands.bounds->shape,
                           {count + 1})) ||
        failed(setBounds(op, rows, *operands.bounds, tokens)))
      return failure();
  } else {
    if (failed(expectShape(op, "slots", slots.shape, {tokens})))
      return failure();
    for (auto [n, row] : llvm::enumerate(rows)) {
      row.begin = n;
      row.end = n + 1;
    }
  }

  for (auto [n, row] : llvm::enumerate(rows))
    row.slot = pool.skips(slots.data[n]) ? -1 : int64_t(slots.data[n]);
  const Tensor &writes = operands.writeSlots ? *operands.writeSlots : slots;
  if (failed(expectShape(op, "write_slots", writes.shape, {count})))
    return failure();
  for (auto [n, row] : llvm::enumerate(rows))
    row.writeSlot = !row.live() || pool.skips(writes.data[n])
                        ? -1
                        : int64_t(writes.data[n]);
  if (const Tensor *flags = operands.hasInitial) {
    if (failed(expectShape(op, "has_initial", flags->shape, {count})))
      return failure();
    for (auto [n, row] : llvm::enumerate(rows))
      row.fromZeros = flags->data[n] == 0;
  }
  if (operands.accepted && failed(setAccepted(op, rows, operands)))
    return failure();
  if (operands.checkpointBounds &&
      failed(setCheckpoints(op, rows, pool, operands)))
    return failure();
  if (operands.tokenSlots &&
      failed(setTokenSlots(op, rows,
                           operands.tokenPool ? *operands.tokenPool : pool,
                           *operands.tokenSlots)))
    return failure();
  for (Row &row : rows)
    row.writesElsewhere = operands.tokenPool != nullptr;
  if (operands.parents &&
      failed(setParents(op, rows, *operands.tokenSlots, *operands.parents)))
    return failure();
  return rows;
}

/// Fails if the slot of a checkpoint is that of another, or one that a row with
/// tokens reads or writes; `writers` has the row that writes each slot.
static LogicalResult expectOwnSlots(Operation *op, ArrayRef<Row> rows,
                                    llvm::DenseMap<int64_t, int64_t> &writers) {
  for (auto [n, row] : llvm::enumerate(rows))
    if (row.length() > 0 && row.live() && !row.fromZeros)
      writers.try_emplace(row.slot, n);
  for (auto [n, row] : llvm::enumerate(rows))
    for (const Checkpoint &checkpoint : row.checkpoints) {
      auto [it, fresh] = writers.try_emplace(checkpoint.slot, n);
      if (!fresh)
        return op->emitOpError()
               << "expects the slot of a checkpoint to be that of nothing "
                  "else, but got slot "
               << checkpoint.slot << " for a checkpoint of row " << n
               << " and for row " << it->second;
    }
  return success();
}

LogicalResult gdn::reference::expectIndependent(Operation *op,
                                                ArrayRef<Row> rows) {
  llvm::DenseMap<int64_t, int64_t> writers;
  for (auto [n, row] : llvm::enumerate(rows))
    for (int64_t slot : row.written()) {
      auto [it, fresh] = writers.try_emplace(slot, n);
      if (fresh)
        continue;
      if (it->second == int64_t(n))
        return op->emitOpError() << "expects every slot to be written once, "
                                    "but got slot "
                                 << slot << " for two tokens of row " << n;
      return op->emitOpError()
             << "expects every slot to be written by one row, but got slot "
             << slot << " for rows " << it->second << " and " << n;
    }
  for (auto [n, row] : llvm::enumerate(rows)) {
    if (row.length() == 0 || !row.live() || row.fromZeros ||
        row.writesElsewhere)
      continue;
    auto it = writers.find(row.slot);
    if (it != writers.end() && it->second == int64_t(n) && !row.parents.empty())
      return op->emitOpError() << "expects a row with parents to write another "
                                  "slot than it reads, but got slot "
                               << row.slot << " for row " << n;
    if (it != writers.end() && it->second != int64_t(n))
      return op->emitOpError()
             << "expects no row to read a slot that another writes, but got "
                "slot "
             << row.slot << ", read by row " << n << " and written by row "
             << it->second;
  }
  return expectOwnSlots(op, rows, writers);
}

FailureOr<SmallVector<Commit>>
gdn::reference::makeCommits(Operation *op, ArrayRef<const Pool *> pools,
                            const Tensor &slots, const Tensor &accepted,
                            int64_t steps) {
  if (failed(expectShape(op, "num_accepted", accepted.shape, slots.shape)))
    return failure();
  SmallVector<Commit> commits;
  llvm::DenseMap<int64_t, int64_t> writers;
  for (int64_t n = 0; n < slots.dim(0); ++n) {
    const double id = slots.data[n];
    const int64_t count = acceptedOf(accepted.data[n], steps).value_or(0);
    if (count == 0 ||
        llvm::any_of(pools, [&](const Pool *pool) { return pool->skips(id); }))
      continue;
    auto [it, fresh] = writers.try_emplace(int64_t(id), n);
    if (!fresh)
      return op->emitOpError()
             << "expects every slot to be written by one row, but got slot "
             << it->first << " for rows " << it->second << " and " << n;
    commits.push_back({int64_t(id), count});
  }
  return commits;
}
