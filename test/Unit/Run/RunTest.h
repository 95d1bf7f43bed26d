// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared by the tests of the run library: an image of a small model, compiled
// once, as a file.
#ifndef GDN_TEST_UNIT_RUN_RUNTEST_H
#define GDN_TEST_UNIT_RUN_RUNTEST_H

#include "gdn/Model/EntryBuilder.h"
#include "gdn/Pipelines/CompileImage.h"
#include "gdn/Run/Session.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <gmock/gmock.h>

namespace gdn::run {

/// Entries with dk = 8, dv = 16, flat layout, in f32 with both outputs.
class RunTest : public testing::Test {
protected:
  static void SetUpTestSuite() {
    ModelConfig config;
    config.name = "small";
    config.layout = InputLayout::flat;
    config.keyHeads = 1;
    config.valueHeads = 2;
    config.keyDim = 8;
    config.valueDim = 16;
    config.convWidth = 4;
    EntryOptions options;
    options.io = FloatKind::f32;
    options.outputs = EntryOutputs::both;
    mlir::MLIRContext context;
    auto module = llvm::cantFail(buildEntryModule(context, config, options));
    auto image =
        compileImage(*module, llvm::cantFail(TargetModel::get("x86-64-v3")), {},
                     [](mlir::PassManager &) { return mlir::success(); });
    ASSERT_TRUE(mlir::succeeded(image));
    path() = testing::TempDir() + "/gdn-run-test-" +
             std::to_string(llvm::sys::Process::getProcessId()) + ".gdnk";
    std::error_code error;
    llvm::raw_fd_ostream(path(), error)
        .write(reinterpret_cast<const char *>(image->data()), image->size());
    ASSERT_FALSE(error);
  }
  static void TearDownTestSuite() { (void)llvm::sys::fs::remove(path()); }

  /// Skips the test on a machine that cannot run the code.
  void SetUp() override {
    auto loaded = Program::load(path(), 1);
    ASSERT_TRUE(bool(loaded)) << llvm::toString(loaded.takeError());
    program.emplace(std::move(*loaded));
    for (auto [name, place] :
         {std::pair("prefill", &prefill), std::pair("decode", &decode)}) {
      auto kernel = program->kernel(name);
      if (!kernel)
        GTEST_SKIP() << llvm::toString(kernel.takeError());
      place->emplace(std::move(*kernel));
    }
  }

  static std::string &path() {
    static std::string path;
    return path;
  }
  std::optional<Program> program;
  std::optional<Kernel> prefill, decode;
};

} // namespace gdn::run

#endif // GDN_TEST_UNIT_RUN_RUNTEST_H
