// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Units that are taken: all roles go on with the number that one of them took.
#include "CheckOrder.h"

#include "gdn/Dialect/GPU/IR/GPU.h"

using namespace mlir;
using namespace gdn;

/// What `value` is a form of: casts of it are the same number.
static Value getNumber(Value value) {
  while (auto cast = value.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, arith::BitcastOp>(cast))
      break;
    value = cast->getOperand(0);
  }
  return value;
}

/// Whether `tile` is filled with what a gdn_gpu.take_unit gives, and nothing
/// else.
static bool isFilledWithUnit(Value channel) {
  bool isUnit = false;
  for (Operation *user : channel.getUsers()) {
    auto acquire = dyn_cast<gdn::gpu::AcquireOp>(user);
    if (!acquire)
      continue;
    for (Operation *use : acquire.getTile().getUsers()) {
      auto store = dyn_cast<gdn::gpu::StoreSharedOp>(use);
      auto fill = store ? store.getTile().getDefiningOp<gdn::gpu::FillOp>()
                        : gdn::gpu::FillOp();
      if (!fill ||
          !getNumber(fill.getValue()).getDefiningOp<gdn::gpu::TakeUnitOp>())
        return false;
      isUnit = true;
    }
  }
  return isUnit;
}

/// Whether a role is given `number`, of a tile that the taker filled.
static bool isGiven(Value number) {
  auto load = number.getDefiningOp<gdn::gpu::LoadSharedElementOp>();
  auto receive = load ? load.getBuffer().getDefiningOp<gdn::gpu::ReceiveOp>()
                      : gdn::gpu::ReceiveOp();
  return receive && isFilledWithUnit(receive.getChannel());
}

// units_c5
LogicalResult gdn::checkUnits(FunctionOpInterface function) {
  WalkResult walk = function->walk([](gdn::gpu::UnitsOp units) {
    if (!units.getTaken())
      return WalkResult::advance();
    Operation *yield = &units.getBody().front().back();
    Value number = getNumber(yield->getOperand(0));
    if (number.getDefiningOp<gdn::gpu::TakeUnitOp>() || isGiven(number))
      return WalkResult::advance();
    yield->emitOpError("expects the number of a gdn_gpu.take_unit, or that "
                       "from a channel that is filled with it");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}
