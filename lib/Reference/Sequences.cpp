// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bounds and slots of sequences, checked.
#include "Sequences.h"

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

/// Sets the tokens of `sequences` from `bounds`.
static LogicalResult setBounds(Operation *op,
                               MutableArrayRef<Sequence> sequences,
                               const Tensor &bounds, int64_t tokens) {
  if (failed(checkBounds(op, "cu_seqlens", bounds, "T", tokens)))
    return failure();
  for (auto [n, sequence] : llvm::enumerate(sequences)) {
    sequence.begin = int64_t(bounds.data[n]);
    sequence.end = int64_t(bounds.data[n + 1]);
  }
  return success();
}

/// Sets the checkpoints of live sequences: those after a multiple of 64 tokens
/// that the sequence has, more than at the one before, whose slot is not
/// skipped.
static LogicalResult setCheckpoints(Operation *op,
                                    MutableArrayRef<Sequence> sequences,
                                    const Pool &pool,
                                    const SequenceOperands &operands) {
  const Tensor &bounds = *operands.checkpointBounds;
  const Tensor &tokens = *operands.checkpointTokens;
  const int64_t count = tokens.dim(0);
  if (failed(expectShape(op, "cu_checkpoints", bounds.shape,
                         {int64_t(sequences.size()) + 1})) ||
      failed(expectShape(op, "checkpoint_slots",
                         operands.checkpointSlots->shape, {count})) ||
      failed(checkBounds(op, "cu_checkpoints", bounds, "C", count)))
    return failure();
  for (auto [n, sequence] : llvm::enumerate(sequences)) {
    if (!sequence.live())
      continue;
    double last = 0;
    for (auto c = int64_t(bounds.data[n]); c < int64_t(bounds.data[n + 1]);
         ++c) {
      const double after = tokens.data[c];
      if (!(after > last && after <= double(sequence.length())) ||
          int64_t(after) % 64 != 0)
        continue;
      last = after;
      const double slot = operands.checkpointSlots->data[c];
      if (!pool.skips(slot))
        sequence.checkpoints.push_back({int64_t(after), int64_t(slot)});
    }
  }
  return success();
}

/// Sets the slots of the states after the tokens of live sequences, which then
/// write no last state.
static LogicalResult setTokenSlots(Operation *op,
                                   MutableArrayRef<Sequence> sequences,
                                   const Pool &pool, const Tensor &slots) {
  if (failed(expectShape(op, "token_slots", slots.shape,
                         {int64_t(sequences.size()), -1})))
    return failure();
  for (auto [n, sequence] : llvm::enumerate(sequences)) {
    sequence.writeSlot = -1;
    sequence.tokenSlots.assign(sequence.length(), -1);
    const int64_t steps = std::min(sequence.length(), slots.dim(1));
    for (int64_t t = 0; sequence.live() && t < steps; ++t)
      if (const double slot = slots.row(n)[t]; !pool.skips(slot))
        sequence.tokenSlots[t] = int64_t(slot);
  }
  return success();
}

/// Sets from which token's state each token of a sequence starts. A parent that
/// does not come before its token, or whose state is not kept, is none.
static LogicalResult setParents(Operation *op,
                                MutableArrayRef<Sequence> sequences,
                                const Tensor &slots, const Tensor &parents) {
  if (failed(expectShape(op, "parents", parents.shape, slots.shape)))
    return failure();
  for (auto [n, sequence] : llvm::enumerate(sequences)) {
    sequence.parents.assign(sequence.length(), -1);
    const int64_t steps = std::min(sequence.length(), slots.dim(1));
    for (int64_t t = 0; t < steps; ++t)
      if (const double parent = parents.row(n)[t];
          parent >= 0 && parent < double(t) &&
          sequence.tokenSlots[int64_t(parent)] >= 0)
        sequence.parents[t] = int64_t(parent);
  }
  return success();
}

std::optional<int64_t> gdn::reference::acceptedOf(double count, int64_t steps) {
  if (!(count >= 0 && count <= double(steps)))
    return std::nullopt;
  return int64_t(count);
}

/// Sets how many pending tokens sequences accept, and skips sequences whose
/// count is none or whose pending tokens have no slot.
static LogicalResult setAccepted(Operation *op,
                                 MutableArrayRef<Sequence> sequences,
                                 const SequenceOperands &operands) {
  if (operands.accepted &&
      failed(expectShape(op, "num_accepted", operands.accepted->shape,
                         {int64_t(sequences.size())})))
    return failure();
  for (auto [n, sequence] : llvm::enumerate(sequences)) {
    std::optional<int64_t> count = 0;
    if (operands.accepted)
      count = acceptedOf(operands.accepted->data[n], operands.steps);
    sequence.accepted = count.value_or(0);
    const auto slot = double(sequence.slot);
    if (!count || llvm::any_of(operands.pendingPools, [slot](const Pool *pool) {
          return pool->skips(slot);
        }))
      sequence.slot = sequence.writeSlot = -1;
  }
  return success();
}

SmallVector<int64_t> Sequence::written() const {
  SmallVector<int64_t> slots(tokenSlots);
  slots.push_back(length() > 0 ? writeSlot : -1);
  llvm::erase_if(slots, [](int64_t slot) { return slot < 0; });
  return slots;
}

