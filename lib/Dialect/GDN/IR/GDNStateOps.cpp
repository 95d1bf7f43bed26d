// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers and folds of the ops in GDNStateOps.td. A label such as
// delta_rule_c1 is constraint (C1) of that op, there and in docs/spec.
#include "NamedSizes.h"
#include "OpChecks.h"
#include "PendingChecks.h"

#include "gdn/Dialect/GDN/IR/GDN.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/CheckedArithmetic.h"

#include <cmath>

using namespace mlir;
using namespace gdn;

double DeltaRuleOp::getScaleOrDefault() {
  if (std::optional<APFloat> scale = getScale())
    return scale->convertToFloat();
  return 1.0 / std::sqrt(double(getKey().getType().getDimSize(2)));
}

/// Checks the operands that describe sequences. Without bounds every token is a
/// sequence, so that N is T.
template <typename OpTy>
static LogicalResult verifySequences(OpTy op, NamedSizes &sizes) {
  StringRef count = op.getCuSeqlens() ? "N" : "T";
  if (failed(sizes.agree("slots", op.getSlots().getType(), {count})))
    return failure();
  if (Value bounds = op.getCuSeqlens())
    if (failed(sizes.agree("cu_seqlens", bounds.getType(), {{"N", 1}})))
      return failure();
  if constexpr (!std::is_same_v<OpTy, MaskSequencesOp>) {
    if (Value slots = op.getWriteSlots())
      if (failed(sizes.agree("write_slots", slots.getType(), {count})))
        return failure();
    if (Value flags = op.getHasInitial())
      return sizes.agree("has_initial", flags.getType(), {count});
  }
  return success();
}

/// Checks the operands that ask for states inside a sequence.
template <typename OpTy>
static LogicalResult verifyCheckpoints(OpTy op, NamedSizes &sizes) {
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
      return op.emitOpError("expects '")
             << name << "' to be given with checkpoints, but got none";
  return failure(
      failed(sizes.agree("cu_checkpoints", bounds.getType(), {{"N", 1}})) ||
      failed(sizes.agree("checkpoint_tokens", tokens.getType(), {"C"})) ||
      failed(sizes.agree("checkpoint_slots", slots.getType(), {"C"})));
}

/// Checks the pool of the states after tokens.
template <typename OpTy> static LogicalResult verifyTokenPool(OpTy op) {
  auto pool = op.getTokenPool();
  if (!pool)
    return success();
  if (!op.getTokenSlots())
    return op.emitOpError(
        "expects 'token_slots' to be given with 'token_pool', but got none");
  Type want = op.getPool().getType().getElementType(),
       got = pool.getType().getElementType();
  if (got != want)
    return op.emitOpError("expects 'token_pool' to have the element type of "
                          "'pool', ")
           << want << ", but got " << got;
  // Dimension 0 of a pool is dynamic.
  return verifySameShape(op, "pool", op.getPool().getType(), "token_pool",
                         pool.getType());
}

/// Checks the operand that asks for states after every token.
template <typename OpTy>
static LogicalResult verifyTokenSlots(OpTy op, NamedSizes &sizes) {
  Value slots = op.getTokenSlots(), parents = op.getParents();
  if (!slots && parents)
    return op.emitOpError(
        "expects 'token_slots' to be given with 'parents', but got none");
  if (!slots)
    return success();
  if (!op.getCuSeqlens())
    return op.emitOpError(
        "expects 'cu_seqlens' to be given with 'token_slots', but got none");
  for (auto [name, operand] :
       {std::pair<StringRef, Value>{"write_slots", op.getWriteSlots()},
        {"checkpoints", op.getCuCheckpoints()}})
    if (operand)
      return op.emitOpError("expects no '")
             << name << "' beside 'token_slots', but got some";
  if (failed(sizes.agree("token_slots", slots.getType(), {"N", "S"})) ||
      (parents &&
       failed(sizes.agree("parents", parents.getType(), {"N", "S"}))))
    return failure();
  return verifySteps(op, sizes);
}

