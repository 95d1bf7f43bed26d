// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop over chunks as the work of three roles at the same time:
//
//     load         feed: four warps           walk: warps for rows of the state
//     acquire      receive K, Q, g, beta      receive K, Q
//     copy K, Q,   K K^T, gates               U, O'
//       g, beta    acquire, commit gates      receive gates; await V
//     commit       inverse, Q K^T, Z          W; copy the next V
//                  acquire Y, Z               receive Y, Z
//                  Y; commit Y, Z             O, S; O to memory
//                  release                    release all
//
// A warp that walks waits for channels alone, never for another warp: of V and
// O it has the columns that are its rows of the state.
#include "ProductKernel.h"

#include <functional>

using namespace mlir;
using namespace gdn;

/// Warps of each of the roles that prepare: products take four.
static constexpr int64_t groupWarps = 4;
/// Places for what is copied, and for what is made of it.
static constexpr int64_t ringDepth = 4, madeDepth = 2;
/// Registers of a thread: those of a block of 16 warps, dealt out again. A
/// thread that walks has 64 of the state, 32 of it rounded, 64 of two products,
/// and what is made of them.
static constexpr int64_t walkRegisters = 192, feedRegisters = 104,
                         loadRegisters = 24;

static bool isMatrix(Value value) {
  auto type = dyn_cast<VectorType>(value.getType());
  return type && type.getRank() == 2;
}

static SmallVector<Value> tilesOf(ArrayRef<tile::LoadOp> loads) {
  return llvm::map_to_vector(
      loads, [](tile::LoadOp load) -> Value { return load.getTile(); });
}

/// The op of `block` that `op` is or is inside.
static Operation *inBlock(Operation *op, Block *block) {
  return block->findAncestorOpInBlock(*op);
}

//===----------------------------------------------------------------------===//
// Who does what
//===----------------------------------------------------------------------===//

/// Ops of `body` that need one of `work`, directly or not.
static DenseSet<Operation *> getWalk(SmallVector<Value> work, Block *body) {
  DenseSet<Operation *> walk;
  while (!work.empty())
    for (Operation *user : work.pop_back_val().getUsers()) {
      Operation *op = inBlock(user, body);
      if (op && walk.insert(op).second)
        llvm::append_range(work, op->getResults());
    }
  return walk;
}

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

static bool hasUserIn(Value value, Block *block,
                      llvm::function_ref<bool(Operation *)> isOne) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    Operation *op = inBlock(user, block);
    return op && isOne(op);
  });
}

std::optional<RolePlan> RolePlan::find(func::FuncOp program) {
  SmallVector<scf::ForOp> loops;
  program.walk([&](scf::ForOp loop) {
    if (llvm::any_of(loop.getRegionIterArgs(), isMatrix))
      loops.push_back(loop);
  });
  if (loops.size() != 1)
    return std::nullopt;
  RolePlan plan;
  plan.loop = loops.front();
  Block *body = plan.loop.getBody();
  // Values, which only elementwise work reads, turned round.
  for (auto load : body->getOps<tile::LoadOp>())
    if (ProductEmitter::isCopied(load) && isMatrix(load.getTile()) &&
        llvm::all_of(load->getUsers(), [](Operation *user) {
          return isa<tile::TransposeOp>(user) &&
                 llvm::all_of(user->getUsers(), llvm::IsaPred<tile::MapRowsOp>);
        }))
      plan.own.push_back(load);
  SmallVector<Value> carried(plan.loop.getRegionIterArgs());
  for (tile::LoadOp load : plan.own)
    carried.push_back(load.getTile());
  DenseSet<Operation *> walk = getWalk(carried, body);
  // What feeds: whatever a product that does not need the state leads to or
  // comes from.
  auto isTileWork = [](Operation &op) {
    return isa<tile::TileDialect>(op.getDialect()) && !isa<tile::LoadOp>(op) &&
           !isa<tile::TransposeOp>(op);
  };
  bool hasProduct = false;
  for (Operation &op : *body)
    if (isTileWork(op) && !walk.contains(&op) &&
        !op.hasTrait<OpTrait::IsTerminator>()) {
      plan.feeds.insert(&op);
      hasProduct |= isa<tile::MatmulOp>(op);
    }
  if (!hasProduct)
    return std::nullopt;
  auto isFeed = [&](Operation *op) { return plan.feeds.contains(op); };
  auto isWalk = [&](Operation *op) { return walk.contains(op); };
  // Tiles are turned where they are read.
  for (auto transpose : llvm::to_vector(body->getOps<tile::TransposeOp>()))
    if (!walk.contains(transpose) &&
        hasUserIn(transpose.getResult(), body, isFeed))
      plan.feeds.insert(transpose);
  for (auto load : body->getOps<tile::LoadOp>()) {
    if (llvm::is_contained(plan.own, load))
      continue;
    if (isMatrix(load.getTile()) || ProductEmitter::isElements(load))
      plan.ring.push_back(load);
    else
      plan.feeds.insert(load);
  }
  for (Operation *op : plan.feeds)
    for (Value result : op->getResults())
      if (!isa<tile::TransposeOp>(op) && hasUserIn(result, body, [&](Operation *user) {
            if (auto transpose = dyn_cast<tile::TransposeOp>(user))
              return !isFeed(user) &&
                     hasUserIn(transpose.getResult(), body, isWalk);
            return isWalk(user);
          }))
        (isMatrix(result) ? plan.matrices : plan.vectors).push_back(result);
  // What they need from ahead of the loop.
  SmallVector<Operation *> work(plan.feeds.begin(), plan.feeds.end());
  while (!work.empty())
    work.pop_back_val()->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *source = operand.getDefiningOp();
        if (source && isa<tile::TileDialect>(source->getDialect()) &&
            isa<VectorType>(operand.getType()) &&
            !body->getParent()->isAncestor(source->getParentRegion()) &&
            plan.feeds.insert(source))
          work.push_back(source);
      }
    });
  return plan;
}

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
  if (role == Role::feed)
    return plan->feeds.contains(op);
  return !plan->feeds.contains(op) ||
         llvm::any_of(op->getUsers(), [&](Operation *user) {
           return !plan->feeds.contains(user) &&
                  !llvm::any_of(plan->feeds, [&](Operation *feed) {
                    return feed->isAncestor(user);
                  });
         });
}

