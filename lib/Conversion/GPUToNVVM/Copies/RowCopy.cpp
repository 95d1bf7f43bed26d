// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.begin_copy any_alignment: rows of a tile in pieces of 16 bytes where
// these divide the address and the stride of rows, and element by element where
// they do not.
#include "Copies/TileCopy.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

static constexpr int64_t rowPieceBytes = 16;

namespace {
class RowCopy {
public:
  RowCopy(OpBuilder &b, gdn::gpu::BeginCopyOp copy, const BlockThreads &threads,
          const TileMemory &memory, Value rows, Value buffer);
  void emit();

private:
  void emitPieces();
  void emitElements();

  OpBuilder &b;
  Location loc;
  Arithmetic a;
  gdn::gpu::SharedType type;
  int64_t numThreads, numRows;
  Value thread, from, stride, buffer;
  Value end; // i32: the row behind those that are read
};
} // namespace

RowCopy::RowCopy(OpBuilder &b, gdn::gpu::BeginCopyOp copy,
                 const BlockThreads &threads, const TileMemory &memory,
                 Value rows, Value buffer)
    : b(b), loc(copy.getLoc()), a{b, loc}, type(copy.getBuffer().getType()),
      numThreads(threads.numThreads), numRows(type.getShape()[0]),
      from(memory.pointer), buffer(buffer) {
  thread =
      a.add(a.mul(threads.warp, a.i32(gdn::gpu::warpThreads)), threads.lane);
  stride = memory.row.get(a);
  end = a.i32(numRows);
  if (rows)
    end = arith::TruncIOp::create(
        b, loc, b.getI32Type(),
        arith::MinSIOp::create(b, loc, a.toI64(rows), a.i64(numRows)));
}

/// A thread has a column and every `step`-th row where that deals all threads
/// out.
void RowCopy::emitPieces() {
  const int64_t rowPieces = type.getRowBytes() / rowPieceBytes;
  const int64_t pieces = numRows * rowPieces;
  const bool isEven = numThreads % rowPieces == 0;
  Value first = arith::DivUIOp::create(b, loc, thread, a.i32(rowPieces));
  Value next; // of a thread with one column
  for (int64_t i = 0; i * numThreads < pieces; ++i) {
    OpBuilder::InsertionGuard guard(b);
    Value number = a.add(thread, a.i32(i * numThreads));
    Value row =
        isEven
            ? a.add(first, a.i32(i * (numThreads / rowPieces)))
            : Value(arith::DivUIOp::create(b, loc, number, a.i32(rowPieces)));
    Value column =
        a.mul(arith::RemUIOp::create(b, loc, isEven ? thread : number,
                                     a.i32(rowPieces)),
              a.i32(rowPieceBytes));
    Value to =
        a.advance(buffer, a.add(a.mul(row, a.i32(type.getRowBytes())), column));
    Value at = next ? next
                    : a.advance(from, a.add(a.mul(a.toI64(row), stride),
                                            a.toI64(column)));
    if (isEven)
      next = a.advance(at, a.mul(a.i64(numThreads / rowPieces), stride));
    if ((i + 1) * numThreads > pieces) {
      auto branch = scf::IfOp::create(b, loc, a.isLess(number, a.i32(pieces)),
                                      /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
    }
    Value bytes = arith::SelectOp::create(b, loc, a.isLess(row, end),
                                          a.i32(rowPieceBytes), a.i32(0));
    NVVM::CpAsyncOp::create(b, loc, to, at, rowPieceBytes,
                            NVVM::LoadCacheModifierKind::CG, bytes);
  }
}

void RowCopy::emitElements() {
  Type element = type.getElementType();
  const int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  Type word = b.getIntegerType(element.getIntOrFloatBitWidth());
  const int64_t columns = type.getShape()[1];
  auto loop = scf::ForOp::create(b, loc, thread, a.i32(numRows * columns),
                                 a.i32(numThreads));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value number = loop.getInductionVar();
  Value row = arith::DivUIOp::create(b, loc, number, a.i32(columns));
  Value column = a.mul(arith::RemUIOp::create(b, loc, number, a.i32(columns)),
                       a.i32(bytes));
  auto branch = scf::IfOp::create(b, loc, TypeRange(word), a.isLess(row, end),
                                  /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard inner(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value at =
        a.advance(from, a.add(a.mul(a.toI64(row), stride), a.toI64(column)));
    Value read = LLVM::LoadOp::create(b, loc, word, at, bytes);
    scf::YieldOp::create(b, loc, read);
    b.setInsertionPointToStart(branch.elseBlock());
    Value zero = arith::ConstantOp::create(b, loc, b.getIntegerAttr(word, 0));
    scf::YieldOp::create(b, loc, zero);
  }
  LLVM::StoreOp::create(b, loc, branch.getResult(0),
                        a.advance(buffer, a.mul(number, a.i32(bytes))), bytes);
}

void RowCopy::emit() {
  Value address = LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), from);
  Value past = arith::AndIOp::create(
      b, loc, arith::OrIOp::create(b, loc, address, stride),
      a.i64(rowPieceBytes - 1));
  auto branch = scf::IfOp::create(b, loc, a.isEqual(past, a.i64(0)),
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  emitPieces();
  b.setInsertionPointToStart(branch.elseBlock());
  emitElements();
}

void gdn::emitRowCopy(OpBuilder &b, gdn::gpu::BeginCopyOp copy,
                      const BlockThreads &threads, const TileMemory &memory,
                      Value rows, Value buffer) {
  RowCopy(b, copy, threads, memory, rows, buffer).emit();
}
