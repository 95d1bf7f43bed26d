// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-schedule-token-groups: a warp for each group of tokens, or for each block
// of a program without a rule. See Passes.td.
#include "Kernel/FragmentEmitter.h"
#include "Kernel/OperandRoles.h"
#include "Tokens/BlockScalars.h"

#include "gdn/Schedule/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

namespace gdn {
#define GEN_PASS_DEF_SCHEDULETOKENGROUPS
#include "gdn/Schedule/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {

/// Warps of a block at most.
constexpr int64_t maxWarps = 16;
/// Warps of a block up to which they have pieces of many tokens.
constexpr int64_t longPieceWarps = 2;
/// Elements of a tile that a lane holds at most.
constexpr int64_t maxLaneElements = 64;
/// Bits of a loaded tile in a lane up to which `warps` warps can hold it.
constexpr int64_t narrowLaneBits = 256;

/// Columns of the matrices of a program whose rows have one length.
int64_t rowWidth(func::FuncOp program) {
  int64_t width = 0;
  program.walk([&](tile::LoadOp load) {
    auto tile = cast<VectorType>(load.getTile().getType());
    if (tile.getRank() == 2)
      width = std::max(width, tile.getDimSize(1));
  });
  return width;
}

/// Whether warps take rows of the tile: it has its place in shared memory.
bool isChunk(tile::LoadOp load) {
  return !load->use_empty() &&
         llvm::all_of(load->getUsers(), llvm::IsaPred<tile::ExtractRowsOp>);
}

bool hasChunk(Operation *op) {
  return op
      ->walk([](tile::LoadOp load) {
        return isChunk(load) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Elements of a tile that a lane holds.
int64_t countLaneElements(VectorType tile) {
  int64_t rows = tile.getRank() == 2 ? tile.getDimSize(0) : 1;
  return rows * llvm::divideCeil(tile.getShape().back(), gpu::warpThreads);
}

class TokenGroupsKernel {
public:
  /// The warps of a block have a coordinate each on the last axis of the grid
  /// if `hasPieces`; else there is one warp.
  TokenGroupsKernel(func::FuncOp source, int64_t numWarps, bool hasPieces)
      : source(source), numWarps(numWarps), hasPieces(hasPieces),
        b(source.getContext()) {}
  void emit(int64_t minBlocks);

private:
  bool isOfWarp(Operation &op);
  void emitWithChunks();
  void emitAround(ArrayRef<Operation *> ops);
  void emitWarps();
  void emitCopy(tile::LoadOp load);
  void emitBlock(Block &block);
  void emitOps(ArrayRef<Operation *> ops);
  void emitLoop(scf::ForOp loop);
  void emitLoad(tile::LoadOp load);
  void emitExtract(tile::ExtractRowsOp extract);
  void take(ValueRange from, ValueRange to) {
    for (auto [value, other] : llvm::zip(from, to)) {
      scalars.map(value, other);
      warp->mapScalar(value, other);
    }
  }

  func::FuncOp source, kernel;
  int64_t numWarps;
  bool hasPieces;
  OpBuilder b;
  IRMapping scalars;
  std::optional<FragmentEmitter> warp;
  Value group; // the warp's coordinate on the last axis, where it has one
  int64_t lastAxis = -1;
  bool hasRowValues = false; // lanes have parts of several rows
  /// What warps do by themselves, from the blocks around, and what they have
  /// of it.
  SmallVector<Operation *> ofWarps;
  DenseSet<Value> perWarp;
  DenseMap<Value, Value> chunks; // tiles' buffers
};

struct ScheduleTokenGroups final
    : gdn::impl::ScheduleTokenGroupsBase<ScheduleTokenGroups> {
  using ScheduleTokenGroupsBase::ScheduleTokenGroupsBase;

  void runOnOperation() override {
    for (auto func :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      const bool hasPieces = takesPieces(func);
      if (!hasPieces && !isWithoutRule(func))
        continue;
      const int64_t numWarps =
          hasPieces ? tile::StageFields(func).getTokenPieces() : 1;
      // Wide tiles need the registers of twice as many warps. So do short
      // pieces, which have a loop of few turns that is unrolled; they are for
      // few tokens, which do not fill a multiprocessor.
      int64_t share = isWide(func) ? 2 : 1;
      if (numWarps > longPieceWarps && !hasChunk(func))
        share *= 2;
      TokenGroupsKernel(func, numWarps, hasPieces)
          .emit(std::max<int64_t>(1, warps / share / numWarps));
      ++numKernels;
    }
  }

  /// Whether a block can have a warp for each piece of tokens.
  static bool takesPieces(func::FuncOp func) {
    const int64_t pieces = tile::StageFields(func).getTokenPieces();
    return pieces != 0 && pieces <= maxWarps && isKnown(func);
  }

  /// Whether the function is a program that computes, of a kernel without a
  /// rule: a convolution, a norm, gates.
  static bool isWithoutRule(func::FuncOp func) {
    tile::StageFields stage(func);
    if (!stage.getGrid() || stage.getTokenPieces() != 0 ||
        gpu::KernelFields(func))
      return false;
    bool computes = false;
    func.walk([&](Operation *op) {
      computes |= isa<tile::MapRowsOp, tile::Conv1dOp>(op);
    });
    return computes && isKnown(func);
  }

  static bool isKnown(func::FuncOp func) {
    WalkResult walk = func.walk([&](Operation *op) {
      return isKnown(op) ? WalkResult::advance() : WalkResult::interrupt();
    });
    return !walk.wasInterrupted();
  }

  /// True if a lane has more bits of a loaded tile than `narrowLaneBits`.
  static bool isWide(func::FuncOp func) {
    bool wide = false;
    func.walk([&](tile::LoadOp load) {
      auto tile = cast<VectorType>(load.getTile().getType());
      wide |= !isChunk(load) &&
              countLaneElements(tile) * tile.getElementTypeBitWidth() >
                  narrowLaneBits;
    });
    return wide;
  }

  static bool isKnown(Operation *op) {
    if (op->getParentOfType<tile::MapRowsOp>() ||
        op->hasTrait<OpTrait::ConstantLike>())
      return true;
    // A bias is a row that lies in memory as the convolution takes it.
    if (auto conv = dyn_cast<tile::Conv1dOp>(op);
        conv && conv.getBias() && !conv.getBias().getDefiningOp<tile::LoadOp>())
      return false;
    if (auto load = dyn_cast<tile::LoadOp>(op);
        load && isChunk(load) &&
        tile::StageFields(op->getParentOfType<func::FuncOp>()).getTokenPieces())
      return true;
    if (auto extract = dyn_cast<tile::ExtractRowsOp>(op);
        extract && !extract.getTile().getDefiningOp<tile::LoadOp>())
      return false;
    auto fits = [](Type type) {
      auto tile = dyn_cast<VectorType>(type);
      return !tile || countLaneElements(tile) <= maxLaneElements;
    };
    if (!llvm::all_of(op->getResultTypes(), fits))
      return false;
    if (isa<scf::ForOp>(op))
      return true;
    if (!isa<tile::TileDialect>(op->getDialect()))
      return llvm::none_of(op->getResultTypes(), llvm::IsaPred<VectorType>);
    if (auto last = dyn_cast<tile::LastInGroupOp>(op))
      return llvm::all_of(last->getUsers(), llvm::IsaPred<scf::IfOp>);
    return isa<tile::BlockIdOp, tile::LoadOp, tile::StoreOp, tile::FillOp,
               tile::MapRowsOp, tile::Conv1dOp, tile::AwaitSignalsOp,
               tile::ExtractRowsOp>(op);
  }
};

} // namespace

/// A loop that may carry tiles.
void TokenGroupsKernel::emitLoop(scf::ForOp loop) {
  auto here = [&](Value value) -> Value {
    return isa<VectorType>(value.getType()) ? (*warp)[value]
                                            : scalars.lookup(value);
  };
  auto set = [&](ValueRange from, ValueRange to) {
    for (auto [value, other] : llvm::zip(from, to))
      if (isa<VectorType>(value.getType()))
        warp->set(value, other);
      else
        take(value, other);
  };
  auto copy =
      scf::ForOp::create(b, loop.getLoc(), here(loop.getLowerBound()),
                         here(loop.getUpperBound()), here(loop.getStep()),
                         llvm::map_to_vector(loop.getInitArgs(),
                                             [&](Value v) { return here(v); }));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  set(loop.getBody()->getArguments(), copy.getBody()->getArguments());
  emitBlock(*loop.getBody());
  if (loop.getNumResults() != 0)
    scf::YieldOp::create(b, loop.getLoc(),
                         llvm::map_to_vector(loop.getYieldedValues(),
                                             [&](Value v) { return here(v); }));
  set(loop.getResults(), copy.getResults());
}

/// The ops of a block in an order in which all that is read is asked for before
/// any of it is used, as far as no store stands between.
static SmallVector<Operation *> loadsFirst(ArrayRef<Operation *> ops) {
  SmallVector<Operation *> order, work;
  for (Operation *op : ops) {
    if (isa<tile::MapRowsOp, tile::Conv1dOp, tile::FillOp>(op)) {
      work.push_back(op);
      continue;
    }
    if (isa<tile::StoreOp>(op) || op->getNumRegions() != 0) {
      order.append(work);
      work.clear();
    }
    order.push_back(op);
  }
  order.append(work);
  return order;
}

/// Whether `op` is what the block does that comes last of a group.
static bool isLastInGroup(Operation &op) {
  auto branch = dyn_cast<scf::IfOp>(op);
  return branch && branch.getCondition().getDefiningOp<tile::LastInGroupOp>();
}

static SmallVector<Operation *> loadsBefore(Operation &op) {
  SmallVector<Operation *> loads;
  for (Operation &other : *op.getBlock())
    if (isa<tile::LoadOp>(other) && other.isBeforeInBlock(&op))
      loads.push_back(&other);
  return loads;
}

void TokenGroupsKernel::emitLoad(tile::LoadOp load) {
  warp->emit(load);
  if (load.getWhole())
    (*warp)[load.getTile()].getDefiningOp<gpu::LoadOp>().setWhole(true);
}

/// None of the rows or all stand under one branch, as in a load from memory.
void TokenGroupsKernel::emitExtract(tile::ExtractRowsOp extract) {
  Location loc = extract.getLoc();
  Value tile = extract.getResult(), buffer = chunks.lookup(extract.getTile());
  gpu::FragmentType type = warp->typeOf(tile);
  Value row = scalars.lookup(extract.getRow());
  if (!extract.getRows())
    return warp->set(tile,
                     gpu::LoadSharedOp::create(b, loc, type, buffer, row));
  Value some = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                     scalars.lookup(extract.getRows()),
                                     arith::ConstantIndexOp::create(b, loc, 0));
  auto branch = scf::IfOp::create(b, loc, TypeRange(type), some,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value read = gpu::LoadSharedOp::create(b, loc, type, buffer, row);
  scf::YieldOp::create(b, loc, read);
  b.setInsertionPointToStart(branch.elseBlock());
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  Value none = gpu::FillOp::create(b, loc, type, zero);
  scf::YieldOp::create(b, loc, none);
  warp->set(tile, branch.getResult(0));
}

/// A chunk that all warps of the block copy.
void TokenGroupsKernel::emitCopy(tile::LoadOp load) {
  auto type = gpu::SharedType::get(cast<VectorType>(load.getTile().getType()),
                                   /*swizzled=*/false);
  // Units of a block have one each, one after the other.
  Value &buffer = chunks[load.getTile()];
  for (auto &[tile, other] : chunks)
    if (other && other.getType() == type)
      buffer = other;
  if (!buffer) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&kernel.front());
    buffer = gpu::AllocOp::create(b, load.getLoc(), type);
  }
  gpu::BeginCopyOp::create(
      b, load.getLoc(), scalars.lookup(load.getView()),
      llvm::map_to_vector(load.getIndices(),
                          [&](Value v) { return scalars.lookup(v); }),
      load.getDims(), load.getRows() ? scalars.lookup(load.getRows()) : Value(),
      buffer,
      /*scattered=*/false, /*per_warpgroup=*/false, /*tensor_map=*/false,
      /*any_alignment=*/true);
}

static SmallVector<Operation *> getOps(Block &block) {
  return llvm::map_to_vector(block.without_terminator(),
                             [](Operation &op) { return &op; });
}

/// Whether warps do it by themselves: work on tiles, and what differs from warp
/// to warp.
bool TokenGroupsKernel::isOfWarp(Operation &op) {
  return op
      .walk([&](Operation *inner) {
        auto id = dyn_cast<tile::BlockIdOp>(inner);
        const bool isOwn = id ? id.getAxis() == uint64_t(lastAxis)
                              : isa<tile::TileDialect>(inner->getDialect());
        return isOwn || llvm::any_of(inner->getOperands(),
                                     [&](Value operand) {
                                       return perWarp.contains(operand);
                                     })
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// A program with chunks. One warp finds the sequence and its bounds, from what
/// needs neither.
void TokenGroupsKernel::emitWithChunks() {
  Block &block = source.front();
  BlockScalars found(block, [&](Operation &op) {
    const bool isOther = isOfWarp(op);
    if (isOther)
      perWarp.insert(op.result_begin(), op.result_end());
    return isOther;
  });
  SmallVector<Operation *> ahead, behind;
  DenseSet<Value> late = perWarp;
  for (Operation *op : getOps(block)) {
    if (found.contains(*op))
      continue;
    const bool waits =
        op->getNumRegions() != 0 || isOfWarp(*op) || found.isUsedBy(*op) ||
        llvm::any_of(op->getOperands(),
                     [&](Value operand) { return late.contains(operand); });
    if (waits)
      late.insert(op->result_begin(), op->result_end());
    (waits ? behind : ahead).push_back(op);
  }
  warp.emplace(b, scalars);
  emitOps(ahead);
  found.emit(b, kernel, scalars);
  emitAround(behind);
}

/// Chunks are the block's, and so are branches around them and what does not
/// differ from warp to warp; all else each warp does by itself.
void TokenGroupsKernel::emitAround(ArrayRef<Operation *> ops) {
  const size_t numAround = ofWarps.size();
  bool hasWork = false;
  for (Operation *op : ops) {
    if (isa<scf::IfOp>(op) && hasChunk(op)) {
      if (std::exchange(hasWork, false))
        emitWarps();
      copyWithRegions(b, op, scalars,
                      [&](Block &from, Block &) { emitAround(getOps(from)); });
      continue;
    }
    if (auto load = dyn_cast<tile::LoadOp>(op); load && isChunk(load)) {
      emitCopy(load);
      continue;
    }
    if (!isOfWarp(*op)) {
      emitOps(op);
      continue;
    }
    ofWarps.push_back(op);
    perWarp.insert(op->result_begin(), op->result_end());
    hasWork |= isa<tile::StoreOp>(op) || op->getNumRegions() != 0;
  }
  if (hasWork)
    emitWarps();
  ofWarps.truncate(numAround);
}

void TokenGroupsKernel::emitWarps() {
  Location loc = source.getLoc();
  auto each = gpu::EachWarpOp::create(b, loc, TypeRange(), 0, numWarps);
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&each.getBody(), {}, b.getIndexType(), loc);
  group = each.getBody().getArgument(0);
  warp.emplace(b, scalars);
  emitOps(loadsFirst(ofWarps));
  gpu::YieldOp::create(b, loc);
}

void TokenGroupsKernel::emitBlock(Block &block) {
  emitOps(loadsFirst(getOps(block)));
}

void TokenGroupsKernel::emitOps(ArrayRef<Operation *> ops) {
  for (Operation *next : ops) {
    Operation &op = *next;
    if (auto id = dyn_cast<tile::BlockIdOp>(op)) {
      Value at = id.getAxis() == uint64_t(lastAxis)
                     ? group
                     : gpu::BlockIdOp::create(b, op.getLoc(), b.getIndexType(),
                                              id.getAxis())
                           .getResult();
      take(id.getResult(), at);
    } else if (auto store = dyn_cast<tile::StoreOp>(op)) {
      // Where lanes have several rows, they store what others have loaded.
      if (hasRowValues)
        gpu::WarpBarrierOp::create(b, store.getLoc());
      warp->emitStores(store, {});
    } else if (auto await = dyn_cast<tile::AwaitSignalsOp>(op)) {
      gpu::AwaitSignalsOp::create(
          b, op.getLoc(), await.getTotal(), scalars.lookup(await.getView()),
          llvm::map_to_vector(await.getIndices(), [&](Value index) {
            return scalars.lookup(index);
          }));
    } else if (isLastInGroup(op)) {
      warp->emitStores(&op, loadsBefore(op));
    } else if (auto load = dyn_cast<tile::LoadOp>(op)) {
      emitLoad(load);
    } else if (auto extract = dyn_cast<tile::ExtractRowsOp>(op)) {
      emitExtract(extract);
    } else if (isa<tile::TileDialect>(op.getDialect())) {
      warp->emit(&op);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      emitLoop(loop);
    } else if (op.getNumRegions() == 0) {
      take(op.getResults(), b.clone(op, scalars)->getResults());
    } else {
      copyWithRegions(b, &op, scalars, [&](Block &from, Block &to) {
        take(from.getArguments(), to.getArguments());
        emitBlock(from);
      });
      for (Value result : op.getResults())
        warp->mapScalar(result, scalars.lookup(result));
    }
  }
}

void TokenGroupsKernel::emit(int64_t minBlocks) {
  Location loc = source.getLoc();
  kernel = createKernel(b, source, scalars);
  gpu::KernelFields fields(kernel);
  fields.setThreads(numWarps * gpu::warpThreads);
  fields.setMinBlocks(minBlocks);
  // Some types and dimensions take a few registers more.
  kernel->setAttr("gdn_gpu.fewer_blocks", b.getUnitAttr());
  if (hasPieces) {
    lastAxis = tile::StageFields(source).getGrid().size() - 1;
    tile::StageFields(kernel).leaveTokenPieces();
  }
  if (hasPieces && hasChunk(source)) {
    emitWithChunks();
    func::ReturnOp::create(b, loc);
    source.erase();
    return;
  }
  if (hasPieces) {
    auto each = gpu::EachWarpOp::create(b, loc, TypeRange(), 0, numWarps);
    func::ReturnOp::create(b, loc);
    b.createBlock(&each.getBody(), {}, b.getIndexType(), loc);
    group = each.getBody().getArgument(0);
  } else {
    auto one = gpu::WarpsOp::create(b, loc, TypeRange(), 0, 1, {});
    func::ReturnOp::create(b, loc);
    b.createBlock(&one.getBody());
  }
  const int64_t values = tile::StageFields(source).getRowValues();
  hasRowValues = values != 0;
  if (hasRowValues)
    warp.emplace(b, scalars,
                 gpu::RowsAttr::get(b.getContext(), /*warps=*/1,
                                    rowWidth(source) / values, values));
  else
    warp.emplace(b, scalars);
  emitBlock(source.front());
  gpu::YieldOp::create(b, loc);
  source.erase();
}
