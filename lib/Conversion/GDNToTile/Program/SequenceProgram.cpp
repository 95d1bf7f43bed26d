// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The grid of sequences and heads, the views that blocks work on, and zeros for
// what belongs to no live sequence.
#include "Program/SequenceProgram.h"

#include "Program/CheckOperands.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

LogicalResult SequenceProgram::emitGrid() {
  RuleOpInterface rule = parts.rule;
  Value lead = rule ? Value(rule.getQuery()) : parts.results.front().second;
  heads = headCount(lead);
  ratio = rule ? b.createOrFold<arith::DivUIOp>(loc, headCount(rule.getValue()),
                                                heads)
               : index(1);
  headForm = getDimForm(lead, 1);
  valueForm = rule ? getDimForm(rule.getValue(), 1) : headForm;
  sequenceForm = getDimForm(parts.slots ? parts.slots : lead, 0);
  KernelOp kernel = parts.kernel;
  // A ragged batch has one block more than sequences: that of the padding.
  std::string blockForm =
      parts.cuSeqlens ? sequenceForm + " + 1" : sequenceForm;
  views.stage().setGrid(
      {blockForm, algorithm.valueHeads ? valueForm : headForm});
  const int64_t numShared = countShared();
  if (algorithm.valueHeads && numShared != 0)
    views.stage().setGroups({std::to_string(numShared), blockForm, headForm});
  if (valueForm != headForm) // value heads come in whole groups
    views.stage().setMultiples({valueForm, headForm});
  for (auto [number, value] : parts.results)
    if (std::string form = getDimForm(value, 1); form != valueForm)
      return kernel.emitOpError("expects ")
             << valueForm << " heads, those of its "
             << (rule ? "values" : "first result") << ", in result " << number
             << " of the entry, but got " << form;
  return success();
}

LogicalResult SequenceProgram::emitViews() {
  KernelOp kernel = parts.kernel;
  for (Operation &op : kernel.getBody().front().without_terminator())
    for (auto [number, operand] : llvm::enumerate(op.getOperands())) {
      auto type = dyn_cast<RankedTensorType>(operand.getType());
      bool external =
          !operand.getDefiningOp() || operand.getDefiningOp<UnpackOp>();
      if (!type || !external || operandViews.contains(operand) ||
          !isa<FloatType>(type.getElementType()) || !isPerToken(&op, operand))
        continue;
      std::string form = getDimForm(operand, 1);
      const std::string &want = parts.isKey(operand) ? headForm : valueForm;
      if (form != want)
        return op.emitOpError("expects ")
               << want << " heads, those of the "
               << (parts.isKey(operand) ? "keys" : "values")
               << " of its kernel, in operand " << number << ", but got "
               << form;
      operandViews[operand] = parts.isKey(operand)
                                  ? views.keyHeads(b, operand)
                                  : views.valueHeads(b, operand, ratio);
    }
  for (unsigned number : llvm::make_first_range(parts.results))
    operandViews[views.results[number]] = views.resultHeads(b, number, ratio);
  return success();
}

void SequenceProgram::emitZeros(Value from, Value to) {
  OpBuilder::InsertionGuard guard(b);
  Value r = head;
  if (!r) {
    auto valueHeads = scf::ForOp::create(b, loc, index(0), ratio, index(1));
    b.setInsertionPointToStart(valueHeads.getBody());
    r = valueHeads.getInductionVar();
  }
  auto loop = scf::ForOp::create(b, loc, from, to, index(blockTokens));
  b.setInsertionPointToStart(loop.getBody());
  Value left = sub(to, loop.getInductionVar());
  Value valid = minimum(left, index(blockTokens));
  for (auto [number, value] : parts.results) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape = {blockTokens}, dims = {0};
    SmallVector<Value> at = {loop.getInductionVar(), h, r};
    if (type.getRank() == 3) {
      shape.push_back(valueCount(type.getDimSize(2)));
      dims.push_back(3);
      at.push_back(valueStart());
    }
    Value zero = arith::ConstantOp::create(
        b, loc, b.getFloatAttr(type.getElementType(), 0.0));
    Value tile = tile::FillOp::create(
        b, loc, VectorType::get(shape, type.getElementType()), zero);
    tile::StoreOp::create(b, loc, tile,
                          operandViews.lookup(views.results[number]), at, dims,
                          valid);
  }
}