FailureOr<SmallVector<Sequence>>
gdn::reference::makeSequences(Operation *op, int64_t tokens, const Pool &pool,
                              const SequenceOperands &operands) {
  const Tensor &slots = *operands.slots;
  const int64_t count = slots.dim(0);
  SmallVector<Sequence> sequences(count);

  if (operands.bounds) {
    if (failed(expectShape(op, "cu_seqlens", operands.bounds->shape,
                           {count + 1})) ||
        failed(setBounds(op, sequences, *operands.bounds, tokens)))
      return failure();
  } else {
    if (failed(expectShape(op, "slots", slots.shape, {tokens})))
      return failure();
    for (auto [n, sequence] : llvm::enumerate(sequences)) {
      sequence.begin = n;
      sequence.end = n + 1;
    }
  }

  for (auto [n, sequence] : llvm::enumerate(sequences))
    sequence.slot = pool.skips(slots.data[n]) ? -1 : int64_t(slots.data[n]);
  const Tensor &writes = operands.writeSlots ? *operands.writeSlots : slots;
  if (failed(expectShape(op, "write_slots", writes.shape, {count})))
    return failure();
  for (auto [n, sequence] : llvm::enumerate(sequences))
    sequence.writeSlot = !sequence.live() || pool.skips(writes.data[n])
                             ? -1
                             : int64_t(writes.data[n]);
  if (const Tensor *flags = operands.hasInitial) {
    if (failed(expectShape(op, "has_initial", flags->shape, {count})))
      return failure();
    for (auto [n, sequence] : llvm::enumerate(sequences))
      sequence.fromZeros = flags->data[n] == 0;
  }
  if ((operands.accepted || !operands.pendingPools.empty()) &&
      failed(setAccepted(op, sequences, operands)))
    return failure();
  if (operands.checkpointBounds &&
      failed(setCheckpoints(op, sequences, pool, operands)))
    return failure();
  if (operands.tokenSlots &&
      failed(setTokenSlots(op, sequences,
                           operands.tokenPool ? *operands.tokenPool : pool,
                           *operands.tokenSlots)))
    return failure();
  for (Sequence &sequence : sequences)
    sequence.writesElsewhere = operands.tokenPool != nullptr;
  if (operands.parents && failed(setParents(op, sequences, *operands.tokenSlots,
                                            *operands.parents)))
    return failure();
  return sequences;
}

/// Fails if the slot of a checkpoint is that of another, or one that a sequence
/// with tokens reads or writes; `writers` has the sequence that writes each
/// slot.
static LogicalResult expectOwnSlots(Operation *op, ArrayRef<Sequence> sequences,
                                    llvm::DenseMap<int64_t, int64_t> &writers) {
  for (auto [n, sequence] : llvm::enumerate(sequences))
    if (sequence.length() > 0 && sequence.live() && !sequence.fromZeros)
      writers.try_emplace(sequence.slot, n);
  for (auto [n, sequence] : llvm::enumerate(sequences))
    for (const Checkpoint &checkpoint : sequence.checkpoints) {
      auto [it, fresh] = writers.try_emplace(checkpoint.slot, n);
      if (!fresh)
        return op->emitOpError()
               << "expects the slot of a checkpoint to be that of nothing "
                  "else, but got slot "
               << checkpoint.slot << " for a checkpoint of sequence " << n
               << " and for sequence " << it->second;
    }
  return success();
}

LogicalResult gdn::reference::expectIndependent(Operation *op,
                                                ArrayRef<Sequence> sequences) {
  llvm::DenseMap<int64_t, int64_t> writers;
  for (auto [n, sequence] : llvm::enumerate(sequences))
    for (int64_t slot : sequence.written()) {
      auto [it, fresh] = writers.try_emplace(slot, n);
      if (fresh)
        continue;
      if (it->second == int64_t(n))
        return op->emitOpError() << "expects every slot to be written once, "
                                    "but got slot "
                                 << slot << " for two tokens of sequence " << n;
      return op->emitOpError()
             << "expects every slot to be written by one sequence, but got "
                "slot "
             << slot << " for sequences " << it->second << " and " << n;
    }
  for (auto [n, sequence] : llvm::enumerate(sequences)) {
    if (sequence.length() == 0 || !sequence.live() || sequence.fromZeros ||
        sequence.writesElsewhere)
      continue;
    auto it = writers.find(sequence.slot);
    if (it != writers.end() && it->second == int64_t(n) &&
        !sequence.parents.empty())
      return op->emitOpError()
             << "expects a sequence with parents to write another "
                "slot than it reads, but got slot "
             << sequence.slot << " for sequence " << n;
    if (it != writers.end() && it->second != int64_t(n))
      return op->emitOpError() << "expects no sequence to read a slot that "
                                  "another writes, but got "
                                  "slot "
                               << sequence.slot << ", read by sequence " << n
                               << " and written by sequence " << it->second;
  }
  return expectOwnSlots(op, sequences, writers);
}

FailureOr<SmallVector<Commit>>
gdn::reference::makeCommits(Operation *op, ArrayRef<const Pool *> pools,
                            const Tensor &slots, const Tensor *accepted,
                            int64_t steps, bool areCounted) {
  if (accepted &&
      failed(expectShape(op, "num_accepted", accepted->shape, slots.shape)))
    return failure();
  SmallVector<Commit> commits;
  llvm::DenseMap<int64_t, int64_t> writers;
  for (int64_t n = 0; n < slots.dim(0); ++n) {
    const double id = slots.data[n];
    const std::optional<int64_t> count =
        accepted ? acceptedOf(accepted->data[n], steps) : 0;
    if (!count || (*count == 0 && !areCounted) ||
        llvm::any_of(pools, [&](const Pool *pool) { return pool->skips(id); }))
      continue;
    auto [it, fresh] = writers.try_emplace(int64_t(id), n);
    if (!fresh)
      return op->emitOpError()
             << "expects every slot to be written by one sequence, but got "
                "slot "
             << it->first << " for sequences " << it->second << " and " << n;
    commits.push_back({int64_t(id), *count});
  }
  return commits;
}
