// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading a gdn.kernel: its recurrence, sequences, pools, carried tiles and
// results.
#include "Program/KernelOperands.h"

using namespace mlir;
using namespace gdn;

/// More tokens than any sequence has. A kernel adds a bound to the first token
/// of a sequence, which is not to overflow.
constexpr int64_t kMostTokens = int64_t{1} << 48;

/// Everything that `value` is computed from, head by head, has its heads.
void KernelOperands::markKeyHeads(Value value) {
  keyHeaded.insert(value);
  Operation *op = value.getDefiningOp();
  if (auto conv = dyn_cast_or_null<Conv1dOp>(op))
    markKeyHeads(conv.getInputs()[cast<OpResult>(value).getResultNumber()]);
  else if (isa_and_nonnull<L2NormOp, CastOp, MaskSequencesOp>(op))
    markKeyHeads(op->getOperand(0));
}

/// Takes the sequences of the first op that has some; others must agree.
LogicalResult KernelOperands::takeSequences(SequenceOpInterface op) {
  pools.push_back(op.getPool());
  if (auto states = dyn_cast<StateOpInterface>(op.getOperation()))
    for (Value plane :
         {Value(states.getStateScales()), Value(states.getStateLow())})
      if (plane)
        pools.push_back(plane);
  if (!sequencesOp) {
    sequencesOp = op;
    slots = op.getSlots();
    cuSeqlens = op.getCuSeqlens();
    return success();
  }
  if (slots == op.getSlots() && cuSeqlens == op.getCuSeqlens())
    return success();
  InFlightDiagnostic diag = op->emitOpError(
      "expects the slots and sequences of the other ops in its kernel");
  diag.attachNote(sequencesOp->getLoc()) << "other op";
  return diag;
}

CheckpointOperands CheckpointOperands::of(StateOpInterface op) {
  return {op.getCuCheckpoints(), op.getCheckpointTokens(),
          op.getCheckpointSlots()};
}

/// Takes the checkpoints of the first op that has some; others have the same
/// or none: one recurrence over the sequence's tokens serves all.
LogicalResult KernelOperands::takeCheckpoints(StateOpInterface op) {
  CheckpointOperands own = CheckpointOperands::of(op);
  if (!own || own == checkpoints)
    return success();
  if (!checkpoints && !tokenSlots) {
    checkpoints = own;
    checkpointsOp = op;
    return success();
  }
  InFlightDiagnostic diag = op->emitOpError(
      tokenSlots ? "expects no checkpoints beside 'token_slots' in its kernel"
                 : "expects the checkpoints of the other ops in its kernel");
  diag.attachNote((tokenSlots ? tokenSlotsOp : checkpointsOp)->getLoc())
      << "other op";
  return diag;
}

/// Takes the bound of the tokens of a sequence where states after tokens have
/// slots.
LogicalResult KernelOperands::takeBound(Value of) {
  auto accepted = of.getDefiningOp<AcceptedSlotsOp>();
  if (!accepted || !accepted.getCuSeqlens())
    return success();
  if (accepted.getCuSeqlens() != cuSeqlens)
    return sequencesOp->emitOpError(
        "expects the sequences whose tokens "
        "gdn.accepted_slots counts to be its own on "
        "the way to tiles");
  maxTokens = std::min<int64_t>(*accepted.getMaxTokens(), kMostTokens);
  return success();
}

/// Takes the count of pending tokens, which all ops with states have or none:
/// the sequence is skipped in all of them where it is no count.
LogicalResult KernelOperands::takePending() {
  for (const Carry &carry : carries)
    if (Value own = carry.states().getNumAccepted())
      numAccepted = own;
  if (isDeferred() && cuSeqlens && !numAccepted)
    return rule->emitOpError("has no tile program with sequences of several "
                             "tokens ('sequences') and with tokens that are "
                             "pending over several steps ('counts'), unless "
                             "the next step accepts some ('accepted')");
  Value of = slots;
  if (of)
    taken = of.getDefiningOp<TakenSlotsOp>();
  if (taken)
    of = taken.getSlots();
  if (taken && !cuSeqlens)
    return sequencesOp->emitOpError("expects 'cu_seqlens' beside slots of "
                                    "gdn.taken_slots on the way to tiles");
  if (!numAccepted)
    return of ? takeBound(of) : success();
  for (const Carry &carry : carries)
    if (carry.states().getNumAccepted() != numAccepted)
      return carry.op->emitOpError("expects the pending tokens of the other "
                                   "ops in its kernel");
  auto counted = of.getDefiningOp<CountedSlotsOp>();
  if (!counted || counted.getNumAccepted() != numAccepted)
    return sequencesOp->emitOpError("expects its slots to be those that "
                                    "gdn.counted_slots gives for the same "
                                    "'num_accepted' on the way to tiles");
  if (counted.getCuSeqlens() && counted.getCuSeqlens() != cuSeqlens)
    return sequencesOp->emitOpError(
        "expects the sequences whose tokens "
        "gdn.counted_slots counts to be its own on the "
        "way to tiles");
  maxTokens =
      std::min<int64_t>(counted.getMaxTokens().value_or(0), kMostTokens);
  return success();
}

