// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asking for the state of a later block. A block's loads, work and stores
// follow each other, and few blocks fit on a multiprocessor, so memory would
// idle while they work. Where the block's own states have come, it asks for
// those of the block that will follow it: as far as the second-level cache,
// which changes no value.
#include "ScheduledKernel.h"

#include "gdn/Conversion/FormCode.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

Value OtherBlock::get(Value value) {
  if (Value known = there.lookupOrNull(value))
    return known;
  if (!dependsOnBlock(value))
    if (Value known = here.lookupOrNull(value))
      return known;
  Operation *op = value.getDefiningOp();
  if (auto id = dyn_cast<tile::BlockIdOp>(op)) {
    map(value, ids[id.getAxis()]);
    return ids[id.getAxis()];
  }
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (!op->isAncestor(operand.getParentBlock()->getParentOp()))
        there.map(operand, get(operand));
  });
  b.clone(*op, there);
  return there.lookup(value);
}

SmallVector<Value> OtherBlock::get(ValueRange values) {
  return llvm::map_to_vector(values, [&](Value value) { return get(value); });
}

bool OtherBlock::dependsOnBlock(Value value) {
  auto [found, isNew] = depends.try_emplace(value, false);
  if (!isNew)
    return found->second;
  Operation *op = value.getDefiningOp();
  bool does = op && isa<tile::BlockIdOp>(op);
  if (op)
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        does |= !op->isAncestor(operand.getParentBlock()->getParentOp()) &&
                dependsOnBlock(operand);
    });
  return depends[value] = does;
}

void OtherBlock::prefetchRows(tile::LoadOp load) {
  auto rows = gpu::RowsAttr::get(b.getContext(), /*warps=*/1, /*lanes=*/1,
                                 /*vector=*/1);
  gpu::PrefetchOp::create(
      b, load.getLoc(), get(load.getView()), get(load.getIndices()),
      load.getDims(), gpu::FragmentType::get(load.getTile().getType(), rows));
}

void OtherBlock::prefetch(tile::LoadOp load, Value row) {
  SmallVector<Value> at = get(load.getIndices());
  VectorType type = load.getTile().getType();
  if (row) {
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = 1;
    type = VectorType::get(shape, type.getElementType());
    Value &first = at[load.getDims()[0]];
    first = arith::AddIOp::create(b, load.getLoc(), first, row);
  }
  int64_t columns = type.getShape().back();
  gpu::PrefetchOp::create(
      b, load.getLoc(), get(load.getView()), at, load.getDims(),
      gpu::FragmentType::get(type, getWarpRows(b.getContext(), columns)));
}

void ScheduledKernel::emitAhead(int64_t distance, int64_t warp,
                                function_ref<void(OtherBlock &)> body) {
  Location loc = scan.getLoc();
  OpBuilder::InsertionGuard guard(b);
  auto warps = gpu::WarpsOp::create(b, loc, TypeRange(), warp, 1);
  b.createBlock(&warps.getBody());
  gpu::YieldOp::create(b, loc);
  b.setInsertionPointToStart(&warps.getBody().front());
  // Coordinates of the other block, in 32 bits; the last axis runs fastest.
  Type i32 = b.getI32Type();
  auto number = [&](Value index) -> Value {
    return arith::IndexCastOp::create(b, loc, i32, index);
  };
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, loc, i32, value);
  };
  auto grid = source->getAttrOfType<ArrayAttr>("gdn_tile.grid");
  auto symbols = source->getAttrOfType<ArrayAttr>("gdn_tile.symbols");
  SmallVector<Value> symbolValues;
  for (size_t i = 0; i < symbols.size(); ++i)
    symbolValues.push_back(scalars.lookup(source.getArgument(i)));
  SmallVector<Value> sizes, ids;
  for (auto [axis, form] : llvm::enumerate(grid.getAsRange<StringAttr>())) {
    sizes.push_back(number(
        emitForm(b, loc, form.getValue(), symbols, symbolValues)));
    Value id = gpu::BlockIdOp::create(b, loc, b.getIndexType(), axis);
    ids.push_back(number(id));
  }
  Value unit = ids[0];
  for (size_t axis = 1; axis < grid.size(); ++axis)
    unit = arith::AddIOp::create(
        b, loc, arith::MulIOp::create(b, loc, unit, sizes[axis]), ids[axis]);
  unit = arith::AddIOp::create(b, loc, unit, constant(distance));
  for (size_t axis = grid.size(); axis-- > 1;) {
    ids[axis] = arith::RemUIOp::create(b, loc, unit, sizes[axis]);
    unit = arith::DivUIOp::create(b, loc, unit, sizes[axis]);
  }
  ids[0] = unit;
  auto isThere = scf::IfOp::create(
      b, loc,
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, unit, sizes[0]),
      /*withElseRegion=*/false);
  b.setInsertionPointToStart(isThere.thenBlock());
  for (Value &id : ids)
    id = arith::IndexCastOp::create(b, loc, b.getIndexType(), id);

  OtherBlock other(b, scalars, ids);
  // As far as the program goes there: the branches around the scan.
  SmallVector<std::pair<scf::IfOp, bool>> branches;
  for (Operation *op = root; auto branch = op->getParentOfType<scf::IfOp>();
       op = branch)
    branches.insert(branches.begin(), {branch, branch.thenBlock()->getParent()->isAncestor(op->getParentRegion())});
  for (auto [branch, isThen] : branches) {
    Value condition = other.get(branch.getCondition());
    if (!isThen)
      condition = arith::XOrIOp::create(
          b, loc, condition,
          arith::ConstantIntOp::create(b, loc, b.getI1Type(), 1));
    auto copy = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
    b.setInsertionPointToStart(copy.thenBlock());
  }
  body(other);
}
