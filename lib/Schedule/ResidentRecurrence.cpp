// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-schedule-resident-recurrence: the state of a value head in the registers
// of a block. See Passes.td.
#include "FragmentEmitter.h"
#include "ScanRoles.h"

#include "gdn/Schedule/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

namespace gdn {
#define GEN_PASS_DEF_SCHEDULERESIDENTRECURRENCE
#include "gdn/Schedule/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {

/// Registers that a thread can give to the state, of 128 at two blocks per
/// multiprocessor.
constexpr int64_t maxStateRegisters = 64;

/// Units of a launch that is too short to hide what a block waits for. Measured
/// with heads of 128 on an H200, states of f32 / bf16, dependent launches, us:
/// 32 units 3.67 to 3.48 / 3.05 to 2.96, 256 units 10.8 either way / 6.31 to
/// 6.25, 2,048 units 71.4 to 71.5 / 40.9 to 41.8.
constexpr int64_t maxPrefetchUnits = 256;

/// The warp of each role but the state, which all warps hold.
int64_t getWarp(ScanRole role, int64_t numWarps) {
  return role == ScanRole::output ? numWarps - 1 : int64_t(role);
}

class ResidentKernel {
public:
  ResidentKernel(func::FuncOp source, tile::DeltaScanOp scan, int64_t threads)
      : source(source), scan(scan), numWarps(threads / gpu::warpThreads),
        b(source.getContext()) {}

  LogicalResult emit(int64_t minBlocks);

private:
  LogicalResult chooseLayout();
  void emitBlock(Block &block);
  void emitScanBlock(Block &block);
  Value countUnits();
  void emitPrefetches();
  void emitOutputLoads();
  void emitOperands(ScanRole role, ArrayRef<Value> operands);
  void emitScan(FragmentEmitter &all);
  void emitLateStores(ScanRole role);
  void emitOutput();
  void emitPlainStore(tile::StoreOp store);

  gpu::WarpsOp enterWarps(ScanRole role, TypeRange results = {});
  void emitAwait();
  Value allocate(Value tile);
  Value fetch(Value operand, Attribute layout);

  func::FuncOp source;
  tile::DeltaScanOp scan;
  int64_t numWarps;
  OpBuilder b;
  IRMapping scalars;
  gpu::RowsAttr stateRows;
  std::optional<ScanRoles> roles;
  Block *entry = nullptr;
  Value zero;
  DenseMap<Value, Value> shared; // place of an operand or result of the scan
  DenseMap<Value, Value> held;   // fragments that one warp holds for later
};

struct ScheduleResidentRecurrence final
    : gdn::impl::ScheduleResidentRecurrenceBase<ScheduleResidentRecurrence> {
  using ScheduleResidentRecurrenceBase::ScheduleResidentRecurrenceBase;

  void runOnOperation() override {
    if (threads % gpu::warpThreads != 0 || threads < 160 || threads > 1024) {
      getOperation().emitError("expects the option 'threads' to be a multiple "
                               "of 32 from 160 to 1024, but got ")
          << threads.getValue();
      return signalPassFailure();
    }
    SmallVector<tile::DeltaScanOp> scans;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!func->hasAttr("gdn_tile.grid"))
        continue;
      SmallVector<tile::DeltaScanOp> found;
      func.walk([&](tile::DeltaScanOp scan) { found.push_back(scan); });
      // One token and no more: a walk over tokens has another schedule.
      if (found.size() == 1 && !found[0]->getParentOfType<scf::ForOp>() &&
          cast<VectorType>(found[0].getKey().getType()).getDimSize(0) == 1)
        scans.push_back(found[0]);
    }
    for (tile::DeltaScanOp scan : scans) {
      auto func = scan->getParentOfType<func::FuncOp>();
      if (failed(ResidentKernel(func, scan, threads).emit(minBlocks)))
        return signalPassFailure();
      ++numKernels;
    }
  }
};

} // namespace