/// Takes the token slots of the first op that has some; others have the same or
/// none. A tree of tokens is that of all ops with states.
LogicalResult KernelOperands::takeTokenSlots(StateOpInterface op) {
  Value own = op.getTokenSlots();
  if (!own || (own == tokenSlots && op.getParents() == parents))
    return success();
  if (!tokenSlots && !checkpoints) {
    tokenSlots = own;
    parents = op.getParents();
    tokenSlotsOp = op;
    return success();
  }
  InFlightDiagnostic diag = op->emitOpError(
      checkpoints ? "expects no checkpoints beside 'token_slots' in its kernel"
                  : "expects the token slots of the other ops in its kernel");
  diag.attachNote((checkpoints ? checkpointsOp : tokenSlotsOp)->getLoc())
      << "other op";
  return diag;
}

/// Takes the one rule of the kernel.
LogicalResult KernelOperands::takeRule(RuleOpInterface op) {
  if (rule)
    return op->emitOpError("expects to be the only rule of its kernel");
  rule = op;
  return success();
}

/// Fails unless the inputs of the convolution are heads that lie in memory.
static LogicalResult checkInputs(Conv1dOp conv) {
  for (Value input : conv.getInputs()) {
    if (cast<RankedTensorType>(input.getType()).getRank() != 3)
      return conv.emitOpError("expects inputs T x H x d on the way to tiles; "
                              "put gdn.unpack before gdn.conv1d");
    if (input.getDefiningOp() && !input.getDefiningOp<UnpackOp>())
      return conv.emitOpError("expects its inputs to be arguments of the entry "
                              "or parts of one on the way to tiles");
  }
  return success();
}

LogicalResult KernelOperands::collectOps() {
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    auto sequenceWise = dyn_cast<SequenceOpInterface>(op);
    if (!sequenceWise && !isa<GatesOp, L2NormOp, GatedRMSNormOp, CastOp>(op))
      return op.emitOpError("has no tile program inside a fused kernel");
    if (auto conv = dyn_cast<Conv1dOp>(op); conv && failed(checkInputs(conv)))
      return failure();
    auto found = dyn_cast<RuleOpInterface>(op);
    if (found && failed(takeRule(found)))
      return failure();
    if (sequenceWise && failed(takeSequences(sequenceWise)))
      return failure();
    if (found && found.getPendingKeys())
      pools.append({found.getPendingKeys(), found.getPendingDeltas(),
                    found.getPendingDecays()});
    if (found && found.getPendingCounts())
      pools.push_back(found.getPendingCounts());
    if (found && found.getPendingScales())
      pools.push_back(found.getPendingScales());
    if (auto states = dyn_cast<StateOpInterface>(op))
      if (failed(takeCheckpoints(states)) || failed(takeTokenSlots(states)))
        return failure();
  }
  return success();
}

/// Adds a tile of `shape` that `op` carries from token block to token block.
void KernelOperands::addCarry(StateOpInterface op, ArrayRef<int64_t> shape,
                              bool perKeyHead, unsigned section) {
  auto pool = op.getPool();
  auto tokenPool = op.getTokenPool();
  carries.push_back(
      {pool, op.getWriteSlots(), op.getHasInitial(), perKeyHead,
       VectorType::get(shape, Float32Type::get(kernel.getContext())),
       VectorType::get(shape, pool.getType().getElementType()), op, section,
       tokenPool ? tokenPool : pool, op.getStateScales(), op.getStateLow()});
}

