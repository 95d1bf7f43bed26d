// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.begin_copy: the pieces of a tile dealt to the threads of the block,
// one after the other, so that neighbours copy what lies side by side.
#include "TileCopy.h"

#include "SharedMatrix.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

static constexpr int64_t pieceBytes = 16;

void gdn::emitCopy(OpBuilder &b, gdn::gpu::BeginCopyOp copy,
                   const BlockThreads &threads, int64_t numThreads,
                   const TileMemory &memory, Value rows, Value place) {
  Location loc = copy.getLoc();
  Arithmetic a{b, loc};
  gdn::gpu::SharedType type = copy.getPlace().getType();
  int64_t numRows = type.getRank() == 2 ? type.getShape()[0] : 1;
  int64_t rowPieces = type.getRowBytes() / pieceBytes;
  int64_t pieces = numRows * rowPieces;
  SharedMatrix matrix(b, loc, threads.lane, type, place);
  Value thread =
      a.add(a.mul(threads.warp, a.i32(gdn::gpu::warpThreads)), threads.lane);
  auto advance = [&](Value pointer, Value bytes) -> Value {
    return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(),
                               pointer, ArrayRef<LLVM::GEPArg>{bytes});
  };
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
                   : advance(place, a.mul(number, a.i32(pieceBytes)));
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
    if (numRows > 1) {
      Value stride =
          memory.row.known ? a.i64(*memory.row.known) : memory.row.value;
      from = advance(from, a.mul(a.toI64(row), stride));
    }
    from = advance(from, a.toI64(column));
    NVVM::CpAsyncOp::create(b, loc, to, from, pieceBytes,
                            NVVM::LoadCacheModifierKind::CG, bytes);
  }
}

void gdn::emitAwaitCopies(OpBuilder &b, Location loc) {
  NVVM::CpAsyncCommitGroupOp::create(b, loc);
  NVVM::CpAsyncWaitGroupOp::create(b, loc, 0);
}