/// Checks the count of accepted tokens of an op whose tokens become pending,
/// and that nothing else says where its states go.
template <typename OpTy>
static LogicalResult verifyNumAccepted(OpTy op, NamedSizes &sizes) {
  if (!op.getCuSeqlens())
    return op.emitOpError(
        "expects 'cu_seqlens' to be given with 'pending', but got none");
  for (auto [name, operand] :
       {std::pair<StringRef, Value>{"write_slots", op.getWriteSlots()},
        {"has_initial", op.getHasInitial()},
        {"checkpoints", op.getCuCheckpoints()},
        {"token_slots", op.getTokenSlots()}})
    if (operand)
      return op.emitOpError("expects no '")
             << name << "' beside 'pending', but got some";
  return sizes.agree("num_accepted", op.getNumAccepted().getType(), {"N"});
}

/// Checks the pools of pending tokens of the rule.
static LogicalResult verifyPending(DeltaRuleOp op, NamedSizes &sizes) {
  auto keys = op.getPendingKeys(), deltas = op.getPendingDeltas(),
       decays = op.getPendingDecays();
  for (auto [name, operand] :
       {std::pair<StringRef, Value>{"num_accepted", op.getNumAccepted()},
        {"pending_keys", keys},
        {"pending_deltas", deltas},
        {"pending_decays", decays}})
    if (!operand)
      return op.emitOpError("expects '")
             << name << "' to be given with 'pending', but got none";
  if (failed(verifyNumAccepted(op, sizes)))
    return failure();
  if (int64_t want = op.isPerChannel() ? 4 : 3;
      decays.getType().getRank() != want)
    return op.emitOpError("expects 'pending_decays' to have rank ")
           << want << ", set by 'log_decay', but got rank "
           << decays.getType().getRank();
  return verifyPendingPools(
      op, sizes, "pending_",
      {keys.getType(), deltas.getType(), decays.getType()});
}

/// Checks that the channels of the inputs add up to D, where all are known.
static LogicalResult verifyChannels(Conv1dOp op, const NamedSizes &sizes) {
  int64_t channels = sizes.get("D");
  std::optional<int64_t> sum = 0;
  for (Value input : op.getInputs()) {
    std::optional<int64_t> product = 1;
    for (int64_t size : getSizes(input.getType()).drop_front()) {
      if (ShapedType::isDynamic(size))
        return success();
      if (product)
        product = llvm::checkedMul(*product, size);
    }
    if (sum)
      sum = product ? llvm::checkedAdd(*sum, *product) : std::nullopt;
  }
  if (ShapedType::isDynamic(channels) || sum == channels)
    return success();
  InFlightDiagnostic diag =
      op.emitOpError("expects the channels of 'inputs' to add up to D = ")
      << channels << ", set by " << sizes.setBy("D") << ", but got ";
  return sum ? diag << *sum : diag << "more than 64 bits hold";
}

