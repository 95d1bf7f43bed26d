// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The control flow of a program stays as it is. Loops over chunks that are
// prepared read ahead:
//
//     copy what the first turn needs first                       K, Q
//     loop:
//       await; barrier
//       copy what this turn needs late                           V, Y, Z
//       work that does not need it                               K S, Q S
//       await; barrier
//       copy what the next turn needs first
//       the rest of the work
#include "Products/WarpProgram.h"

#include "Kernel/KernelFunction.h"
#include "Kernel/OperandRoles.h"
#include "Products/LoadsAndStores.h"
#include "Products/TransposedMaps.h"

using namespace mlir;
using namespace gdn;

static bool isTile(Value value) { return isa<VectorType>(value.getType()); }

/// True for branches and loops.
static bool hasBlocks(Operation &op) {
  return op.getNumRegions() != 0 && !isa<tile::MapRowsOp>(op);
}

LogicalResult WarpProgram::emitBlock(Block &block) {
  Ops ops;
  for (Operation &op : block.without_terminator())
    if (takes(&op))
      ops.push_back(&op);
  return emitOps(ops);
}

LogicalResult WarpProgram::emitOps(ArrayRef<Operation *> ops) {
  Ops together;
  for (Operation *op : ops) {
    if (!hasBlocks(*op)) {
      together.push_back(op);
      continue;
    }
    if (failed(emitter.emitInOrder(std::exchange(together, {}))) ||
        failed(emitRegions(op)))
      return failure();
  }
  return emitter.emitInOrder(together);
}

/// The same op with regions of its own.
LogicalResult WarpProgram::emitRegions(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return emitLoop(loop);
  if (llvm::any_of(op->getResultTypes(), llvm::IsaPred<VectorType>))
    return op->emitOpError("is not for a schedule of products: it gives "
                           "tiles");
  LogicalResult result = success();
  copyWithRegions(b, op, scalars, [&](Block &from, Block &) {
    if (succeeded(result))
      result = emitBlock(from);
  });
  return result;
}

LogicalResult WarpProgram::emitLoop(scf::ForOp loop) {
  auto give = [&](ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) {
      return isTile(value) ? getCarried(value) : scalars.lookupOrDefault(value);
    });
  };
  auto take = [&](ValueRange from, ValueRange to) {
    for (auto [value, other] : llvm::zip(from, to))
      isTile(value) ? emitter.tiles.setFragment(value, other)
                    : scalars.map(value, other);
  };
  SmallVector<Value> inits = give(loop.getInitArgs());
  auto copy = scf::ForOp::create(
      b, loop.getLoc(), scalars.lookupOrDefault(loop.getLowerBound()),
      scalars.lookupOrDefault(loop.getUpperBound()),
      scalars.lookupOrDefault(loop.getStep()), inits);
  scalars.map(loop.getInductionVar(), copy.getInductionVar());
  take(loop.getRegionIterArgs(), copy.getRegionIterArgs());
  if (failed(emitLoopBody(loop, copy)))
    return failure();
  if (!inits.empty()) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(copy.getBody());
    scf::YieldOp::create(b, loop.getLoc(), give(loop.getYieldedValues()));
  }
  take(loop.getResults(), copy.getResults());
  return success();
}

/// True for a loop of products without branches and loops inside.
static bool canReadAhead(scf::ForOp loop) {
  return llvm::none_of(*loop.getBody(), hasBlocks) &&
         llvm::any_of(*loop.getBody(), llvm::IsaPred<tile::MatmulOp>);
}

LogicalResult WarpProgram::emitLoopBody(scf::ForOp loop, scf::ForOp copy) {
  if (canReadAhead(loop))
    return emitReadingAhead(loop, copy);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  return emitBlock(*loop.getBody());
}

/// True if all that uses `tile` also uses what follows from a product.
static bool isLate(Value tile, const DenseSet<Operation *> &behindProducts) {
  return llvm::all_of(tile.getUsers(), [&](Operation *user) {
    Operation *op = user;
    while (op->getBlock() != tile.getParentBlock())
      op = op->getParentOp();
    if (auto transpose = dyn_cast<tile::TransposeOp>(op))
      return isLate(transpose.getResult(), behindProducts);
    return behindProducts.contains(op);
  });
}

