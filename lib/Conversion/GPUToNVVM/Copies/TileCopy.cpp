// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.begin_copy: the pieces of a tile dealt to the threads of the block,
// one after the other, so that neighbours copy what lies side by side.
#include "Copies/TileCopy.h"

#include "Fragments/SharedMatrix.h"
#include "Kernel/Assembly.h"
#include "Kernel/OptimizationBarrier.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

static constexpr int64_t pieceBytes = 16;
/// Rows that many apart have their pieces in the same order.
static constexpr int64_t swizzledRows = 8;

/// Copies of which each thread has a column and every `step`-th row: addresses
/// are the first ones and sums, so that few are carried through a loop around
/// the copy.
static void emitColumnCopy(OpBuilder &b, gdn::gpu::BeginCopyOp copy,
                           int64_t step, Value thread,
                           const SharedMatrix &matrix, const TileMemory &memory,
                           Value rows) {
  Location loc = copy.getLoc();
  Arithmetic a{b, loc};
  gdn::gpu::SharedType type = copy.getBuffer().getType();
  const int64_t numRows = type.getShape()[0];
  Value rowPieces = a.i32(type.getRowBytes() / pieceBytes);
  Value row = arith::DivUIOp::create(b, loc, thread, rowPieces);
  Value column = a.mul(arith::RemUIOp::create(b, loc, thread, rowPieces),
                       a.i32(pieceBytes));
  // Rows of the thread whose places in memory differ by more than a constant.
  SmallVector<Value> buffers;
  for (int64_t i = 0; i < std::max<int64_t>(1, swizzledRows / step); ++i)
    buffers.push_back(matrix.getAddress(a.add(row, a.i32(i * step)), column));
  const int64_t period = buffers.size();
  Value stride = memory.row.get(a);
  Value from = a.advance(memory.pointer,
                         a.add(a.mul(a.toI64(row), stride), a.toI64(column)));
  Value stepBytes = a.mul(a.i64(step), stride);
  Value left; // rows that are read from the thread's first one on
  if (rows) {
    Value some = arith::MinSIOp::create(b, loc, a.toI64(rows), a.i64(numRows));
    left = arith::SubIOp::create(
        b, loc, arith::TruncIOp::create(b, loc, b.getI32Type(), some), row);
  }
  for (int64_t i = 0; i * step < numRows; ++i) {
    // Rows of a wide tile are apart by those of its panels.
    const int64_t constant =
        i / period * period * step * type.getPanelRowBytes();
    Value to = a.advance(buffers[i % period], constant);
    Value bytes;
    if (rows)
      bytes = arith::SelectOp::create(b, loc, a.isLess(a.i32(i * step), left),
                                      a.i32(pieceBytes), a.i32(0));
    NVVM::CpAsyncOp::create(b, loc, to, from, pieceBytes,
                            NVVM::LoadCacheModifierKind::CG, bytes);
    from = a.advance(from, stepBytes);
  }
}

