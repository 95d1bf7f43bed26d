// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers of a role, and the numbers of its threads.
#include "Kernel/RoleEntry.h"

#include "Kernel/Assembly.h"

#include "gdn/Target/GpuFacts.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// Takes registers that other roles give back, or gives some back.
static void setRegisters(OpBuilder &b, gdn::gpu::WarpsOp role,
                         int64_t blockThreads) {
  int64_t wanted = *role.getRegisters(),
          atLaunch = gpufacts::registersPerSm / blockThreads / 8 * 8;
  if (wanted == atLaunch)
    return;
  emitAssembly(b, role.getLoc(), Type(), {},
               "setmaxnreg." + std::string(wanted > atLaunch ? "inc" : "dec") +
                   ".sync.aligned.u32 " + std::to_string(wanted) + ";",
               "~{memory}", /*hasSideEffects=*/true);
}

/// Keeps the numbers of the thread in registers. What ptxas can read from a
/// special register it reads wherever it is needed, and waits for it each time;
/// what another lane gave it does not.
static void keepThread(OpBuilder &b, Location loc, BlockThreads &threads) {
  Arithmetic a{b, loc};
  auto fromLane = [&](Value value, Value lane) -> Value {
    return NVVM::ShflOp::create(b, loc, b.getI32Type(), a.i32(-1), value, lane,
                                a.i32(gdn::gpu::warpThreads - 1),
                                NVVM::ShflKind::idx, UnitAttr());
  };
  threads.warp = fromLane(threads.warp, a.i32(0));
  threads.lane = fromLane(threads.lane, threads.lane);
}

/// Whether the group of four warps has other roles as well.
static bool sharesGroup(gdn::gpu::WarpsOp role) {
  return role.getRegisters() && role.getCount() % gdn::gpu::groupWarps != 0;
}

void gdn::setGroupRegisters(OpBuilder &b, gdn::gpu::WarpsOp role,
                            int64_t blockThreads, Value warp) {
  constexpr int64_t warps = gdn::gpu::groupWarps;
  if (!sharesGroup(role) || role.getFirst() % warps != 0)
    return;
  Arithmetic a{b, role.getLoc()};
  Value group = arith::DivUIOp::create(b, a.loc, warp, a.i32(warps));
  auto branch = scf::IfOp::create(
      b, a.loc, a.isEqual(group, a.i32(role.getFirst() / warps)),
      /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  setRegisters(b, role, blockThreads);
}

void gdn::enterRole(OpBuilder &b, gdn::gpu::WarpsOp role, int64_t blockThreads,
                    BlockThreads &threads) {
  threads.isRole = true;
  threads.firstWarp = role.getFirst();
  threads.numThreads = role.getCount() * gdn::gpu::warpThreads;
  if (!role.getRegisters())
    return;
  if (!sharesGroup(role))
    setRegisters(b, role, blockThreads);
  keepThread(b, role.getLoc(), threads);
}
