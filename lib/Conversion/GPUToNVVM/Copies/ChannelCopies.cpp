// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies to the tiles of channels: of rows from memory, whose bytes the
// barrier counts, and from one block to the other.
//
// Of a paired ring each block of the cluster has all tiles and fills every
// second one, from its number on. The filling role copies the tile, which its
// threads have written before they met, to the same place of the other block,
// whose barrier counts the bytes; those who empty it tell the block that fills
// the stage, which so knows too that the copy is over. No access has the scope
// of the cluster: threads read what the other block wrote only where copies
// brought it, whose bytes the barrier orders. With that scope each wait would
// clear the first cache and each arrival wait for all writes (a recurrence by
// V-splits: 315 us, not 215).
//
// Of an exchanged ring each block copies its row to the same place of the other
// one. Who has received a tile knows that the other block has given it, and so
// has read the one before: with two stages no place is written that is still
// read, and nobody waits for free ones.
#include "Copies/Channels.h"

#include "Fragments/SharedMatrix.h"
#include "Kernel/Assembly.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;

Value gdn::getRemote(OpBuilder &b, Location loc, Value shared, Value block) {
  return emitAssembly(b, loc, b.getI32Type(), {shared, block},
                      "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r",
                      /*hasSideEffects=*/false);
}

/// What was committed with `leader` to the same stages of the other block.
void Channels::send(OpBuilder &b, const BlockThreads &threads, gpu::CommitOp op,
                    const Ring &leader, const Position &at) {
  Location loc = op.getLoc();
  Arithmetic a{b, loc};
  emitBarrier(b, op, threads);
  OpBuilder::InsertionGuard guard(b);
  auto first = scf::IfOp::create(b, loc,
                                 a.both(a.isEqual(threads.warp, a.i32(0)),
                                        a.isEqual(threads.lane, a.i32(0))),
                                 /*withElseRegion=*/false);
  b.setInsertionPointToStart(first.thenBlock());
  Value other = arith::XOrIOp::create(b, loc, rank, a.i32(1));
  Value full = getRemote(
      b, loc, getBarrier(b, loc, leader, at, leader.full, Value()), other);
  // Of an exchanged ring its own row, of others whole tiles.
  auto sizeOf = [](const Ring &ring) -> int64_t {
    int64_t bytes = llvm::alignTo(ring.type.getTileBytes(), 16);
    return ring.isExchanged ? bytes / 2 : bytes;
  };
  SmallVector<const Ring *> together;
  int64_t bytes = 0;
  for (auto &[channel, ring] : rings)
    if (&ring == &leader || (ring.leader && &getRing(ring.leader) == &leader)) {
      together.push_back(&ring);
      bytes += sizeOf(ring);
    }
  emitAssembly(b, loc, Type(), {full, a.i32(bytes)},
               "mbarrier.arrive.expect_tx.shared::cluster.b64 "
               "_, [$0], $1;",
               "r,r,~{memory}", /*hasSideEffects=*/true);
  for (const Ring *ring : together) {
    Value from = LLVM::PtrToIntOp::create(b, loc, b.getI32Type(),
                                          getTile(b, loc, *ring, at));
    if (ring->isExchanged)
      from = a.add(from, a.mul(rank, a.i32(sizeOf(*ring))));
    emitAssembly(
        b, loc, Type(),
        {getRemote(b, loc, from, other), from, a.i32(sizeOf(*ring)), full},
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::"
        "bytes [$0], [$1], $2, [$3];",
        "r,r,r,r,~{memory}", /*hasSideEffects=*/true);
  }
}

static void copyBytes(OpBuilder &b, Location loc, Value to, Value from,
                      int64_t bytes, Value barrier) {
  Arithmetic a{b, loc};
  emitAssembly(b, loc, Type(), {to, from, a.i32(bytes), barrier},
               "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
               "bytes [$0], [$1], $2, [$3];",
               "r,l,r,r,~{memory}", /*hasSideEffects=*/true);
}

void Channels::copy(OpBuilder &b, const BlockThreads &threads, gpu::CopyOp op,
                    Value tile, const TileMemory &source) {
  Location loc = op.getLoc();
  Arithmetic a{b, loc};
  const Ring &ring =
      getRing(op.getTile().getDefiningOp<gpu::AcquireOp>().getChannel());
  int64_t parts = ring.type.getParts();
  int64_t rows = ring.type.getShape()[0] / parts;
  int64_t rowBytes = ring.type.getTileBytes() / ring.type.getShape()[0];
  OpBuilder::InsertionGuard guard(b);
  auto mine = scf::IfOp::create(b, loc, a.isLess(threads.lane, a.i32(parts)),
                                /*withElseRegion=*/false);
  b.setInsertionPointToStart(mine.thenBlock());
  Value part = parts > 1 ? threads.lane : Value();
  Value barrier =
      getBarrier(b, loc, ring, getPosition(b, loc, ring), ring.full, part);
  emitAssembly(b, loc, Type(), {barrier, a.i32(rows * rowBytes)},
               "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;",
               "r,r,~{memory}", /*hasSideEffects=*/true);
  Value to = LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), tile);
  Value from = LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), source.pointer);
  Value stride = source.row.get(a);
  if (part) {
    to = a.add(to, a.mul(part, a.i32(rows * rowBytes)));
    from = a.add(from, a.mul(a.mul(a.toI64(part), a.i64(rows)), stride));
  }
  if (source.row.is(rowBytes))
    return copyBytes(b, loc, to, from, rows * rowBytes, barrier);
  // Rows that follow one another are one piece; else each is one.
  auto branch = scf::IfOp::create(b, loc, a.isEqual(stride, a.i64(rowBytes)),
                                  /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.thenBlock());
  copyBytes(b, loc, to, from, rows * rowBytes, barrier);
  b.setInsertionPointToStart(branch.elseBlock());
  auto loop = scf::ForOp::create(b, loc, a.i32(0), a.i32(rows), a.i32(1));
  b.setInsertionPointToStart(loop.getBody());
  Value row = loop.getInductionVar();
  copyBytes(b, loc, a.add(to, a.mul(row, a.i32(rowBytes))),
            a.add(from, a.mul(a.toI64(row), stride)), rowBytes, barrier);
}
