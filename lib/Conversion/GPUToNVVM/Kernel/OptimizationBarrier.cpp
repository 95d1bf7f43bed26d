// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A value passes through assembly without instructions.
#include "Kernel/OptimizationBarrier.h"

#include "gdn/Dialect/GPU/IR/GPU.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

Value gdn::optimizationBarrier(OpBuilder &b, Location loc, Value value) {
  if (value.getType().isIndex()) {
    Value wide = arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
    return arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                      optimizationBarrier(b, loc, wide));
  }
  return LLVM::InlineAsmOp::create(
             b, loc, value.getType(), value, "",
             value.getType().isInteger(64) ? "=l,0" : "=r,0",
             /*has_side_effects=*/true, /*is_align_stack=*/false,
             LLVM::tailcallkind::TailCallKind::None,
             LLVM::AsmDialectAttr::get(b.getContext(),
                                       LLVM::AsmDialect::AD_ATT),
             /*operand_attrs=*/ArrayAttr())
      .getResult(0);
}

void gdn::keepInside(Operation *loop) {
  MLIRContext *context = loop->getContext();
  auto licm =
      LLVM::LoopLICMAttr::get(context, /*disable=*/BoolAttr::get(context, true),
                              /*versioningDisable=*/BoolAttr());
  LLVM::LoopAnnotationAttr annotation = LLVM::LoopAnnotationAttr::get(
      context, {}, {}, {}, {}, {}, licm, {}, {}, {}, {}, {}, {}, {}, {}, {});
  loop->setAttr("llvm.loop_annotation", annotation);
}

bool gdn::hasRoom(scf::ForOp loop) {
  constexpr int64_t many = 160;
  gdn::gpu::WarpsOp role = gdn::gpu::getRole(loop);
  const bool storesRows =
      loop.getNumResults() != 0 && !loop.getOps<gdn::gpu::StoreOp>().empty();
  return role && role.getRegisters().value_or(0) >= many && !storesRows &&
         loop.getOps<gdn::gpu::CopyOutOp>().empty();
}
