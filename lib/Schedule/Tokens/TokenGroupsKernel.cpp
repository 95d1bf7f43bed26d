// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What blocks do together, where they have chunks in shared memory, and what
// each warp does by itself.
#include "Tokens/TokenGroupsKernel.h"

#include "Tokens/BlockScalars.h"

using namespace mlir;
using namespace gdn;

/// Columns of the matrices of a program whose rows have one length.
static int64_t rowWidth(func::FuncOp program) {
  int64_t width = 0;
  program.walk([&](tile::LoadOp load) {
    auto tile = cast<VectorType>(load.getTile().getType());
    if (tile.getRank() == 2)
      width = std::max(width, tile.getDimSize(1));
  });
  return width;
}

bool gdn::isChunk(tile::LoadOp load) {
  return !load->use_empty() &&
         llvm::all_of(load->getUsers(), llvm::IsaPred<tile::ExtractRowsOp>);
}

bool gdn::hasChunk(Operation *op) {
  return op
      ->walk([](tile::LoadOp load) {
        return isChunk(load) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

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

/// Whether the program stores to the view.
static bool isStored(Value view) {
  return llvm::any_of(view.getUsers(), llvm::IsaPred<tile::StoreOp>);
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

/// Whether warps load the same, of what the program only reads.
bool TokenGroupsKernel::isOfAll(tile::LoadOp load) {
  return !isStored(load.getView()) &&
         llvm::none_of(load->getOperands(), [&](Value operand) {
           return perWarp.contains(operand);
         });
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
    if (auto load = dyn_cast<tile::LoadOp>(op); load && isOfAll(load)) {
      meanwhile.push_back(load);
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

/// Opens the work of each warp; the builder stands in it then.
gpu::EachWarpOp TokenGroupsKernel::enterWarps(TypeRange results) {
  Location loc = source.getLoc();
  auto each = gpu::EachWarpOp::create(b, loc, results, 0, numWarps);
  b.createBlock(&each.getBody(), {}, b.getIndexType(), loc);
  group = each.getBody().getArgument(0);
  warp.emplace(b, scalars);
  return each;
}

void TokenGroupsKernel::emitWarps() {
  Location loc = source.getLoc();
  SmallVector<Value> tiles, held;
  for (tile::LoadOp load : meanwhile)
    tiles.push_back(load.getTile());
  if (!tiles.empty()) {
    OpBuilder::InsertionGuard guard(b);
    auto each = enterWarps(llvm::map_to_vector(
        tiles, [&](Value tile) -> Type { return warp->typeOf(tile); }));
    for (tile::LoadOp load : meanwhile)
      emitLoad(load);
    gpu::YieldOp::create(b, loc, llvm::map_to_vector(tiles, [&](Value tile) {
                           return (*warp)[tile];
                         }));
    held.assign(each.getResults().begin(), each.getResults().end());
    meanwhile.clear();
  }
  OpBuilder::InsertionGuard guard(b);
  enterWarps();
  for (auto [tile, fragment] : llvm::zip(tiles, held))
    warp->set(tile, fragment);
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
