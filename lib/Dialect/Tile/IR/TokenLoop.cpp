// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop over the tokens of a sequence says that it is one: schedules take its
// tokens several at once, and ask how many there may be.
#include "TokenLoop.h"

#include "gdn/Dialect/LoopContracts.h"
#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace gdn;

static constexpr StringLiteral attributeName = "gdn_tile.tokens";

bool tile::isTokenLoop(scf::ForOp loop) { return loop->hasAttr(attributeName); }

std::optional<int64_t> tile::getMostTokens(scf::ForOp loop) {
  auto most = loop->getAttrOfType<IntegerAttr>(attributeName);
  return most ? std::optional(most.getInt()) : std::nullopt;
}

void tile::setTokenLoop(scf::ForOp loop, int64_t most) {
  Builder b(loop.getContext());
  loop->setAttr(attributeName, most == 0
                                   ? Attribute(b.getUnitAttr())
                                   : Attribute(b.getI64IntegerAttr(most)));
}

LogicalResult tile::verifyTokenLoop(const AttributeUse &use) {
  auto loop = cast<scf::ForOp>(use.op);
  // Attributes of dialects are verified before the loop itself is.
  if (loop->getNumOperands() < 3 || !loop.getRegion().hasOneBlock())
    return success();
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (!step)
    return use.emitError() << "expects a constant step, the tokens of a turn, "
                              "of a loop with "
                           << use.str();
  if (!loop->use_empty())
    return use.emitError() << "expects nothing behind a loop with " << use.str()
                           << " to use its results";
  for (auto scan : loop.getBody()->getOps<DeltaScanOp>()) {
    // Nor have ops in its body been verified: operands may be missing, be no
    // tiles, or be in other segments. The key is the third of all scans.
    if (scan->getNumOperands() < 6 || scan->getNumResults() < 2)
      continue;
    auto key = dyn_cast<VectorType>(scan->getOperand(2).getType());
    if (key && key.getRank() > 0 && key.getDimSize(0) != *step)
      return use.emitError()
             << "expects scans of " << *step << " tokens, the step of a loop "
             << "with " << use.str() << ", but got " << key.getDimSize(0);
    if (*step != 1 && !scan.getDeltas())
      return use.emitError() << "expects scans with deltas in a loop with "
                             << use.str() << " and the step " << *step;
  }
  auto most = dyn_cast<IntegerAttr>(use.getValue());
  std::optional<int64_t> seen =
      getMostBehind(loop.getLowerBound(), loop.getUpperBound());
  if (most && seen && *seen > most.getInt())
    return use.emitError() << "expects a loop over at most " << most.getInt()
                           << " tokens, as " << use.str()
                           << " says, but its bounds allow " << *seen;
  return success();
}
