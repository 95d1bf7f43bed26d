// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Code that orders launches.
#include "gdn/Dialect/GPU/IR/Launches.h"

#include "gdn/Dialect/GPU/IR/GPU.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

void gdn::gpu::awaitInFirstBlock(OpBuilder &b, Location loc, int64_t axes) {
  Value isFirst;
  for (int32_t axis = 0; axis < axes; ++axis) {
    Value id = BlockIdOp::create(b, loc, b.getIndexType(), axis);
    Value none = arith::ConstantIndexOp::create(b, loc, 0);
    Value isNone =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, id, none);
    isFirst = isFirst
                  ? arith::AndIOp::create(b, loc, isFirst, isNone).getResult()
                  : isNone;
  }
  auto branch = scf::IfOp::create(b, loc, isFirst, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  AwaitLaunchOp::create(b, loc);
}
