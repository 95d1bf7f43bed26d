// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that move states in and out of pools, or choose slots, and the mask that
// follows slots.
#include "Ops.h"
#include "Sequences.h"

#include "mlir/IR/Diagnostics.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace gdn::reference;

/// -1 in `slots` for sequences of more tokens than the op takes.
template <typename OpTy>
static LogicalResult skipLongSequences(OpTy op, Environment &env,
                                       Tensor &slots) {
  const Tensor *bounds = env.optional(op.getCuSeqlens());
  if (!bounds)
    return success();
  if (failed(expectShape(op, "cu_seqlens", bounds->shape, {slots.dim(0) + 1})))
    return failure();
  for (int64_t n = 0; n < slots.dim(0); ++n)
    if (bounds->data[n + 1] - bounds->data[n] > double(*op.getMaxTokens()))
      slots.data[n] = -1;
  return success();
}

LogicalResult gdn::reference::evaluateOp(gdn::AcceptedSlotsOp op,
                                         Environment &env) {
  const Tensor &slots = env.tensor(op.getTokenSlots());
  const Tensor &accepted = env.tensor(op.getNumAccepted());
  if (failed(expectShape(op, "num_accepted", accepted.shape, {slots.dim(0)})))
    return failure();
  Tensor result = Tensor::zeros({slots.dim(0)});
  for (int64_t n = 0; n < slots.dim(0); ++n) {
    const double count = accepted.data[n];
    const bool isStep = count >= 1 && count <= double(slots.dim(1));
    result.data[n] = isStep ? slots.row(n)[int64_t(count) - 1] : -1;
  }
  if (failed(skipLongSequences(op, env, result)))
    return failure();
  return env.defineResult(op->getResult(0), std::move(result));
}

LogicalResult gdn::reference::evaluateOp(gdn::CountedSlotsOp op,
                                         Environment &env) {
  Tensor result = env.tensor(op.getSlots());
  const Tensor &accepted = env.tensor(op.getNumAccepted());
  if (failed(expectShape(op, "num_accepted", accepted.shape, result.shape)))
    return failure();
  for (auto [slot, count] : llvm::zip(result.data, accepted.data))
    if (!acceptedOf(count, env.index(op.getSteps())))
      slot = -1;
  if (failed(skipLongSequences(op, env, result)))
    return failure();
  return env.defineResult(op->getResult(0), std::move(result));
}

LogicalResult gdn::reference::evaluateOp(gdn::TakenSlotsOp op,
                                         Environment &env) {
  Tensor result = env.tensor(op.getSlots());
  const Tensor &flags = env.tensor(op.getFlags());
  if (failed(expectShape(op, "flags", flags.shape, result.shape)))
    return failure();
  for (auto [slot, flag] : llvm::zip(result.data, flags.data))
    if ((flag != 0) == op.getNegated())
      slot = -1;
  return env.defineResult(op->getResult(0), std::move(result));
}

LogicalResult gdn::reference::evaluateOp(gdn::MaskSequencesOp op,
                                         Environment &env) {
  const Tensor &input = env.tensor(op.getInput());
  FailureOr<SmallVector<Sequence>> sequences = makeSequences(
      op, input.dim(0), env.pool(op.getPool()),
      {&env.tensor(op.getSlots()), env.optional(op.getCuSeqlens())});
  if (failed(sequences))
    return failure();
  Tensor result = Tensor::zeros(input.shape);
  for (const Sequence &sequence : *sequences)
    if (sequence.live())
      for (int64_t t = sequence.begin; t < sequence.end; ++t)
        llvm::copy(input.row(t), result.row(t).begin());
  return env.defineResult(op->getResult(0), std::move(result));
}

