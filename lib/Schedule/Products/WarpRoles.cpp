// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop over chunks as the work of five roles at the same time:
//
//     load                  producer: 4 warps     consumers: rows of S
//     acquire, copy K, Q    receive K, Q, gates   receive K, Q
//     await copies          of two chunks         U, O'; the last O to memory
//     commit K, Q           K K^T; inverses       release K, Q
//                           of each: T            receive gates; await V
//     gate                  K Q^T; P'             W; copy the next V
//     gates; commit         commit T, P'          receive T, P'; X
//                           release all           receive K'; O, S; release all
//     scale
//     receive K, gates
//     K'; commit; release
//
// Of two blocks that have the same chunks, those that gate, scale and produce
// take every second chunk, one at a time, and hand it to both.
//
// The consumers are in Consumers.cpp, the producer in Producer.cpp.
#include "Kernel/KernelFunction.h"
#include "Products/LoadsAndStores.h"
#include "Products/ProductKernel.h"
#include "Products/RowMaps.h"

using namespace mlir;
using namespace gdn;

using gpu::groupWarps;

/// Buffers for tiles of chunks: one in the recurrence, one in the intra-chunk
/// work, the next and one on its way; of gates, which are kept longer, two
/// more: what one makes of them takes as long as a chunk from when its buffer
/// is free.
static constexpr int64_t copiedDepth = 4, productDepth = 2,
                         gatesDepth = copiedDepth + 2;

namespace {
/// Warps of the roles beside the consumers and the producer, and registers of a
/// thread of each role: those of a block, dealt out again. A thread of the
/// consumers has 64 of the state, 32 of it rounded, 64 of two products, and
/// what is made of them. Buffers for what is scaled: one beside outputs as
/// large.
struct RoleSizes {
  int64_t loading, gating, scaling, consumers, producer, others, scaledDepth;
};
} // namespace
static RoleSizes getSizes(int64_t consumerWarps, bool isPaired = false) {
  if (consumerWarps > groupWarps)
    return {1, 1, 2, 192, 104, 24, isPaired ? 2 : 1};
  return isPaired ? RoleSizes{2, 2, 4, 240, 128, 72, 2}
                  : RoleSizes{2, 2, 4, 208, 160, 72, 2};
}

/// Of recurrences by V-splits and maps, as ncu counts what packed projections
/// of 2/8 to 16/64 heads execute; and of recurrences of whole heads, of which
/// one of segments with 516 bytes of loads, six words of them for each chunk,
/// took as long as with 44 (packed projections, 8/24 heads, 1 x 8,192 tokens:
/// 280 us and 281).
constexpr StringLiteral fewSpills =
    "spills up to 160 bytes: scalars of the roles that load and scale, which "
    "have the registers that the others leave, and of all roles ahead of the "
    "loop over chunks; on an H200 at most 2 of 1,000 executed instructions "
    "load or store one";
constexpr StringLiteral manySpills =
    "spills up to 520 bytes: scalars of all roles ahead of the loop over "
    "chunks, six words of them in it; a recurrence with 516 bytes of loads "
    "took as "
    "long as with 44, 280 us and 281";

/// Whether the role at hand takes `op`, of the loop or around it.
bool ProductKernel::isOfRole(Operation *op) {
  if (role == Role::all)
    return true;
  bool hasLoop = op->isProperAncestor(plan->loop) || op == plan->loop;
  bool isTile = op->walk([](Operation *inner) {
                    return isa<tile::TileDialect>(inner->getDialect()) &&
                                   !isa<tile::BlockIdOp>(inner)
                               ? WalkResult::interrupt()
                               : WalkResult::advance();
                  }).wasInterrupted();
  if (hasLoop || !isTile)
    return true;
  if (role == Role::load)
    return false;
  if (role == Role::gate)
    return plan->gates.contains(op);
  if (role == Role::producer)
    return plan->produced.contains(op);
  if (role == Role::scale)
    return plan->scales.contains(op);
  // The others' alone.
  auto isAhead = [&](Operation *user) {
    auto has = [&](Operation *other) { return other->isAncestor(user); };
    return llvm::any_of(plan->gates, has) ||
           llvm::any_of(plan->produced, has) || llvm::any_of(plan->scales, has);
  };
  return !plan->isAhead(op) || !llvm::all_of(op->getUsers(), isAhead);
}

