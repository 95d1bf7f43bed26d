// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asking for tiles ahead of their loads, as far as the second-level cache,
// which all multiprocessors share. A prefetch has no result that could grow
// stale.
#include "Fragments/TileAccess.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

static void prefetch(OpBuilder &b, Location loc, Value pointer) {
  LLVM::InlineAsmOp::create(
      b, loc, TypeRange(), pointer, "prefetch.global.L2 [$0];", "l",
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
}

void gdn::prefetchFragment(OpBuilder &b, Location loc,
                           const BlockThreads &threads, gpu::FragmentType type,
                           const TileMemory &memory) {
  Arithmetic a{b, loc};
  gpu::RowsAttr layout = type.getRows();
  int64_t numRows = type.isPerColumn() ? 1 : type.getDimSize(0);
  int64_t numColumns = type.isPerRow() ? 1 : type.getShape().back();
  int64_t localRows = type.isPerColumn() ? 1 : layout.getLocalRows(numRows);
  int64_t pieces = type.isPerRow() ? 1 : layout.getPieces(numColumns);
  for (int64_t row = 0; row < localRows; ++row) {
    Value pointer = memory.pointer, isInside;
    if (!type.isPerColumn()) {
      Value number = threads.row(a, layout, numRows, row);
      isInside = a.isLess(number, a.i32(numRows));
      pointer = memory.row.advance(a, pointer, number);
    }
    for (int64_t piece = 0; piece < pieces; ++piece) {
      OpBuilder::InsertionGuard guard(b);
      Value at = pointer, condition = isInside;
      if (!type.isPerRow()) {
        Value column = arith::AddIOp::create(
            b, loc, threads.column(a, layout),
            a.i32(piece * layout.getLanes() * layout.getVector()));
        condition = a.both(condition, a.isLess(column, a.i32(numColumns)));
        at = memory.column.advance(a, at, column);
      }
      auto branch =
          scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
      b.setInsertionPointToStart(branch.thenBlock());
      prefetch(b, loc, at);
    }
  }
}