LogicalResult gdn::reference::evaluateOp(gdn::PoolReadOp op, Environment &env) {
  const Pool &pool = env.pool(op.getPool());
  const Tensor &slots = env.tensor(op.getSlots());
  SmallVector<int64_t> shape = pool.data.shape;
  shape[0] = slots.dim(0);
  Tensor result = Tensor::zeros(shape);
  for (int64_t n = 0; n < slots.dim(0); ++n)
    if (!pool.skips(slots.data[n]))
      llvm::copy(pool.data.row(int64_t(slots.data[n])), result.row(n).begin());
  return env.defineResult(op->getResult(0), std::move(result));
}

/// The sequence that writes each slot; fails at `op` if two write one. Sequence
/// `n` writes `slots[n]` if `isLive(n)`.
static FailureOr<llvm::DenseMap<int64_t, int64_t>>
findWriters(Operation *op, const Tensor &slots,
            llvm::function_ref<bool(int64_t)> isLive) {
  llvm::DenseMap<int64_t, int64_t> writers;
  for (int64_t n = 0; n < slots.dim(0); ++n) {
    if (!isLive(n))
      continue;
    auto [it, fresh] = writers.try_emplace(int64_t(slots.data[n]), n);
    if (!fresh)
      return op->emitOpError()
             << "expects every slot to be written by one sequence, but got "
                "slot "
             << it->first << " for sequences " << it->second << " and " << n;
  }
  return writers;
}

LogicalResult gdn::reference::evaluateOp(gdn::PoolWriteOp op,
                                         Environment &env) {
  Pool &pool = env.pool(op.getPool());
  const Tensor &slots = env.tensor(op.getSlots());
  const Tensor &value = env.tensor(op.getValue());
  SmallVector<int64_t> shape = pool.data.shape;
  shape[0] = slots.dim(0);
  if (failed(expectShape(op, "value", value.shape, shape)))
    return failure();
  auto writers = findWriters(
      op, slots, [&](int64_t n) { return !pool.skips(slots.data[n]); });
  if (failed(writers))
    return failure();
  for (auto [slot, n] : *writers)
    llvm::copy(value.row(n), pool.data.row(slot).begin());
  return success();
}

LogicalResult gdn::reference::evaluateOp(gdn::PoolCopyOp op, Environment &env) {
  const Pool &source = env.pool(op.getSource());
  Pool &target = env.pool(op.getTarget());
  const Tensor &slots = env.tensor(op.getSlots());
  const Tensor &writeSlots = env.tensor(op.getWriteSlots());
  SmallVector<int64_t> shape = source.data.shape;
  shape[0] = target.data.shape[0];
  if (failed(expectShape(op, "target", target.data.shape, shape)) ||
      failed(expectShape(op, "write_slots", writeSlots.shape, {slots.dim(0)})))
    return failure();
  auto isLive = [&](int64_t n) {
    return !source.skips(slots.data[n]) && !target.skips(writeSlots.data[n]);
  };
  auto writers = findWriters(op, writeSlots, isLive);
  if (failed(writers))
    return failure();
  for (int64_t n = 0; n < slots.dim(0); ++n) {
    if (!isLive(n))
      continue;
    auto writer = writers->find(int64_t(slots.data[n]));
    if (&source == &target && writer != writers->end() && writer->second != n)
      return op.emitOpError() << "expects no sequence to read a slot that "
                                 "another one writes, but "
                                 "got slot "
                              << writer->first << " for sequences " << n
                              << " and " << writer->second;
    llvm::copy(source.data.row(int64_t(slots.data[n])),
               target.data.row(int64_t(writeSlots.data[n])).begin());
  }
  return success();
}

LogicalResult gdn::reference::evaluateOp(gdn::PoolZeroOp op, Environment &env) {
  Pool &pool = env.pool(op.getPool());
  const Tensor &slots = env.tensor(op.getSlots());
  auto writers = findWriters(
      op, slots, [&](int64_t n) { return !pool.skips(slots.data[n]); });
  if (failed(writers))
    return failure();
  for (auto [slot, n] : *writers)
    llvm::fill(pool.data.row(slot), 0.0);
  return success();
}
