// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop over chunks as the work of five roles or more at the same time:
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
// Where nothing is scaled but work on rows of outputs takes tiles from memory,
// its warps fetch these.
//
// Of two blocks that have the same chunks, those that gate, scale and produce
// take every second chunk, one at a time, and hand it to both.
//
// The consumers are in Consumers.cpp, the producer in Producer.cpp, the others
// in RoleProgram.cpp.
#include "Kernel/KernelFunction.h"
#include "Products/ChannelRoles.h"

#include "gdn/Dialect/GPU/IR/Launches.h"

#include "gdn/Target/GpuFacts.h"

using namespace mlir;
using namespace gdn;

using gpu::groupWarps;

/// Buffers for products; of gates, which are kept longer than what is copied,
/// two more: what one makes of them takes as long as a chunk from when its
/// buffer is free.
static constexpr int64_t productDepth = 2, gatesDepth = copiedDepth + 2;

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
    "took as long as with 44, 280 us and 281";

/// With work on rows of outputs, of the entries with the most parameters
/// (packed projections in parts, a state to begin with): 692 bytes.
constexpr StringLiteral rowSpills =
    "spills up to 720 bytes: scalars of all roles ahead of the loop over "
    "chunks, where work on rows of outputs has some of its own; in the loop "
    "one "
    "of a hundred instructions loads one at most; not measured";

/// What a kernel of these roles may spill.
static StringRef getAllowedSpills(const RolePlan &plan, int64_t consumerWarps) {
  if (!plan.behind.empty())
    return rowSpills;
  return consumerWarps > groupWarps ? manySpills : fewSpills;
}

