// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Regions of a program, and its shared memory: roles, units, loops, branches.
#include "KernelLowering.h"
#include "Kernel/OptimizationBarrier.h"
#include "Kernel/RoleEntry.h"
#include "Sync/LaunchOrder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;

/// Shared memory that a kernel may declare without asking for it at launch.
static constexpr int64_t maxStaticShared = 48 * 1024;

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// One block of shared memory for the kernel, and a pointer for each tile. What
/// a kernel may not declare is asked for at launch.
void KernelLowering::placeSharedTiles() {
  SmallVector<std::pair<gdn::gpu::AllocOp, int64_t>> tiles;
  // Warpgroups want the swizzle's unit at a multiple of its size.
  bool hasGroups = gdn::gpu::KernelFields(source).getWarpgroups();
  auto alignmentOf = [&](gdn::gpu::AllocOp alloc) -> int64_t {
    return hasGroups && alloc.getTile().getType().getSwizzled() ? 1024 : 16;
  };
  auto placeTiles = [&](int64_t alignment) {
    source.walk([&](gdn::gpu::AllocOp alloc) {
      if (alignmentOf(alloc) != alignment)
        return;
      sharedBytes = llvm::alignTo(sharedBytes, alignment);
      tiles.push_back({alloc, sharedBytes});
      sharedBytes =
          llvm::alignTo(sharedBytes + alloc.getTile().getType().getBytes(), 16);
    });
  };
  auto place = [&](bool channelsLast) {
    tiles.clear();
    sharedBytes = 0;
    placeTiles(1024);
    if (channelsLast)
      placeTiles(16);
    sharedBytes = channels.assign(sharedBytes);
    if (!channelsLast)
      placeTiles(16);
    return sharedBytes;
  };
  // With large multiples, the order in which less is lost to alignment.
  if (int64_t bytes = place(/*channelsLast=*/true);
      hasGroups && place(/*channelsLast=*/false) >= bytes)
    place(/*channelsLast=*/true);
  if (sharedBytes == 0)
    return;
  Location loc = source.getLoc();
  bool isStatic = sharedBytes <= maxStaticShared;
  LLVM::GlobalOp global;
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(source);
    auto type =
        LLVM::LLVMArrayType::get(b.getI8Type(), isStatic ? sharedBytes : 0);
    global = LLVM::GlobalOp::create(
        b, loc, type, /*isConstant=*/false,
        isStatic ? LLVM::Linkage::Internal : LLVM::Linkage::External,
        (source.getName() + "_shared").str(), Attribute(),
        /*alignment=*/hasGroups ? 1024 : 16,
        /*addrSpace=*/unsigned(NVVM::NVVMMemorySpace::Shared));
  }
  Value base = LLVM::AddressOfOp::create(b, loc, global);
  for (auto [alloc, offset] : tiles)
    values.map(alloc.getTile(), Arithmetic{b, loc}.advance(base, offset));
  channels.begin(b, loc, base);
  if (isStatic)
    sharedBytes = 0;
}

TileMemory KernelLowering::sharedMemory(Location loc, Value buffer,
                                        gdn::gpu::FragmentType type, Value row,
                                        bool transpose) {
  auto shared = cast<gdn::gpu::SharedType>(buffer.getType());
  int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  int64_t columns = shared.getShape().back();
  TileMemory tile;
  tile.pointer = values.lookup(buffer);
  tile.row = {type.isPerRow() ? bytes : columns * bytes, Value()};
  tile.column = {bytes, Value()};
  // Rows begin at multiples of their size.
  int64_t rowBytes = columns * bytes;
  tile.aligned = shared.getShape().size() == 1
                     ? 16
                     : std::min<int64_t>(16, rowBytes & -rowBytes);
  if (row) {
    Arithmetic a{b, loc};
    Value offset = a.mul(a.toI64(get(row)), a.i64(rowBytes));
    tile.pointer = a.advance(tile.pointer, offset);
  }
  if (transpose)
    std::swap(tile.row, tile.column);
  return tile;
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

void KernelLowering::lowerBlock(Block &block) {
  for (Operation &op : block)
    if (!op.hasTrait<OpTrait::IsTerminator>())
      lower(op);
}

void KernelLowering::recomputeThread(Location loc) {
  for (Value *number : {&threads.lane, &threads.warp})
    if (!matchPattern(*number, m_Constant()))
      *number = optimizationBarrier(b, loc, *number);
}

/// Makes the work of a role compute its addresses itself. Beside a state in
/// registers there is no room for those that several roles have in common.
void KernelLowering::recomputeSharedNumbers(Region &role) {
  Location loc = role.getLoc();
  recomputeThread(loc);
  SetVector<Value> used;
  getUsedValuesDefinedAbove(role, used);
  for (Value value : used)
    if (Value known = values.lookupOrNull(value);
        known && known.getType().isIndex() &&
        !matchPattern(known, m_Constant()))
      values.map(value, optimizationBarrier(b, loc, known));
}

/// The warps take one way, the others hold nothing.
template <typename OpTy> void KernelLowering::lowerWarps(OpTy warps) {
  Location loc = warps.getLoc();
  Arithmetic a{b, loc};
  BlockThreads around = threads;
  IRMapping valuesAround = values;
  threads.warp = around.warp;
  if (warps.getFirst() != 0)
    threads.warp =
        arith::SubIOp::create(b, loc, around.warp, a.i32(warps.getFirst()));
  Value isHere = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       threads.warp, a.i32(warps.getCount()));
  SmallVector<Type> types = convert(warps.getResultTypes());
  auto branch = scf::IfOp::create(b, loc, types, isHere,
                                  /*withElseRegion=*/!types.empty());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Block &body = warps.getBody().front();
    if (auto role = dyn_cast<gdn::gpu::WarpsOp>(warps.getOperation());
        role && isa<gdn::gpu::RolesOp>(role->getParentOp())) {
      enterRole(b, role, numThreads, threads);
      channels.enterRole(b, role, threads.warp);
    }
    if (gdn::gpu::KernelFields(source).getKeepLoops())
      recomputeSharedNumbers(warps.getBody());
    if (body.getNumArguments() == 1) { // each by itself
      values.map(body.getArgument(0), a.toIndex(threads.warp));
      // Of a role in turns, by groups.
      gdn::gpu::WarpsOp role = gdn::gpu::getRole(warps);
      threads.warp =
          role ? arith::RemUIOp::create(
                     b, loc, threads.warp,
                     a.i32(role.getInTurns() > 1 ? role.getTurnWarps() : 1))
                     .getResult()
               : a.i32(0);
    }
    lowerBlock(body);
    if (!types.empty()) {
      scf::YieldOp::create(b, loc,
                           carry(loc, body.getTerminator()->getOperands()));
      b.setInsertionPointToStart(branch.elseBlock());
      SmallVector<Value> nothing;
      for (Type type : types)
        nothing.push_back(LLVM::PoisonOp::create(b, loc, type));
      scf::YieldOp::create(b, loc, nothing);
    }
  }
  values = valuesAround;
  take(loc, warps.getResults(), branch.getResults());
  threads = around;
}

