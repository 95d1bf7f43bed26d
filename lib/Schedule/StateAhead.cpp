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

/// The sizes of the axes of the grid, each an i32.
static SmallVector<Value> emitGridSizes(OpBuilder &b, func::FuncOp source,
                                        const IRMapping &scalars) {
  Location loc = source.getLoc();
  auto grid = source->getAttrOfType<ArrayAttr>("gdn_tile.grid");
  auto symbols = source->getAttrOfType<ArrayAttr>("gdn_tile.symbols");
  SmallVector<Value> values, sizes;
  for (size_t i = 0; i < symbols.size(); ++i)
    values.push_back(scalars.lookup(source.getArgument(i)));
  for (auto form : grid.getAsRange<StringAttr>())
    sizes.push_back(arith::IndexCastOp::create(
        b, loc, b.getI32Type(),
        emitForm(b, loc, form.getValue(), symbols, values)));
  return sizes;
}

ScheduledKernel::OtherUnit ScheduledKernel::emitUnit(Value distance,
                                                     Value number) {
  Location loc = scan.getLoc();
  auto asNumber = [&](Value index) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), index);
  };
  // In 32 bits, which are far faster to divide; the last axis runs fastest.
  SmallVector<Value> sizes = emitGridSizes(b, source, scalars);
  Value here;
  if (number) {
    here = asNumber(number);
  } else {
    for (auto [axis, size] : llvm::enumerate(sizes)) {
      Value id =
          asNumber(gpu::BlockIdOp::create(b, loc, b.getIndexType(), axis));
      here = here ? arith::AddIOp::create(
                        b, loc, arith::MulIOp::create(b, loc, here, size), id)
                        .getResult()
                  : id;
    }
  }
  Value unit = here;
  if (distance)
    unit = arith::AddIOp::create(b, loc, unit, asNumber(distance));
  Value count = sizes.front();
  for (Value size : llvm::drop_begin(sizes))
    count = arith::MulIOp::create(b, loc, count, size);
  OtherUnit other;
  other.isThere =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, unit, count);
  unit = arith::SelectOp::create(b, loc, other.isThere, unit, here);
  for (size_t axis = sizes.size(); axis-- > 0;) {
    Value id = unit;
    if (axis > 0) {
      id = arith::RemUIOp::create(b, loc, unit, sizes[axis]);
      unit = arith::DivUIOp::create(b, loc, unit, sizes[axis]);
    }
    other.ids.insert(
        other.ids.begin(),
        arith::IndexCastOp::create(b, loc, b.getIndexType(), id).getResult());
  }
  return other;
}

/// Whether the program gets to `root` in the other block.
Value ScheduledKernel::emitReaches(OtherBlock &other) {
  Value reaches;
  for (Operation *op = root; auto branch = op->getParentOfType<scf::IfOp>();
       op = branch) {
    Value condition = other.get(branch.getCondition());
    reaches = reaches ? arith::AndIOp::create(b, scan.getLoc(), condition,
                                              reaches)
                            .getResult()
                      : condition;
  }
  return reaches;
}

bool ScheduledKernel::isReachedOnce() {
  Operation *around = root->getParentOp();
  if (around == source)
    return true;
  auto branch = dyn_cast<scf::IfOp>(around);
  return branch && branch->getParentOp() == source &&
         branch.thenBlock() == root->getBlock();
}

void ScheduledKernel::emitAhead(int64_t distance, int64_t warp,
                                function_ref<void(OtherBlock &)> body) {
  Location loc = scan.getLoc();
  OpBuilder::InsertionGuard guard(b);
  auto warps = gpu::WarpsOp::create(b, loc, TypeRange(), warp, 1);
  b.createBlock(&warps.getBody());
  gpu::YieldOp::create(b, loc);
  b.setInsertionPointToStart(&warps.getBody().front());
  OtherUnit unit =
      emitUnit(arith::ConstantIndexOp::create(b, loc, distance), Value());
  OtherBlock other(b, scalars, unit.ids);
  emitInUnit(unit, other, body);
}

void ScheduledKernel::emitInUnit(OtherUnit &unit, OtherBlock &other,
                                 function_ref<void(OtherBlock &)> body) {
  Location loc = scan.getLoc();
  OpBuilder::InsertionGuard guard(b);
  auto enter = [&](Value condition) {
    auto branch =
        scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  };
  enter(unit.isThere);
  if (Value reaches = emitReaches(other))
    enter(reaches);
  body(other);
}
