// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of gdn_gpu.map_rows one after another, and what keeps LLVM and ptxas
// from mixing them.
#include "Rows/RowEmitter.h"

#include "Kernel/OptimizationBarrier.h"

#include "Fragments/TileAccess.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace gdn;

/// Keeps LLVM from mixing the ops of row `i` with those of the row before:
/// assembly without an instruction takes the results of that one, and then the
/// numbers that this one begins with pass through some.
void RowEmitter::separate(int64_t i, ArrayRef<Operation *> ops) {
  auto emitAsm = [&](TypeRange results, ValueRange operands,
                     StringRef constraints) {
    return LLVM::InlineAsmOp::create(
        b, loc, results, operands, "", constraints, /*has_side_effects=*/true,
        /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
        LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
        /*operand_attrs=*/ArrayAttr());
  };
  for (Value yielded : body.getTerminator()->getOperands()) {
    Value part = lookup(yielded, rows[i - 1]);
    auto type = dyn_cast<VectorType>(part.getType());
    if (!type || !type.getElementType().isF32())
      continue;
    SmallVector<Value> elements;
    std::string constraints;
    for (int64_t e = 0; e < type.getNumElements(); ++e) {
      elements.push_back(vector::ExtractOp::create(b, loc, part, e));
      constraints += e ? ",f" : "f";
    }
    emitAsm({}, elements, constraints);
  }
  DenseSet<Operation *> inside(ops.begin(), ops.end());
  for (Operation *op : ops)
    for (Value operand : op->getOperands()) {
      Operation *from = operand.getDefiningOp();
      bool isNumber = operand.getType().isF32() && !isRowInvariant(operand);
      if (!isNumber || !from || inside.contains(from) || fused.contains(from))
        continue;
      Value hidden = emitAsm(b.getF32Type(), lookup(operand, rows[i]), "=f,0")
                         .getResult(0);
      rows[i].map(operand, hidden);
    }
}

/// `number`, an f32, through assembly without an instruction, which stays where
/// it is.
Value RowEmitter::barrier(Value number) {
  Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), number);
  return arith::BitcastOp::create(b, loc, number.getType(),
                                  optimizationBarrier(b, loc, bits));
}

/// One row after another: narrow rows pass through assembly without an
/// instruction, and sums, or the thread's parts of them, through some that
/// stays where it is. Shared sums follow for all rows together. ptxas does not
/// see it, and would keep rows as they were widened for sums before: where
/// there are none, a zero that only the launch knows is mixed in.
void RowEmitter::emitApart(ArrayRef<Operation *> ops) {
  Value zero;
  if (llvm::none_of(ops, llvm::IsaPred<vector::ReductionOp>)) {
    Value one =
        emitAssembly(b, loc, b.getI32Type(), {}, "mov.u32 $0, %nctaid.z;", "=r",
                     /*hasSideEffects=*/true);
    zero = arith::SubIOp::create(b, loc, one, a.i32(1));
  }
  // What shared sums go into comes behind those of all rows.
  DenseSet<Value> ofSums;
  llvm::MapVector<Operation *, SmallVector<Value>> parts;
  SmallVector<Operation *> early, late;
  for (Operation *op : ops) {
    bool isLate = llvm::any_of(op->getOperands(), [&](Value operand) {
      return ofSums.contains(operand);
    });
    bool isSame = isSameForRows(*op);
    if (isSame && !fused.contains(op))
      invariant.insert_range(op->getResults());
    bool isShared = map.getShareSums() && isSum(*op) && !isSame;
    if (isLate || isShared)
      ofSums.insert_range(op->getResults());
    if (isShared)
      parts[op];
    (isLate ? late : early).push_back(op);
  }
  for (auto [i, row] : llvm::enumerate(rows)) {
    for (Value arg : body.getArguments().drop_front()) {
      Value local = row.lookup(arg);
      if (isRowInvariant(arg) || !isa<VectorType>(local.getType()))
        continue;
      Value words = toCarried(b, loc, local);
      if (words.getType() != local.getType() && zero)
        words = arith::XOrIOp::create(
            b, loc, words,
            vector::BroadcastOp::create(b, loc, words.getType(), zero));
      row.map(arg, fromCarried(b, loc, words, local.getType()));
    }
    for (Operation *op : early) {
      if (auto found = parts.find(op); found != parts.end())
        found->second.push_back(
            barrier(emitPart(cast<vector::ReductionOp>(op), row)));
      else
        emitOp(*op, i, i + 1);
    }
    if (late.empty() && parts.empty())
      emitApartResults(row);
  }
  for (auto &[op, ofRows] : parts) {
    addLanes(ofRows);
    for (auto [row, sum] : llvm::zip(rows, ofRows))
      row.map(op->getResult(0), sum);
  }
  if (late.empty() && parts.empty())
    return;
  for (auto [i, row] : llvm::enumerate(rows)) {
    for (Operation *op : late)
      emitOp(*op, i, i + 1);
    emitApartResults(row);
  }
}

/// Results of a row, kept from being mixed with the next row's.
void RowEmitter::emitApartResults(IRMapping &row) {
  for (Value yielded : body.getTerminator()->getOperands()) {
    Value result = lookup(yielded, row);
    if (isa<VectorType>(result.getType()))
      row.map(yielded,
              fromCarried(b, loc, toCarried(b, loc, result), result.getType()));
    else
      row.map(yielded, barrier(result));
  }
}
