// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A search in sequence bounds is a chain of loads and divisions: for each warp
// it would be a third of what a piece of few tokens takes.
#include "Tokens/BlockScalars.h"

#include "Kernel/FragmentEmitter.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

bool BlockScalars::isUsedBy(Operation &op) const {
  return op
      .walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (Operation *def = operand.getDefiningOp();
              def && ops.contains(def))
            return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

BlockScalars::BlockScalars(Block &block,
                           function_ref<bool(Operation &)> isOther) {
  auto isNumber = [](Type type) {
    return type.isIndex() || type.isInteger(1) || type.isInteger(32);
  };
  auto loads = [](Operation &op) {
    return op.walk([](memref::LoadOp) { return WalkResult::interrupt(); })
        .wasInterrupted();
  };
  for (Operation &op : block.without_terminator())
    if (op.getNumResults() != 0 &&
        llvm::all_of(op.getResultTypes(), isNumber) && !isOther(op) &&
        (loads(op) || isUsedBy(op)))
      ops.insert(&op);
  for (Operation *op : ops)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !ops.contains(block.findAncestorOpInBlock(*user));
          }))
        results.push_back(result);
}

void BlockScalars::emit(OpBuilder &b, func::FuncOp kernel,
                        IRMapping &mapping) const {
  if (results.empty())
    return;
  Location loc = kernel.getLoc();
  Type i32 = b.getI32Type();
  auto one = VectorType::get({1}, i32);
  auto row = gpu::FragmentType::get(
      one,
      gpu::PerRowAttr::get(b.getContext(), getWarpRows(b.getContext(), 1)));
  SmallVector<Value> buffers;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&kernel.front());
    for (size_t i = 0; i < results.size(); ++i)
      buffers.push_back(
          gpu::AllocOp::create(b, loc, gpu::SharedType::get(one)));
  }
  auto first = gpu::WarpsOp::create(b, loc, TypeRange(), 0, 1, {});
  {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&first.getBody());
    IRMapping inner = mapping;
    for (Operation *op : ops)
      b.clone(*op, inner);
    for (auto [result, buffer] : llvm::zip(results, buffers)) {
      Value number = inner.lookup(result);
      if (number.getType().isIndex())
        number = arith::IndexCastOp::create(b, loc, i32, number);
      else if (number.getType().isInteger(1))
        number = arith::ExtUIOp::create(b, loc, i32, number);
      gpu::StoreSharedOp::create(
          b, loc, gpu::FillOp::create(b, loc, row, number), buffer, Value());
    }
    gpu::YieldOp::create(b, loc);
  }
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  for (auto [result, buffer] : llvm::zip(results, buffers)) {
    Value number = gpu::LoadSharedElementOp::create(b, loc, i32, buffer, zero);
    if (result.getType().isIndex())
      number = arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
    else if (result.getType().isInteger(1))
      number = arith::TruncIOp::create(b, loc, b.getI1Type(), number);
    mapping.map(result, number);
  }
}
