// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.column_sum: a lane adds its rows, the lanes of a column meet in a
// butterfly, and what each warp has goes through the scratch tile to all.
#include "Fragments/SharedMatrix.h"
#include "Rows/RowWork.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

Value gdn::emitColumnSum(OpBuilder &b, const BlockThreads &threads,
                         gdn::gpu::ColumnSumOp sum, Value local,
                         Value scratch) {
  Location loc = sum.getLoc();
  Arithmetic a{b, loc};
  gdn::gpu::FragmentType tile = sum.getTile().getType();
  gdn::gpu::RowsAttr layout = tile.getRows();
  const int64_t columns = tile.getDimSize(1);
  const int64_t vector = layout.getVector(), lanes = layout.getLanes();
  const int64_t pieces = layout.getPieces(columns);
  const int64_t positions = pieces * vector;
  const int64_t localRows = layout.getLocalRows(tile.getDimSize(0));

  SmallVector<Value> sums;
  for (int64_t position = 0; position < positions; ++position) {
    Value total;
    for (int64_t i = 0; i < localRows; ++i) {
      Value element =
          vector::ExtractOp::create(b, loc, local, i * positions + position);
      total = total ? arith::AddFOp::create(b, loc, total, element).getResult()
                    : element;
    }
    for (int64_t distance = lanes; distance < gdn::gpu::warpThreads;
         distance *= 2) {
      Value other = NVVM::ShflOp::create(b, loc, b.getF32Type(), a.i32(-1),
                                         total, a.i32(distance), a.i32(31),
                                         NVVM::ShflKind::bfly, UnitAttr());
      total = arith::AddFOp::create(b, loc, total, other);
    }
    sums.push_back(total);
  }

  Value first = threads.column(a, layout);
  auto piece = VectorType::get({vector}, b.getF32Type());
  auto addressOf = [&](Value warp, int64_t p) -> Value {
    Value at = a.add(a.mul(warp, a.i32(columns)),
                     a.add(first, a.i32(p * lanes * vector)));
    return LLVM::GEPOp::create(b, loc, scratch.getType(), b.getF32Type(),
                               scratch, ArrayRef<LLVM::GEPArg>{at});
  };
  {
    auto writer =
        scf::IfOp::create(b, loc, a.isLess(threads.lane, a.i32(lanes)), false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(writer.thenBlock());
    for (int64_t p = 0; p < pieces; ++p) {
      Value own = vector::FromElementsOp::create(
          b, loc, piece, ArrayRef<Value>(sums).slice(p * vector, vector));
      LLVM::StoreOp::create(b, loc, own, addressOf(threads.warp, p),
                            /*alignment=*/4 * vector);
    }
  }
  emitBarrier(b, sum, threads);
  SmallVector<Value> results;
  for (int64_t p = 0; p < pieces; ++p) {
    Value total;
    for (int64_t warp = 0; warp < layout.getWarps(); ++warp) {
      Value part =
          LLVM::LoadOp::create(b, loc, piece, addressOf(a.i32(warp), p),
                               /*alignment=*/4 * vector);
      total =
          total ? arith::AddFOp::create(b, loc, total, part).getResult() : part;
    }
    for (int64_t e = 0; e < vector; ++e)
      results.push_back(vector::ExtractOp::create(b, loc, total, e));
  }
  return vector::FromElementsOp::create(
      b, loc, VectorType::get({positions}, b.getF32Type()), results);
}
