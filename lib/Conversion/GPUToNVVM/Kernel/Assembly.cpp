// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inline assembly; see Assembly.h.
#include "Kernel/Assembly.h"

using namespace mlir;

Value gdn::emitAssembly(OpBuilder &b, Location loc, Type result,
                        ValueRange operands, StringRef text,
                        StringRef constraints, bool hasSideEffects) {
  auto code = LLVM::InlineAsmOp::create(
      b, loc, result ? TypeRange(result) : TypeRange(), operands, text,
      constraints, hasSideEffects, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
  return result ? code.getResult(0) : Value();
}
