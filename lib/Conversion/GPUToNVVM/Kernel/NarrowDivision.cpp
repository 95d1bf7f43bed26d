// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which indices are small, and their divisions; see NarrowDivision.h.
#include "Kernel/NarrowDivision.h"

#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/Tile/IR/StageFields.h"
#include "gdn/Support/LinearForm.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace gdn;

NarrowDivision::NarrowDivision(func::FuncOp program) {
  Builder b(program.getContext());
  tile::StageFields stage(program);
  ArrayAttr symbols = stage.getSymbols(), grid = stage.getGrid(),
            multiples = stage.getMultiples();
  auto argumentOf = [&](Attribute symbol) -> Value {
    for (auto [i, name] : llvm::enumerate(symbols))
      if (name == symbol)
        return program.getArgument(i);
    return nullptr;
  };
  // What is added up to the size of an axis is no larger than the axis.
  for (auto form : grid.getAsRange<StringAttr>()) {
    LinearForm size = llvm::cantFail(LinearForm::parse(form.getValue()));
    if (size.getConstant() < 0 ||
        llvm::any_of(size.getTerms(), [](const LinearForm::Term &term) {
          return term.coefficient < 1;
        }))
      continue;
    for (const LinearForm::Term &term : size.getTerms())
      if (Value symbol = argumentOf(b.getStringAttr(term.symbol));
          symbol && term.divisor == 1)
        small.insert(symbol);
  }
  // Pairs of a value and what divides it.
  for (unsigned i = 0; multiples && i + 1 < multiples.size(); i += 2)
    if (Value value = argumentOf(multiples[i]); value && small.contains(value))
      if (Value divisor = argumentOf(multiples[i + 1]))
        small.insert(divisor);
}

bool NarrowDivision::isSmall(Value value) const {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.isNonNegative() && constant.getActiveBits() < 32;
  return small.contains(value) || value.getDefiningOp<gpu::BlockIdOp>();
}

bool NarrowDivision::emit(OpBuilder &b, Operation &op, IRMapping &values) {
  if (!isa<arith::DivUIOp, arith::RemUIOp>(op) ||
      !op.getResult(0).getType().isIndex() ||
      !llvm::all_of(op.getOperands(),
                    [&](Value operand) { return isSmall(operand); }))
    return false;
  Location loc = op.getLoc();
  Type i32 = b.getI32Type();
  SmallVector<Value> operands;
  for (Value operand : op.getOperands())
    operands.push_back(arith::IndexCastOp::create(
        b, loc, i32, values.lookupOrDefault(operand)));
  Value result =
      isa<arith::DivUIOp>(op)
          ? arith::DivUIOp::create(b, loc, operands[0], operands[1]).getResult()
          : arith::RemUIOp::create(b, loc, operands[0], operands[1])
                .getResult();
  values.map(op.getResult(0),
             arith::IndexCastUIOp::create(b, loc, b.getIndexType(), result)
                 .getResult());
  small.insert(op.getResult(0));
  return true;
}
