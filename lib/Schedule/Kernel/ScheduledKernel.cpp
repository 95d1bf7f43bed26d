// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The control flow of a tile program around what a schedule lays out: the same
// ops, with stores by the last warp.
#include "Kernel/ScheduledKernel.h"

#include "gdn/Target/GpuFacts.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// The warp of each role but the state, which all warps hold.
int64_t ScheduledKernel::getWarp(ScanRole role) const {
  if (role == ScanRole::gates && joinsGates())
    role = ScanRole::value;
  return role == ScanRole::output ? numWarps - 1 : int64_t(role);
}

/// Columns of a row that a thread holds, where it can be: a key and a query
/// take as many registers each.
static constexpr int64_t maxLocalColumns = 16;

/// Lanes to a row where the rows of the state lie side by side in memory: four
/// others have more rows of the same columns, 64 bytes of f32 with four rows
/// each.
static constexpr int64_t acrossLanes = 8;

/// Rows of the state to warps, some lanes to a row, more for rows of many
/// columns. Rows of f32, and of "narrow", go to the warps in turns, so that the
/// block sweeps over the state: with 512 rows of 32 heads and states of f32
/// that and the lanes are 2 %.
/// Of rows that lie side by side in memory a thread takes neighbours, so that a
/// warp reads whole sectors of a column.
bool ScheduledKernel::chooseLayout(Type stored, int64_t minBlocks) {
  // Of its share of the registers a thread gives half to elements of the state,
  // which all are f32 for a while; in passes a quarter, since keys and queries
  // stay beside them from one to the next.
  int64_t maxLocalElements =
      gpufacts::registersPerSm / (minBlocks * numWarps * gpu::warpThreads) / 2;
  int64_t maxPassElements = maxLocalElements / 2;
  auto state = cast<VectorType>(scan.getState().getType());
  int64_t columns = state.getDimSize(1);
  int64_t vector = 16 / (stored.getIntOrFloatBitWidth() / 8);
  const std::optional<int64_t> own = getOwnLanes();
  if (own) // of tensor cores, which take no more at once
    vector = std::min(vector, getOwnVector());
  while (columns % vector != 0)
    vector /= 2;
  int64_t lanes = own.value_or(isAcross ? acrossLanes : getRowLanes(stored));
  while (lanes > 1 && columns % (lanes * vector) != 0)
    lanes /= 2;
  while (!own && lanes < gpu::warpThreads &&
         columns > lanes * maxLocalColumns &&
         columns % (2 * lanes * vector) == 0)
    lanes *= 2;
  stateRows =
      isAcross && !own
          ? gpu::RowsAttr::get(b.getContext(), numWarps, lanes, vector,
                               /*cyclic=*/false, /*tall=*/true,
                               /*crossed=*/false)
          : gpu::RowsAttr::get(b.getContext(), numWarps, lanes, vector,
                               /*cyclic=*/stored.isF32() || widensRows());
  int64_t rows = state.getDimSize(0);
  auto fits = [&](int64_t passes) {
    if (rows % passes != 0)
      return false;
    auto part =
        VectorType::get({rows / passes, columns}, state.getElementType());
    int64_t size = gpu::FragmentType::get(part, stateRows).getLocalSize();
    if (widensRows())
      size = llvm::divideCeil(size * stored.getIntOrFloatBitWidth(), 32);
    return size <= (passes == 1 ? maxLocalElements : maxPassElements);
  };
  while (takesPasses() && numPasses < rows && !fits(numPasses))
    ++numPasses;
  if (fits(numPasses))
    return true;
  scan.emitRemark("a state of ")
      << state.getNumElements() << " elements does not fit in the registers of "
      << numWarps << " warps, which can hold "
      << maxLocalElements * numWarps * gpu::warpThreads;
  return false;
}

gpu::WarpsOp ScheduledKernel::enterWarps(ScanRole role, TypeRange results) {
  auto warps =
      gpu::WarpsOp::create(b, scan.getLoc(), results, getWarp(role), 1, {});
  b.createBlock(&warps.getBody());
  return warps;
}

void ScheduledKernel::emitAwait() {
  gpu::AwaitLaunchOp::create(b, scan.getLoc());
  gpu::ReleaseLaunchOp::create(b, scan.getLoc());
}

Value ScheduledKernel::allocate(VectorType tile) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);
  return gpu::AllocOp::create(b, scan.getLoc(), gpu::SharedType::get(tile));
}

