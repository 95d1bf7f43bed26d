// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A crash leaves a reproducer and says so; an error leaves nothing.
#include "gdn/Pipelines/CrashReproducer.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"

#include <gmock/gmock.h>

using namespace gdn;
using namespace mlir;

namespace {

/// Does `body` to the module.
struct CustomPass : PassWrapper<CustomPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CustomPass)
  explicit CustomPass(std::function<void(CustomPass &)> body)
      : body(std::move(body)) {}
  StringRef getArgument() const override { return "custom"; }
  void runOnOperation() override { body(*this); }
  using OperationPass::getOperation;
  using Pass::signalPassFailure;
  std::function<void(CustomPass &)> body;
};

class CrashReproducerTest : public testing::Test {
protected:
  CrashReproducerTest()
      : outer(&context, [this](Diagnostic &diagnostic) {
          said += diagnostic.str();
          for (Diagnostic &note : diagnostic.getNotes())
            said += " | " + note.str();
          said += "\n";
          return success();
        }) {
    context.printOpOnDiagnostic(false);
    path = testing::TempDir() + "/gdn-crash-" +
           std::to_string(llvm::sys::Process::getProcessId()) +
           ".reproducer.mlir";
    (void)llvm::sys::fs::remove(path);
    module = parseSourceString<ModuleOp>("module {}", &context);
  }
  ~CrashReproducerTest() override { (void)llvm::sys::fs::remove(path); }

  LogicalResult run(std::function<void(CustomPass &)> body) {
    CrashReproducer reproducer(context, path);
    PassManager passes(&context);
    passes.addPass(std::make_unique<CustomPass>(std::move(body)));
    reproducer.attach(passes);
    return passes.run(*module);
  }

  MLIRContext context;
  std::string said, path;
  ScopedDiagnosticHandler outer;
  OwningOpRef<ModuleOp> module;
};

TEST_F(CrashReproducerTest, ACrashLeavesAReproducer) {
  EXPECT_TRUE(failed(run([](CustomPass &) { __builtin_trap(); })));
  EXPECT_THAT(said, testing::HasSubstr("reproducer generated at `" + path));
  auto text = llvm::MemoryBuffer::getFile(path);
  ASSERT_TRUE(bool(text));
  EXPECT_THAT((*text)->getBuffer().str(), testing::HasSubstr("custom"));
}

TEST_F(CrashReproducerTest, AnErrorLeavesNothing) {
  EXPECT_TRUE(failed(run([](CustomPass &pass) {
    pass.getOperation().emitError("the input is wrong");
    pass.signalPassFailure();
  })));
  EXPECT_EQ(said, "the input is wrong\n");
  EXPECT_FALSE(llvm::sys::fs::exists(path));
}

TEST_F(CrashReproducerTest, SuccessLeavesNothing) {
  EXPECT_TRUE(succeeded(run([](CustomPass &) {})));
  EXPECT_EQ(said, "");
  EXPECT_FALSE(llvm::sys::fs::exists(path));
}

} // namespace
