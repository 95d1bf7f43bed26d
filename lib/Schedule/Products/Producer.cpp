// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The producer. Each of its products needs what the one before it has made, so
// it works on two chunks, or on what needs no product.
#include "Products/RoleProgram.h"

using namespace mlir;
using namespace gdn;

/// Those of `ops` that `op` needs, directly or not.
static WarpProgram::Ops getNeeded(Operation *op, ArrayRef<Operation *> ops) {
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
static WarpProgram::Ops takeFree(WarpProgram::Ops &ops,
                                 DenseSet<Operation *> waiting) {
  WarpProgram::Ops free;
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

static bool isProduct(Operation *op) { return isa<tile::MatmulOp>(op); }
static bool isOther(Operation *op) { return !isProduct(op); }

/// Emits those of `ops` that are wanted, or all.
static LogicalResult
emitAll(ProductEmitter &emitter, ArrayRef<Operation *> ops,
        function_ref<bool(Operation *)> isWanted = nullptr) {
  for (Operation *op : ops)
    if ((!isWanted || isWanted(op)) && failed(emitter.emit(op)))
      return failure();
  return success();
}

/// Two chunks at a time, products without the state. Up to their inverses they
/// go side by side: each step waits for the one before it, and those of one
/// chunk fill the waits of the other.
LogicalResult Producer::emitChunks() {
  if (shared.isPaired)
    return emitAlone();
  scf::ForOp loop = plan.loop;
  Location loc = loop.getLoc();
  auto [begin, end, step] = getBounds();
  auto copy =
      scf::ForOp::create(b, loc, begin, end,
                         arith::AddIOp::create(b, loc, step, step).getResult());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  Ops work = enterBody(copy);
  Ops ahead = getNeeded(plan.inverse, work), behind;
  for (Operation *op : work)
    if (op != plan.inverse && !llvm::is_contained(ahead, op))
      behind.push_back(op);
  // What needs no product, nor tiles of channels, each of which has a buffer
  // for one chunk.
  DenseSet<Operation *> waiting;
  for (Value tile : plan.products)
    waiting.insert(tile.getDefiningOp());
  Ops late = behind, free = takeFree(late, waiting);

  ProductEmitter &first = emitter;
  ProductEmitter second(b, scalars, shared.entry, gpu::groupWarps);
  SmallVector<Value> ofFirst, ofSecond; // channels
  for (ArrayRef<Value> group : {plan.copied, plan.vectors})
    channels.receive(first.tiles, group, ofFirst);
  for (ArrayRef<Value> group : {plan.copied, plan.vectors})
    channels.receive(second.tiles, group, ofSecond, /*ahead=*/true);
  for (auto *isWanted : {isProduct, isOther})
    if (failed(emitAll(first, ahead, isWanted)) ||
        failed(emitAll(second, ahead, isWanted)))
      return failure();
  emitInverse(plan.inverse, {&first.tiles, &second.tiles});
  // Products of the second begin beside the end of the first. What waits for
  // none comes ahead of the commit, whose fence waits until all is written that
  // the first has shared: 355 us of a recurrence without, 349 with it.
  channels.destine(first.tiles, plan.products);
  if (failed(emitAll(first, behind)) ||
      failed(emitAll(second, behind, isProduct)) ||
      failed(emitAll(second, free)))
    return failure();
  channels.commit(plan.products);
  channels.release(ofFirst);
  channels.destine(second.tiles, plan.products);
  if (failed(emitAll(second, behind, [&](Operation *op) {
        return isOther(op) && !llvm::is_contained(free, op);
      })))
    return failure();
  channels.commit(plan.products);
  channels.release(ofSecond);
  return success();
}

/// One chunk at a time, while the other block of the pair has the next.
LogicalResult Producer::emitAlone() {
  scf::ForOp copy = createLoop(/*alternates=*/true, /*inPairs=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  Ops work = enterBody(copy);
  Ops ahead = getNeeded(plan.inverse, work);
  receive(plan.copied);
  receive(plan.vectors);
  // What needs neither a product nor an inverse comes while the first product
  // is made.
  DenseSet<Operation *> waiting(ahead.begin(), ahead.end());
  waiting.insert(plan.inverse);
  Ops rest = llvm::filter_to_vector(
      work, [&](Operation *op) { return !waiting.contains(op); });
  Ops free = takeFree(rest, waiting);
  if (failed(emitAll(emitter, ahead, isProduct)) ||
      failed(emitAll(emitter, free)) ||
      failed(emitAll(emitter, ahead, isOther)))
    return failure();
  emitInverse(plan.inverse, {&emitter.tiles});
  channels.destine(emitter.tiles, plan.products);
  if (failed(emitAll(emitter, rest)))
    return failure();
  channels.commit(plan.products);
  releaseAll();
  return success();
}