void KernelOperands::collectCarries() {
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (auto conv = dyn_cast<Conv1dOp>(op)) {
      int64_t window = conv.getWeight().getType().getDimSize(1) - 1;
      for (auto [i, input] : llvm::enumerate(conv.getInputs()))
        addCarry(
            conv,
            {window, cast<RankedTensorType>(input.getType()).getDimSize(2)},
            isKey(input), i);
    } else if (auto states = dyn_cast<StateOpInterface>(op)) {
      addCarry(states, states.getPool().getType().getShape().drop_front(2),
               /*perKeyHead=*/false, 0);
    }
  }
}

/// True if `value` is zero in skipped sequences and padding by its op's
/// meaning.
static bool isZeroInDeadSequences(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<CastOp>(op))
    return isZeroInDeadSequences(op->getOperand(0));
  return isa_and_nonnull<SequenceOpInterface>(op);
}

LogicalResult KernelOperands::checkParents() {
  for (const Carry &carry : carries) {
    // Where a token's state is read from would be a choice of pools.
    if (parents && carry.tokenPool != carry.pool)
      return carry.op->emitOpError("expects no 'token_pool' beside 'parents' "
                                   "on the way to tiles");
    if (carry.states().getParents() == parents)
      continue;
    InFlightDiagnostic diag = carry.op->emitOpError(
        "expects the parents of the other ops in its kernel");
    diag.attachNote(tokenSlotsOp->getLoc()) << "other op";
    return diag;
  }
  return success();
}

LogicalResult KernelOperands::collectResults(func::FuncOp entry) {
  auto ret = cast<func::ReturnOp>(entry.getBody().front().getTerminator());
  auto yield = cast<YieldOp>(kernel.getBody().front().getTerminator());
  for (auto [i, operand] : llvm::enumerate(ret.getOperands())) {
    auto result = dyn_cast<OpResult>(operand);
    if (!result || result.getOwner() != kernel)
      return ret.emitOpError("expects operand ")
             << i << " to be a result of the entry's kernel";
    Value value = yield.getResults()[result.getResultNumber()];
    if (!value.getDefiningOp() ||
        value.getDefiningOp()->getParentOp() != kernel)
      return yield.emitOpError("expects operand ")
             << result.getResultNumber() << " to be computed in the kernel";
    if (slots && !isZeroInDeadSequences(value))
      return yield.emitOpError("expects operand ")
             << result.getResultNumber()
             << " to be zero in skipped sequences: the result of "
                "gdn.delta_rule, "
                "gdn.conv1d or gdn.mask_sequences";
    results.push_back({unsigned(i), value});
  }
  return success();
}

/// `todo`, and all that they are computed from in the kernel.
llvm::DenseSet<Value> KernelOperands::inputsOf(SmallVector<Value> todo) const {
  llvm::DenseSet<Value> found;
  while (!todo.empty()) {
    Value value = todo.pop_back_val();
    if (!found.insert(value).second)
      continue;
    auto result = dyn_cast<OpResult>(value);
    if (!result || result.getOwner()->getParentOp() != kernel)
      continue;
    // A section of a convolution depends on its own input alone.
    if (auto conv = dyn_cast<Conv1dOp>(result.getOwner()))
      todo.push_back(conv.getInputs()[result.getResultNumber()]);
    else
      llvm::append_range(todo, result.getOwner()->getOperands());
  }
  return found;
}

llvm::DenseSet<Value> KernelOperands::stateInputs() const {
  RuleOpInterface op = rule;
  SmallVector<Value> inputs = {op.getKey(), op.getValue(), op.getLogDecay()};
  if (Value beta = op.getBeta())
    inputs.push_back(beta);
  return inputsOf(inputs);
}

llvm::DenseSet<Value> KernelOperands::ruleInputs() const {
  RuleOpInterface op = rule;
  return inputsOf(op.getTokenOperands());
}

FailureOr<KernelOperands> KernelOperands::analyse(func::FuncOp entry,
                                                  KernelOp kernel) {
  KernelOperands parts;
  parts.kernel = kernel;
  if (failed(parts.collectOps()))
    return failure();
  // Roles before carries: a section's window follows its head kind.
  if (RuleOpInterface rule = parts.rule) {
    parts.markKeyHeads(rule.getQuery());
    parts.markKeyHeads(rule.getKey());
    if (Value erase = rule.getErase())
      parts.markKeyHeads(erase);
  }
  parts.collectCarries();
  if (failed(parts.checkParents()) || failed(parts.takePending()))
    return failure();
  if (failed(parts.collectResults(entry)))
    return failure();
  if (parts.results.empty())
    return kernel.emitOpError("expects the entry to return a result of it");
  return parts;
}