//===----------------------------------------------------------------------===//
// The roles
//===----------------------------------------------------------------------===//

/// Whether two neighbouring blocks, which have the same chunks, can prepare
/// every second one for both: where the program says that there are two, and
/// what is prepared does not ask which of them a block is.
bool ProductKernel::canPair() {
  tile::StageFields stage(source);
  if (stage.getSameChunks() != 2)
    return false;
  const uint64_t axis = stage.getGrid().size() - 1;
  scf::ForOp loop = plan->loop;
  bool isKnown = true;
  DenseSet<Operation *> seen;
  SmallVector<Operation *> work(plan->gates.begin(), plan->gates.end());
  work.append(plan->produced.begin(), plan->produced.end());
  work.append(plan->scales.begin(), plan->scales.end());
  for (Value tile : plan->copied)
    work.push_back(tile.getDefiningOp());
  auto look = [&](Value value) {
    if (Operation *from = value.getDefiningOp()) {
      if (seen.insert(from).second)
        work.push_back(from);
      return;
    }
    // What something around the loop carries may come from anywhere.
    auto argument = cast<BlockArgument>(value);
    Operation *around = argument.getOwner()->getParentOp();
    auto outer = dyn_cast<scf::ForOp>(around);
    isKnown &= around == source || !around->isProperAncestor(loop) ||
               (outer && argument == outer.getInductionVar());
  };
  for (Value bound :
       {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
    look(bound);
  for (Operation *op = loop->getParentOp(); op != source;
       op = op->getParentOp())
    work.push_back(op);
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (auto id = dyn_cast<tile::BlockIdOp>(op); id && id.getAxis() == axis)
      return false;
    auto take = [&](Operation *inner) {
      llvm::for_each(inner->getOperands(), look);
    };
    // Of what is around the loop, what it asks for and not what it holds.
    if (op->isAncestor(loop))
      take(op);
    else
      op->walk(take);
  }
  return isKnown;
}

Value ProductKernel::createChannel(VectorType tile, int64_t depth, Value leader,
                                   bool paired) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(entry, entry->begin());
  if (leader)
    b.setInsertionPointAfterValue(leader);
  auto type = gpu::ChannelType::get(
      b.getContext(), tile.getShape(), tile.getElementType(), depth,
      /*parts=*/1, /*swizzled=*/tile.getRank() == 2);
  return gpu::ChannelOp::create(b, source.getLoc(), type, leader, paired);
}

