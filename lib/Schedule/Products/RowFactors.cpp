// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A map is followed from its first input to its result: one extension, products
// in f32, one rounding.
#include "Products/RowFactors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace gdn;

std::optional<SmallVector<RowFactor, 1>> gdn::getFactors(tile::MapRowsOp map) {
  if (map.getNumResults() != 1)
    return std::nullopt;
  Block &body = map.getBody().front();
  SmallVector<RowFactor, 1> factors;
  Value row = body.getArgument(1);
  auto isWide = [](Value value) {
    return getElementTypeOrSelf(value.getType()).isF32();
  };
  for (Operation &op : body.without_terminator()) {
    if (isa<vector::BroadcastOp>(op))
      continue; // where it is used
    const bool isFirst = row == body.getArgument(1);
    if (auto multiply = dyn_cast<arith::MulFOp>(op); multiply && isWide(row)) {
      Value lhs = multiply.getLhs(), rhs = multiply.getRhs();
      Value other = lhs == row ? rhs : rhs == row ? lhs : Value();
      auto spread =
          other ? other.getDefiningOp<vector::BroadcastOp>() : nullptr;
      auto element =
          spread ? dyn_cast<BlockArgument>(spread.getSource()) : nullptr;
      if (element && element.getOwner() == &body && element.getArgNumber() > 1)
        factors.push_back({map.getInputs()[element.getArgNumber() - 1], true});
      else if (other && !map.getBody().isAncestor(other.getParentRegion()))
        factors.push_back({other, false});
      else
        return std::nullopt;
    } else if (op.getNumOperands() != 1 || op.getOperand(0) != row ||
               !(isa<arith::ExtFOp>(op) && isFirst) &&
                   !(isa<arith::TruncFOp>(op) && isWide(row))) {
      return std::nullopt;
    }
    row = op.getResult(0);
  }
  return body.getTerminator()->getOperand(0) == row ? std::optional(factors)
                                                    : std::nullopt;
}

std::optional<double> gdn::getNumber(ArrayRef<RowFactor> factors) {
  if (factors.empty())
    return 1;
  DenseFPElementsAttr number;
  if (factors.size() > 1 || factors.front().isPerRow ||
      !matchPattern(factors.front().factor, m_Constant(&number)) ||
      !number.isSplat())
    return std::nullopt;
  return number.getSplatValue<APFloat>().convertToDouble();
}

bool gdn::isRounded(tile::MapRowsOp map) {
  return vectorType(map.getResult(0)).getElementType().isF16();
}