/// Whether two neighbouring blocks, which have the same chunks, can prepare
/// every second one for both: where the program says that there are two, and
/// what is prepared does not ask which of them a block is.
static bool canPair(func::FuncOp source, const RolePlan &plan) {
  tile::StageFields stage(source);
  if (stage.getSameChunks() != 2)
    return false;
  const uint64_t axis = stage.getGrid().size() - 1;
  scf::ForOp loop = plan.loop;
  bool isKnown = true;
  DenseSet<Operation *> seen;
  SmallVector<Operation *> work(plan.gates.begin(), plan.gates.end());
  llvm::append_range(work, plan.produced);
  llvm::append_range(work, plan.scales);
  for (Value tile : plan.copied)
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

/// Where a block looks for its sequence in a loop: that, its bounds, and what
/// stands ahead of them, once for all roles, each of which would have code of
/// its own for it. Elsewhere it is little code, and would take registers from
/// one role to the next: two waves of 16 chunks or more take up to 5 % longer.
LogicalResult gdn::emitAheadOfRoles(SharedByRoles &shared, func::FuncOp source,
                                    int64_t numWarps) {
  auto isTile = [](Operation *op) {
    return isa<tile::TileDialect>(op->getDialect()) &&
           !isa<tile::BlockIdOp>(op);
  };
  WarpProgram::Ops ops;
  size_t count = 0; // of them are ahead
  bool hasLoop = false;
  int64_t branches = 0;
  for (Operation &op : source.getBody().front()) {
    if (!isTile(&op))
      ops.push_back(&op);
    if (op.getNumRegions() == 0 || op.getNumResults() == 0)
      continue;
    WalkResult hasTiles = op.walk([&](Operation *inner) {
      return isTile(inner) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (hasTiles.wasInterrupted())
      break;
    hasLoop |= isa<scf::ForOp>(op);
    branches += isa<scf::IfOp>(op);
    count = ops.size();
  }
  if (!hasLoop && branches < 2)
    return success();
  ops.resize(count);
  shared.ahead.insert(ops.begin(), ops.end());
  WarpProgram program(shared.b, shared.scalars, shared.entry, numWarps);
  LogicalResult result = program.emitOps(ops);
  shared.scalars = program.getScalars();
  return result;
}

LogicalResult gdn::emitWarps(OpBuilder &b, func::FuncOp source, int64_t &first,
                             RoleProgram &&role, int64_t registers,
                             bool alternate, int64_t turns) {
  OpBuilder::InsertionGuard guard(b);
  Location loc = source.getLoc();
  auto warps = gpu::WarpsOp::create(
      b, loc, TypeRange(), first, role.getNumWarps() * turns,
      b.getI64IntegerAttr(registers), alternate, turns);
  first += warps.getCount();
  b.createBlock(&warps.getBody());
  if (turns > 1) {
    auto each =
        gpu::EachWarpOp::create(b, loc, TypeRange(), 0, warps.getCount());
    gpu::YieldOp::create(b, loc);
    Block *body = b.createBlock(&each.getBody(), {}, b.getIndexType(), loc);
    role.turn = arith::DivUIOp::create(
        b, loc, body->getArgument(0),
        arith::ConstantIndexOp::create(b, loc, warps.getTurnWarps()));
  }
  if (role.stays()) {
    auto units = gpu::UnitsOp::create(b, loc, /*contiguous=*/false,
                                      /*taken=*/true);
    gpu::YieldOp::create(b, loc);
    b.createBlock(&units.getBody());
  }
  if (failed(role.emitBlock(source.getBody().front())))
    return failure();
  gpu::YieldOp::create(
      b, loc, role.stays() ? ValueRange{role.getNextUnit(loc)} : ValueRange());
  return success();
}

/// The recurrence of chunks that other stages prepared: two buffers for each
/// matrix, one of which is on its way. Warps copy what products take, vectors,
/// and values; one stores outputs. With eight warps a thread has all the
/// registers that it can have.
static FailureOr<func::FuncOp>
emitPrepared(func::FuncOp source, const RolePlan &plan, int64_t numWarps) {
  constexpr int64_t depth = 2;
  OpBuilder b(source.getContext());
  Location loc = source.getLoc();
  IRMapping scalars;
  func::FuncOp kernel = createKernel(b, source, scalars);
  Block *entry = &kernel.front();
  CopyRole::Groups vectors;
  for (Value vector : plan.vectors)
    vectors.push_back({vector});
  gpu::KernelFields fields(kernel);
  fields.setThreads((numWarps + groupWarps) * gpu::warpThreads);
  fields.setMinBlocks(1);
  TileChannels channels(b, entry);
  for (ArrayRef<Value> group :
       {plan.copied, plan.products, plan.values, plan.stored})
    channels.open(group, depth, /*paired=*/false);
  for (Value vector : plan.vectors)
    channels.openCopied(vector, 2 * depth);
  b.setInsertionPointToEnd(entry);
  SharedByRoles shared = {b,      entry, plan, channels, /*isPaired=*/false,
                          scalars};
  if (failed(emitAheadOfRoles(shared, source, numWarps)))
    return failure();
  auto roles = gpu::RolesOp::create(b, loc);
  b.createBlock(&roles.getBody());
  int64_t first = 0;
  const int64_t registers =
      gpufacts::registersPerSm / (fields.getThreads() * 8) * 8;
  auto emitRole = [&](RoleProgram &&role) {
    return emitWarps(b, source, first, std::move(role), registers,
                     /*alternate=*/false);
  };
  if (failed(emitRole(Consumers(shared, numWarps))))
    return failure();
  for (auto &groups : {CopyRole::Groups{plan.copied, plan.products}, vectors,
                       CopyRole::Groups{plan.values}})
    if (failed(emitRole(CopyRole(shared, groups))))
      return failure();
  if (failed(emitRole(StoreRole(shared, /*numWarps=*/1))))
    return failure();
  b.setInsertionPointToEnd(entry);
  func::ReturnOp::create(b, loc);
  return kernel;
}

FailureOr<func::FuncOp> gdn::emitInRoles(func::FuncOp source,
                                         const RolePlan &plan) {
  scf::ForOp loop = plan.loop;
  auto state = cast<VectorType>(
      *llvm::find_if(loop.getResultTypes(), llvm::IsaPred<VectorType>));
  const int64_t numWarps = state.getDimSize(0) / 16; // consumers
  if (plan.isPrepared)
    return emitPrepared(source, plan, numWarps);
  if (plan.chunk)
    return emitChannelRoles(source, plan, numWarps);
  OpBuilder b(source.getContext());
  Location loc = source.getLoc();
  IRMapping scalars;
  func::FuncOp kernel = createKernel(b, source, scalars);
  Block *entry = &kernel.front();
  const bool isPaired = canPair(source, plan);
  const RoleSizes sizes = getSizes(numWarps, isPaired);
  const int64_t scaling = plan.scales.empty() ? 0 : sizes.scaling;
  const int64_t fetching =
      plan.fetched.empty() || scaling != 0 ? 0 : sizes.scaling;
  if (!plan.fetched.empty() && fetching == 0)
    return source.emitError("expects no rows of keys to be scaled beside work "
                            "on rows of outputs: no warps are left for it");
  // Whom nobody needs loads, unless it is a whole group of warps.
  const int64_t loading =
      sizes.loading + (sizes.scaling - scaling - fetching) % groupWarps;
  const int64_t allWarps =
      numWarps + groupWarps + loading + sizes.gating + scaling + fetching;
  gpu::KernelFields fields(kernel);
  fields.setThreads(allWarps * gpu::warpThreads);
  fields.setMinBlocks(1);
  // Other calls take another variant.
  fields.setPromised(!plan.behind.empty() || plan.convolved);
  if (numWarps > groupWarps)
    fields.setKeepLoops();
  kernel->setAttr("gdn_gpu.allow",
                  b.getStringAttr(getAllowedSpills(plan, numWarps)));
  if (isPaired)
    fields.setCluster(2);
  tile::StageFields stage(source);
  const bool stays = stage.getBlocksStay();
  if (stays && (isPaired || sizes.gating != 1))
    return source.emitError("expects no pairs of blocks, and one warp for "
                            "gates, where blocks stay");
  if (stays) {
    fields.setBlocksPerSm(1);
    fields.setCounters(b.getStrArrayAttr({"1"}));
  }
  if (stage.overlapsWith(tile::Neighbour::next))
    gpu::ReleaseLaunchOp::create(b, loc);
  TileChannels channels(b, entry);
  channels.open(plan.copied, copiedDepth, /*paired=*/false);
  channels.open(plan.vectors, gatesDepth, isPaired);
  channels.open(plan.products, productDepth, isPaired);
  channels.open(plan.scaled, sizes.scaledDepth, isPaired);
  channels.open(plan.fetched, sizes.scaledDepth, /*paired=*/false);
  for (Operation *op : plan.behind)
    if (auto sum = dyn_cast<tile::SumOfPairOp>(op)) {
      if (!isPaired)
        return sum.emitOpError("is for two blocks that prepare chunks for each "
                               "other, which these cannot");
      channels.openExchanged(sum);
    }

  if (stays)
    channels.openUnits();

  b.setInsertionPointToEnd(entry);
  SharedByRoles shared = {b, entry, plan, channels, isPaired, scalars};
  shared.stays = stays;
  if (!stays && failed(emitAheadOfRoles(shared, source, numWarps)))
    return failure();
  auto roles = gpu::RolesOp::create(b, loc);
  b.createBlock(&roles.getBody());
  int64_t first = 0;
  auto emitRole = [&](RoleProgram &&role, int64_t registers, bool alternate) {
    return emitWarps(b, source, first, std::move(role), registers, alternate);
  };
  if (failed(emitRole(Consumers(shared, numWarps), sizes.consumers,
                      /*alternate=*/false)) ||
      failed(emitRole(Producer(shared, groupWarps, &plan.produced),
                      sizes.producer, isPaired)) ||
      failed(emitRole(LoadRole(shared, loading), sizes.others,
                      /*alternate=*/false)) ||
      failed(emitRole(GateRole(shared, sizes.gating, &plan.gates), sizes.others,
                      isPaired)) ||
      (scaling != 0 && failed(emitRole(ScaleRole(shared, scaling, &plan.scales),
                                       sizes.others, isPaired))) ||
      (fetching != 0 && failed(emitRole(FetchRole(shared, fetching),
                                        sizes.others, /*alternate=*/false))))
    return failure();
  b.setInsertionPointToEnd(entry);
  // Who comes next waits for both: for all blocks of this stage, of which the
  // first waits for the other. Those that have nothing to do make room at once.
  if (stage.overlapsWith(tile::Neighbour::last))
    gpu::awaitInFirstBlock(b, loc, stage.getGrid().size());
  func::ReturnOp::create(b, loc);
  return kernel;
}