LogicalResult Conv1dOp::verify() {
  NamedSizes sizes(*this, {"K"});
  // conv1d_c1
  if (getInputs().empty())
    return emitOpError("expects at least one input, but got 0");
  if (getNumResults() != getInputs().size())
    return emitOpError("expects one result per input, which is ")
           << getInputs().size() << ", but got " << getNumResults();
  Type element = getElementTypeOrSelf(getInputs().front());
  for (auto [index, input, result] :
       llvm::enumerate(getInputs(), getResults())) {
    std::string name = ("inputs[" + Twine(index) + "]").str();
    if (getElementTypeOrSelf(input) != element)
      return emitOpError("expects '")
             << name << "' to have the element type of 'inputs[0]', " << element
             << ", but got " << getElementTypeOrSelf(input);
    if (failed(verifySameShape(*this, name, input.getType(),
                               ("results[" + Twine(index) + "]").str(),
                               result.getType())))
      return failure();
    if (failed(sizes.agreeDim(name, input.getType(), 0, "T")))
      return failure();
  }
  // conv1d_c2
  if (failed(sizes.agree("weight", getWeight().getType(), {"D", "K"})))
    return failure();
  if (sizes.get("K") < 2 || sizes.get("K") > 8)
    return emitOpError("expects K, set by ")
           << sizes.setBy("K") << ", to be from 2 to 8, but got "
           << sizes.get("K");
  if (Value bias = getBias())
    if (failed(sizes.agree("bias", bias.getType(), {"D"})))
      return failure();
  if (getNumAccepted()) { // conv1d_c10
    if (failed(verifyHistory(*this, sizes, getPool().getType(),
                             sizes.get("K") - 1)))
      return failure();
  } else if (failed(sizes.agree("pool", getPool().getType(),
                                {"P", "D", {"K", -1}}))) { // conv1d_c3
    return failure();
  }
  // conv1d_c4
  if (failed(verifySequences(*this, sizes)))
    return failure();
  // conv1d_c5
  if (failed(verifyActivation(*this, getActivation(),
                              {Activation::identity, Activation::silu})))
    return failure();
  if (failed(verifyChannels(*this, sizes))) // conv1d_c6
    return failure();
  if (failed(verifyCheckpoints(*this, sizes))) // conv1d_c7
    return failure();
  if (failed(verifyTokenSlots(*this, sizes))) // conv1d_c8, conv1d_c9
    return failure();
  if (getNumAccepted() && failed(verifyNumAccepted(*this, sizes)))
    return failure();            // conv1d_c10
  return verifyTokenPool(*this); // conv1d_c11
}

LogicalResult DeltaRuleOp::verify() {
  NamedSizes sizes(*this, {"dk", "dv"}); // static: delta_rule_c2
  SmallVector<SizeName> decay = {"T", "Hv"};
  if (isPerChannel())
    decay.push_back("dk");
  // delta_rule_c1
  if (failed(sizes.agree("query", getQuery().getType(), {"T", "Hk", "dk"})) ||
      failed(sizes.agree("key", getKey().getType(), {"T", "Hk", "dk"})) ||
      failed(sizes.agree("value", getValue().getType(), {"T", "Hv", "dv"})) ||
      failed(sizes.agree("log_decay", getLogDecay().getType(), decay)) ||
      failed(sizes.agree("beta", getBeta().getType(), {"T", "Hv"})) ||
      failed(sizes.agree("output", getOutput().getType(), {"T", "Hv", "dv"})))
    return failure();
  // delta_rule_c2
  if (failed(sizes.verifyHeadDim("dk")) || failed(sizes.verifyHeadDim("dv")))
    return failure();
  // delta_rule_c4, before c3, as the pool may be what tells Hv
  if (failed(sizes.agree("pool", getPool().getType(), {"P", "Hv", "dv", "dk"})))
    return failure();
  // delta_rule_c3
  if (failed(sizes.verifyHeadCounts()))
    return failure();
  // delta_rule_c5
  if (failed(verifySequences(*this, sizes)))
    return failure();
  // delta_rule_c6
  if (std::optional<APFloat> scale = getScale(); scale && !scale->isFinite()) {
    SmallString<16> text;
    scale->toString(text);
    return emitOpError("expects 'scale' to be finite, but got ") << text;
  }
  if (failed(verifyCheckpoints(*this, sizes))) // delta_rule_c7
    return failure();
  if (failed(verifyTokenSlots(*this, sizes))) // delta_rule_c8, delta_rule_c9
    return failure();
  if (failed(verifyTokenPool(*this))) // delta_rule_c11
    return failure();
  if (!getNumAccepted() && !getPendingKeys() && !getPendingDeltas() &&
      !getPendingDecays())
    return success();
  return verifyPending(*this, sizes); // delta_rule_c10
}

