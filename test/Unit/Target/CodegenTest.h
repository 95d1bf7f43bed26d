// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared by the tests of code generation: modules of the llvm dialect as text,
// and what is said about them.
#ifndef GDN_TEST_UNIT_TARGET_CODEGENTEST_H
#define GDN_TEST_UNIT_TARGET_CODEGENTEST_H

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Target/CpuCodegen.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include <gmock/gmock.h>

namespace gdn {

class CodegenTest : public testing::Test {
protected:
  CodegenTest()
      : handler(&context, [this](mlir::Diagnostic &diagnostic) {
          said += diagnostic.str() + "\n";
          return mlir::success();
        }) {
    context.loadDialect<GDNDialect, mlir::LLVM::LLVMDialect,
                        mlir::arith::ArithDialect, mlir::func::FuncDialect>();
  }

  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << said;
    return module;
  }

  TargetModel target = llvm::cantFail(TargetModel::get("x86-64-v3"));
  mlir::MLIRContext context;
  std::string said; // all diagnostics, one a line
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace gdn

#endif // GDN_TEST_UNIT_TARGET_CODEGENTEST_H
