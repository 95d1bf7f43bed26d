// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The consumers, the role that all others work for. A group of four warps waits
// for channels and for itself, never for another group: of values and outputs
// it has the columns that are its rows of the state. Only for work on whole
// rows of outputs (OutputRows.cpp) all groups meet.
#include "Kernel/KernelFunction.h"
#include "Kernel/OperandRoles.h"
#include "Products/OutputRows.h"
#include "Products/RoleProgram.h"

using namespace mlir;
using namespace gdn;

/// Those of `ops` that left sides of products among `from` come from.
static DenseSet<Operation *> getSources(ArrayRef<Operation *> from,
                                        ArrayRef<Operation *> ops) {
  DenseSet<Operation *> sources;
  SmallVector<Value> work;
  for (Operation *op : from)
    if (auto matmul = dyn_cast<tile::MatmulOp>(op))
      work.push_back(matmul.getLhs());
  while (!work.empty())
    if (Operation *source = work.pop_back_val().getDefiningOp();
        llvm::is_contained(ops, source) && sources.insert(source).second)
      llvm::append_range(work, source->getOperands());
  return sources;
}

/// True if one of `ops` uses `tile`, as it is or transposed.
static bool isUsedIn(Value tile, ArrayRef<Operation *> ops) {
  return llvm::any_of(tile.getUsers(), [&](Operation *user) {
    if (auto transpose = dyn_cast<tile::TransposeOp>(user))
      return isUsedIn(transpose.getResult(), ops);
    return llvm::any_of(ops,
                        [&](Operation *op) { return op->isAncestor(user); });
  });
}

/// A copy of `value` and of what it is computed from in the body of a loop.
static Value cloneInto(OpBuilder &b, Value value, Block *body,
                       IRMapping &mapping) {
  Operation *op = value.getDefiningOp();
  if (mapping.contains(value) || !op || op->getBlock() != body)
    return mapping.lookupOrDefault(value);
  for (Value operand : op->getOperands())
    cloneInto(b, operand, body, mapping);
  b.clone(*op, mapping);
  return mapping.lookup(value);
}

/// What the body of `loop` copies to memory goes there in the turn behind, as
/// soon as that one's products are under way (`begun`), or behind the loop: the
/// products of a turn do not wait for the outputs of another. The last copy
/// behind the loop; null if the body copies nothing.
static gpu::CopyOutOp storeBehind(OpBuilder &b, scf::ForOp loop,
                                  Operation *begun, bool isPaired) {
  Block *body = loop.getBody();
  gpu::CopyOutOp lastBehind;
  OpBuilder::InsertionGuard guard(b);
  for (auto out : llvm::make_early_inc_range(body->getOps<gpu::CopyOutOp>())) {
    Location loc = out.getLoc();
    Value begin = loop.getLowerBound(), end = loop.getUpperBound(),
          step = loop.getStep();
    // Of the turn at `at`, if that is one.
    auto store = [&](Value at, Value isTurn) {
      IRMapping there;
      there.map(loop.getInductionVar(), at);
      for (Value operand : out->getOperands())
        if (operand != out.getBuffer())
          cloneInto(b, operand, body, there);
      auto copied = cast<gpu::CopyOutOp>(b.clone(*out, there));
      b.setInsertionPoint(copied);
      int64_t size = out.getBuffer().getType().getShape()[0];
      Value rows = copied.getRows()
                       ? copied.getRows()
                       : Value(arith::ConstantIndexOp::create(b, loc, size));
      copied.setFullUntilLast(false); // of another turn
      copied.getRowsMutable().assign(arith::SelectOp::create(
          b, loc, isTurn, rows, arith::ConstantIndexOp::create(b, loc, 0)));
      return copied;
    };
    auto isLess = [&](Value x, Value y) -> Value {
      return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, x, y);
    };
    b.setInsertionPointAfter(begun);
    // Behind the loop nothing stores into the tile, so nothing would wait. Of a
    // pair, where the recurrence is what takes time, the wait costs more than
    // the copy (245 us, not 217).
    gpu::CopyOutOp inside =
        store(arith::SubIOp::create(b, loc, loop.getInductionVar(), step),
              isLess(begin, loop.getInductionVar()));
    // Whole panels, of all rows or none: those of a turn that is not the last.
    inside.setTensorMap(!isPaired && out.getFullUntilLast() &&
                        matchPattern(out.getIndices().back(), m_Zero()) &&
                        gpu::canUseTensorMap(inside));
    // Zeros for the first turn, which stores none of them.
    b.setInsertionPoint(loop);
    auto stored = cast<gpu::StoreSharedOp>(*llvm::find_if(
        out.getBuffer().getUsers(), llvm::IsaPred<gpu::StoreSharedOp>));
    auto type = cast<gpu::FragmentType>(stored.getTile().getType());
    Value zero =
        arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
    gpu::StoreSharedOp::create(b, loc, gpu::FillOp::create(b, loc, type, zero),
                               out.getBuffer(), Value(), stored.getTranspose());
    b.setInsertionPointAfter(loop);
    Value lastToken = arith::SubIOp::create(
        b, loc, end, arith::ConstantIndexOp::create(b, loc, 1));
    Value turns = arith::DivUIOp::create(
        b, loc, arith::SubIOp::create(b, loc, lastToken, begin), step);
    Value last = arith::AddIOp::create(
        b, loc, begin, arith::MulIOp::create(b, loc, turns, step));
    gpu::CopyOutOp behind = store(last, isLess(begin, end));
    // Those of later outputs stand ahead of it.
    if (!lastBehind)
      lastBehind = behind;
    out.erase();
  }
  return lastBehind;
}