LogicalResult AcceptedSlotsOp::verify() {
  // accepted_slots_c1
  NamedSizes sizes(*this);
  if (failed(
          sizes.agree("token_slots", getTokenSlots().getType(), {"N", "S"})) ||
      failed(sizes.agree("num_accepted", getNumAccepted().getType(), {"N"})) ||
      failed(sizes.agree("result", getResult().getType(), {"N"})))
    return failure();
  if (Value bounds = getCuSeqlens())
    if (failed(sizes.agree("cu_seqlens", bounds.getType(), {{"N", 1}})))
      return failure();
  // accepted_slots_c2
  Type want = getElementTypeOrSelf(getTokenSlots()),
       got = getElementTypeOrSelf(getResult());
  if (got != want)
    return emitOpError(
               "expects 'result' to have the element type of 'token_slots', ")
           << want << ", but got " << got;
  // accepted_slots_c3
  return verifyMaxTokens(*this, getCuSeqlens(), getMaxTokens());
}

LogicalResult MaskSequencesOp::verify() {
  // mask_sequences_c1
  if (failed(verifySameShape(*this, "input", getInput().getType(), "result",
                             getResult().getType())))
    return failure();
  Type want = getElementTypeOrSelf(getInput()),
       got = getElementTypeOrSelf(getResult());
  if (got != want)
    return emitOpError("expects 'result' to have the element type of 'input', ")
           << want << ", but got " << got;
  // mask_sequences_c2
  NamedSizes sizes(*this);
  if (failed(sizes.agreeDim("input", getInput().getType(), 0, "T")))
    return failure();
  return verifySequences(*this, sizes);
}

/// True if `value` is known to be zero in the tokens of skipped sequences and
/// of padding, where pool, slots and bounds are those of `mask`.
static bool isZeroWhereMasked(Value value, MaskSequencesOp mask) {
  auto hasSequencesOf = [&](auto op) {
    return op.getPool() == mask.getPool() && op.getSlots() == mask.getSlots() &&
           op.getCuSeqlens() == mask.getCuSeqlens();
  };
  Operation *def = value.getDefiningOp();
  // A zero head has length 0, which l2norm keeps; rounding keeps zeros too. In
  // a module's own body, which has no order, these may go round.
  llvm::SmallPtrSet<Operation *, 4> seen;
  while (isa_and_nonnull<CastOp, L2NormOp>(def)) {
    if (!seen.insert(def).second)
      return false;
    def = def->getOperand(0).getDefiningOp();
  }
  if (!def)
    return false;
  return llvm::TypeSwitch<Operation *, bool>(def)
      .Case<Conv1dOp, DeltaRuleOp, MaskSequencesOp>(hasSequencesOf)
      .Default(false);
}

OpFoldResult MaskSequencesOp::fold(FoldAdaptor) {
  if (getInput().getType() == getResult().getType() &&
      isZeroWhereMasked(getInput(), *this))
    return getInput();
  return {};
}

/// Checks that `tensor` is the pool's shape with N in place of P: (C1) of
/// pool_read and of pool_write.
static LogicalResult verifyGathered(Operation *op, PoolType pool,
                                    StringRef name, Type tensor, Type slots) {
  // Dimension 0 of a pool is dynamic, so it agrees with N.
  if (failed(verifySameShape(op, "pool", pool, name, tensor)))
    return failure();
  NamedSizes sizes(op);
  return failure(failed(sizes.agree("slots", slots, {"N"})) ||
                 failed(sizes.agreeDim(name, tensor, 0, "N")));
}

LogicalResult PoolReadOp::verify() {
  // pool_read_c1
  return verifyGathered(*this, getPool().getType(), "result",
                        getResult().getType(), getSlots().getType());
}

LogicalResult PoolWriteOp::verify() {
  // pool_write_c1
  return verifyGathered(*this, getPool().getType(), "value",
                        getValue().getType(), getSlots().getType());
}
