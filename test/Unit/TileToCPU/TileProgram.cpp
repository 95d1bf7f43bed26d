// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Text to code: the passes from tiles to the llvm dialect, then LLVM's JIT for
// the host. See TileProgram.h.
#include "TileProgram.h"

#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Dialect/Tile/Transforms/Passes.h"
#include "gdn/Pipelines/CpuPipeline.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace mlir;
using namespace gdn::test;

struct Program::Jit {
  std::unique_ptr<llvm::orc::LLJIT> session;
};

static void loadDialects(MLIRContext &context) {
  DialectRegistry registry;
  registry
      .insert<gdn::tile::TileDialect, LLVM::LLVMDialect, arith::ArithDialect,
              func::FuncDialect, math::MathDialect, memref::MemRefDialect,
              scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
}

Program::~Program() = default;

Program::Program(const std::string &views, const std::string &body,
                 int64_t lanes)
    : jit(std::make_unique<Jit>()) {
  compile(views, body, lanes);
}

void Program::compile(const std::string &views, const std::string &body,
                      int64_t lanes) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  MLIRContext context(MLIRContext::Threading::DISABLED);
  loadDialects(context);
  std::string text =
      "func.func @f(%n: index, " + views +
      ") attributes {gdn_tile.stage = {grid = [\"N\"], symbols = [\"N\"]}} {\n"
      "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n" +
      body + "\nreturn\n}\n";
  auto module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module) << text;

  // The pipeline leaves alone what is code already, so that the number of
  // lanes is ours and not the target's.
  PassManager passes(&context);
  gdn::ConvertTileToCPUOptions options;
  options.lanes = lanes;
  passes.addPass(gdn::createWidenTileOperands());
  passes.addPass(gdn::createConvertTileToCPU(options));
  auto target = gdn::TargetModel::get("x86-64-v3");
  ASSERT_TRUE(bool(target));
  gdn::buildTileToLlvmPipeline(passes, *target);
  ASSERT_TRUE(succeeded(passes.run(*module))) << text;
  auto code = module->lookupSymbol<LLVM::LLVMFuncOp>("f");
  scratchBytes = *tile::StageFields(code).getScratchBytes();

  auto llvmContext = std::make_unique<llvm::LLVMContext>();
  auto ir = translateModuleToLLVMIR(*module, *llvmContext);
  ASSERT_TRUE(ir);
  auto session = llvm::orc::LLJITBuilder().create();
  ASSERT_TRUE(bool(session)) << toString(session.takeError());
  jit->session = std::move(*session);
  llvm::Error added = jit->session->addIRModule(llvm::orc::ThreadSafeModule(
      std::move(ir), llvm::orc::ThreadSafeContext(std::move(llvmContext))));
  ASSERT_FALSE(bool(added));
  auto symbol = jit->session->lookup("f");
  ASSERT_TRUE(bool(symbol)) << toString(symbol.takeError());
  entry = symbol->toPtr<void(const int64_t *, int64_t, int64_t, void *)>();
}

void Program::run(int64_t n, const std::vector<View> &views) const {
  std::vector<int64_t> words;
  for (const View &view : views) {
    words.push_back(reinterpret_cast<int64_t>(view.data));
    words.insert(words.end(), view.sizes.begin(), view.sizes.end());
    words.insert(words.end(), view.strides.begin(), view.strides.end());
  }
  words.push_back(n);
  size_t bytes = (scratchBytes + 63) / 64 * 64 + 64;
  std::unique_ptr<void, void (*)(void *)> scratch(std::aligned_alloc(64, bytes),
                                                  std::free);
  std::memset(scratch.get(), 0xff, bytes); // every float a NaN
  entry(words.data(), 0, 1, scratch.get());
}

std::string gdn::test::view(int64_t rows, int64_t columns) {
  return "memref<" + std::to_string(rows) + "x" + std::to_string(columns) +
         "xf32, strided<[?, 1]>>";
}

std::string gdn::test::tile(int64_t rows, int64_t columns) {
  return "vector<" + std::to_string(rows) + "x" + std::to_string(columns) +
         "xf32>";
}

std::string gdn::test::load(const std::string &name, int64_t rows,
                            int64_t columns) {
  return "%" + name + "t = gdn_tile.load %" + name +
         "[%c0, %c0] dims [0, 1] : " + view(rows, columns) + ", " +
         tile(rows, columns) + "\n";
}

std::string gdn::test::store(const std::string &value, const std::string &name,
                             int64_t rows, int64_t columns) {
  return "gdn_tile.store %" + value + ", %" + name +
         "[%c0, %c0] dims [0, 1] : " + tile(rows, columns) + ", " +
         view(rows, columns) + "\n";
}

View gdn::test::of(std::vector<float> &data, int64_t rows, int64_t columns) {
  return {data.data(), {rows, columns}, {columns, 1}};
}

std::vector<float> gdn::test::randomValues(size_t count, float scale,
                                           unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(generator);
  return values;
}

double gdn::test::relativeError(const std::vector<float> &got,
                                const std::vector<double> &want) {
  double error = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  return std::sqrt(error / (size + 1e-300));
}