/// Rows of the state to warps, eight lanes to a row: 128 bytes of it at once.
LogicalResult ResidentKernel::chooseLayout() {
  auto state = cast<VectorType>(scan.getState().getType());
  int64_t bytes = state.getElementTypeBitWidth() / 8;
  int64_t columns = state.getDimSize(1), vector = 16 / bytes;
  while (columns % vector != 0)
    vector /= 2;
  int64_t lanes = 8;
  while (lanes > 1 && columns % (lanes * vector) != 0)
    lanes /= 2;
  stateRows = gpu::RowsAttr::get(b.getContext(), numWarps, lanes, vector);
  auto fragment = gpu::FragmentType::get(state, stateRows);
  int64_t registers = fragment.getLocalSize() * bytes / 4;
  if (registers > maxStateRegisters)
    return scan.emitOpError("expects a state of at most ")
           << maxStateRegisters * 4 * numWarps * gpu::warpThreads
           << " bytes, which the registers of " << numWarps
           << " warps can hold, but got " << state.getNumElements() * bytes;
  return success();
}

gpu::WarpsOp ResidentKernel::enterWarps(ScanRole role, TypeRange results) {
  auto warps = gpu::WarpsOp::create(b, scan.getLoc(), results,
                                    getWarp(role, numWarps), 1);
  b.createBlock(&warps.getBody());
  return warps;
}

/// From here on what the launch ahead wrote may be read, and memory that it
/// reads be written. Only slots and states are read before.
void ResidentKernel::emitAwait() {
  gpu::AwaitLaunchOp::create(b, scan.getLoc());
  gpu::ReleaseLaunchOp::create(b, scan.getLoc());
}

/// Shared memory for a tile of the program.
Value ResidentKernel::allocate(Value tile) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);
  return gpu::AllocOp::create(
      b, scan.getLoc(), gpu::SharedType::get(cast<VectorType>(tile.getType())));
}

/// What a role reads, in the order to ask for it. Tiles that lie across memory
/// come last: turning their elements around waits for them.
static SmallVector<tile::LoadOp> getLoads(const RoleWork &work) {
  SmallVector<tile::LoadOp> loads;
  for (Operation *op : work.tiles)
    if (auto load = dyn_cast<tile::LoadOp>(op))
      loads.push_back(load);
  llvm::stable_sort(loads, [](tile::LoadOp x, tile::LoadOp y) {
    return llvm::is_sorted(x.getDims()) && !llvm::is_sorted(y.getDims());
  });
  return loads;
}

/// Operands of the scan, made by the warp of their role, in shared memory.
/// What only this block stores is stored at once; what the last reader stores
/// waits in shared memory until the scan is done, since to find the last one
/// takes a turn around the memory.
void ResidentKernel::emitOperands(ScanRole role, ArrayRef<Value> operands) {
  Location loc = scan.getLoc();
  for (Value operand : operands)
    shared[operand] = allocate(operand);
  const RoleWork &work = (*roles)[role];
  SetVector<Value> kept;
  for (Operation *op : work.stores)
    if (isa<scf::IfOp>(op))
      kept.insert_range(getUsedTiles(op));
  for (Value tile : kept)
    shared[tile] = allocate(tile);
  gpu::WarpsOp warps = enterWarps(role);
  FragmentEmitter warp(b, scalars);
  for (tile::LoadOp load : getLoads(work))
    warp.emit(load);
  for (Operation *op : work.tiles)
    if (!isa<tile::LoadOp>(op))
      warp.emit(op);
  for (Value operand : operands)
    gpu::ShareOp::create(b, loc, warp[operand], shared[operand], Value());
  for (Value tile : kept)
    gpu::ShareOp::create(b, loc, warp[tile], shared[tile], Value());
  for (Operation *op : work.stores)
    if (!isa<scf::IfOp>(op))
      warp.emitStores(op, {});
  gpu::YieldOp::create(b, loc);
  b.setInsertionPointAfter(warps);
}

/// The stores of a role that wait for other blocks or for a condition.
void ResidentKernel::emitLateStores(ScanRole role) {
  if (llvm::none_of((*roles)[role].stores, llvm::IsaPred<scf::IfOp>))
    return;
  gpu::WarpsOp warps = enterWarps(role);
  FragmentEmitter warp(b, scalars);
  for (Operation *op : (*roles)[role].stores) {
    if (!isa<scf::IfOp>(op))
      continue;
    for (Value tile : getUsedTiles(op))
      warp.set(tile, gpu::FetchOp::create(b, scan.getLoc(), warp.typeOf(tile),
                                          shared[tile], Value()));
    warp.emitStores(op, {});
  }
  gpu::YieldOp::create(b, scan.getLoc());
  b.setInsertionPointAfter(warps);
}

