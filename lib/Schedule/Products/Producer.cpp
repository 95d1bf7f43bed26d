// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The producer: of the five of WarpRoles.cpp the one that makes all
// products and inverses that do not need the state.
#include "Products/ProductKernel.h"

using namespace mlir;
using namespace gdn;

using gpu::groupWarps;

/// Those of `ops` that `op` needs, directly or not.
static ProductKernel::Ops getNeeded(Operation *op, ArrayRef<Operation *> ops) {
  DenseSet<Operation *> needed;
  SmallVector<Value> work(op->getOperands());
  while (!work.empty())
    if (Operation *source = work.pop_back_val().getDefiningOp();
        source && needed.insert(source).second)
      llvm::append_range(work, source->getOperands());
  return llvm::filter_to_vector(
      ops, [&](Operation *other) { return needed.contains(other); });
}

/// Takes those out of `ops` that wait for nothing: they are no products, nor
/// in `waiting`, and need neither.
static ProductKernel::Ops takeFree(ProductKernel::Ops &ops,
                                   DenseSet<Operation *> waiting) {
  ProductKernel::Ops free;
  llvm::erase_if(ops, [&](Operation *op) {
    bool waits =
        isa<tile::MatmulOp>(op) || waiting.contains(op) ||
        llvm::any_of(op->getOperands(), [&](Value operand) {
          Operation *source = operand.getDefiningOp();
          if (auto transposed = dyn_cast_or_null<tile::TransposeOp>(source))
            source = transposed.getTile().getDefiningOp();
          return waiting.contains(source);
        });
    if (waits)
      waiting.insert(op);
    else
      free.push_back(op);
    return !waits;
  });
  return free;
}

/// Two chunks at a time, products without the state. Up to their inverses they
/// go side by side: each step waits for the one before it, and those of one
/// chunk fill the waits of the other.
LogicalResult ProductKernel::emitProducer(scf::ForOp loop) {
  if (isPaired)
    return emitProducerAlone(loop);
  Location loc = loop.getLoc();
  Value step = scalars.lookupOrDefault(loop.getStep());
  auto copy =
      scf::ForOp::create(b, loc, scalars.lookupOrDefault(loop.getLowerBound()),
                         scalars.lookupOrDefault(loop.getUpperBound()),
                         arith::AddIOp::create(b, loc, step, step).getResult());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  Ops work = enterBody(loop, copy, plan->produced);
  Ops ahead = getNeeded(plan->inverse, work), behind;
  for (Operation *op : work)
    if (op != plan->inverse && !llvm::is_contained(ahead, op))
      behind.push_back(op);
  // What needs no product, nor tiles of channels, each of which has a buffer
  // for one chunk.
  DenseSet<Operation *> waiting;
  for (Value tile : plan->products)
    waiting.insert(tile.getDefiningOp());
  Ops late = behind, free = takeFree(late, waiting);

  auto other = std::make_unique<ProductEmitter>(b, scalars, entry, groupWarps);
  SmallVector<Value> buffers[2];
  auto emitAll = [&](auto &&wanted, ArrayRef<Operation *> ops) {
    for (Operation *op : ops)
      if (wanted(op) && failed(emitter->emit(op)))
        return failure();
    return success();
  };
  // Of the first chunk, then of the second.
  auto ofBoth = [&](auto &&emit) {
    for (SmallVector<Value> &own : buffers) {
      if (failed(emit(own)))
        return failure();
      std::swap(emitter, other);
    }
    return success();
  };
  using Wanted = bool (*)(Operation *);
  Wanted isProduct = [](Operation *op) { return isa<tile::MatmulOp>(op); };
  Wanted isOther = [](Operation *op) { return !isa<tile::MatmulOp>(op); };
  auto isAny = [](Operation *) { return true; };
  auto isLeft = [&](Operation *op) {
    return isOther(op) && !llvm::is_contained(free, op);
  };
  (void)ofBoth([&](SmallVector<Value> &own) {
    receive(plan->copied, /*ahead=*/&own != buffers);
    receive(plan->vectors, /*ahead=*/&own != buffers);
    own = std::exchange(received, {});
    return success();
  });
  for (auto wanted : {isProduct, isOther})
    if (failed(ofBoth(
            [&](SmallVector<Value> &) { return emitAll(wanted, ahead); })))
      return failure();
  emitInverse(plan->inverse, {&emitter->tiles, &other->tiles});
  // Products of the second begin beside the end of the first. What waits for
  // none comes ahead of the commit, whose fence waits until all is written that
  // the first has shared: 355 us of a recurrence without, 349 with it.
  auto isFirst = [&](SmallVector<Value> &own) { return &own == buffers; };
  return ofBoth([&](SmallVector<Value> &own) {
    destine(plan->products);
    if (failed(isFirst(own) ? emitAll(isAny, behind) : emitAll(isLeft, behind)))
      return failure();
    if (isFirst(own)) {
      std::swap(emitter, other);
      LogicalResult begun = emitAll(isProduct, behind);
      if (succeeded(begun))
        begun = emitAll(isAny, free);
      std::swap(emitter, other);
      if (failed(begun))
        return failure();
    }
    commit(plan->products);
    received = std::exchange(own, {});
    releaseAll();
    return success();
  });
}

/// One chunk at a time, while the other block of the pair has the next.
LogicalResult ProductKernel::emitProducerAlone(scf::ForOp loop) {
  scf::ForOp copy = createTurns(loop);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  Ops work = enterBody(loop, copy, plan->produced);
  Ops ahead = getNeeded(plan->inverse, work);
  receive(plan->copied);
  receive(plan->vectors);
  auto emitAll = [&](ArrayRef<Operation *> ops) -> LogicalResult {
    for (Operation *op : ops)
      if (failed(emitter->emit(op)))
        return failure();
    return success();
  };
  // What needs neither a product nor an inverse comes while the first product
  // is made.
  DenseSet<Operation *> waiting(ahead.begin(), ahead.end());
  waiting.insert(plan->inverse);
  Ops rest = llvm::filter_to_vector(
      work, [&](Operation *op) { return !waiting.contains(op); });
  Ops free = takeFree(rest, waiting);
  auto isProduct = [](Operation *op) { return isa<tile::MatmulOp>(op); };
  Ops products = llvm::filter_to_vector(ahead, isProduct);
  llvm::erase_if(ahead, isProduct);
  if (failed(emitAll(products)) || failed(emitAll(free)) ||
      failed(emitAll(ahead)))
    return failure();
  emitInverse(plan->inverse, {&emitter->tiles});
  destine(plan->products);
  if (failed(emitAll(rest)))
    return failure();
  commit(plan->products);
  releaseAll();
  return success();
}
