// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decode in passes over blocks of rows of the state, one after another.
#include "Recurrence/ResidentKernel.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// The rows of the state that a pass loads, from `first` on: of those that
/// the load has, where it does not have all.
Value ResidentKernel::emitPassLoad(tile::LoadOp load, Value first,
                                   gpu::FragmentType type) {
  SmallVector<Value> at = llvm::map_to_vector(
      load.getIndices(), [&](Value index) { return lookup(index); });
  int64_t rowDim = load.getDims().front();
  at[rowDim] = arith::AddIOp::create(b, load.getLoc(), at[rowDim], first);
  Value view = lookup(load.getView()), rows;
  if (load.getRows()) {
    auto count =
        arith::ConstantIndexOp::create(b, load.getLoc(), type.getDimSize(0));
    Value left =
        arith::SubIOp::create(b, load.getLoc(), lookup(load.getRows()), first);
    left = arith::MaxSIOp::create(b, load.getLoc(), left, zero);
    rows = arith::MinSIOp::create(b, load.getLoc(), left, count);
  }
  return gpu::LoadOp::create(b, load.getLoc(), type, view, at, load.getDims(),
                             rows, getAlignment(view));
}

/// The stores of the new state, of the rows of a pass alone: `op` is a store,
/// or a branch around some.
void ResidentKernel::emitPassStores(Operation *op, Value first, Value state) {
  if (auto store = dyn_cast<tile::StoreOp>(op)) {
    SmallVector<Value> at = llvm::map_to_vector(
        store.getIndices(), [&](Value index) { return lookup(index); });
    int64_t rowDim = store.getDims().front();
    at[rowDim] = arith::AddIOp::create(b, op->getLoc(), at[rowDim], first);
    Value view = lookup(store.getView());
    gpu::StoreOp::create(b, op->getLoc(), state, view, at, store.getDims(),
                         Value(), getAlignment(view));
    return;
  }
  auto branch = cast<scf::IfOp>(op);
  auto copy = scf::IfOp::create(b, op->getLoc(), lookup(branch.getCondition()),
                                /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.thenBlock());
  IRMapping outside = scalars;
  for (Operation &inner : branch.thenBlock()->without_terminator())
    if (isa<tile::StoreOp, scf::IfOp>(inner))
      emitPassStores(&inner, first, state);
    else
      b.clone(inner, scalars);
  scalars = outside;
}

/// A row in shared memory as a matrix with a row per pass.
Value ResidentKernel::inPasses(Value buffer) {
  auto type = cast<gpu::SharedType>(buffer.getType());
  int64_t rows = type.getShape().back() / numPasses;
  auto pieces = VectorType::get({numPasses, rows}, type.getElementType());
  return gpu::ReshapeOp::create(b, scan.getLoc(), gpu::SharedType::get(pieces),
                                buffer);
}

/// The scan of the token on one block of rows after another: rows of the state
/// do not depend on each other.
void ResidentKernel::emitPasses() {
  Location loc = scan.getLoc();
  auto perRow = gpu::PerRowAttr::get(b.getContext(), stateRows);
  auto state = cast<VectorType>(scan.getState().getType());
  int64_t rows = state.getDimSize(0) / numPasses;
  auto part =
      VectorType::get({rows, state.getDimSize(1)}, state.getElementType());
  auto rowValues = VectorType::get({rows}, b.getF32Type());
  const RoleWork &work = (*roles)[ScanRole::state];
  ScanToken token = fetchToken();
  Value values = inPasses(shared[scan.getValue()]);
  Value outputs = inPasses(shared[scan.getOutput()]);
  auto index = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto loop = scf::ForOp::create(b, loc, zero, index(numPasses), index(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value pass = loop.getInductionVar();
  Value first = arith::MulIOp::create(b, loc, pass, index(rows));
  Value loaded = emitPassLoad(cast<tile::LoadOp>(work.tiles.front()), first,
                              gpu::FragmentType::get(part, stateRows));
  token.value = gpu::LoadSharedOp::create(
      b, loc, gpu::FragmentType::get(rowValues, perRow), values, pass);
  ScanResult next = emitScanStep(b, loc, loaded, token);
  gpu::StoreSharedOp::create(b, loc, next.output, outputs, pass);
  for (Operation *op : work.stores)
    emitPassStores(op, first, next.state);
}

/// In passes the state is what one op loads, and what is stored as it is.
LogicalResult ResidentKernel::check() {
  if (numPasses == 1)
    return success();
  const RoleWork &work = (*roles)[ScanRole::state];
  auto load = work.tiles.size() == 1 ? dyn_cast<tile::LoadOp>(work.tiles[0])
                                     : tile::LoadOp();
  bool ok = load && llvm::is_sorted(load.getDims());
  for (Operation *op : work.stores)
    op->walk([&](tile::StoreOp store) {
      ok &= store.getTile() == scan.getNewState() && !store.getRows() &&
            llvm::is_sorted(store.getDims());
    });
  if (ok)
    return success();
  return scan.emitOpError("expects a state of more than one pass to be loaded "
                          "and stored whole and as it is");
}
