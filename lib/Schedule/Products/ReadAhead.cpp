// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops over chunks that are prepared read ahead:
//
//     copy what the first turn needs first                       K, Q
//     loop:
//       await; barrier
//       copy what this turn needs late                           V, Y, Z
//       work that does not need it                               K S, Q S
//       await; barrier
//       copy what the next turn needs first
//       the rest of the work
#include "Kernel/OperandRoles.h"
#include "Products/LoadsAndStores.h"
#include "Products/ProductKernel.h"
#include "Products/TransposedMaps.h"

using namespace mlir;
using namespace gdn;

static bool isTile(Value value) { return isa<VectorType>(value.getType()); }

/// Ops of `block` that use a result of one of `from`, directly or not.
static DenseSet<Operation *> getFollowers(Block &block,
                                          const DenseSet<Operation *> &from) {
  DenseSet<Operation *> followers;
  for (Operation &op : block)
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *source = operand.getDefiningOp();
            source && (from.contains(source) || followers.contains(source)))
          followers.insert(&op);
    });
  return followers;
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

/// Copies of `loads` in the turn `at`; if there is none, zeros, and nothing is
/// read.
void ProductKernel::emitAhead(scf::ForOp loop, ArrayRef<tile::LoadOp> loads,
                              Value at, Value end) {
  emitAhead(loads, at, end,
            [&](tile::LoadOp load, const IRMapping &there, Value rows) {
              beginCopy(emitter->tiles, load, there, rows, /*isPinned=*/true);
            });
}

void ProductKernel::emitAhead(
    ArrayRef<tile::LoadOp> loads, Value at, Value end,
    llvm::function_ref<void(tile::LoadOp, const IRMapping &, Value)> begin) {
  if (loads.empty())
    return;
  auto loop = loads.front()->getParentOfType<scf::ForOp>();
  Location loc = loop.getLoc();
  Value isThere =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, at, end);
  IRMapping there = scalars;
  there.map(loop.getInductionVar(), at);
  Ops ops;
  for (Operation &op : loop.getBody()->without_terminator())
    ops.push_back(&op);
  emitScalars(ops, there);
  Value none = arith::ConstantIndexOp::create(b, loc, 0);
  for (tile::LoadOp load : loads) {
    int64_t size = cast<VectorType>(load.getTile().getType()).getDimSize(0);
    Value rows = load.getRows() ? there.lookupOrDefault(load.getRows())
                                : arith::ConstantIndexOp::create(b, loc, size);
    rows = arith::SelectOp::create(b, loc, isThere, rows, none);
    begin(load, there, rows);
  }
}

LogicalResult ProductKernel::emitReadingAhead(scf::ForOp loop,
                                              scf::ForOp copy) {
  Block &body = *loop.getBody();
  Location loc = loop.getLoc();
  DenseSet<Operation *> products, lateLoads;
  SmallVector<tile::LoadOp> early, late;
  for (Operation &op : body)
    if (isa<tile::MatmulOp>(op))
      products.insert(&op);
  DenseSet<Operation *> behindProducts = getFollowers(body, products);
  for (auto load : body.getOps<tile::LoadOp>()) {
    if (!isCopied(load))
      continue;
    bool isLateLoad = isLate(load.getTile(), behindProducts);
    (isLateLoad ? late : early).push_back(load);
    if (isLateLoad)
      lateLoads.insert(load);
  }
  emitAhead(loop, early, copy.getLowerBound(), copy.getUpperBound());
  copy->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());

  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  DenseSet<Operation *> behindLate = getFollowers(body, lateLoads);
  Ops first, rest, all;
  for (Operation &op : body.without_terminator()) {
    all.push_back(&op);
    auto load = dyn_cast<tile::LoadOp>(op);
    if (!isa<tile::TileDialect>(op.getDialect()) || (load && isCopied(load)))
      continue;
    (behindLate.contains(&op) ? rest : first).push_back(&op);
  }
  emitScalars(all, scalars);
  meet(loc);
  // What transposed work alone reads makes room for its result.
  for (tile::LoadOp load : late)
    beginCopy(emitter->tiles, load, scalars, Value(),
              /*isPinned=*/!isReadTransposed(load));
  if (failed(emitSegment(first)))
    return failure();
  meet(loc);
  Value next =
      arith::AddIOp::create(b, loc, copy.getInductionVar(), copy.getStep());
  emitAhead(loop, early, next, copy.getUpperBound());
  if (failed(emitSegment(rest)))
    return failure();
  yield(loop);
  return success();
}

void ProductKernel::yield(scf::ForOp loop) {
  SmallVector<Value> yielded;
  for (Value value : loop.getBody()->getTerminator()->getOperands())
    yielded.push_back(isTile(value) ? emitter->tiles.fragmentOf(value)
                                    : scalars.lookupOrDefault(value));
  if (!yielded.empty())
    scf::YieldOp::create(b, loop.getLoc(), yielded);
}

LogicalResult ProductKernel::emitLoop(scf::ForOp loop) {
  const bool isShared = plan && loop == plan->loop; // by all roles
  if (isShared && role == Role::producer)
    return emitProducer(loop);
  if (isShared && role == Role::load)
    return emitLoad(loop);
  if (isShared && role == Role::gate)
    return emitGates(loop);
  if (isShared && role == Role::scale)
    return emitScale(loop);
  SmallVector<Value> inits;
  for (Value value : loop.getInitArgs())
    inits.push_back(isTile(value) ? emitter->tiles.fragmentOf(value)
                                  : scalars.lookupOrDefault(value));
  auto copy = scf::ForOp::create(
      b, loop.getLoc(), scalars.lookupOrDefault(loop.getLowerBound()),
      scalars.lookupOrDefault(loop.getUpperBound()),
      scalars.lookupOrDefault(loop.getStep()), inits);
  scalars.map(loop.getInductionVar(), copy.getInductionVar());
  auto take = [&](ValueRange from, ValueRange to) {
    for (auto [value, other] : llvm::zip(from, to)) {
      if (isTile(value))
        emitter->tiles.setFragment(value, other);
      else
        scalars.map(value, other);
    }
  };
  take(loop.getRegionIterArgs(), copy.getRegionIterArgs());
  if (isShared && role == Role::consumers) {
    if (failed(emitConsumers(loop, copy)))
      return failure();
    take(loop.getResults(), copy.getResults());
    return success();
  }
  bool readsAhead =
      llvm::all_of(*loop.getBody(),
                   [](Operation &op) {
                     return op.getNumRegions() == 0 || isa<tile::MapRowsOp>(op);
                   }) &&
      llvm::any_of(*loop.getBody(), llvm::IsaPred<tile::MatmulOp>);
  if (readsAhead) {
    if (failed(emitReadingAhead(loop, copy)))
      return failure();
    b.setInsertionPointAfter(copy);
  } else {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(copy.getBody());
    if (failed(emitBlock(*loop.getBody())))
      return failure();
    yield(loop);
  }
  take(loop.getResults(), copy.getResults());
  return success();
}
