// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stores that never happen, of sums: ptxas has to have made them by then.
#include "Fragments/SharedMatrix.h"
#include "Kernel/Assembly.h"
#include "Kernel/KernelEntry.h"
#include "Products/ProductFamily.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace gdn;

void gdn::finishProducts(OpBuilder &b, Operation *barrier,
                         const IRMapping &values, const KernelEntry &entry) {
  if (!isa_and_nonnull<gdn::gpu::AwaitCopiesOp>(barrier->getPrevNode()) ||
      !gdn::gpu::KernelFields(barrier->getParentOfType<func::FuncOp>())
           .getFinishProducts())
    return;
  Operation *last = barrier->getPrevNode();
  while (last && !isa<gdn::gpu::BarrierOp, gdn::gpu::MatmulOp>(last))
    last = last->getPrevNode();
  auto matmul = dyn_cast_or_null<gdn::gpu::MatmulOp>(last);
  if (!matmul)
    return;
  Location loc = matmul.getLoc();
  Value sums = values.lookup(matmul.getResult());
  Value pointer = values.lookup(matmul.getRhs());
  Type i32 = b.getI32Type();
  MatrixBlocks result(matmul.getResult().getType());
  SmallVector<Value> operands = {
      NVVM::BlockIdXOp::create(b, loc, i32),
      arith::TruncIOp::create(b, loc, i32, entry.units),
      LLVM::PtrToIntOp::create(b, loc, i32, pointer)};
  std::string text = "{ .reg .pred never; setp.ge.u32 never, $0, $1;";
  std::string constraints = "r,r,r";
  for (int64_t p = result.columns - 2; p < result.columns; ++p) {
    text +=
        " @never st.shared.b32 [$2], $" + std::to_string(operands.size()) + ";";
    constraints += ",f";
    operands.push_back(
        vector::ExtractOp::create(b, loc, sums, result.word(0, p) * 2));
  }
  emitAssembly(b, loc, Type(), operands, text + " }",
               constraints + ",~{memory}", /*hasSideEffects=*/true);
}