/// Elements of 32 bits at any stride, one for a thread.
static void emitScatteredCopy(OpBuilder &b, gdn::gpu::BeginCopyOp copy,
                              int64_t numThreads, Value thread,
                              const TileMemory &memory, Value rows,
                              Value buffer) {
  Location loc = copy.getLoc();
  Arithmetic a{b, loc};
  constexpr int64_t bytes = 4;
  const int64_t count = copy.getBuffer().getType().getShape().front();
  Value stride = memory.row.get(a);
  for (int64_t first = 0; first < count; first += numThreads) {
    OpBuilder::InsertionGuard guard(b);
    Value number = a.add(thread, a.i32(first));
    if (first + numThreads > count) {
      auto branch = scf::IfOp::create(b, loc, a.isLess(number, a.i32(count)),
                                      /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    Value some, from = number;
    if (rows) {
      Value isThere = a.isLess(a.toI64(number), a.toI64(rows));
      some = arith::SelectOp::create(b, loc, isThere, a.i32(bytes), a.i32(0));
      from = arith::SelectOp::create(b, loc, isThere, number, a.i32(0));
    }
    NVVM::CpAsyncOp::create(
        b, loc, a.advance(buffer, a.mul(number, a.i32(bytes))),
        a.advance(memory.pointer, a.mul(a.toI64(from), stride)), bytes,
        NVVM::LoadCacheModifierKind::CA, some);
  }
}

/// Threads that share columns: four warps, so that what they copy of a row is
/// whole lines, or one where there are fewer.
static int64_t getGroupThreads(const BlockThreads &threads) {
  constexpr int64_t group = gdn::gpu::groupWarps * gdn::gpu::warpThreads;
  return threads.numThreads % group == 0 ? group : gdn::gpu::warpThreads;
}

/// The threads of the group have come so far. The number of the barrier is that
/// of a role that began in the middle of the group, which none does.
static void meetGroup(OpBuilder &b, Location loc, const BlockThreads &threads) {
  Arithmetic a{b, loc};
  const int64_t size = getGroupThreads(threads);
  if (size == gdn::gpu::warpThreads)
    return (void)NVVM::SyncWarpOp::create(b, loc, a.i32(-1));
  Value number = a.i32(2 + threads.firstWarp / 2);
  if (threads.numThreads > size)
    number =
        a.add(number, a.mul(arith::DivUIOp::create(b, loc, threads.warp,
                                                   a.i32(gdn::gpu::groupWarps)),
                            a.i32(gdn::gpu::groupWarps / 2)));
  NVVM::BarrierOp::create(b, loc, TypeRange(), number, a.i32(size),
                          NVVM::BarrierReductionAttr(), Value());
}

namespace {
/// The pieces of the columns of a group, dealt to its threads: neighbours have
/// those of a row, and a thread has every `step`-th row.
class OwnPieces {
public:
  /// If registers are tight, what follows from the stride of rows alone is not
  /// computed ahead, to be kept.
  OwnPieces(OpBuilder &b, Location loc, const BlockThreads &threads,
            gdn::gpu::SharedType type, Value buffer, const TileMemory &memory,
            bool isTight = false)
      : b(b), loc(loc), a{b, loc}, type(type),
        matrix(b, loc, threads.lane, type, buffer) {
    const int64_t size = getGroupThreads(threads),
                  warps = size / gdn::gpu::warpThreads,
                  groups = threads.numThreads / size,
                  rowPieces = type.getRowBytes() / pieceBytes / groups;
    step = size / rowPieces;
    Value warp = arith::RemUIOp::create(b, loc, threads.warp, a.i32(warps));
    Value group = arith::DivUIOp::create(b, loc, threads.warp, a.i32(warps));
    Value thread =
        a.add(a.mul(warp, a.i32(gdn::gpu::warpThreads)), threads.lane);
    row = arith::DivUIOp::create(b, loc, thread, a.i32(rowPieces));
    Value number = arith::RemUIOp::create(b, loc, thread, a.i32(rowPieces));
    column =
        a.mul(a.add(a.mul(group, a.i32(rowPieces)), number), a.i32(pieceBytes));
    stride = memory.row.get(a);
    if (isTight && !memory.row.known)
      stride = optimizationBarrier(b, loc, stride);
    start = a.advance(memory.pointer,
                      a.add(a.mul(a.toI64(row), stride), a.toI64(column)));
  }
  int64_t count() const { return llvm::divideCeil(type.getShape()[0], step); }
  /// In shared memory and in the caller's.
  Value shared(int64_t i) {
    if (i * step % swizzledRows != 0)
      return matrix.getAddress(a.add(row, a.i32(i * step)), column);
    if (!first)
      first = matrix.getAddress(row, column);
    return a.advance(first, a.i32(i * step * type.getPanelRowBytes()));
  }
  Value memory(int64_t i) {
    return a.advance(start, a.mul(a.i64(i * step), stride));
  }
  /// An i1: it lies in the first `rows` rows, an index.
  Value isBelow(int64_t i, Value rows) {
    Value end = arith::TruncIOp::create(b, loc, b.getI32Type(), a.toI64(rows));
    return a.isLess(a.add(row, a.i32(i * step)), end);
  }

private:
  OpBuilder &b;
  Location loc;
  Arithmetic a;
  gdn::gpu::SharedType type;
  SharedMatrix matrix;
  int64_t step;
  Value row, column, stride, start, first;
};
} // namespace

/// Copies of which each group has the columns that it reads transposed.
static void emitOwnCopy(OpBuilder &b, gdn::gpu::BeginCopyOp copy,
                        const BlockThreads &threads, const TileMemory &memory,
                        Value rows, Value buffer) {
  Location loc = copy.getLoc();
  Arithmetic a{b, loc};
  const bool isTight = llvm::any_of(copy.getBuffer().getUsers(),
                                    llvm::IsaPred<gdn::gpu::ConvColumnsOp>);
  OwnPieces pieces(b, loc, threads, copy.getBuffer().getType(), buffer, memory,
                   isTight);
  meetGroup(b, loc, threads); // others have read it
  for (int64_t i = 0; i < pieces.count(); ++i) {
    Value bytes;
    if (rows)
      bytes = arith::SelectOp::create(b, loc, pieces.isBelow(i, rows),
                                      a.i32(pieceBytes), a.i32(0));
    NVVM::CpAsyncOp::create(b, loc, pieces.shared(i), pieces.memory(i),
                            pieceBytes, NVVM::LoadCacheModifierKind::CG, bytes);
  }
}

/// By all threads of the group.
static void emitCopyOutPieces(OpBuilder &b, gdn::gpu::CopyOutOp copy,
                              const BlockThreads &threads,
                              const TileMemory &memory, Value rows,
                              Value buffer) {
  Location loc = copy.getLoc();
  OwnPieces pieces(b, loc, threads, copy.getBuffer().getType(), buffer, memory);
  auto words = VectorType::get({pieceBytes / 4}, b.getI32Type());
  SmallVector<Value> loaded;
  meetGroup(b, loc, threads); // others have shared it
  for (int64_t i = 0; i < pieces.count(); ++i)
    loaded.push_back(
        LLVM::LoadOp::create(b, loc, words, pieces.shared(i), pieceBytes));
  meetGroup(b, loc, threads); // and may do so again
  for (auto [i, piece] : llvm::enumerate(loaded)) {
    OpBuilder::InsertionGuard guard(b);
    if (rows) {
      auto branch = scf::IfOp::create(b, loc, pieces.isBelow(i, rows),
                                      /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    LLVM::StoreOp::create(b, loc, piece, pieces.memory(i), pieceBytes);
  }
}

static Value isFirstOfGroup(OpBuilder &b, Location loc,
                            const BlockThreads &threads) {
  Arithmetic a{b, loc};
  Value warp =
      arith::RemUIOp::create(b, loc, threads.warp, a.i32(gdn::gpu::groupWarps));
  return a.both(a.isEqual(warp, a.i32(0)), a.isEqual(threads.lane, a.i32(0)));
}

void gdn::emitAwaitTensorMapStores(OpBuilder &b, gdn::gpu::StoreSharedOp store,
                                   const BlockThreads &threads) {
  auto usesTensorMap = [](Operation *user) {
    auto out = dyn_cast<gdn::gpu::CopyOutOp>(user);
    return out && out.getTensorMap();
  };
  if (llvm::none_of(store.getBuffer().getUsers(), usesTensorMap))
    return;
  Location loc = store.getLoc();
  auto first = scf::IfOp::create(b, loc, isFirstOfGroup(b, loc, threads),
                                 /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(first.thenBlock());
    emitAssembly(b, loc, Type(), {}, "cp.async.bulk.wait_group.read 0;",
                 "~{memory}", /*hasSideEffects=*/true);
  }
  meetGroup(b, loc, threads);
}

void gdn::emitCopyOut(OpBuilder &b, gdn::gpu::CopyOutOp copy,
                      const BlockThreads &threads, const TileMemory &memory,
                      const IRMapping &values, const TensorMaps &maps,
                      LLVM::LLVMFuncOp kernel) {
  Value buffer = values.lookup(copy.getBuffer()),
        rows =
            copy.getRows() ? values.lookupOrDefault(copy.getRows()) : Value();
  if (!copy.getTensorMap())
    return emitCopyOutPieces(b, copy, threads, memory, rows, buffer);
  Location loc = copy.getLoc();
  Arithmetic a{b, loc};
  emitAssembly(b, loc, Type(), {}, "fence.proxy.async.shared::cta;",
               "~{memory}", /*hasSideEffects=*/true);
  meetGroup(b, loc, threads); // others have shared it
  Value panel =
      arith::DivUIOp::create(b, loc, threads.warp, a.i32(gdn::gpu::groupWarps));
  auto indices = llvm::map_to_vector(copy.getIndices(), [&](Value index) {
    return values.lookupOrDefault(index);
  });
  emitTensorMapStore(b, copy, isFirstOfGroup(b, loc, threads), panel, maps,
                     kernel, indices, rows, buffer);
}

/// The copy, still to be committed.
static void emitPieces(OpBuilder &b, gdn::gpu::BeginCopyOp copy,
                       const BlockThreads &threads, const TileMemory &memory,
                       Value rows, Value buffer) {
  Location loc = copy.getLoc();
  Arithmetic a{b, loc};
  const int64_t numThreads = threads.numThreads;
  gdn::gpu::SharedType type = copy.getBuffer().getType();
  int64_t numRows = type.getRank() == 2 ? type.getShape()[0] : 1;
  int64_t rowPieces = type.getRowBytes() / pieceBytes;
  int64_t pieces = numRows * rowPieces;
  SharedMatrix matrix(b, loc, threads.lane, type, buffer);
  Value thread =
      a.add(a.mul(threads.warp, a.i32(gdn::gpu::warpThreads)), threads.lane);
  if (copy.getPerWarpgroup())
    return emitOwnCopy(b, copy, threads, memory, rows, buffer);
  if (copy.getScattered())
    return emitScatteredCopy(b, copy, numThreads, thread, memory, rows, buffer);
  const int64_t step = numThreads / rowPieces;
  if (type.getSwizzled() && numThreads % rowPieces == 0 &&
      numRows % step == 0 &&
      (step % swizzledRows == 0 || swizzledRows % step == 0))
    return emitColumnCopy(b, copy, step, thread, matrix, memory, rows);
  for (int64_t first = 0; first < pieces; first += numThreads) {
    OpBuilder::InsertionGuard guard(b);
    Value number = a.add(thread, a.i32(first));
    if (first + numThreads > pieces) {
      auto branch = scf::IfOp::create(b, loc, a.isLess(number, a.i32(pieces)),
                                      /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    Value row = arith::DivUIOp::create(b, loc, number, a.i32(rowPieces));
    Value column =
        a.mul(arith::RemUIOp::create(b, loc, number, a.i32(rowPieces)),
              a.i32(pieceBytes));
    Value to = type.getSwizzled()
                   ? matrix.getAddress(row, column)
                   : a.advance(buffer, a.mul(number, a.i32(pieceBytes)));
    Value bytes;
    if (rows && type.getRank() == 1) {
      // Elements count, of which a piece has some.
      int64_t element = type.getElementType().getIntOrFloatBitWidth() / 8;
      Value end = arith::MulIOp::create(
          b, loc,
          arith::TruncIOp::create(b, loc, b.getI32Type(), a.toI64(rows)),
          a.i32(element));
      bytes = arith::SubIOp::create(b, loc, end, column);
      bytes = arith::MaxSIOp::create(b, loc, bytes, a.i32(0));
      bytes = arith::MinSIOp::create(b, loc, bytes, a.i32(pieceBytes));
    } else if (rows) {
      Value isThere = a.isLess(a.toI64(row), a.toI64(rows));
      bytes =
          arith::SelectOp::create(b, loc, isThere, a.i32(pieceBytes), a.i32(0));
      row = arith::SelectOp::create(b, loc, isThere, row, a.i32(0));
    }
    Value from = memory.pointer;
    if (numRows > 1)
      from = memory.row.advance(a, from, row);
    from = a.advance(from, a.toI64(column));
    NVVM::CpAsyncOp::create(b, loc, to, from, pieceBytes,
                            NVVM::LoadCacheModifierKind::CG, bytes);
  }
}

/// Of the last chunk, where roles have more instructions than their cache
/// holds: a loop over pieces, which few instructions and registers are for.
static void emitRestInLoop(OpBuilder &b, gdn::gpu::BeginCopyOp copy,
                           const BlockThreads &threads,
                           const TileMemory &memory, Value rows, Value buffer) {
  Location loc = copy.getLoc();
  Arithmetic a{b, loc};
  gdn::gpu::SharedType type = copy.getBuffer().getType();
  const int64_t rowPieces = type.getRowBytes() / pieceBytes;
  SharedMatrix matrix(b, loc, threads.lane, type, buffer);
  Value thread =
      a.add(a.mul(threads.warp, a.i32(gdn::gpu::warpThreads)), threads.lane);
  Value end = arith::TruncIOp::create(b, loc, b.getI32Type(), a.toI64(rows));
  Value stride = memory.row.get(a);
  auto loop =
      scf::ForOp::create(b, loc, thread, a.i32(type.getShape()[0] * rowPieces),
                         a.i32(threads.numThreads));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  Value row = arith::DivUIOp::create(b, loc, number, a.i32(rowPieces));
  Value column = a.mul(arith::RemUIOp::create(b, loc, number, a.i32(rowPieces)),
                       a.i32(pieceBytes));
  Value isThere = a.isLess(row, end);
  Value bytes =
      arith::SelectOp::create(b, loc, isThere, a.i32(pieceBytes), a.i32(0));
  Value fromRow = arith::SelectOp::create(b, loc, isThere, row, a.i32(0));
  Value from =
      a.advance(a.advance(memory.pointer, a.mul(a.toI64(fromRow), stride)),
                a.toI64(column));
  NVVM::CpAsyncOp::create(b, loc, matrix.getAddress(row, column), from,
                          pieceBytes, NVVM::LoadCacheModifierKind::CG, bytes);
}

bool gdn::isRestBesideWork(gdn::gpu::BeginCopyOp copy) {
  auto roles = copy->getParentOfType<gdn::gpu::RolesOp>();
  return roles && copy.getTensorMap() && copy.getRows() &&
         roles.getBody()
             .walk([](gdn::gpu::DecayBetweenOp) {
               return WalkResult::interrupt();
             })
             .wasInterrupted();
}

void gdn::emitCopy(OpBuilder &b, gdn::gpu::BeginCopyOp copy,
                   const BlockThreads &threads, const TileMemory &memory,
                   Value rows, Value buffer) {
  if (copy.getAnyAlignment())
    emitRowCopy(b, copy, threads, memory, rows, buffer);
  else if (isRestBesideWork(copy))
    emitRestInLoop(b, copy, threads, memory, rows, buffer);
  else
    emitPieces(b, copy, threads, memory, rows, buffer);
  emitEndOfCopies(b, copy.getLoc());
}

void gdn::emitEndOfCopies(OpBuilder &b, Location loc) {
  // Here, so that who waits has nothing to do but wait.
  NVVM::CpAsyncCommitGroupOp::create(b, loc);
}

void gdn::emitAwaitCopies(OpBuilder &b, Location loc) {
  NVVM::CpAsyncWaitGroupOp::create(b, loc, 0);
}

/// Whether copies have begun in the block of `load` since the loads before it.
static bool isFirstBehindCopies(gdn::gpu::LoadOp load) {
  bool hasBegun = false;
  for (Operation *op = load->getPrevNode(); op && !hasBegun;
       op = op->getPrevNode()) {
    if (isa<gdn::gpu::LoadOp>(op))
      return false;
    op->walk([&](gdn::gpu::BeginLoadOp) { hasBegun = true; });
  }
  return hasBegun;
}

void gdn::emitLoadOrder(OpBuilder &b, gdn::gpu::LoadOp load) {
  auto program = load->getParentOfType<func::FuncOp>();
  if (!gdn::gpu::KernelFields(program).getPromised() ||
      !(load.getBegun() || isFirstBehindCopies(load)))
    return;
  // ptxas makes no instruction of it where a warp's threads are together. In
  // other programs the branches by the ways to an array are as good.
  Location loc = load.getLoc();
  NVVM::SyncWarpOp::create(b, loc, Arithmetic{b, loc}.i32(-1));
}

void gdn::emitAwaitCopies(OpBuilder &b, gdn::gpu::AwaitCopiesOp await,
                          const BlockThreads &threads) {
  Location loc = await.getLoc();
  emitAwaitCopies(b, loc);
  // No barrier need follow for what a group copied for itself.
  bool hasPerWarpgroup = false;
  gdn::gpu::WarpsOp role = gdn::gpu::getRole(await);
  if (role)
    role.walk([&](gdn::gpu::BeginCopyOp copy) {
      hasPerWarpgroup |= copy.getPerWarpgroup();
    });
  if (hasPerWarpgroup)
    meetGroup(b, loc, threads);
  else if (role)
    NVVM::SyncWarpOp::create(b, loc, Arithmetic{b, loc}.i32(-1));
}