FailureOr<func::FuncOp> ProductKernel::emitRoles(RolePlan thePlan) {
  plan = std::move(thePlan);
  func::FuncOp kernel = createKernel(b, source, scalars);
  entry = &kernel.front();
  isPaired = canPair();
  const RoleSizes sizes = getSizes(numWarps, isPaired);
  const int64_t scaling = plan->scales.empty() ? 0 : sizes.scaling;
  const int64_t loading = sizes.loading + sizes.scaling - scaling;
  const int64_t allWarps =
      numWarps + groupWarps + loading + sizes.gating + scaling;
  gpu::KernelFields fields(kernel);
  fields.setThreads(allWarps * gpu::warpThreads);
  fields.setMinBlocks(1);
  if (numWarps > groupWarps)
    fields.setKeepLoops();
  kernel->setAttr(
      "gdn_gpu.allow",
      b.getStringAttr(numWarps > groupWarps ? manySpills : fewSpills));
  if (isPaired)
    fields.setCluster(2);
  auto open = [&](ArrayRef<Value> group, int64_t depth, bool paired) {
    Value leader;
    for (Value tile : group) {
      auto type = cast<VectorType>(tile.getType());
      if (isa<tile::DecayMatrixOp>(tile.getDefiningOp())) // its running sums
        type = VectorType::get({type.getDimSize(0)}, type.getElementType());
      channels[tile] = createChannel(type, depth, leader, paired);
      leader = leader ? leader : channels[tile];
    }
  };
  if (tile::StageFields(source).overlapsWith(tile::Neighbour::next))
    gpu::ReleaseLaunchOp::create(b, source.getLoc());
  open(plan->copied, copiedDepth, /*paired=*/false);
  open(plan->vectors, gatesDepth, isPaired);
  open(plan->products, productDepth, isPaired);
  open(plan->scaled, sizes.scaledDepth, isPaired);

  b.setInsertionPointToEnd(entry);
  if (failed(emitAheadOfRoles()))
    return failure();
  auto roles = gpu::RolesOp::create(b, source.getLoc());
  b.createBlock(&roles.getBody());
  int64_t first = 0;
  auto emitNext = [&](Role which, int64_t count, int64_t registers) {
    LogicalResult result = emitRole(which, first, count, registers);
    first += count;
    return result;
  };
  if (failed(emitNext(Role::consumers, numWarps, sizes.consumers)) ||
      failed(emitNext(Role::producer, groupWarps, sizes.producer)) ||
      failed(emitNext(Role::load, loading, sizes.others)) ||
      failed(emitNext(Role::gate, sizes.gating, sizes.others)))
    return failure();
  if (scaling != 0 && failed(emitNext(Role::scale, scaling, sizes.others)))
    return failure();
  b.setInsertionPointToEnd(entry);
  // Who comes next waits for both: for all blocks of this stage, of which the
  // first waits for the other. Those that have nothing to do make room at once.
  if (tile::StageFields(source).overlapsWith(tile::Neighbour::last)) {
    Value isFirst;
    for (int32_t axis = 0; axis < 3; ++axis) {
      Value id =
          gpu::BlockIdOp::create(b, source.getLoc(), b.getIndexType(), axis);
      Value none = arith::ConstantIndexOp::create(b, source.getLoc(), 0);
      Value isNone = arith::CmpIOp::create(b, source.getLoc(),
                                           arith::CmpIPredicate::eq, id, none);
      isFirst = isFirst
                    ? arith::AndIOp::create(b, source.getLoc(), isFirst, isNone)
                          .getResult()
                    : isNone;
    }
    auto branch = scf::IfOp::create(b, source.getLoc(), isFirst,
                                    /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    gpu::AwaitLaunchOp::create(b, source.getLoc());
  }
  func::ReturnOp::create(b, source.getLoc());
  return kernel;
}

/// Where a block looks for its sequence in a loop: that, its bounds, and what
/// stands ahead of them, once for all roles, each of which would have code of
/// its own for it. Elsewhere it is little code, and would take registers from
/// one role to the next.
LogicalResult ProductKernel::emitAheadOfRoles() {
  Block &body = source.getBody().front();
  auto isTile = [](Operation *op) {
    return isa<tile::TileDialect>(op->getDialect()) &&
           !isa<tile::BlockIdOp>(op);
  };
  Operation *last = nullptr;
  bool hasLoop = false;
  for (Operation &op : body) {
    if (op.getNumRegions() == 0 || op.getNumResults() == 0)
      continue;
    WalkResult hasTiles = op.walk([&](Operation *inner) {
      return isTile(inner) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (hasTiles.wasInterrupted())
      break;
    hasLoop |= isa<scf::ForOp>(op);
    last = &op;
  }
  if (!hasLoop)
    return success();
  role = Role::all;
  emitter = std::make_unique<ProductEmitter>(b, scalars, entry, numWarps);
  for (Operation &op : body) {
    if (isTile(&op))
      continue;
    if (op.getNumRegions() == 0)
      emitScalars(&op, scalars);
    else if (failed(emitRegions(&op)))
      return failure();
    aheadOfRoles.insert(&op);
    if (&op == last)
      break;
  }
  return success();
}

LogicalResult ProductKernel::emitRole(Role which, int64_t first, int64_t count,
                                      int64_t registers) {
  OpBuilder::InsertionGuard guard(b);
  const bool alternate =
      isPaired && which != Role::consumers && which != Role::load;
  auto warps =
      gpu::WarpsOp::create(b, source.getLoc(), TypeRange(), first, count,
                           b.getI64IntegerAttr(registers), alternate);
  b.createBlock(&warps.getBody());
  IRMapping around = scalars;
  role = which;
  emitter = std::make_unique<ProductEmitter>(b, scalars, entry, count);
  if (role == Role::consumers)
    emitter->storePerWarpgroup();
  if (failed(emitBlock(source.getBody().front())))
    return failure();
  gpu::YieldOp::create(b, source.getLoc());
  scalars = around;
  return success();
}

/// The next tile of the channel of `tile`.
static gpu::SharedType getTileType(Value channel) {
  return cast<gpu::ChannelType>(channel.getType()).getTile();
}

/// The next tiles of `group`, whose first leads the others.
void ProductKernel::receive(ArrayRef<Value> group, bool ahead) {
  for (Value tile : group) {
    Value channel = channels.lookup(tile);
    emitter->tiles.pinBuffer(tile, gpu::ReceiveOp::create(b, tile.getLoc(),
                                                          getTileType(channel),
                                                          channel, ahead));
    received.push_back(channel);
  }
}

/// Gives back what was received; a leader is behind those that it leads.
void ProductKernel::releaseAll() {
  for (Value channel : llvm::reverse(received))
    gpu::ReleaseOp::create(b, source.getLoc(), channel);
  received.clear();
}

/// The tiles of `group` go to their channels, whose buffers are taken when the
/// first is made.
void ProductKernel::destine(ArrayRef<Value> group) {
  auto buffers = std::make_shared<DenseMap<Value, Value>>();
  for (Value tile : group)
    emitter->tiles.setDestination(
        tile, [this, buffers, tile, all = SmallVector<Value>(group)] {
          if (buffers->empty())
            for (Value other : all) {
              Value channel = channels.lookup(other);
              (*buffers)[other] = gpu::AcquireOp::create(
                  b, other.getLoc(), getTileType(channel), channel);
            }
          return buffers->lookup(tile);
        });
}

void ProductKernel::commit(ArrayRef<Value> group) {
  for (Value tile : llvm::reverse(group))
    gpu::CommitOp::create(b, tile.getLoc(), Type(), channels.lookup(tile));
}

//===----------------------------------------------------------------------===//
// The load role and the producer
//===----------------------------------------------------------------------===//

/// Takes the next buffers of what is copied and begins to copy the turn `at`.
void ProductKernel::beginRing(Value at, Value end) {
  SmallVector<tile::LoadOp> loads;
  for (Value tile : plan->copied) {
    Value channel = channels.lookup(tile);
    emitter->tiles.setBuffer(tile, gpu::AcquireOp::create(b, tile.getLoc(),
                                                          getTileType(channel),
                                                          channel));
    loads.push_back(tile.getDefiningOp<tile::LoadOp>());
  }
  emitAhead(loads, at, end,
            [&](tile::LoadOp load, const IRMapping &there, Value rows) {
              gpu::BeginCopyOp copy = beginCopy(emitter->tiles, load, there,
                                                rows, /*isPinned=*/false);
              copy.setTensorMap(gpu::canUseTensorMap(copy));
            });
}

/// The ops of `from` in the body of the loop, in order, with its scalars
/// emitted.
ProductKernel::Ops
ProductKernel::enterBody(scf::ForOp loop, scf::ForOp copy,
                         const llvm::SetVector<Operation *> &from) {
  scalars.map(loop.getInductionVar(), copy.getInductionVar());
  Ops all, work;
  for (Operation &op : loop.getBody()->without_terminator()) {
    all.push_back(&op);
    if (from.contains(&op))
      work.push_back(&op);
  }
  emitScalars(all, scalars);
  return work;
}

/// A loop over the chunks that a role of this block takes: all, or of a pair of
/// blocks every second one.
scf::ForOp ProductKernel::createTurns(scf::ForOp loop) {
  Location loc = loop.getLoc();
  Value begin = scalars.lookupOrDefault(loop.getLowerBound()),
        end = scalars.lookupOrDefault(loop.getUpperBound()),
        step = scalars.lookupOrDefault(loop.getStep());
  if (isPaired) {
    Value block = gpu::BlockIdOp::create(b, loc, b.getIndexType(), 2);
    begin = arith::AddIOp::create(b, loc, begin,
                                  arith::MulIOp::create(b, loc, block, step));
    step = arith::AddIOp::create(b, loc, step, step);
  }
  return scf::ForOp::create(b, loc, begin, end, step);
}

/// A loop over as many chunks as the producer takes, two at a time: the
/// last may be empty.
scf::ForOp ProductKernel::createPairLoop(scf::ForOp loop) {
  Location loc = loop.getLoc();
  Value begin = scalars.lookupOrDefault(loop.getLowerBound()),
        end = scalars.lookupOrDefault(loop.getUpperBound()),
        step = scalars.lookupOrDefault(loop.getStep());
  Value pair = arith::AddIOp::create(b, loc, step, step);
  Value pairs = arith::CeilDivUIOp::create(
      b, loc, arith::SubIOp::create(b, loc, end, begin), pair);
  Value until = arith::AddIOp::create(
      b, loc, begin, arith::MulIOp::create(b, loc, pairs, pair));
  return scf::ForOp::create(b, loc, begin, until, step);
}

/// Chunk after chunk, each as soon as there is a buffer for it.
LogicalResult ProductKernel::emitLoad(scf::ForOp loop) {
  Location loc = loop.getLoc();
  Value begin = scalars.lookupOrDefault(loop.getLowerBound()),
        end = scalars.lookupOrDefault(loop.getUpperBound()),
        step = scalars.lookupOrDefault(loop.getStep());
  scf::ForOp copy = isPaired ? scf::ForOp::create(b, loc, begin, end, step)
                             : createPairLoop(loop);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  (void)enterBody(loop, copy, {});
  beginRing(copy.getInductionVar(), end);
  // Each warp says for itself when its copies are there.
  gpu::AwaitCopiesOp::create(b, loc);
  commit(plan->copied);
  return success();
}

/// What needs no matrix, for the same chunks.
LogicalResult ProductKernel::emitGates(scf::ForOp loop) {
  scf::ForOp copy = isPaired ? createTurns(loop) : createPairLoop(loop);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  Ops work = enterBody(loop, copy, plan->gates);
  llvm::append_range(work, plan->sums);
  llvm::sort(work,
             [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
  // Their inputs are on their way first.
  emitter->vectors.emitLoads(work);
  destine(plan->vectors);
  emitter->vectors.emit(work);
  commit(plan->vectors);
  return success();
}

/// Rows of what was loaded times elements of vectors, a few rows at a time.
LogicalResult ProductKernel::emitScale(scf::ForOp loop) {
  scf::ForOp copy = createTurns(loop);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  Ops work = enterBody(loop, copy, plan->scales);
  receive(plan->copied);
  receive(plan->vectors);
  destine(plan->scaled);
  emitInSlices(emitter->tiles, work);
  commit(plan->scaled);
  releaseAll();
  return success();
}
