// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a block of a recurrence begins with: the grid, the views that it works
// on, the tokens of its row, and whether the row is live.
#include "Recurrence/RecurrentKernel.h"

#include "Program/CheckOperands.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

LogicalResult RecurrentKernel::emitGrid() {
  RuleOpInterface rule = parts.rule;
  Value lead = rule ? Value(rule.getQuery()) : parts.results.front().second;
  heads = headCount(lead);
  ratio = rule ? b.createOrFold<arith::DivUIOp>(loc, headCount(rule.getValue()),
                                                heads)
               : index(1);
  headForm = getDimForm(lead, 1);
  valueForm = rule ? getDimForm(rule.getValue(), 1) : headForm;
  rowForm = getDimForm(parts.slots ? parts.slots : lead, 0);
  KernelOp kernel = parts.kernel;
  // A ragged batch has one block more than rows: that of the padding.
  std::string blockForm = parts.cuSeqlens ? rowForm + " + 1" : rowForm;
  views.stage().setGrid(
      {blockForm, algorithm.valueHeads ? valueForm : headForm});
  int64_t numShared = llvm::count_if(
      parts.carries, [](const Carry &carry) { return carry.perKeyHead; });
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

LogicalResult RecurrentKernel::emitViews() {
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

Value RecurrentKernel::rowBound(Value at, Value low) {
  return clampBound(elementAt(parts.cuSeqlens, at), low);
}

Value RecurrentKernel::clampBound(Value raw, Value low) {
  Value tokens = memref::DimOp::create(
      b, loc, operandViews.lookup(views.results.front()), 0);
  Value high = arith::MinSIOp::create(b, loc, raw, tokens);
  return arith::MaxSIOp::create(b, loc, high, low);
}

/// Bounds, slot and count of a row that has few tokens, so that the way to
/// memory and back counts: all is asked for ahead of the first use. What
/// padding asks for has other indices, since a load of both ways would be one
/// ahead of them, and waited for there.
void RecurrentKernel::emitShortBounds() {
  Value rows = rowCount();
  Value tokens = memref::DimOp::create(
      b, loc, operandViews.lookup(views.results.front()), 0);
  Value isRow =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, n, rows);
  auto row = scf::IfOp::create(b, loc, SmallVector<Type>(5, b.getIndexType()),
                               isRow, true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(row.thenBlock());
    Value first = elementAt(parts.cuSeqlens, n);
    Value last = elementAt(parts.cuSeqlens, add(n, index(1)));
    Value count =
        parts.numAccepted ? elementAt(parts.numAccepted, n) : index(0);
    SmallVector<Value> values = {first, last, slotOf(n), index(0), count};
    scf::YieldOp::create(b, loc, values);
    b.setInsertionPointToStart(row.elseBlock());
    first = elementAt(parts.cuSeqlens, rows);
    Value before = elementAt(parts.cuSeqlens, index(0));
    values = {first, tokens, index(-1), before, index(0)};
    scf::YieldOp::create(b, loc, values);
  }
  begin = clampBound(row.getResult(0), index(0));
  end = clampBound(row.getResult(1), begin);
  slot = row.getResult(2);
  lead = clampBound(row.getResult(3), index(0));
  if (parts.numAccepted)
    accepted = row.getResult(4);
  Value length = arith::SubIOp::create(b, loc, end, begin);
  Value isLong = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt,
                                       length, index(parts.maxTokens));
  slot = arith::SelectOp::create(b, loc, isLong, index(-1), slot);
}

Value RecurrentKernel::emitBounds() {
  begin = n;
  end = add(n, index(1));
  if (!parts.slots)
    return Value();
  Value live;
  if (!parts.cuSeqlens) {
    slot = slotOf(n);
  } else if (parts.maxTokens) {
    emitShortBounds();
  } else {
    Value rows = rowCount();
    Value tokens = memref::DimOp::create(
        b, loc, operandViews.lookup(views.results.front()), 0);
    Value isRow =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, n, rows);
    begin = rowBound(n, index(0));
    Type type = b.getIndexType();
    auto row = scf::IfOp::create(b, loc, {type, type, type}, isRow, true);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(row.thenBlock());
      SmallVector<Value> values = {rowBound(add(n, index(1)), begin), slotOf(n),
                                   index(0)};
      scf::YieldOp::create(b, loc, values);
      b.setInsertionPointToStart(row.elseBlock());
      SmallVector<Value> padding = {tokens, index(-1),
                                    rowBound(index(0), index(0))};
      scf::YieldOp::create(b, loc, padding);
    }
    end = row.getResult(0);
    slot = row.getResult(1);
    lead = row.getResult(2);
  }
  if (parts.cuSeqlens)
    live = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, begin, end);
  for (Value pool : parts.pools) {
    Value ok = isLive(slot, pool);
    live = live ? Value(arith::AndIOp::create(b, loc, live, ok)) : ok;
  }
  return live;
}
