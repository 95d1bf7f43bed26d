// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop over chunks with a decay per channel. A place of a ring holds a chunk
// from when it is copied until the recurrence has used it, and roles change it
// in place, one behind the other:
//
//   loads: 1 warp  within: 4 warps  between: 2 warps    inverse: 1    consumers
//   copy a chunk
//                  decays, scores
//                  of 16 tokens
//                                  scores of the last  inverses of
//                                  tokens with the     16 tokens
//                                  first               join them
//                                                                    U, O'; W;
//                                                                    X O, S;
//                                                                    release
//
// What the first tokens' keys and the decays of 16 tokens are goes from within
// to between by a ring of its own. Copies have a warp of their own: as work of
// between they took as long as its scores, and both together a chunk.
//
// A multiprocessor has one cache for the instructions of all roles. Where their
// loops did not fit, all of them waited for instructions, and a chunk took half
// as long again.
#include "Products/ChannelRoles.h"

#include "Kernel/KernelFunction.h"
#include "Products/LoadsAndStores.h"

#include "gdn/Dialect/Tile/IR/StageFields.h"

using namespace mlir;
using namespace gdn;

using gpu::groupWarps;

/// Places for chunks, for what goes from within to between, and for values.
static constexpr int64_t chunkDepth = 5, valuesDepth = 3;
static constexpr int64_t betweenWarps = 2;

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

namespace {
/// The tiles of a place, in one state.
struct Place {
  Value query, key, logDecay, products, end;
};

/// All channels beside those of consumers.
struct ChannelRings {
  Place loaded, within, ready;
  Value firstKeys, decays; // from within to between
  Value joined;            // from between to inverse: nothing but that it is
  Value values;            // loaded
  Value norms;             // loaded, with a place; null: none
};
} // namespace

static gpu::SharedType getTile(Value channel) {
  return cast<gpu::ChannelType>(channel.getType()).getTile();
}

static ChannelRings openRings(OpBuilder &b, Location loc, Block *entry,
                              ChannelChunk chunk, int64_t keysDepth) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);
  MLIRContext *context = b.getContext();
  VectorType logs = vectorType(chunk.logDecay.getTile());
  const int64_t tokens = logs.getDimSize(0), channels = logs.getDimSize(1);
  Type f32 = b.getF32Type(), f16 = b.getF16Type();
  Type input = vectorType(chunk.key.getTile()).getElementType();
  auto open = [&](ArrayRef<int64_t> shape, Type element, int64_t depth,
                  Value leader = {}, Value memory = {}, bool zeroed = false,
                  int64_t apart = 1) {
    auto type = gpu::ChannelType::get(
        context, shape, element, depth, /*parts=*/1,
        /*swizzled=*/shape.size() == 2 && shape.front() > 2, apart);
    return gpu::ChannelOp::create(b, loc, type, leader, memory,
                                  /*paired=*/false, /*exchanged=*/false, zeroed)
        .getResult();
  };
  const int64_t whole[] = {tokens, channels},
                twoSquares[] = {tokens, 2 * tokens};
  auto openPlace = [&](Type element, Type logs, const Place *memory) {
    Place place; // its queries lead
    auto add = [&](Value Place::*tile, ArrayRef<int64_t> shape, Type type,
                   bool zeroed = false, int64_t apart = 1) {
      place.*tile =
          open(shape, type, chunkDepth, place.query,
               memory ? memory->*tile : Value(), zeroed && !memory, apart);
    };
    add(&Place::query, whole, element);
    add(&Place::key, whole, element);
    // Of 16 bits with the room of f32, of which others make use.
    add(&Place::logDecay, whole, logs, /*zeroed=*/false,
        /*apart=*/logs.isF32() ? 1 : 2);
    // T and P side by side; above their diagonals nobody writes.
    add(&Place::products, twoSquares, f16, /*zeroed=*/true);
    add(&Place::end, channels, f32);
    return place;
  };
  ChannelRings rings;
  rings.loaded = openPlace(input, logs.getElementType(), nullptr);
  if (chunk.queryNorm)
    rings.norms = open({2, tokens}, f32, chunkDepth, rings.loaded.query);
  rings.within = openPlace(f16, f32, &rings.loaded);
  rings.ready = openPlace(f16, f32, &rings.loaded);
  rings.firstKeys = open({tokens / 2, channels}, f16, keysDepth);
  rings.decays = open({2, channels}, f32, keysDepth, rings.firstKeys);
  rings.joined = open({4}, f32, keysDepth);
  VectorType values = vectorType(chunk.value.getTile());
  rings.values = open(values.getShape(), values.getElementType(), valuesDepth);
  return rings;
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

