// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-fuse: ops that share one kernel. See Passes.td.
#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GDN/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace gdn {
#define GEN_PASS_DEF_GDNFUSE
#include "gdn/Dialect/GDN/Transforms/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {

/// What an op says about its rows; null slots: the op works token by token.
struct Rows {
  Value slots, cuSeqlens;
  bool operator==(const Rows &other) const {
    return slots == other.slots && cuSeqlens == other.cuSeqlens;
  }
};

Rows rowsOf(Operation *op) {
  if (auto conv = dyn_cast<Conv1dOp>(op))
    return {conv.getSlots(), conv.getCuSeqlens()};
  if (auto rule = dyn_cast<DeltaRuleOp>(op))
    return {rule.getSlots(), rule.getCuSeqlens()};
  if (auto mask = dyn_cast<MaskRowsOp>(op))
    return {mask.getSlots(), mask.getCuSeqlens()};
  return {};
}

struct GDNFuse final : gdn::impl::GDNFuseBase<GDNFuse> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!func->hasAttr("gdn.entry") || func.isExternal())
        continue;
      if (!func.getBody().hasOneBlock()) {
        func.emitOpError("expects an entry to have one block");
        return signalPassFailure();
      }
      if (func.getOps<KernelOp>().empty())
        fuse(func);
    }
  }

  /// Groups runs of consecutive ops: program order, and with it the order of
  /// effects on pools, is kept.
  void fuse(func::FuncOp func) {
    SmallVector<Operation *> group;
    Rows groupRows;
    auto close = [&] {
      if (!group.empty())
        wrap(func, group);
      group.clear();
      groupRows = {};
    };
    SmallVector<Operation *> ops;
    for (Operation &op : func.getBody().front())
      if (isa<GDNDialect>(op.getDialect()) && !isa<UnpackOp>(op))
        ops.push_back(&op);
    for (Operation *op : ops) {
      bool alone = isa<PoolReadOp, PoolWriteOp>(op);
      Rows rows = rowsOf(op);
      if (alone || (rows.slots && groupRows.slots && !(rows == groupRows)))
        close();
      if (rows.slots)
        groupRows = rows;
      group.push_back(op);
      if (alone)
        close();
    }
    close();
  }

  /// Moves `ops` into a new kernel that yields what others use of them.
  void wrap(func::FuncOp func, ArrayRef<Operation *> ops) {
    llvm::SmallPtrSet<Operation *, 16> inside(ops.begin(), ops.end());
    SmallVector<Value> results;
    for (Operation *op : ops)
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) {
              return !inside.contains(user);
            }))
          results.push_back(result);
    // After the last op: every operand is known there.
    OpBuilder builder(ops.back()->getBlock(),
                      std::next(ops.back()->getIterator()));
    std::string name = func.getName().str();
    if (numberOf[func]++)
      name += "_" + std::to_string(numberOf[func] - 1);
    auto kernel = KernelOp::create(builder, ops.front()->getLoc(),
                                   TypeRange(ValueRange(results)), name);
    Block *body = builder.createBlock(&kernel.getBody());
    for (Operation *op : ops)
      op->moveBefore(body, body->end());
    builder.setInsertionPointToEnd(body);
    gdn::YieldOp::create(builder, kernel.getLoc(), results);
    for (auto [inner, outer] : llvm::zip(results, kernel.getResults()))
      inner.replaceUsesWithIf(outer, [&](OpOperand &use) {
        return !kernel->isProperAncestor(use.getOwner());
      });
    ++numKernels;
    numFusedOps += ops.size();
  }

  llvm::DenseMap<Operation *, unsigned> numberOf;
};

} // namespace