/// The number of units of a launch; null unless each axis of the grid is a
/// symbol.
Value ResidentKernel::countUnits() {
  auto symbols = source->getAttrOfType<ArrayAttr>("gdn_tile.symbols");
  Value units;
  for (Attribute form : source->getAttrOfType<ArrayAttr>("gdn_tile.grid")) {
    auto symbol = llvm::find(symbols, form);
    if (symbol == symbols.end())
      return nullptr;
    Value size = scalars.lookup(source.getArgument(symbol - symbols.begin()));
    units = units ? arith::MulIOp::create(b, scan.getLoc(), units, size) : size;
  }
  return units;
}

/// Asks for what the roles read behind the wait for the launch ahead. It pays
/// where the launch is short: all its blocks run at once.
void ResidentKernel::emitPrefetches() {
  Location loc = scan.getLoc();
  Value units = countUnits();
  if (!units)
    return;
  Value isShort = arith::CmpIOp::create(
      b, loc, arith::CmpIPredicate::ule, units,
      arith::ConstantIndexOp::create(b, loc, maxPrefetchUnits));
  auto branch = scf::IfOp::create(b, loc, isShort, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  for (ScanRole role :
       {ScanRole::query, ScanRole::key, ScanRole::value, ScanRole::output}) {
    SmallVector<tile::LoadOp> loads = getLoads((*roles)[role]);
    if (loads.empty())
      continue;
    gpu::WarpsOp warps = enterWarps(role);
    FragmentEmitter warp(b, scalars);
    for (tile::LoadOp load : loads)
      warp.emitPrefetch(load);
    gpu::YieldOp::create(b, loc);
    b.setInsertionPointAfter(warps);
  }
}

/// What the last warp reads besides the scan's output, asked for while the
/// state is on its way.
void ResidentKernel::emitOutputLoads() {
  SmallVector<tile::LoadOp> loads = getLoads((*roles)[ScanRole::output]);
  if (loads.empty())
    return;
  SmallVector<Type> types;
  for (tile::LoadOp load : loads)
    types.push_back(FragmentEmitter(b, scalars).typeOf(load.getTile()));
  gpu::WarpsOp warps = enterWarps(ScanRole::output, types);
  FragmentEmitter warp(b, scalars);
  SmallVector<Value> yielded;
  for (tile::LoadOp load : loads) {
    warp.emit(load);
    yielded.push_back(warp[load.getTile()]);
  }
  gpu::YieldOp::create(b, scan.getLoc(), yielded);
  b.setInsertionPointAfter(warps);
  for (auto [load, fragment] : llvm::zip(loads, warps.getResults()))
    held[load.getTile()] = fragment;
}

/// A 1 x d operand of the scan, from shared memory.
Value ResidentKernel::fetch(Value operand, Attribute layout) {
  auto type = cast<VectorType>(operand.getType());
  auto row = VectorType::get({type.getDimSize(1)}, type.getElementType());
  return gpu::FetchOp::create(b, scan.getLoc(),
                              gpu::FragmentType::get(row, layout),
                              shared[operand], zero);
}

/// The scan of one token on fragments:
///   d = beta (v - e^g M k), o = e^g M q + d (k . q), M' = e^g M + d k^T.
void ResidentKernel::emitScan(FragmentEmitter &all) {
  Location loc = scan.getLoc();
  MLIRContext *context = b.getContext();
  auto perColumn = gpu::PerColumnAttr::get(context, stateRows);
  auto perRow = gpu::PerRowAttr::get(context, stateRows);
  Value key = fetch(scan.getKey(), perColumn);
  Value query = fetch(scan.getQuery(), perColumn);
  Value value = fetch(scan.getValue(), perRow);
  Value beta = gpu::FetchElementOp::create(b, loc, b.getF32Type(),
                                           shared[scan.getBeta()], zero);
  SmallVector<Value> inputs = {all[scan.getState()], key, query, value};
  bool perChannel =
      cast<VectorType>(scan.getLogDecay().getType()).getRank() == 2;
  Value decay;
  if (perChannel)
    inputs.push_back(fetch(scan.getLogDecay(), perColumn));
  else
    decay = math::ExpOp::create(
        b, loc,
        gpu::FetchElementOp::create(b, loc, b.getF32Type(),
                                    shared[scan.getLogDecay()], zero)
            .getResult());

  auto state = cast<gpu::FragmentType>(inputs[0].getType());
  auto output = gpu::FragmentType::get(
      VectorType::get({state.getDimSize(0)}, b.getF32Type()), perRow);
  SmallVector<Type> argTypes = {b.getIndexType()};
  for (Value input : inputs)
    argTypes.push_back(
        gpu::getRowType(cast<gpu::FragmentType>(input.getType())));
  auto map = gpu::MapRowsOp::create(b, loc, TypeRange{state, output}, inputs);
  {
    OpBuilder::InsertionGuard guard(b);
    Block *body = b.createBlock(&map.getBody(), {}, argTypes,
                                SmallVector<Location>(argTypes.size(), loc));
    Value row = body->getArgument(1), k = body->getArgument(2);
    Value q = body->getArgument(3), v = body->getArgument(4);
    auto type = cast<VectorType>(k.getType());
    auto multiply = [&](Value x, Value y) -> Value {
      return arith::MulFOp::create(b, loc, x, y);
    };
    auto splat = [&](Value x) -> Value {
      return vector::BroadcastOp::create(b, loc, type, x);
    };
    auto dot = [&](Value x, Value y) -> Value {
      return vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD,
                                         multiply(x, y),
                                         arith::FastMathFlags::reassoc);
    };
    bool narrow = !state.getElementType().isF32();
    Value wide = narrow ? Value(arith::ExtFOp::create(b, loc, type, row)) : row;
    Value decayed, known, seen;
    if (perChannel) {
      Value factors = math::ExpOp::create(b, loc, body->getArgument(5));
      decayed = multiply(wide, factors);
      known = dot(decayed, k);
      seen = dot(decayed, q);
    } else {
      decayed = multiply(wide, splat(decay));
      known = multiply(decay, dot(wide, k));
      seen = multiply(decay, dot(wide, q));
    }
    Value error =
        multiply(beta, arith::SubFOp::create(b, loc, v, known).getResult());
    Value out = arith::AddFOp::create(b, loc, seen, multiply(error, dot(k, q)));
    Value next =
        arith::AddFOp::create(b, loc, decayed, multiply(splat(error), k));
    if (narrow)
      next = arith::TruncFOp::create(b, loc, row.getType(), next);
    gpu::YieldOp::create(b, loc, ValueRange{next, out});
  }
  all.set(scan.getNewState(), map.getResult(0));
  Value place = allocate(scan.getOutput());
  shared[scan.getOutput()] = place;
  gpu::ShareOp::create(b, loc, map.getResult(1), place, zero);
}

