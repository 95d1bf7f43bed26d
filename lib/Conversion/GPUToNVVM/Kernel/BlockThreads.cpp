// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The formulas of the attribute `rows`, as code of a thread.
#include "Kernel/BlockThreads.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace gdn;

Value Arithmetic::i32(int64_t value) const {
  return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
}

Value Arithmetic::i64(int64_t value) const {
  return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
}

Value Arithmetic::toI64(Value value) const {
  if (value.getType().isIndex())
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
  return value.getType().isInteger(32)
             ? arith::ExtUIOp::create(b, loc, b.getI64Type(), value).getOut()
             : value;
}

Value Arithmetic::toIndex(Value value) const {
  if (value.getType().isIndex())
    return value;
  return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), value);
}

Value Arithmetic::toI32(Value index) const {
  return arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
}

Value Arithmetic::add(Value lhs, Value rhs) const {
  return arith::AddIOp::create(b, loc, lhs, rhs);
}

Value Arithmetic::mul(Value lhs, Value rhs) const {
  return arith::MulIOp::create(b, loc, lhs, rhs);
}

Value Arithmetic::both(Value lhs, Value rhs) const {
  if (!lhs || !rhs)
    return lhs ? lhs : rhs;
  return arith::AndIOp::create(b, loc, lhs, rhs);
}

Value Arithmetic::isLess(Value lhs, Value rhs) const {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, lhs, rhs);
}

Value Arithmetic::isEqual(Value lhs, Value rhs) const {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lhs, rhs);
}

Value Arithmetic::advance(Value pointer, Value bytes) const {
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{bytes});
}

Value Arithmetic::advance(Value pointer, int64_t bytes) const {
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{int32_t(bytes)});
}

/// The number of the lane in its row, and that of its row among those of the
/// warp.
static Value getLaneInRow(const Arithmetic &a, gdn::gpu::RowsAttr layout,
                          Value lane) {
  if (layout.getCrossed())
    return arith::DivUIOp::create(a.b, a.loc, lane, a.i32(layout.getGroups()));
  return arith::RemUIOp::create(a.b, a.loc, lane, a.i32(layout.getLanes()));
}

static Value getGroup(const Arithmetic &a, gdn::gpu::RowsAttr layout,
                      Value lane) {
  if (layout.getCrossed())
    return arith::RemUIOp::create(a.b, a.loc, lane, a.i32(layout.getGroups()));
  return arith::DivUIOp::create(a.b, a.loc, lane, a.i32(layout.getLanes()));
}

Value BlockThreads::row(const Arithmetic &a, gpu::RowsAttr layout, int64_t rows,
                        int64_t i) const {
  Value group = getGroup(a, layout, lane);
  if (layout.getGroups() == 1)
    group = a.i32(0);
  else if (layout.getTall())
    group = a.mul(group, a.i32(layout.getGroupStep(rows)));
  Value row = a.add(group, a.i32(i * layout.getRowStep()));
  if (layout.getWarps() == 1)
    return row;
  return a.add(a.mul(warp, a.i32(layout.getWarpStep(rows))), row);
}

Value BlockThreads::column(const Arithmetic &a, gpu::RowsAttr layout) const {
  return a.mul(getLaneInRow(a, layout, lane), a.i32(layout.getVector()));
}

Value BlockThreads::isWriter(const Arithmetic &a,
                             gpu::FragmentType fragment) const {
  gpu::RowsAttr layout = fragment.getRows();
  Value isWriter;
  if (fragment.isPerRow() && layout.getLanes() > 1) {
    isWriter = a.isEqual(getLaneInRow(a, layout, lane), a.i32(0));
  }
  if (fragment.isPerColumn()) {
    if (layout.getGroups() > 1)
      isWriter = layout.getCrossed()
                     ? a.isEqual(getGroup(a, layout, lane), a.i32(0))
                     : a.isLess(lane, a.i32(layout.getLanes()));
    if (layout.getWarps() > 1)
      isWriter = a.both(isWriter, a.isEqual(warp, a.i32(0)));
  }
  return isWriter;
}