/// Behind the loop, what it has stored of the last turns, of which `out` (null
/// for none) is the last copy: of those before, the role that loads says it.
static LogicalResult signalLast(OpBuilder &b, scf::ForOp loop,
                                gpu::CopyOutOp out, const IRMapping &scalars,
                                tile::SignalOp signal, int64_t numWarps) {
  if (!out)
    return signal.emitOpError("expects outputs that are copied to memory from "
                              "where consumers share them");
  // A copy by a tensor map may be under way when its buffer is free.
  for (auto inside : loop.getBody()->getOps<gpu::CopyOutOp>())
    if (inside.getTensorMap())
      return signal.emitOpError("expects outputs that no tensor map copies");
  if (signal.getAmount() % numWarps != 0)
    return signal.emitOpError("expects an amount that ")
           << numWarps << " warps of consumers can share";
  Location loc = signal.getLoc();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(out);
  Value begin = loop.getLowerBound(), step = loop.getStep();
  Value turns = arith::CeilDivSIOp::create(
      b, loc, arith::SubIOp::create(b, loc, loop.getUpperBound(), begin), step);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  IRMapping there;
  there.map(loop.getInductionVar(),
            arith::AddIOp::create(
                b, loc, begin,
                arith::MulIOp::create(
                    b, loc, arith::SubIOp::create(b, loc, turns, one), step))
                .getResult());
  auto atLast = [&](Value value) {
    return cloneInto(b, scalars.lookupOrDefault(value), loop.getBody(), there);
  };
  Value view = atLast(signal.getView());
  SmallVector<Value> indices = llvm::map_to_vector(signal.getIndices(), atLast);
  Value count = arith::MinSIOp::create(
      b, loc, turns, arith::ConstantIndexOp::create(b, loc, signalLag));
  gpu::SignalOp::create(b, loc, signal.getAmount() / numWarps, view, indices,
                        count);
  return success();
}

bool Consumers::isOwn(Operation *op) const {
  if (convolution && plan.convolved->contains(op))
    return false;
  auto isAhead = [&](Operation *user) {
    while (user && !plan.isAhead(user))
      user = user->getParentOp();
    return user != nullptr;
  };
  return !plan.isAhead(op) || !llvm::all_of(op->getUsers(), isAhead);
}

