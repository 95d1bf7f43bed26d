// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile program reads views of the entry's arguments and nothing else; this
// is checked before it is written.
#include "Program/CheckOperands.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace gdn;

static bool isEntryArgument(Value value) {
  auto arg = dyn_cast<BlockArgument>(value);
  return arg && isa<func::FuncOp>(arg.getOwner()->getParentOp());
}

bool gdn::isPerToken(Operation *op, Value operand) {
  if (!isa<FloatType>(getElementTypeOrSelf(operand.getType())))
    return false;
  if (auto conv = dyn_cast<Conv1dOp>(op))
    return operand != conv.getWeight() && operand != conv.getBias();
  if (auto gates = dyn_cast<GatesOp>(op))
    return operand != gates.getALog() && operand != gates.getDtBias();
  if (auto norm = dyn_cast<GatedRMSNormOp>(op))
    return operand != norm.getWeight() && operand != norm.getConstants();
  return true;
}

/// True for an argument of the entry and for a constant.
static bool isSize(Value value) {
  return isEntryArgument(value) ||
         value.getDefiningOp()->hasTrait<OpTrait::ConstantLike>();
}

static LogicalResult checkUnpack(UnpackOp unpack) {
  if (!isEntryArgument(unpack.getPacked()))
    return unpack.emitOpError("expects 'packed' to be an argument of the entry "
                              "on the way to tiles");
  for (Value heads : {unpack.getKeyHeads(), unpack.getValueHeads()})
    if (!isSize(heads))
      return unpack.emitOpError("expects the number of heads to be an argument "
                                "of the entry or a constant");
  return success();
}

/// Whether `slots` can be read where a sequence's slot is asked for: they are
/// an argument of the entry, or computed from some element by element.
static bool areSlots(Value slots) {
  if (isEntryArgument(slots))
    return true;
  if (auto taken = slots.getDefiningOp<TakenSlotsOp>())
    return areSlots(taken.getSlots()) && isEntryArgument(taken.getFlags());
  if (auto accepted = slots.getDefiningOp<AcceptedSlotsOp>())
    return llvm::all_of(accepted->getOperands(), isEntryArgument);
  auto counted = slots.getDefiningOp<CountedSlotsOp>();
  return counted && isEntryArgument(counted.getSlots()) &&
         isEntryArgument(counted.getNumAccepted()) &&
         isSize(counted.getSteps()) &&
         (!counted.getCuSeqlens() || isEntryArgument(counted.getCuSeqlens()));
}

LogicalResult gdn::checkKernelOperands(KernelOp kernel) {
  for (Operation &op : kernel.getBody().front().without_terminator())
    for (OpOperand &use : op.getOpOperands()) {
      Value operand = use.get();
      if (!isa<RankedTensorType>(operand.getType()) ||
          kernel.getBody().isAncestor(operand.getParentRegion()) ||
          areSlots(operand))
        continue;
      auto unpack = operand.getDefiningOp<UnpackOp>();
      if (!unpack || !isPerToken(&op, operand))
        return op.emitOpError("expects operand ")
               << use.getOperandNumber() << " to be an argument of the entry"
               << (isPerToken(&op, operand) ? ", or a part of one," : "")
               << " on the way to tiles";
      if (failed(checkUnpack(unpack)))
        return failure();
    }
  return success();
}
