// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-schedule-persistent-recurrence: states stream through blocks that stay.
// See Passes.td.
#include "Kernel/PendingSource.h"
#include "Recurrence/NarrowReplay.h"
#include "Recurrence/PersistentReplay.h"

#include "gdn/Schedule/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

namespace gdn {
#define GEN_PASS_DEF_SCHEDULEPERSISTENTRECURRENCE
#include "gdn/Schedule/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {

/// Tiles of a channel of operands: units by which a role may be ahead.
constexpr int64_t operandDepth = 3;

/// Buffers of the ring of states: more take longer to fill than they gain.
/// Measured with heads of 128 on an H200, state bf16, 2,048 units, dependent
/// launches, us: 4, 6, 8 ring stages 39.5, 39.2, 39.1; without dependent
/// launches 43.5, 43.6, 44.2.
constexpr int64_t maxStateDepth = 6;

/// Elements of the state that a thread works on at once, beside 32 of key and
/// query. Nine warps, two blocks per multiprocessor, leave 96 registers.
constexpr int64_t maxThreadElements = 32;

/// Columns of a row. Wider rows of 16 bits take more lanes in the other
/// schedule, so sums of another order; those of f32 were not measured.
constexpr int64_t maxColumns = 192;

/// Threads of a block of the variant "crowded".
constexpr int64_t crowdedThreads = 128;

/// Bytes of barriers and gaps between tiles.
constexpr int64_t barrierBytes = 2048;

struct SchedulePersistentRecurrence final
    : gdn::impl::SchedulePersistentRecurrenceBase<
          SchedulePersistentRecurrence> {
  using SchedulePersistentRecurrenceBase::SchedulePersistentRecurrenceBase;

  void runOnOperation() override {
    SmallVector<tile::RuleOpInterface> rules;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!tile::StageFields(func).getGrid() ||
          tile::StageFields(func).getStageOf())
        continue;
      SmallVector<tile::RuleOpInterface> found;
      func.walk([&](tile::RuleOpInterface rule) { found.push_back(rule); });
      if (found.size() == 1 && !found[0]->getParentOfType<scf::ForOp>() &&
          found[0].getKey().getType().getDimSize(0) == 1)
        rules.push_back(found[0]);
    }
    for (tile::RuleOpInterface rule : rules) {
      auto func = rule->getParentOfType<func::FuncOp>();
      if (auto replay = dyn_cast<tile::DeltaReplayOp>(*rule)) {
        // What is left of tokens is a row for each: no role makes it.
        if (replay.isPerChannel())
          continue;
        PersistentReplay kernel(func, replay);
        FailureOr<bool> suits = kernel.analyse(sharedBytes);
        if (failed(suits))
          return signalPassFailure();
        int64_t most = replay.getPendingKey().getType().getDimSize(0);
        const bool isNarrow =
            llvm::any_of(getPendingLoads(replay), [](tile::LoadOp load) {
              return load && !load.getTile().getType().getElementType().isF32();
            });
        if (!*suits || replayUnits == 0 || most % pendingMultiple != 0 ||
            isNarrow)
          continue;
        const int64_t mostUnits = NarrowReplay::suits(replay, crowdedThreads)
                                      ? maxNarrowReplayUnits
                                      : INT32_MAX;
        if (mostUnits < replayUnits)
          continue;
        kernel.emitVariant({replayUnits, mostUnits, /*needsDependent=*/false});
        ++numKernels;
        continue;
      }
      PersistentKernel kernel(func, rule);
      FailureOr<bool> suits = kernel.analyse(sharedBytes);
      if (failed(suits))
        return signalPassFailure();
      const bool isWide = kernel.getElementBytes() > 2;
      int64_t most = isWide ? maxWideUnits : maxUnits;
      if (!*suits || most == 0)
        continue;
      // What it is faster by is the work ahead of the wait for the launch
      // before.
      kernel.emitVariant({isWide ? minWideUnits : minUnits, most,
                          /*needsDependent=*/true});
      ++numKernels;
    }
  }
};

} // namespace

static int64_t getBytes(Type element) {
  return element.getIntOrFloatBitWidth() / 8;
}

//===----------------------------------------------------------------------===//
// Whether and how
//===----------------------------------------------------------------------===//

int64_t PersistentKernel::getElementBytes() {
  return getBytes(cast<VectorType>(scan.getState().getType()).getElementType());
}

bool PersistentKernel::takeStore(Operation *op) {
  auto store = dyn_cast<tile::StoreOp>(op);
  if (!store || store.getTile() != scan.getNewState() || store.getRows())
    return false;
  stores.push_back(store);
  return true;
}