Value Consumers::getCarried(Value tile) {
  if (!convolution || !plan.convolved->isWindow(tile))
    return RoleProgram::getCarried(tile);
  if (tile == plan.convolved->firstWindow)
    window = convolution->begin();
  return window;
}

LogicalResult Consumers::emitLoopBody(scf::ForOp loop, scf::ForOp copy) {
  if (loop != plan.loop)
    return WarpProgram::emitLoopBody(loop, copy);
  Block &body = *loop.getBody();
  Location loc = loop.getLoc();
  auto beginOwn = [&](Value at) {
    readAhead(plan.perWarpgroup, at, copy.getUpperBound(),
              /*perWarpgroup=*/true);
  };
  beginOwn(copy.getLowerBound());
  copy->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
  // All that comes from memory is asked for ahead of what is made of it: of a
  // state, numbers in the units of values.
  if (plan.beginsEarly()) {
    for (Value init : copy.getInits())
      if (auto map = init.getDefiningOp<gpu::MapRowsOp>();
          map && map->getBlock() == copy->getBlock() && init.hasOneUse() &&
          map->getNumResults() == 1)
        map->moveBefore(copy);
    // Behind the loop all warps wait for windows at the same time.
    emitter.spreadLowTiles();
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());

  auto isInRecurrence = [&](Operation *op) {
    return !plan.isAhead(op) && !plan.behind.contains(op);
  };
  // What waits for gates and values, and what for more than that.
  SmallVector<Value> early(plan.vectors), late(plan.products);
  for (tile::LoadOp load : plan.perWarpgroup)
    early.push_back(load.getTile());
  llvm::append_range(early, plan.values);
  llvm::append_range(late, plan.scaled);
  const DenseSet<Operation *> behindGates =
      getFollowers(early, &body, isInRecurrence);
  const DenseSet<Operation *> behindAll =
      getFollowers(late, &body, isInRecurrence);
  Ops first, second, rest;
  for (Operation &op : body.without_terminator()) {
    copyScalar(b, &op, scalars);
    if (!isa<tile::TileDialect>(op.getDialect()) ||
        isa<tile::LoadOp, tile::SignalOp>(op) || !isInRecurrence(&op) ||
        (plan.isPrepared && isa<tile::StoreOp>(op)) ||
        (convolution && plan.convolved->contains(&op)))
      continue;
    (behindAll.contains(&op)     ? rest
     : behindGates.contains(&op) ? second
                                 : first)
        .push_back(&op);
  }
  // Those that need a product among them, to the rest; with `products`, these
  // too.
  auto moveBehindProducts = [&](Ops &ops, bool products) {
    SmallVector<Value> begun;
    for (Operation *op : ops)
      if (isa<tile::MatmulOp>(op))
        begun.push_back(op->getResult(0));
    const DenseSet<Operation *> behind = getFollowers(begun, &body);
    for (Operation *op : std::exchange(ops, {})) {
      const bool moves =
          behind.contains(op) || (products && isa<tile::MatmulOp>(op));
      (moves ? rest : ops).push_back(op);
    }
  };
  // The first products go on beside what needs none of them. Of a chunk that is
  // all there, values make room for the next ones as soon as they are read.
  if (plan.isPrepared || plan.chunk)
    moveBehindProducts(first, /*products=*/false);
  if (plan.chunk) {
    moveBehindProducts(second, /*products=*/true);
    // What the first products do not need is for later.
    const DenseSet<Operation *> sources = getSources(first, first);
    for (Operation *op : std::exchange(first, {}))
      (isa<tile::MatmulOp>(op) || sources.contains(op) ? first : rest)
          .push_back(op);
  }
  // A leader is received whether it is read or not.
  auto read = [&](ArrayRef<Value> group) {
    SmallVector<Value> some;
    for (Value tile : group)
      if (some.empty() || llvm::any_of(tile.getUsers(), [&](Operation *user) {
            Operation *op = body.findAncestorOpInBlock(*user);
            return op && isInRecurrence(op);
          }))
        some.push_back(tile);
    receive(some);
  };
  // Ahead of all products: beside them a thread has no registers for it.
  if (convolution) {
    gpu::AwaitCopiesOp::create(b, loc);
    window = convolution->emit(emitter.tiles.takeFragment(
        tile::Conv1dOp(plan.convolved->conv).getWindow()));
  }
  read(plan.copied);
  if (failed(emitter.emitInOrder(first)))
    return failure();
  Operation *begun = &copy.getBody()->back();
  // The sooner it is given back, the sooner the next is there; but of a pair
  // a thread has registers for these products beside the work on gates and
  // values.
  SmallVector<Value> multiplied;
  if (llvm::none_of(plan.copied, [&](Value tile) {
        return isUsedIn(tile, second) || isUsedIn(tile, rest);
      }))
    multiplied = std::exchange(received, {});
  const bool isRoomy = shared.isPaired || plan.isPrepared;
  if (!isRoomy || getNumWarps() != gpu::groupWarps)
    channels.release(std::exchange(multiplied, {}));
  read(plan.vectors);
  receive(plan.values);
  if (!convolution && !plan.perWarpgroup.empty())
    gpu::AwaitCopiesOp::create(b, loc);
  // Where no product is under way: the assembler lets none go on beside the
  // branch to the thread that asks for the copy.
  if (plan.chunk)
    begun = &copy.getBody()->back();
  // What the last products multiply comes before the wait for what they
  // multiply by; the rest behind it loads gates again, rather than keep them.
  // Of prepared chunks all comes there, beside the second product.
  DenseSet<Operation *> now = getSources(rest, second);
  Ops soon, beside;
  for (Operation *op : second)
    (now.contains(op) ? soon : plan.isPrepared ? beside : rest).push_back(op);
  llvm::sort(rest, inProgramOrder);
  if (failed(emitter.emitInOrder(soon)) || failed(emitter.emitInOrder(beside)))
    return failure();
  beginOwn(
      arith::AddIOp::create(b, loc, copy.getInductionVar(), copy.getStep()));
  // What is scaled has few buffers: ahead of the wait for it comes what those
  // that read it need, and that alone.
  const DenseSet<Operation *> behindScaled =
      getFollowers(plan.scaled, &body, isInRecurrence);
  DenseSet<Operation *> needed;
  for (Operation *op : llvm::reverse(rest))
    if (!behindScaled.contains(op) &&
        llvm::any_of(op->getUsers(), [&](Operation *user) {
          Operation *there = body.findAncestorOpInBlock(*user);
          return behindScaled.contains(there) || needed.contains(there);
        }))
      needed.insert(op);
  Ops last;
  for (Operation *op : std::exchange(rest, {}))
    (needed.contains(op) ? rest : last).push_back(op);
  channels.release(multiplied);
  read(plan.products);
  if (failed(emitter.emitInOrder(rest)))
    return failure();
  read(plan.scaled);
  receive(plan.fetched);
  // Outputs are shared as soon as they are made.
  for (Value output : plan.outputs) {
    Value buffer = emitter.tiles.allocate(
        gpu::SharedType::get(vectorType(output), /*swizzled=*/true), &body);
    emitter.tiles.setDestination(output, [buffer] { return buffer; });
  }
  channels.destine(emitter.tiles, plan.stored);
  if (failed(emitter.emitInOrder(last)))
    return failure();
  channels.commit(plan.stored);
  if (!plan.behind.empty())
    emitOutputRows(emitter.tiles, plan, channels, shared.entry, received);
  releaseAll();
  gpu::CopyOutOp stored = storeBehind(b, copy, begun, shared.isPaired);
  for (auto signal : body.getOps<tile::SignalOp>())
    if (failed(signalLast(b, copy, stored, scalars, signal, getNumWarps())))
      return failure();
  if (shared.stays) {
    dropLast(copy, {plan.copied, plan.vectors, plan.products});
    b.setInsertionPointAfter(copy);
    gpu::AwaitCopiesOp::create(b, loc);
  }
  return success();
}