/// What follows the scan, in the last warp.
void ResidentKernel::emitOutput() {
  gpu::WarpsOp warps = enterWarps(ScanRole::output);
  FragmentEmitter warp(b, scalars);
  for (auto [tile, fragment] : held)
    warp.set(tile, fragment);
  warp.set(scan.getOutput(),
           gpu::FetchOp::create(b, scan.getLoc(), warp.typeOf(scan.getOutput()),
                                shared[scan.getOutput()], Value()));
  const RoleWork &work = (*roles)[ScanRole::output];
  for (Operation *op : work.tiles)
    if (!isa<tile::LoadOp>(op))
      warp.emit(op);
  for (Operation *op : work.stores)
    warp.emitStores(op, {});
  gpu::YieldOp::create(b, scan.getLoc());
  b.setInsertionPointAfter(warps);
}

void ResidentKernel::emitScanBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (!isa<tile::TileDialect>(op.getDialect()) && op.getNumRegions() == 0 &&
        llvm::none_of(op.getResultTypes(), llvm::IsaPred<FloatType>))
      b.clone(op, scalars);
  zero = arith::ConstantIndexOp::create(b, scan.getLoc(), 0);

  FragmentEmitter all(b, scalars, stateRows);
  const RoleWork &state = (*roles)[ScanRole::state];
  for (Operation *op : state.tiles)
    all.emit(op);
  emitPrefetches();
  emitAwait();
  emitOutputLoads();
  emitOperands(ScanRole::query, scan.getQuery());
  emitOperands(ScanRole::key, scan.getKey());
  emitOperands(ScanRole::value, scan.getValue());
  emitOperands(ScanRole::gates, {scan.getLogDecay(), scan.getBeta()});
  gpu::BarrierOp::create(b, scan.getLoc());
  emitScan(all);
  for (Operation *op : state.stores)
    all.emitStores(op, {});
  for (ScanRole role : {ScanRole::query, ScanRole::key, ScanRole::value})
    emitLateStores(role);
  gpu::BarrierOp::create(b, scan.getLoc());
  emitOutput();
}