FailureOr<bool> PersistentKernel::analyse(int64_t sharedBytes) {
  FailureOr<ScanRoles> found = ScanRoles::analyse(scan);
  if (failed(found))
    return failure();
  roles = std::move(*found);
  // The state is read whole, scanned as it is, and written whole.
  const RoleWork &state = (*roles)[ScanRole::state];
  load = scan.getState().getDefiningOp<tile::LoadOp>();
  if (!load || load.getRows() || state.tiles.size() != 1 ||
      scan->getBlock() == &source.getBody().front())
    return false;
  for (Operation *op : state.stores)
    if (!takeStore(op))
      return false;
  // A decay per channel is another row in registers, for which there is none.
  if (cast<VectorType>(scan.getLogDecay().getType()).getRank() == 2)
    return false;
  auto type = cast<VectorType>(scan.getState().getType());
  auto view = cast<MemRefType>(load.getView().getType());
  int64_t bytes = getBytes(type.getElementType());
  auto [strides, offset] = view.getStridesAndOffset();
  if (type.getDimSize(1) * bytes % 16 != 0 ||
      strides[load.getDims().back()] != 1)
    return false;

  // As many rows at once as a thread has registers for, the same in each warp.
  int64_t vector = 16 / bytes, lanes = getRowLanes(type.getElementType());
  int64_t columns = type.getDimSize(1);
  while (lanes > 1 && columns % (lanes * vector) != 0)
    lanes /= 2;
  stateRows = gpu::RowsAttr::get(b.getContext(), scanWarps, lanes, vector);
  int64_t atOnce = scanWarps * stateRows.getGroups();
  if (columns % (lanes * vector) != 0 || type.getDimSize(0) % atOnce != 0)
    return false;
  if (columns > maxColumns)
    return false;
  for (int64_t rows = atOnce; rows <= type.getDimSize(0); rows += atOnce)
    if (type.getDimSize(0) % rows == 0 &&
        rows / atOnce * stateRows.getLocalColumns(columns) <= maxThreadElements)
      chunkRows = rows;
  if (chunkRows == 0)
    return false;
  numChunks = type.getDimSize(0) / chunkRows;

  int64_t others = barrierBytes + getMoreBytes();
  for (Value operand : getChannelled()) {
    auto tile = cast<VectorType>(operand.getType());
    others += operandDepth *
              std::max<int64_t>(128, tile.getNumElements() *
                                         getBytes(tile.getElementType()));
  }
  depth = std::min((sharedBytes - others) / (chunkRows * columns * bytes),
                   maxStateDepth);
  return depth >= 2;
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

Value PersistentKernel::createChannel(gpu::ChannelType type) {
  return gpu::ChannelOp::create(b, scan.getLoc(), type, /*leader=*/Value(),
                                /*memory=*/Value());
}

gpu::SharedType PersistentKernel::getTile(Value operand,
                                          ArrayRef<int64_t> shape) {
  auto type = cast<VectorType>(operand.getType());
  return gpu::SharedType::get(b.getContext(), shape, type.getElementType(),
                              /*swizzled=*/false);
}

Value PersistentKernel::receive(Value operand, ArrayRef<int64_t> shape) {
  return gpu::ReceiveOp::create(b, scan.getLoc(), getTile(operand, shape),
                                channels[operand]);
}

/// A 1 x d operand, the same for all rows of the state.
Value PersistentKernel::receiveRow(Value operand, Attribute layout) {
  Location loc = scan.getLoc();
  auto type = cast<VectorType>(operand.getType());
  Value tile = receive(operand, type.getDimSize(1));
  auto row = VectorType::get({type.getDimSize(1)}, type.getElementType());
  Value loaded = gpu::LoadSharedOp::create(
      b, loc, gpu::FragmentType::get(row, layout), tile, Value());
  gpu::ReleaseOp::create(b, loc, channels[operand]);
  return loaded;
}

Value PersistentKernel::receiveElement(Value operand) {
  Location loc = scan.getLoc();
  Value tile = receive(operand, cast<VectorType>(operand.getType()).getShape());
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value element =
      gpu::LoadSharedElementOp::create(b, loc, b.getF32Type(), tile, zero);
  gpu::ReleaseOp::create(b, loc, channels[operand]);
  return element;
}

/// Where the rows of `chunk` begin; rows lie along dimension `dim`.
SmallVector<Value> PersistentKernel::indicesAt(ValueRange indices, int64_t dim,
                                               Value chunk) {
  Location loc = scan.getLoc();
  SmallVector<Value> at = llvm::map_to_vector(
      indices, [&](Value index) { return scalars.lookup(index); });
  Value rows = arith::ConstantIndexOp::create(b, loc, chunkRows);
  Value first = arith::MulIOp::create(b, loc, chunk, rows);
  at[dim] = arith::AddIOp::create(b, loc, at[dim], first);
  return at;
}

/// Leaves `b` in the loop over the chunks of a state.
scf::ForOp PersistentKernel::createChunkLoop() {
  Location loc = scan.getLoc();
  auto index = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto loop = scf::ForOp::create(b, loc, index(0), index(numChunks), index(1));
  b.setInsertionPointToStart(loop.getBody());
  return loop;
}

void PersistentKernel::emitRootBlock(Block &block) {
  beginUnit(block);
  emitScalars(block);
  switch (role) {
  case Role::scan:
    return emitScan();
  case Role::query:
    return emitOperands({ScanRole::query});
  case Role::key:
    return emitOperands({ScanRole::key});
  case Role::valueGates:
    return emitOperands({ScanRole::value, ScanRole::gates});
  case Role::output:
    return emitOutput();
  case Role::states:
    return emitStates();
  case Role::pending:
    return emitPending();
  }
}

/// Zeros of a sequence that is not live.
void PersistentKernel::emitPlainStore(tile::StoreOp store) {
  if (role != Role::output)
    return;
  FragmentEmitter warp(b, scalars);
  for (Value tile : getUsedTiles(store))
    warp.emit(tile.getDefiningOp());
  warp.emitStores(store, {});
}

void PersistentKernel::emitRole(Role role, int64_t first, int64_t count,
                                llvm::iterator_range<Block::iterator> ops) {
  Location loc = scan.getLoc();
  this->role = role;
  auto warps = gpu::WarpsOp::create(b, loc, TypeRange(), first, count, {});
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&warps.getBody());
  // Slots and states are read before the launch ahead has ended.
  if (role == Role::query)
    emitAwait();
  else if (role != Role::states && role != Role::pending)
    gpu::AwaitLaunchOp::create(b, loc);
  auto units = gpu::UnitsOp::create(b, loc, /*contiguous=*/false);
  gpu::YieldOp::create(b, loc);
  b.createBlock(&units.getBody());
  IRMapping before = scalars;
  emitOps(beginOps(ops));
  scalars = before; // the next role computes for itself
}

