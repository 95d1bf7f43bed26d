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

/// Sets the tokens of `rows` from `bounds`.
static LogicalResult setBounds(Operation *op, MutableArrayRef<Row> rows,
                               const Tensor &bounds, int64_t tokens) {
  double last = 0;
  for (auto [n, bound] : llvm::enumerate(bounds.data)) {
    if (!(bound >= last))
      return op->emitOpError()
             << "expects 'cu_seqlens' to start at 0 or more and never to fall, "
                "but got "
             << print(bound) << " for element " << n << " after "
             << print(last);
    if (!(bound <= double(tokens)))
      return op->emitOpError()
             << "expects 'cu_seqlens' to stay within T = " << tokens
             << ", but got " << print(bound) << " for element " << n;
    last = bound;
  }
  for (auto [n, row] : llvm::enumerate(rows)) {
    row.begin = int64_t(bounds.data[n]);
    row.end = int64_t(bounds.data[n + 1]);
  }
  return success();
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
  return rows;
}

LogicalResult gdn::reference::expectIndependent(Operation *op,
                                                ArrayRef<Row> rows) {
  llvm::DenseMap<int64_t, int64_t> writers;
  for (auto [n, row] : llvm::enumerate(rows)) {
    if (row.length() == 0 || row.writeSlot < 0)
      continue;
    auto [it, fresh] = writers.try_emplace(row.writeSlot, n);
    if (!fresh)
      return op->emitOpError()
             << "expects every slot to be written by one row, but got slot "
             << row.writeSlot << " for rows " << it->second << " and " << n;
  }
  for (auto [n, row] : llvm::enumerate(rows)) {
    if (row.length() == 0 || !row.live() || row.fromZeros)
      continue;
    auto it = writers.find(row.slot);
    if (it != writers.end() && it->second != int64_t(n))
      return op->emitOpError()
             << "expects no row to read a slot that another writes, but got "
                "slot "
             << row.slot << ", read by row " << n << " and written by row "
             << it->second;
  }
  return success();
}