/// Stores beside the scan's branch: zeros of a row that is not live.
void ResidentKernel::emitPlainStore(tile::StoreOp store) {
  gpu::WarpsOp warps = enterWarps(ScanRole::output);
  FragmentEmitter warp(b, scalars);
  for (Value tile : getUsedTiles(store))
    warp.emit(tile.getDefiningOp());
  warp.emitStores(store, {});
  gpu::YieldOp::create(b, scan.getLoc());
  b.setInsertionPointAfter(warps);
}

/// A block of the program: the scan's own by role, others op by op.
void ResidentKernel::emitBlock(Block &block) {
  if (scan->getBlock() == &block)
    return emitScanBlock(block);
  for (Operation &op : block.without_terminator()) {
    if (auto id = dyn_cast<tile::BlockIdOp>(op)) {
      scalars.map(id.getResult(),
                  gpu::BlockIdOp::create(b, op.getLoc(), b.getIndexType(),
                                         id.getAxis()));
    } else if (auto store = dyn_cast<tile::StoreOp>(op)) {
      emitPlainStore(store);
    } else if (makesTile(&op)) {
      continue; // made where it is stored
    } else if (op.getNumRegions() == 0) {
      b.clone(op, scalars);
    } else {
      // The same op with regions of its own.
      Operation *clone = op.cloneWithoutRegions(scalars);
      b.insert(clone);
      OpBuilder::InsertionGuard guard(b);
      for (auto [from, to] : llvm::zip(op.getRegions(), clone->getRegions())) {
        if (from.empty())
          continue;
        Block &body = from.front();
        Block *copy = b.createBlock(
            &to, {}, body.getArgumentTypes(),
            SmallVector<Location>(body.getNumArguments(), op.getLoc()));
        scalars.map(body.getArguments(), copy->getArguments());
        if (op.isAncestor(scan) && !from.isAncestor(scan->getParentRegion()))
          emitAwait();
        emitBlock(body);
        b.clone(*body.getTerminator(), scalars);
      }
    }
  }
}

LogicalResult ResidentKernel::emit(int64_t minBlocks) {
  if (failed(chooseLayout()))
    return failure();
  FailureOr<ScanRoles> found = ScanRoles::analyse(scan);
  if (failed(found))
    return failure();
  roles = std::move(*found);

  b.setInsertionPoint(source);
  auto kernel = cast<func::FuncOp>(source->cloneWithoutRegions());
  b.insert(kernel);
  kernel->setAttr("gdn_gpu.threads",
                  b.getI64IntegerAttr(numWarps * gpu::warpThreads));
  kernel->setAttr("gdn_gpu.min_blocks", b.getI64IntegerAttr(minBlocks));
  // Rows of the state are read and written 16 bytes at a time.
  for (Operation *op : (*roles)[ScanRole::state].tiles)
    if (auto load = dyn_cast<tile::LoadOp>(op))
      if (auto pool = dyn_cast<BlockArgument>(load.getView()))
        kernel.setArgAttr(pool.getArgNumber(), "gdn_gpu.alignment",
                          b.getI64IntegerAttr(16));
  entry = kernel.addEntryBlock();
  b.setInsertionPointToStart(entry);
  Block &body = source.getBody().front();
  scalars.map(body.getArguments(), entry->getArguments());
  emitBlock(body);
  func::ReturnOp::create(b, source.getLoc());
  source.erase();
  return success();
}
