// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the roles of a persistent block do: fill the ring of states, prepare the
// operands, scan, finish the output.
#include "Recurrence/PersistentKernel.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// Asks for the states of units to come, and ahead of them for what other roles
/// will read of memory that the program writes: of the rest, units read the
/// same.
void PersistentKernel::emitStates() {
  Location loc = scan.getLoc();
  DenseSet<Value> written;
  source.walk([&](tile::StoreOp store) { written.insert(store.getView()); });
  FragmentEmitter warp(b, scalars);
  for (ScanRole part : {ScanRole::query, ScanRole::key, ScanRole::value})
    for (tile::LoadOp read : getLoads((*roles)[part].tiles))
      if (written.contains(read.getView()))
        warp.emitPrefetch(read);
  auto loop = createChunkLoop();
  auto type = cast<gpu::ChannelType>(ring.getType());
  Value tile = gpu::AcquireOp::create(b, loc, type.getTile(), ring);
  gpu::CopyOp::create(b, loc, scalars.lookup(load.getView()),
                      indicesAt(load.getIndices(), load.getDims().front(),
                                loop.getInductionVar()),
                      load.getDims(), tile);
  gpu::CommitOp::create(b, loc, Type(), ring);
  b.setInsertionPointAfter(loop);
}

void PersistentKernel::emitScan() {
  Location loc = scan.getLoc();
  MLIRContext *context = b.getContext();
  auto perColumn = gpu::PerColumnAttr::get(context, stateRows);
  auto perRow = gpu::PerRowAttr::get(context, stateRows);
  ScanToken token;
  token.key = receiveRow(scan.getKey(), perColumn);
  token.query = receiveRow(scan.getQuery(), perColumn);
  if (scan.getBeta())
    token.beta = receiveElement(scan.getBeta());
  bool perChannel =
      cast<VectorType>(scan.getLogDecay().getType()).getRank() == 2;
  token.logDecay = perChannel ? receiveRow(scan.getLogDecay(), perColumn)
                              : receiveElement(scan.getLogDecay());
  SmallVector<int64_t> chunks = {numChunks, chunkRows};
  Value values = receive(scan.getValue(), chunks);
  Value outputs = gpu::AcquireOp::create(
      b, loc, getTile(scan.getOutput(), chunks), channels[scan.getOutput()]);

  auto loop = createChunkLoop();
  Value chunk = loop.getInductionVar();
  auto type = cast<gpu::ChannelType>(ring.getType());
  auto state = gpu::FragmentType::get(
      VectorType::get(type.getShape(), type.getElementType()), stateRows);
  Value tile = gpu::ReceiveOp::create(b, loc, type.getTile(), ring);
  Value rows = gpu::LoadSharedOp::create(b, loc, state, tile, Value());
  auto f32Rows = VectorType::get({chunkRows}, b.getF32Type());
  token.value = gpu::LoadSharedOp::create(
      b, loc, gpu::FragmentType::get(f32Rows, perRow), values, chunk);
  ScanResult next = emitScanStep(b, loc, rows, token);
  // Not right behind the load: the next copy may overtake reads under way.
  gpu::ReleaseOp::create(b, loc, ring);
  gpu::StoreSharedOp::create(b, loc, next.output, outputs, chunk);
  for (tile::StoreOp store : stores)
    gpu::StoreOp::create(
        b, loc, next.state, scalars.lookup(store.getView()),
        indicesAt(store.getIndices(), store.getDims().front(), chunk),
        store.getDims(), Value(), /*aligned=*/16);
  b.setInsertionPointAfter(loop);
  gpu::ReleaseOp::create(b, loc, channels[scan.getValue()]);
  gpu::CommitOp::create(b, loc, Type(), channels[scan.getOutput()]);
}

SmallVector<Value> PersistentKernel::getOperands(ScanRole role) {
  switch (role) {
  case ScanRole::query:
    return {scan.getQuery()};
  case ScanRole::key:
    return {scan.getKey()};
  case ScanRole::value:
    return {scan.getValue()};
  case ScanRole::gates:
    return scan.getGates();
  default:
    return {};
  }
}

/// What comes to the scan, and goes from it, through a channel.
SmallVector<Value> PersistentKernel::getChannelled() {
  SmallVector<Value> all = {scan.getQuery(), scan.getKey(), scan.getValue()};
  llvm::append_range(all, scan.getGates());
  all.push_back(scan.getOutput());
  return all;
}

/// All loads first, then what the scan waits for, then stores; those that wait
/// for other blocks come last.
void PersistentKernel::emitOperands(ArrayRef<ScanRole> made) {
  Location loc = scan.getLoc();
  FragmentEmitter warp(b, scalars);
  SmallVector<Operation *> tiles, stored;
  for (ScanRole part : made) {
    llvm::append_range(tiles, (*roles)[part].tiles);
    llvm::append_range(stored, (*roles)[part].stores);
  }
  SmallVector<Operation *> loads;
  for (tile::LoadOp load : getLoads(tiles)) {
    warp.emit(load);
    loads.push_back(load);
  }
  for (ScanRole part : made) {
    for (Operation *op : (*roles)[part].tiles)
      if (!isa<tile::LoadOp>(op))
        warp.emit(op);
    for (Value operand : getOperands(part)) {
      auto type = cast<VectorType>(operand.getType());
      Value tile = gpu::AcquireOp::create(
          b, loc, getTile(operand, type.getShape()), channels[operand]);
      gpu::StoreSharedOp::create(b, loc, warp[operand], tile, Value());
      gpu::CommitOp::create(b, loc, Type(), channels[operand]);
    }
  }
  emitFactors(made, warp);
  for (bool isLate : {false, true})
    for (Operation *op : stored)
      if (isa<scf::IfOp>(op) == isLate)
        warp.emitStores(op, loads);
}

void PersistentKernel::emitOutputOf(FragmentEmitter &warp) {
  Location loc = scan.getLoc();
  Value output = scan.getOutput();
  Value tile = receive(output, cast<VectorType>(output.getType()).getShape());
  warp.set(output, gpu::LoadSharedOp::create(b, loc, warp.typeOf(output), tile,
                                             Value()));
  gpu::ReleaseOp::create(b, loc, channels[output]);
}

void PersistentKernel::emitOutput() {
  FragmentEmitter warp(b, scalars);
  const RoleWork &work = (*roles)[ScanRole::output];
  for (tile::LoadOp load : getLoads(work.tiles))
    warp.emit(load);
  emitOutputOf(warp);
  for (Operation *op : work.tiles)
    if (!isa<tile::LoadOp>(op))
      warp.emit(op);
  for (Operation *op : work.stores)
    warp.emitStores(op, {});
}