void PersistentKernel::emitVariant(const PersistentLimits &limits) {
  Location loc = scan.getLoc();
  MLIRContext *context = b.getContext();
  func::FuncOp kernel = createKernel(b, source, scalars);
  entry = &kernel.front();
  kernel.setName((source.getName() + "_persistent").str());
  tile::StageFields stage(kernel);
  stage.setStageOf(source.getName());
  stage.setVariant("persistent");
  auto number = [&](int64_t value) -> Attribute {
    return b.getStrArrayAttr(StringRef(std::to_string(value)));
  };
  Attribute units = stage.getGrid();
  SmallVector<Attribute> conditions;
  if (limits.needsDependent)
    conditions.push_back(
        b.getArrayAttr({number(1), b.getStrArrayAttr({"dependent"})}));
  conditions.push_back(b.getArrayAttr({number(limits.minUnits), units}));
  conditions.push_back(b.getArrayAttr({units, number(limits.maxUnits)}));
  stage.setConditions(b.getArrayAttr(conditions));
  SmallVector<Role> others = getOtherRoles();
  gpu::KernelFields fields(kernel);
  fields.setThreads((scanWarps + others.size()) * gpu::warpThreads);
  fields.setMinBlocks(2);
  fields.setAlignedVariant();
  fields.setBlocksPerSm(2);
  setAlignment(kernel, load.getView(), 16);
  for (tile::StoreOp store : stores)
    setAlignment(kernel, store.getView(), 16);

  auto state = cast<VectorType>(scan.getState().getType());
  ring = createChannel(
      gpu::ChannelType::get(context, {chunkRows, state.getDimSize(1)},
                            state.getElementType(), depth, scanWarps,
                            /*swizzled=*/false));
  for (Value operand : getChannelled()) {
    auto type = cast<VectorType>(operand.getType());
    channels[operand] = createChannel(gpu::ChannelType::get(
        context, type.getShape(), type.getElementType(), operandDepth, 1,
        /*swizzled=*/false));
  }
  createMoreChannels();
  Block &body = source.front();
  // What no unit changes is computed once.
  auto isOfUnit = [](Operation &op) {
    return isa<tile::BlockIdOp>(op) || op.getNumRegions() != 0;
  };
  auto first = llvm::find_if(body, isOfUnit);
  emitOps({body.begin(), first});
  auto ops = llvm::make_range(first, std::prev(body.end()));
  auto all = gpu::RolesOp::create(b, loc);
  b.createBlock(&all.getBody());
  emitRole(Role::scan, 0, scanWarps, ops);
  for (auto [i, other] : llvm::enumerate(others))
    emitRole(other, scanWarps + i, 1, ops);
  b.setInsertionPointAfter(all);
  func::ReturnOp::create(b, loc);
}