//===----------------------------------------------------------------------===//
// The roles
//===----------------------------------------------------------------------===//

Value ProductKernel::createChannel(VectorType tile, int64_t depth,
                                   Value leader) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(entry, entry->begin());
  if (leader)
    b.setInsertionPointAfterValue(leader);
  auto type = gpu::ChannelType::get(
      b.getContext(), tile.getShape(), tile.getElementType(), depth,
      /*parts=*/1, /*swizzled=*/tile.getRank() == 2);
  return gpu::ChannelOp::create(b, source.getLoc(), type, leader);
}

FailureOr<func::FuncOp> ProductKernel::emitRoles(RolePlan thePlan) {
  plan = std::move(thePlan);
  b.setInsertionPoint(source);
  auto kernel = cast<func::FuncOp>(source->cloneWithoutRegions());
  b.insert(kernel);
  const int64_t allWarps = numWarps + 2 * groupWarps;
  kernel->setAttr("gdn_gpu.threads",
                  b.getI64IntegerAttr(allWarps * gpu::warpThreads));
  kernel->setAttr("gdn_gpu.min_blocks", b.getI64IntegerAttr(1));
  kernel->setAttr("gdn_gpu.keep_loops", b.getUnitAttr());
  entry = kernel.addEntryBlock();
  b.setInsertionPointToStart(entry);
  scalars.map(source.getBody().front().getArguments(), entry->getArguments());

  auto type = [](Value tile) { return cast<VectorType>(tile.getType()); };
  auto open = [&](ArrayRef<Value> group, int64_t depth) {
    Value leader;
    for (Value tile : group) {
      channels[tile] = createChannel(type(tile), depth, leader);
      leader = leader ? leader : channels[tile];
    }
  };
  open(tilesOf(plan->ring), ringDepth);
  open(plan->vectors, ringDepth);
  open(plan->matrices, madeDepth);

  b.setInsertionPointToEnd(entry);
  auto roles = gpu::RolesOp::create(b, source.getLoc());
  b.createBlock(&roles.getBody());
  if (failed(emitRole(Role::walk, 0, numWarps, walkRegisters)) ||
      failed(emitRole(Role::feed, numWarps, groupWarps, feedRegisters)) ||
      failed(emitRole(Role::load, numWarps + groupWarps, groupWarps,
                      loadRegisters)))
    return failure();
  b.setInsertionPointToEnd(entry);
  func::ReturnOp::create(b, source.getLoc());
  return kernel;
}