namespace {
/// What the roles ahead of the recurrence have in common.
struct ChannelRole : RoleProgram {
  ChannelRole(const SharedByRoles &shared, const ChannelRings &rings,
              int64_t numWarps)
      : RoleProgram(shared, numWarps), rings(rings) {}

protected:
  Value take(Value channel) {
    return gpu::ReceiveOp::create(b, loc(), getTile(channel), channel,
                                  /*ahead=*/false);
  }
  Place take(const Place &place) {
    return {take(place.query), take(place.key), take(place.logDecay),
            take(place.products), take(place.end)};
  }
  Value fill(Value channel) {
    return gpu::AcquireOp::create(b, loc(), getTile(channel), channel);
  }
  void commit(Value channel) {
    gpu::CommitOp::create(b, loc(), Type(), channel);
  }
  void release(Value channel) { gpu::ReleaseOp::create(b, loc(), channel); }
  Value getScale() {
    return arith::ConstantOp::create(b, loc(),
                                     b.getF32FloatAttr(plan.chunk->scale));
  }
  Location loc() const { return scf::ForOp(plan.loop).getLoc(); }
  /// A loop over all chunks, in whose body the builder then stands.
  scf::ForOp enterLoop() {
    scf::ForOp copy = createLoop(/*alternates=*/false, /*inPairs=*/false);
    b.setInsertionPointToStart(copy.getBody());
    return copy;
  }
  /// So many chunks, in tokens.
  Value tokensOf(Value chunks) {
    return arith::MulIOp::create(b, loc(), getBounds().step, chunks);
  }
  Value tokensOf(int64_t chunks) {
    return tokensOf(arith::ConstantIndexOp::create(b, loc(), chunks));
  }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc(), x, y); }

  const ChannelRings &rings;
};

/// Decays, and scores within 16 tokens.
struct WithinRole final : ChannelRole {
  WithinRole(const SharedByRoles &shared, const ChannelRings &rings,
             int64_t turns)
      : ChannelRole(shared, rings, groupWarps), turns(turns) {}
  LogicalResult emitChunks() override;
  int64_t turns;
};

/// Copies chunks.
struct ChunkLoads final : ChannelRole {
  using ChannelRole::ChannelRole;
  LogicalResult emitChunks() override;
  bool isOwn(Operation *op) const override {
    return llvm::is_contained({plan.chunk->query, plan.chunk->key,
                               plan.chunk->logDecay, plan.chunk->value},
                              dyn_cast<tile::LoadOp>(op));
  }

private:
  void copy(ArrayRef<tile::LoadOp> loads, Value at);
  void load(Value at, ValueRange norms);
  void loadValues(Value at);
};

/// Scores between 16 tokens.
struct BetweenRole final : ChannelRole {
  using ChannelRole::ChannelRole;
  LogicalResult emitChunks() override;
};

/// Inverses.
struct InverseRole final : ChannelRole {
  using ChannelRole::ChannelRole;
  LogicalResult emitChunks() override;
};
} // namespace

LogicalResult WithinRole::emitChunks() {
  OpBuilder::InsertionGuard guard(b);
  const Bounds all = getBounds();
  auto loop = scf::ForOp::create(
      b, loc(), turn ? add(all.begin, tokensOf(turn)) : all.begin, all.end,
      turn ? tokensOf(turns) : all.step);
  b.setInsertionPointToStart(loop.getBody());
  Value query = take(rings.loaded.query), key = take(rings.loaded.key),
        logDecay = take(rings.loaded.logDecay);
  Value norms = rings.norms ? take(rings.norms) : Value();
  Value firstKeys = fill(rings.firstKeys), decays = fill(rings.decays);
  gpu::DecayWithinOp::create(b, loc(), query, key, logDecay, firstKeys, decays,
                             norms);
  commit(rings.decays);
  commit(rings.firstKeys);
  gpu::HandOnOp::create(b, loc(), rings.loaded.query, rings.within.query);
  return success();
}