/// True if any of `ops` uses `tile`, or its transpose.
static bool isUsedBy(Value tile, const DenseSet<Operation *> &ops) {
  return llvm::any_of(tile.getUsers(), [&](Operation *user) {
    auto transpose = dyn_cast<tile::TransposeOp>(user);
    return transpose ? isUsedBy(transpose.getResult(), ops)
                     : ops.contains(user);
  });
}

SmallVector<gpu::BeginCopyOp>
WarpProgram::readAhead(ArrayRef<tile::LoadOp> loads, Value at, Value end,
                       bool perWarpgroup) {
  SmallVector<gpu::BeginCopyOp> copies;
  if (loads.empty())
    return copies;
  auto loop = loads.front()->getParentOfType<scf::ForOp>();
  Location loc = loop.getLoc();
  Value isThere =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, at, end);
  IRMapping there = scalars;
  there.map(loop.getInductionVar(), at);
  for (Operation &op : loop.getBody()->without_terminator())
    copyScalar(b, &op, there);
  Value none = arith::ConstantIndexOp::create(b, loc, 0);
  for (tile::LoadOp load : loads) {
    int64_t size = vectorType(load.getTile()).getDimSize(0);
    Value rows = load.getRows() ? there.lookupOrDefault(load.getRows())
                                : arith::ConstantIndexOp::create(b, loc, size);
    rows = arith::SelectOp::create(b, loc, isThere, rows, none);
    copies.push_back(beginCopy(emitter.tiles, load, there, rows,
                               /*isPinned=*/true, perWarpgroup));
  }
  return copies;
}

LogicalResult WarpProgram::emitReadingAhead(scf::ForOp loop, scf::ForOp copy) {
  Block &body = *loop.getBody();
  Location loc = loop.getLoc();
  SmallVector<Value> products, lateTiles;
  SmallVector<tile::LoadOp> early, late;
  for (auto matmul : body.getOps<tile::MatmulOp>())
    products.push_back(matmul.getResult());
  const DenseSet<Operation *> behindProducts = getFollowers(products, &body);
  for (auto load : body.getOps<tile::LoadOp>()) {
    if (!isCopied(load))
      continue;
    if (isLate(load.getTile(), behindProducts)) {
      late.push_back(load);
      lateTiles.push_back(load.getTile());
    } else {
      early.push_back(load);
    }
  }
  // What work behind late tiles uses as well cannot make room for the next
  // turn's ahead of it.
  DenseSet<Operation *> behindLate = getFollowers(lateTiles, &body);
  while (true) {
    auto isEarly = [&](tile::LoadOp load) {
      return !isUsedBy(load.getTile(), behindLate);
    };
    if (llvm::all_of(early, isEarly))
      break;
    for (tile::LoadOp load : early)
      if (!isEarly(load)) {
        late.push_back(load);
        lateTiles.push_back(load.getTile());
      }
    llvm::erase_if(early, [&](tile::LoadOp load) { return !isEarly(load); });
    behindLate = getFollowers(lateTiles, &body);
  }
  readAhead(early, copy.getLowerBound(), copy.getUpperBound());
  copy->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());

  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  SmallVector<Operation *> first, rest;
  for (Operation &op : body.without_terminator()) {
    copyScalar(b, &op, scalars);
    auto load = dyn_cast<tile::LoadOp>(op);
    if (isa<tile::TileDialect>(op.getDialect()) && !(load && isCopied(load)))
      (behindLate.contains(&op) ? rest : first).push_back(&op);
  }
  auto meet = [&] {
    gpu::AwaitCopiesOp::create(b, loc);
    gpu::BarrierOp::create(b, loc);
  };
  meet();
  // What transposed work alone reads makes room for its result.
  for (tile::LoadOp load : late)
    beginCopy(emitter.tiles, load, scalars, Value(),
              /*isPinned=*/!isReadTransposed(load));
  if (failed(emitter.emitInOrder(first)))
    return failure();
  meet();
  Value next =
      arith::AddIOp::create(b, loc, copy.getInductionVar(), copy.getStep());
  readAhead(early, next, copy.getUpperBound());
  return emitter.emitInOrder(rest);
}