/// `ops` with each product, and what is made again for one, right before the
/// first that needs it.
ProductKernel::Ops
ProductKernel::productsLate(ArrayRef<Operation *> ops) {
  Ops ordered;
  SetVector<Operation *> waiting;
  std::function<void(Operation *)> take = [&](Operation *op) {
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *source = operand.getDefiningOp();
            source && waiting.remove(source))
          take(source);
    });
    ordered.push_back(op);
  };
  for (Operation *op : ops)
    if (isa<tile::MatmulOp, tile::TransposeOp>(op) || again.contains(op))
      waiting.insert(op);
    else
      take(op);
  for (Operation *op : waiting.takeVector())
    take(op);
  return ordered;
}

LogicalResult ProductKernel::emitRole(Role which, int64_t first, int64_t count,
                                      int64_t registers) {
  OpBuilder::InsertionGuard guard(b);
  auto warps =
      gpu::WarpsOp::create(b, source.getLoc(), TypeRange(), first, count,
                           b.getI64IntegerAttr(registers));
  b.createBlock(&warps.getBody());
  IRMapping around = scalars;
  role = which;
  tiles.emplace(b, scalars, entry, count);
  if (role == Role::walk)
    tiles->storeOwnColumns();
  if (failed(emitBlock(source.getBody().front())))
    return failure();
  gpu::YieldOp::create(b, source.getLoc());
  scalars = around;
  return success();
}

/// The next tiles of `group`, whose first leads the others: those that a reader
/// of this role uses. Channels that have to be released go to `received`.
void ProductKernel::receive(ArrayRef<Value> group,
                            llvm::function_ref<bool(Operation *)> isReader,
                            SmallVector<Value> &received) {
  for (Value tile : group) {
    if (tile != group.front() && llvm::none_of(tile.getUsers(), isReader))
      continue;
    Value channel = channels.lookup(tile);
    auto type = cast<gpu::ChannelType>(channel.getType());
    tiles->pinPlace(tile, gpu::ReceiveOp::create(b, tile.getLoc(),
                                                 type.getTile(), channel));
    received.push_back(channel);
  }
}

//===----------------------------------------------------------------------===//
// The walk
//===----------------------------------------------------------------------===//