template void KernelLowering::lowerWarps(gdn::gpu::WarpsOp);
template void KernelLowering::lowerWarps(gdn::gpu::EachWarpOp);

/// One role after another in the code; at run time each warp goes into its own.
void KernelLowering::lowerRoles(gdn::gpu::RolesOp roles) {
  channels.initialise(b, roles.getLoc(), threads,
                      numThreads / gdn::gpu::warpThreads);
  const bool isAwaited = memory.hasAwaited();
  for (auto role : roles.getBody().getOps<gdn::gpu::WarpsOp>()) {
    memory.enterRole(isAwaited);
    setGroupRegisters(b, role, numThreads, threads.warp);
    lowerWarps(role);
  }
  memory.enterAwaited(); // some have
}

void KernelLowering::lowerUnits(gdn::gpu::UnitsOp units) {
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Value> around = entry.blockIds;
  entry.blockIds = beginUnits(b, entry, source, units);
  BlockThreads threadsAround = threads;
  IRMapping valuesAround = values;
  if (units.getTaken() && gdn::gpu::KernelFields(source).getKeepLoops()) {
    keepInside(b.getInsertionBlock()->getParentOp());
    recomputeSharedNumbers(units.getBody());
  }
  Block &body = units.getBody().front();
  lowerBlock(body);
  if (units.getTaken()) {
    Arithmetic a{b, units.getLoc()};
    Value next = a.toI32(get(body.back().getOperand(0)));
    scf::YieldOp::create(b, a.loc, emitOfFirstLane(b, a.loc, next));
  }
  threads = threadsAround;
  values = valuesAround;
  entry.blockIds = around;
}

void KernelLowering::lowerLoop(scf::ForOp loop) {
  Location loc = loop.getLoc();
  auto copy = scf::ForOp::create(b, loc, get(loop.getLowerBound()),
                                 get(loop.getUpperBound()), get(loop.getStep()),
                                 carry(loc, loop.getInitArgs()));
  const bool keeps =
      gdn::gpu::KernelFields(source).getKeepLoops() && !hasRoom(loop);
  if (keeps)
    keepInside(copy);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(copy.getBody());
    values.map(loop.getInductionVar(), copy.getInductionVar());
    take(loc, loop.getRegionIterArgs(), copy.getRegionIterArgs());
    BlockThreads around = threads;
    IRMapping valuesAround = values;
    if (keeps)
      recomputeSharedNumbers(loop.getRegion());
    lowerBlock(*loop.getBody());
    if (loop.getNumResults() > 0)
      scf::YieldOp::create(
          b, loc, carry(loc, loop.getBody()->getTerminator()->getOperands()));
    threads = around;
    values = valuesAround;
  }
  take(loc, loop.getResults(), copy.getResults());
}

void KernelLowering::lowerIf(scf::IfOp branch) {
  Location loc = branch.getLoc();
  bool hasElse = !branch.getElseRegion().empty();
  auto copy = scf::IfOp::create(b, loc, convert(branch.getResultTypes()),
                                get(branch.getCondition()), hasElse);
  for (unsigned side = 0; side < (hasElse ? 2 : 1); ++side) {
    OpBuilder::InsertionGuard guard(b);
    Block &block = branch->getRegion(side).front();
    b.setInsertionPointToStart(&copy->getRegion(side).front());
    lowerBlock(block);
    if (branch.getNumResults() > 0)
      scf::YieldOp::create(b, loc,
                           carry(loc, block.getTerminator()->getOperands()));
  }
  take(loc, branch.getResults(), copy.getResults());
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

void KernelLowering::lowerAwait(Location loc) {
  memory.enterAwaited();
  if (!hasDependentLaunch)
    return;
  isDependent = true;
  emitAwaitLaunch(b, loc);
}

void KernelLowering::run() {
  entry = beginKernel(b, source);
  threads = entry.threads;
  threads.numThreads = numThreads;
  values = entry.arguments;
  placeSharedTiles();
  lowerBlock(source.getBody().front());
  finishKernel(b, entry, source, sharedBytes, isDependent);
}