/// What is at `at`, which is ahead of the end: what is loaded whole is copied
/// whole.
void ChunkLoads::copy(ArrayRef<tile::LoadOp> loads, Value at) {
  for (auto [load, begun] :
       llvm::zip(loads, readAhead(loads, at, getBounds().end))) {
    if (!tile::LoadOp(load).getRows())
      begun.getRowsMutable().clear();
    copyAsBox(b, begun);
  }
  gpu::AwaitCopiesOp::create(b, loc());
}

void ChunkLoads::loadValues(Value at) {
  tile::LoadOp value = plan.chunk->value;
  emitter.tiles.setBuffer(value.getTile(), fill(rings.values));
  copy(value, at);
  commit(rings.values);
}

void ChunkLoads::load(Value at, ValueRange norms) {
  const ChannelChunk &chunk = *plan.chunk;
  for (auto [load, channel] : {std::pair{chunk.query, rings.loaded.query},
                               {chunk.key, rings.loaded.key},
                               {chunk.logDecay, rings.loaded.logDecay}})
    emitter.tiles.setBuffer(tile::LoadOp(load).getTile(), fill(channel));
  fill(rings.loaded.products); // by others
  fill(rings.loaded.end);
  if (rings.norms) {
    Value buffer = fill(rings.norms);
    for (auto [row, norm] : llvm::enumerate(norms))
      gpu::StoreSharedOp::create(
          b, loc(), norm, buffer,
          arith::ConstantIndexOp::create(b, loc(), int64_t(row)));
    commit(rings.norms);
  }
  copy({chunk.logDecay, chunk.key, chunk.query}, at);
  const Place &place = rings.loaded; // the leader last
  for (Value channel :
       {place.end, place.products, place.logDecay, place.key, place.query})
    commit(channel);
}

