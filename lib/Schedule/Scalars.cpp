// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-schedule-scalars: programs without tiles. See Passes.td.
#include "Kernel/KernelFunction.h"

#include "gdn/Schedule/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"

namespace gdn {
#define GEN_PASS_DEF_SCHEDULESCALARS
#include "gdn/Schedule/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

/// True if the program stores elements and has no tiles.
static bool storesElementsOnly(func::FuncOp func) {
  bool stores = false;
  WalkResult walk = func.walk([&](Operation *op) {
    stores |= isa<memref::StoreOp>(op);
    bool isScalar =
        isa<tile::BlockIdOp>(op) || !isa<tile::TileDialect>(op->getDialect());
    return isScalar ? WalkResult::advance() : WalkResult::interrupt();
  });
  return stores && !walk.wasInterrupted();
}

static void copyBlock(OpBuilder &b, Block &block, IRMapping &values) {
  for (Operation &op : block.without_terminator()) {
    if (op.getNumRegions() == 0) {
      copyScalar(b, &op, values);
    } else {
      copyWithRegions(b, &op, values, [&](Block &from, Block &) {
        copyBlock(b, from, values);
      });
    }
  }
}

namespace {
struct ScheduleScalars final : gdn::impl::ScheduleScalarsBase<ScheduleScalars> {
  void runOnOperation() override {
    for (auto func :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (!tile::StageFields(func).getGrid() || gpu::KernelFields(func) ||
          !storesElementsOnly(func))
        continue;
      OpBuilder b(func.getContext());
      IRMapping values;
      func::FuncOp kernel = createKernel(b, func, values);
      gpu::KernelFields(kernel).setThreads(gpu::warpThreads);
      copyBlock(b, func.front(), values);
      func::ReturnOp::create(b, func.getLoc());
      func.erase();
      ++numKernels;
    }
  }
};
} // namespace