SmallVector<tile::LoadOp> gdn::getLoads(ArrayRef<Operation *> ops) {
  SmallVector<tile::LoadOp> loads;
  for (Operation *op : ops)
    if (auto load = dyn_cast<tile::LoadOp>(op))
      loads.push_back(load);
  llvm::stable_sort(loads, [](tile::LoadOp x, tile::LoadOp y) {
    return llvm::is_sorted(x.getDims()) && !llvm::is_sorted(y.getDims());
  });
  return loads;
}

Value ScheduledKernel::loadShared(Value operand, Attribute layout, Value row) {
  auto type = cast<VectorType>(operand.getType());
  auto rowType = VectorType::get({type.getDimSize(1)}, type.getElementType());
  return gpu::LoadSharedOp::create(b, scan.getLoc(),
                                   gpu::FragmentType::get(rowType, layout),
                                   shared[operand], row);
}

/// Numbers of the layer are loaded where they are used.
static bool isFloatWork(Operation &op) {
  return llvm::any_of(op.getResultTypes(), llvm::IsaPred<FloatType>) ||
         llvm::any_of(op.getOperandTypes(), llvm::IsaPred<FloatType>);
}

void ScheduledKernel::emitScalars(Block &block,
                                  const SetVector<Operation *> &later) {
  for (Operation &op : block.without_terminator())
    if (op.getNumRegions() == 0 && !isFloatWork(op) && !isKnown(op) &&
        !later.contains(&op))
      copyScalar(b, &op, scalars);
}

/// Stores beside the scan's branch: zeros of a sequence that is not live.
void ScheduledKernel::emitPlainStore(tile::StoreOp store) {
  gpu::WarpsOp warps = enterWarps(ScanRole::output);
  FragmentEmitter warp(b, scalars);
  for (Value tile : getUsedTiles(store))
    warp.emit(tile.getDefiningOp());
  warp.emitStores(store, {});
  gpu::YieldOp::create(b, scan.getLoc());
  b.setInsertionPointAfter(warps);
}

/// A block of the program: the root's own by role, others op by op.
void ScheduledKernel::emitBlock(Block &block) {
  if (root->getBlock() == &block)
    return emitRootBlock(block);
  emitOps(block.without_terminator());
}

void ScheduledKernel::emitOps(llvm::iterator_range<Block::iterator> ops) {
  for (Operation &op : ops) {
    if (isKnown(op))
      continue;
    if (auto id = dyn_cast<tile::BlockIdOp>(op)) {
      copyBlockId(b, id, scalars);
    } else if (auto store = dyn_cast<tile::StoreOp>(op)) {
      emitPlainStore(store);
    } else if (makesTile(&op)) {
      continue; // made where it is stored
    } else if (op.getNumRegions() == 0) {
      copyScalar(b, &op, scalars);
    } else {
      copyWithRegions(b, &op, scalars, [&](Block &from, Block &) {
        if (op.isAncestor(root) &&
            !from.getParent()->isAncestor(root->getParentRegion()))
          enterOverlap();
        emitBlock(from);
      });
    }
  }
}

FailureOr<bool> ScheduledKernel::emit(int64_t minBlocks) {
  FailureOr<ScanRoles> found = ScanRoles::analyse(scan);
  if (failed(found))
    return failure();
  roles = std::move(*found);
  // In memory the state may be narrower than the scan has it.
  const RoleWork &state = (*roles)[ScanRole::state];
  SmallVector<tile::LoadOp> stateLoads = getLoads(state.tiles);
  stateLoads.append(getLoads(state.before));
  Type stored = cast<VectorType>(scan.getState().getType()).getElementType();
  if (!stateLoads.empty())
    stored = stateLoads.front().getTile().getType().getElementType();
  isAcross = llvm::any_of(stateLoads, [](tile::LoadOp load) {
    return liesAcross(load.getView(), load.getDims());
  });
  chooseWarps(minBlocks);
  if (!chooseLayout(stored, minBlocks))
    return false;
  if (failed(check()))
    return failure();

  func::FuncOp kernel = createKernel(b, source, scalars);
  entry = &kernel.front();
  gpu::KernelFields fields(kernel);
  fields.setThreads(numWarps * gpu::warpThreads);
  fields.setMinBlocks(minBlocks);
  // Rows of the state are read and written 16 bytes at a time, in the pool that
  // it comes from and in one that takes states after tokens.
  for (tile::LoadOp load : stateLoads)
    if (load.getTile().getType().getRank() == 2) // no scales of rows
      setAlignment(kernel, load.getView(), 16);
  for (Operation *op : state.stores)
    op->walk([&](tile::StoreOp store) {
      if (store.getTile().getType().getRank() == 2)
        setAlignment(kernel, store.getView(), 16);
    });
  emitBlock(source.front());
  func::ReturnOp::create(b, source.getLoc());
  source.erase();
  return true;
}