LogicalResult ProductKernel::emitWalk(scf::ForOp loop, scf::ForOp copy) {
  Block &body = *loop.getBody();
  Location loc = loop.getLoc();
  auto beginOwn = [&](Value at) {
    emitAhead(plan->own, at, copy.getUpperBound(),
              [&](tile::LoadOp load, const IRMapping &there, Value rows) {
                tiles->emitOwnCopy(load, there, rows);
              });
  };
  beginOwn(copy.getLowerBound());
  copy->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());

  // What waits for gates and values, and what for more than that.
  DenseSet<Operation *> behindGates, behindAll;
  auto follow = [&](ValueRange tiles, DenseSet<Operation *> &into) {
    SmallVector<Value> work(tiles);
    while (!work.empty())
      for (Operation *user : work.pop_back_val().getUsers()) {
        Operation *op = inBlock(user, &body);
        if (op && !plan->feeds.contains(op) && into.insert(op).second)
          llvm::append_range(work, op->getResults());
      }
  };
  follow(plan->vectors, behindGates);
  for (tile::LoadOp load : plan->own)
    follow(load.getTile(), behindGates);
  follow(plan->matrices, behindAll);
  Ops all, first, second, rest;
  for (Operation &op : body.without_terminator()) {
    all.push_back(&op);
    if (!isa<tile::TileDialect>(op.getDialect()) || isa<tile::LoadOp>(op) ||
        plan->feeds.contains(&op))
      continue;
    (behindAll.contains(&op)     ? rest
     : behindGates.contains(&op) ? second
                                 : first)
        .push_back(&op);
  }
  SmallVector<Value> received; // channels, leaders first
  auto isWalk = [&](Operation *user) {
    Operation *op = inBlock(user, &body);
    return op && !plan->feeds.contains(op);
  };
  emitScalars(all, scalars);
  receive(tilesOf(plan->ring), isWalk, received);
  if (failed(emitSegment(first)))
    return failure();
  receive(plan->vectors, isWalk, received);
  gpu::AwaitCopiesOp::create(b, loc);
  // What the last products multiply comes before the wait for what they
  // multiply by; the rest behind it fetches gates again, rather than keep them.
  DenseSet<Operation *> now = getSources(rest, second);
  Ops soon;
  for (Operation *op : second)
    (now.contains(op) ? soon : rest).push_back(op);
  llvm::sort(rest,
             [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
  if (failed(emitSegment(soon)))
    return failure();
  beginOwn(
      arith::AddIOp::create(b, loc, copy.getInductionVar(), copy.getStep()));
  receive(plan->matrices, isWalk, received);
  if (failed(emitSegment(rest)))
    return failure();
  // A leader is behind what comes and goes with it.
  for (Value channel : llvm::reverse(received))
    gpu::ReleaseOp::create(b, loc, channel);
  yield(loop);
  b.setInsertionPointAfter(copy);
  return success();
}

//===----------------------------------------------------------------------===//
// Feeding
//===----------------------------------------------------------------------===//

/// Takes the next places of the ring and begins to copy the turn `at`.
void ProductKernel::beginRing(Value at, Value end) {
  for (tile::LoadOp load : plan->ring) {
    Value channel = channels.lookup(load.getTile());
    auto type = cast<gpu::ChannelType>(channel.getType());
    tiles->setPlace(load.getTile(),
                    gpu::AcquireOp::create(b, load.getLoc(), type.getTile(),
                                           channel));
  }
  emitAhead(plan->ring, at, end,
            [&](tile::LoadOp load, const IRMapping &there, Value rows) {
              tiles->emitCopy(load, there, rows, /*isPinned=*/false);
            });
}

/// Chunk after chunk, each as soon as there is a place for it.
LogicalResult ProductKernel::emitLoad(scf::ForOp loop) {
  Location loc = loop.getLoc();
  Value begin = scalars.lookupOrDefault(loop.getLowerBound()),
        end = scalars.lookupOrDefault(loop.getUpperBound()),
        step = scalars.lookupOrDefault(loop.getStep());
  beginRing(begin, end);
  auto copy = scf::ForOp::create(b, loc, begin, end, step);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  gpu::AwaitCopiesOp::create(b, loc);
  for (tile::LoadOp load : llvm::reverse(plan->ring))
    gpu::CommitOp::create(b, loc, Type(), channels.lookup(load.getTile()));
  beginRing(arith::AddIOp::create(b, loc, copy.getInductionVar(), step), end);
  return success();
}

LogicalResult ProductKernel::emitFeed(scf::ForOp loop) {
  if (loop != plan->loop)
    return loop.emitOpError("has no place in a schedule of roles");
  Location loc = loop.getLoc();
  auto copy = scf::ForOp::create(
      b, loc, scalars.lookupOrDefault(loop.getLowerBound()),
      scalars.lookupOrDefault(loop.getUpperBound()),
      scalars.lookupOrDefault(loop.getStep()));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  scalars.map(loop.getInductionVar(), copy.getInductionVar());
  Ops all, work;
  for (Operation &op : loop.getBody()->without_terminator()) {
    all.push_back(&op);
    if (plan->feeds.contains(&op))
      work.push_back(&op);
  }
  emitScalars(all, scalars);
  SmallVector<Value> received;
  receive(
      tilesOf(plan->ring),
      [&](Operation *user) {
        Operation *op = inBlock(user, loop.getBody());
        return op && plan->feeds.contains(op);
      },
      received);
  Value largest = *llvm::max_element(plan->matrices, [](Value x, Value y) {
    return cast<VectorType>(x.getType()).getNumElements() <
           cast<VectorType>(y.getType()).getNumElements();
  });
  // Places are taken when the first of those that come together needs one.
  auto destine = [&](ArrayRef<Value> group) {
    auto taken = std::make_shared<DenseMap<Value, Value>>();
    for (Value tile : group)
      tiles->setDestination(
          tile,
          [this, group = SmallVector<Value>(group), taken, tile, loc] {
            if (taken->empty())
              for (Value other : group) {
                Value channel = channels.lookup(other);
                auto type = cast<gpu::ChannelType>(channel.getType());
                (*taken)[other] =
                    gpu::AcquireOp::create(b, loc, type.getTile(), channel);
              }
            return taken->lookup(tile);
          },
          /*lends=*/tile == largest);
  };
  destine(plan->vectors);
  destine(plan->matrices);
  if (failed(emitSegment(work)))
    return failure();
  for (ArrayRef<Value> group : {ArrayRef<Value>(plan->vectors),
                                ArrayRef<Value>(plan->matrices)})
    for (Value tile : llvm::reverse(group))
      gpu::CommitOp::create(b, loc, Type(), channels.lookup(tile));
  for (Value channel : llvm::reverse(received))
    gpu::ReleaseOp::create(b, loc, channel);
  return success();
}
