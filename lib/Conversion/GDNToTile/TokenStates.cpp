// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States after every token:
//
//   for t = begin to end
//     the kernel's ops on token t
//     slot = t - begin < S ? token_slots[n, t - begin] : -1
//     a live slot:  carried tiles to that slot
//
// The row's state is a value of the program from its first token on, so that
// the slot which it came from may be one of those written.
#include "TokenStates.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

bool gdn::isWrittenPerToken(const Carry &carry) {
  return tokenSlotsOf(carry.op) != nullptr;
}

/// The slot of the state after token `t`; one that is skipped past the table.
static Value emitTokenSlot(TileProgram &p, Value t) {
  OpBuilder &b = p.b;
  Value table = p.views.tensors.lookup(p.parts.tokenSlots);
  Value at = arith::SubIOp::create(b, p.loc, t, p.begin);
  Value steps = memref::DimOp::create(b, p.loc, table, 1);
  Value isInside =
      arith::CmpIOp::create(b, p.loc, arith::CmpIPredicate::ult, at, steps);
  auto slot = scf::IfOp::create(b, p.loc, {b.getIndexType()}, isInside, true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(slot.thenBlock());
  scf::YieldOp::create(b, p.loc, p.elementAt(p.parts.tokenSlots, {p.n, at}));
  b.setInsertionPointToStart(slot.elseBlock());
  scf::YieldOp::create(b, p.loc, p.index(-1));
  return slot.getResult(0);
}

SmallVector<Value> gdn::emitTokenByToken(TileProgram &p, TokenBlock &block,
                                         Value r, ArrayRef<Value> start,
                                         ArrayRef<Value> writers) {
  OpBuilder &b = p.b;
  auto loop = scf::ForOp::create(b, p.loc, p.begin, p.end, p.index(1), start);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value t = loop.getInductionVar();
  SmallVector<Value> next =
      block.emit(t, p.index(1), SmallVector<Value>(loop.getRegionIterArgs()));
  Value slot = emitTokenSlot(p, t);
  for (auto [carry, tile, writer] : llvm::zip(p.parts.carries, next, writers)) {
    if (!isWrittenPerToken(carry))
      continue;
    Value write = p.isLive(slot, carry.pool);
    if (writer)
      write = arith::AndIOp::create(b, p.loc, write, writer);
    auto branch = scf::IfOp::create(b, p.loc, write, /*withElse=*/false);
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(branch.thenBlock());
    p.storeCarryAt(carry, tile, r, slot);
  }
  if (!next.empty())
    scf::YieldOp::create(b, p.loc, next);
  return SmallVector<Value>(loop.getResults());
}
