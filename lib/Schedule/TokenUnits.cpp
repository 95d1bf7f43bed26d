// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks that stay: each takes unit after unit. The state of the next one is on
// its way to shared memory while the block works on one, whose state is in
// registers; so memory does not idle while the blocks of a multiprocessor work.
#include "TokensKernel.h"

using namespace mlir;
using namespace gdn;

/// The load of the state that the walk begins with.
tile::LoadOp TokensKernel::findStateLoad() {
  ArrayRef<int64_t> shape =
      cast<VectorType>(scan.getState().getType()).getShape();
  tile::LoadOp found;
  for (tile::LoadOp load : getLoads((*roles)[ScanRole::state].before))
    if (load.getTile().getType().getShape() == shape) {
      if (found)
        return nullptr;
      found = load;
    }
  return found;
}

/// What the copy of a unit's state takes: no rows where there is none.
TokensKernel::StateCopy TokensKernel::emitStateCopy(OtherUnit &unit,
                                                    OtherBlock &other) {
  Location loc = scan.getLoc();
  StateCopy copy;
  Value is = unit.isThere;
  if (Value reaches = emitReaches(other))
    is = arith::AndIOp::create(b, loc, is, reaches);
  int64_t rows = stateLoad.getTile().getType().getDimSize(0);
  copy.rows = arith::SelectOp::create(b, loc, is, index(rows), index(0));
  copy.view = other.get(stateLoad.getView());
  for (Value at : stateLoad.getIndices())
    copy.indices.push_back(
        arith::SelectOp::create(b, loc, is, other.get(at), index(0)));
  return copy;
}

void TokensKernel::beginStateCopy(const StateCopy &copy) {
  gpu::BeginCopyOp::create(b, scan.getLoc(), copy.view, copy.indices,
                           stateLoad.getDims(), copy.rows, statePlace,
                           /*scattered=*/false);
}

void TokensKernel::emitProgram(Block &body) {
  if (!stays)
    return ScheduledKernel::emitProgram(body);
  Location loc = scan.getLoc();
  auto isOfUnit = [](Operation &op) {
    return isa<tile::BlockIdOp>(op) || op.getNumRegions() != 0;
  };
  auto start = llvm::find_if(body, isOfUnit);
  emitOps({body.begin(), start});
  stateLoad = findStateLoad();
  statePlace = allocate(stateLoad.getTile().getType());
  {
    Value number = gpu::BlocksOp::create(b, loc, b.getIndexType(),
                                         b.getIndexType())
                       .getNumber();
    OtherUnit first = emitUnit(Value(), number);
    OtherBlock other(b, scalars, first.ids);
    beginStateCopy(emitStateCopy(first, other));
  }
  emitAwait();
  auto units = gpu::UnitsOp::create(b, loc, /*contiguous=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&units.getBody());
    Value count = gpu::BlocksOp::create(b, loc, b.getIndexType(),
                                        b.getIndexType())
                      .getCount();
    OtherUnit next = emitUnit(count, Value());
    OtherBlock other(b, scalars, next.ids);
    nextState = emitStateCopy(next, other);
    gpu::AwaitCopiesOp::create(b, loc);
    gpu::BarrierOp::create(b, loc);
    state = gpu::FetchOp::create(
        b, loc,
        gpu::FragmentType::get(stateLoad.getTile().getType(), stateRows),
        statePlace, Value());
    emitOps({start, std::prev(body.end())});
    gpu::BarrierOp::create(b, loc);
  }
}

void TokensKernel::enterBeside() {
  if (!stays)
    return ScheduledKernel::enterBeside();
  gpu::BarrierOp::create(b, scan.getLoc());
  beginStateCopy(nextState);
}