/// There are more places than buffers for values, so these come as many chunks
/// later, when the recurrence has done the chunk that had both.
LogicalResult ChunkLoads::emitChunks() {
  constexpr int64_t later = chunkDepth - valuesDepth;
  const Bounds all = getBounds();
  OpBuilder::InsertionGuard guard(b);
  auto loadNorms = [&](Value at) -> SmallVector<Value> {
    if (!rings.norms)
      return {};
    return loadAt({plan.chunk->queryNorm, plan.chunk->keyNorm}, at);
  };
  auto loop =
      scf::ForOp::create(b, loc(), all.begin, add(all.end, tokensOf(later)),
                         all.step, loadNorms(all.begin));
  b.setInsertionPointToStart(loop.getBody());
  Value at = loop.getInductionVar();
  if (rings.norms)
    b.setInsertionPoint(
        scf::YieldOp::create(b, loc(), loadNorms(add(at, all.step))));
  auto onlyIfLess = [&](Value x, Value y, auto load) {
    Value isWanted =
        arith::CmpIOp::create(b, loc(), arith::CmpIPredicate::slt, x, y);
    auto branch = scf::IfOp::create(b, loc(), isWanted, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    load();
  };
  onlyIfLess(at, all.end, [&] { load(at, loop.getRegionIterArgs()); });
  Value behind = arith::SubIOp::create(b, loc(), at, tokensOf(later));
  onlyIfLess(all.begin, add(behind, tokensOf(1)), [&] { loadValues(behind); });
  return success();
}

LogicalResult BetweenRole::emitChunks() {
  OpBuilder::InsertionGuard guard(b);
  enterLoop();
  Place place = take(rings.within);
  Value firstKeys = take(rings.firstKeys), decays = take(rings.decays);
  fill(rings.joined);
  gpu::DecayBetweenOp::create(b, loc(), place.query, place.key, place.logDecay,
                              firstKeys, decays, place.products, place.end,
                              getScale());
  commit(rings.joined);
  release(rings.decays);
  release(rings.firstKeys);
  gpu::HandOnOp::create(b, loc(), rings.within.query, rings.ready.query);
  return success();
}

/// Strengths of a chunk are on their way during the one before it.
LogicalResult InverseRole::emitChunks() {
  const tile::LoadOp strength = plan.chunk->strength;
  const Bounds all = getBounds();
  auto copy = scf::ForOp::create(b, loc(), all.begin, all.end, all.step,
                                 loadAt(strength, all.begin));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  auto next = loadAt(strength, add(copy.getInductionVar(), all.step));
  take(rings.within.query);
  Value logDecay = take(rings.within.logDecay),
        products = take(rings.within.products);
  gpu::BlockInversesOp::create(b, loc(), logDecay, products,
                               copy.getRegionIterArg(0), getScale());
  take(rings.joined);
  release(rings.joined);
  gpu::JoinInversesOp::create(b, loc(), logDecay, products);
  gpu::HandOnOp::create(b, loc(), rings.within.query, rings.ready.query);
  scf::YieldOp::create(b, loc(), next);
  return success();
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

/// Whether `view` is a region of the workspace: these are the last arguments.
static bool isRegion(func::FuncOp program, Value view) {
  auto argument = dyn_cast<BlockArgument>(view);
  return argument && argument.getOwner() == &program.front() &&
         argument.getArgNumber() >=
             program.getNumArguments() -
                 tile::StageFields(program).countRegions();
}

/// Regions have coordinates for a chunk and a head of their own, which want
/// more registers ahead of loops than arguments; see `gdn_gpu.allow`.
static constexpr llvm::StringLiteral allowedRegionSpills =
    "spills up to 64 bytes: from regions some words of the recurrence's warps "
    "ahead of the loop over chunks and behind it, none inside";

FailureOr<func::FuncOp> gdn::emitChannelRoles(func::FuncOp source,
                                              const RolePlan &plan,
                                              int64_t numWarps) {
  OpBuilder b(source.getContext());
  Location loc = source.getLoc();
  IRMapping scalars;
  func::FuncOp kernel = createKernel(b, source, scalars);
  Block *entry = &kernel.front();
  gpu::KernelFields fields(kernel);
  // Where few registers hold the state, there are some for more warps.
  const bool isHalf = numWarps <= groupWarps;
  const int64_t withinTurns = isHalf ? 2 : 1;
  fields.setThreads((numWarps + (withinTurns + 1) * groupWarps) *
                    gpu::warpThreads);
  fields.setMinBlocks(1);
  fields.setKeepLoops();
  const ChannelChunk &chunk = *plan.chunk;
  if (isRegion(source, tile::LoadOp(chunk.logDecay).getView()))
    kernel->setAttr("gdn_gpu.allow", b.getStringAttr(allowedRegionSpills));
  const ChannelRings rings = openRings(b, loc, entry, chunk, 2 * withinTurns);
  TileChannels channels(b, entry);
  tile::DecayOperandsOp operands = chunk.operands;
  const int64_t tokens = vectorType(chunk.solve).getDimSize(0);
  channels.take(operands.getFromQuery(), rings.ready.query);
  channels.take(operands.getFromKey(), rings.ready.key);
  channels.take(operands.getToEnd(), rings.ready.logDecay);
  channels.take(chunk.solve, rings.ready.products);
  channels.take(chunk.scores, rings.ready.products, /*firstColumn=*/tokens);
  channels.take(operands.getEnd(), rings.ready.end);
  channels.take(tile::LoadOp(chunk.value).getTile(), rings.values);
  b.setInsertionPointToEnd(entry);
  SharedByRoles shared = {b,      entry, plan, channels, /*isPaired=*/false,
                          scalars};
  if (failed(emitAheadOfRoles(shared, source, numWarps)))
    return failure();
  // Registers of a thread of each role: of those that a multiprocessor has,
  // dealt out again. A thread with the recurrence has 64 of the state, 32 of it
  // rounded, and two products of 16.
  const int64_t others = isHalf ? 96 : 72;
  auto roles = gpu::RolesOp::create(b, loc);
  b.createBlock(&roles.getBody());
  int64_t first = 0;
  auto emit = [&](RoleProgram &&role, int64_t count, int64_t turns = 1) {
    return emitWarps(b, source, first, std::move(role), count,
                     /*alternate=*/false, turns);
  };
  if (failed(emit(Consumers(shared, numWarps), isHalf ? 208 : 160)) ||
      failed(emit(WithinRole(shared, rings, withinTurns), isHalf ? 104 : 120,
                  withinTurns)) ||
      failed(emit(InverseRole(shared, rings, /*numWarps=*/1), others)) ||
      failed(emit(ChunkLoads(shared, rings, /*numWarps=*/1), others)) ||
      failed(emit(BetweenRole(shared, rings, betweenWarps), others)))
    return failure();
  b.setInsertionPointToEnd(entry);
  func::ReturnOp::create(b, loc);
  return kernel;
}
