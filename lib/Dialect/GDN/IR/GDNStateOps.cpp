// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers and folds of the ops in GDNStateOps.td. A label such as
// delta_rule_c1 is constraint (C1) of that op, there and in docs/spec.
#include "NamedSizes.h"
#include "OpChecks.h"
#include "PendingChecks.h"
#include "StateChecks.h"

#include "gdn/Dialect/GDN/IR/GDN.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace gdn;

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
  if (failed(verifyFloats(*this, "pool", getPool().getType())))
    return failure();
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
  if (getNumAccepted() && failed(verifyPendingStates(*this, sizes)))
    return failure();            // conv1d_c10
  return verifyTokenPool(*this); // conv1d_c11
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

LogicalResult TakenSlotsOp::verify() {
  // taken_slots_c1
  NamedSizes sizes(*this);
  return failure(failed(sizes.agree("slots", getSlots().getType(), {"N"})) ||
                 failed(sizes.agree("flags", getFlags().getType(), {"N"})));
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
  Operation *def = value.getDefiningOp();
  // A zero head has length 0, which l2norm keeps; rounding keeps zeros too. In
  // a module's own body, which has no order, these may go round.
  llvm::SmallPtrSet<Operation *, 4> seen;
  while (isa_and_nonnull<CastOp, L2NormOp>(def)) {
    if (!seen.insert(def).second)
      return false;
    def = def->getOperand(0).getDefiningOp();
  }
  auto op = dyn_cast_or_null<SequenceOpInterface>(def);
  return op && op.getPool() == mask.getPool() &&
         op.getSlots() == mask.getSlots() &&
         op.getCuSeqlens() == mask.getCuSeqlens();
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
