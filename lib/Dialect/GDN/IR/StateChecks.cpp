// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots, sequences, checkpoints, token slots and counts; see StateChecks.h.
#include "StateChecks.h"
#include "OpChecks.h"
#include "PendingChecks.h"

using namespace mlir;
using namespace gdn;

LogicalResult gdn::verifySequences(SequenceOpInterface op, NamedSizes &sizes) {
  StringRef count = op.getCuSeqlens() ? "N" : "T";
  if (failed(sizes.agree("slots", op.getSlots().getType(), {count})))
    return failure();
  if (Value bounds = op.getCuSeqlens())
    if (failed(sizes.agree("cu_seqlens", bounds.getType(), {{"N", 1}})))
      return failure();
  auto states = dyn_cast<StateOpInterface>(op.getOperation());
  if (!states)
    return success();
  if (Value slots = states.getWriteSlots())
    if (failed(sizes.agree("write_slots", slots.getType(), {count})))
      return failure();
  if (Value flags = states.getHasInitial())
    return sizes.agree("has_initial", flags.getType(), {count});
  return success();
}

LogicalResult gdn::verifyCheckpoints(StateOpInterface op, NamedSizes &sizes) {
  Value bounds = op.getCuCheckpoints(), tokens = op.getCheckpointTokens(),
        slots = op.getCheckpointSlots();
  if (!bounds && !tokens && !slots)
    return success();
  for (auto [name, operand] :
       {std::pair<StringRef, Value>{"cu_checkpoints", bounds},
        {"checkpoint_tokens", tokens},
        {"checkpoint_slots", slots},
        {"cu_seqlens", op.getCuSeqlens()}})
    if (!operand)
      return op->emitOpError("expects '")
             << name << "' to be given with checkpoints, but got none";
  return failure(
      failed(sizes.agree("cu_checkpoints", bounds.getType(), {{"N", 1}})) ||
      failed(sizes.agree("checkpoint_tokens", tokens.getType(), {"C"})) ||
      failed(sizes.agree("checkpoint_slots", slots.getType(), {"C"})));
}

LogicalResult gdn::verifyTokenPool(StateOpInterface op) {
  auto pool = op.getTokenPool();
  if (!pool)
    return success();
  if (!op.getTokenSlots())
    return op->emitOpError(
        "expects 'token_slots' to be given with 'token_pool', but got none");
  Type want = op.getPool().getType().getElementType(),
       got = pool.getType().getElementType();
  if (got != want)
    return op->emitOpError("expects 'token_pool' to have the element type of "
                           "'pool', ")
           << want << ", but got " << got;
  // Dimension 0 of a pool is dynamic.
  return verifySameShape(op, "pool", op.getPool().getType(), "token_pool",
                         pool.getType());
}

LogicalResult gdn::verifyTokenSlots(StateOpInterface op, NamedSizes &sizes) {
  Value slots = op.getTokenSlots(), parents = op.getParents();
  if (!slots && parents)
    return op->emitOpError(
        "expects 'token_slots' to be given with 'parents', but got none");
  if (!slots)
    return success();
  if (!op.getCuSeqlens())
    return op->emitOpError(
        "expects 'cu_seqlens' to be given with 'token_slots', but got none");
  for (auto [name, operand] :
       {std::pair<StringRef, Value>{"write_slots", op.getWriteSlots()},
        {"checkpoints", op.getCuCheckpoints()}})
    if (operand)
      return op->emitOpError("expects no '")
             << name << "' beside 'token_slots', but got some";
  if (failed(sizes.agree("token_slots", slots.getType(), {"N", "S"})) ||
      (parents &&
       failed(sizes.agree("parents", parents.getType(), {"N", "S"}))))
    return failure();
  return verifySteps(op, sizes);
}

LogicalResult gdn::verifyPendingStates(StateOpInterface op, NamedSizes &sizes) {
  Value accepted = op.getNumAccepted();
  if (accepted && !op.getCuSeqlens())
    return op->emitOpError(
        "expects 'cu_seqlens' to be given with 'num_accepted', but got none");
  for (auto [name, operand] :
       {std::pair<StringRef, Value>{"write_slots", op.getWriteSlots()},
        {"has_initial", op.getHasInitial()},
        {"checkpoints", op.getCuCheckpoints()},
        {"token_slots", op.getTokenSlots()}})
    if (operand)
      return op->emitOpError("expects no '")
             << name << "' beside 'pending', but got some";
  return accepted ? sizes.agree("num_accepted", accepted.getType(), {"N"})
                  : success();
}
