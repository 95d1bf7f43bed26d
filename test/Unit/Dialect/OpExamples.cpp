// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the programs of test/Dialect; see OpExamples.h.
#include "OpExamples.h"

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/Signals.h"

using namespace mlir;
using namespace gdn;

OpExamplesTest::OpExamplesTest() {
  // A crash says which op and which draw.
  llvm::EnablePrettyStackTrace();
  llvm::sys::PrintStackTraceOnErrorSignal("");
  context.disableMultithreading();
  context.allowUnregisteredDialects();
  context.loadDialect<GDNDialect, tile::TileDialect, gpu::GPUDialect,
                      arith::ArithDialect, cf::ControlFlowDialect,
                      func::FuncDialect, LLVM::LLVMDialect, math::MathDialect,
                      memref::MemRefDialect, NVVM::NVVMDialect, scf::SCFDialect,
                      tensor::TensorDialect, vector::VectorDialect>();
  handler = context.getDiagEngine().registerHandler([&](Diagnostic &said) {
    numErrors += said.getSeverity() == DiagnosticSeverity::Error;
  });
  for (StringRef dialect : {"gdn", "gdn_tile", "gdn_gpu"})
    llvm::append_range(ops, context.getRegisteredOperationsByDialect(dialect));
  llvm::sort(ops, [](RegisteredOperationName a, RegisteredOperationName b) {
    return a.getStringRef() < b.getStringRef();
  });
  std::vector<std::string> paths;
  std::error_code error;
  for (llvm::sys::fs::recursive_directory_iterator
           file(GDN_DIALECT_TESTS, error),
       end;
       file != end && !error; file.increment(error))
    if (StringRef path = file->path();
        path.ends_with(".mlir") && !path.ends_with("_invalid.mlir"))
      paths.push_back(path.str());
  llvm::sort(paths);
  for (const std::string &path : paths)
    readExamples(path);

  Builder b(&context);
  llvm::SetVector<Type> seenTypes;
  llvm::SetVector<Attribute> seenAttributes;
  for (auto &example : examples)
    example->walk([&](Operation *op) {
      seenTypes.insert(op->result_type_begin(), op->result_type_end());
      for (Region &region : op->getRegions())
        for (Block &block : region)
          seenTypes.insert(block.getArgumentTypes().begin(),
                           block.getArgumentTypes().end());
      if (isOwn(op))
        for (NamedAttribute attr : op->getAttrs())
          seenAttributes.insert(attr.getValue());
    });
  types = seenTypes.takeVector();
  attributes = seenAttributes.takeVector();
  Type f32 = b.getF32Type();
  llvm::append_range(
      types,
      ArrayRef<Type>{f32, b.getIndexType(), b.getNoneType(), b.getI1Type(),
                     b.getFunctionType({}, {}), UnrankedTensorType::get(f32),
                     RankedTensorType::get({}, f32), MemRefType::get({}, f32),
                     UnrankedMemRefType::get(f32, 0), VectorType::get({}, f32),
                     VectorType::get({1, 1, 1}, f32),
                     VectorType::get({4}, f32, {true}), ComplexType::get(f32)});
  // Sizes whose products have no 64 bits, where the types allow them.
  const std::string rows = ", #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>>";
  for (const std::string &text :
       {std::string("!gdn.pool<4611686018427387904x4x64x64xf32>"),
        std::string("!gdn_gpu.shared<4611686018427387904x4xf32>"),
        std::string("!gdn_gpu.channel<4611686018427387904x4xf32, depth = 2>"),
        std::string("!gdn_gpu.channel<4x4xf32, depth = 4611686018427387904>"),
        "!gdn_gpu.fragment<4611686018427387904x4xf32" + rows,
        std::string("vector<4611686018427387904xf32>"),
        std::string("vector<2147483648x2xf32>"),
        std::string("memref<4611686018427387904x4xf32>"),
        std::string("memref<4x4xf32, strided<[4611686018427387904, 1]>>"),
        std::string("tensor<9223372036854775807x4x8xf32>")})
    if (Type type = parseType(text, &context))
      types.push_back(type);
  auto integer = [&](unsigned bits, bool isSigned) -> Attribute {
    auto type = IntegerType::get(
        &context, bits, isSigned ? IntegerType::Signed : IntegerType::Signless);
    return IntegerAttr::get(type, APInt::getSignedMinValue(bits));
  };
  llvm::append_range(
      attributes,
      ArrayRef<Attribute>{
          b.getUnitAttr(),
          b.getBoolAttr(true),
          integer(64, false),
          integer(128, false),
          integer(64, true),
          integer(1, true),
          b.getIndexAttr(7),
          b.getI64IntegerAttr(INT64_MAX),
          b.getI32IntegerAttr(-1),
          b.getF32FloatAttr(1),
          b.getStringAttr(""),
          b.getStrArrayAttr({"a"}),
          b.getArrayAttr({}),
          b.getDenseI64ArrayAttr({-1, 5}),
          b.getDenseI32ArrayAttr({1, -1}),
          b.getDenseI32ArrayAttr({}),
          b.getDictionaryAttr({}),
          TypeAttr::get(f32),
          FlatSymbolRefAttr::get(&context, "a"),
          DenseElementsAttr::get(RankedTensorType::get({1}, f32), 1.0f)});
}

OwningOpRef<ModuleOp> OpExamplesTest::parse(StringRef text) {
  return parseSourceString<ModuleOp>(text, &context);
}

void OpExamplesTest::readExamples(const std::string &path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  ASSERT_TRUE(bool(file)) << path;
  SmallVector<StringRef> chunks;
  (*file)->getBuffer().split(chunks, "// -----");
  for (StringRef chunk : chunks)
    if (OwningOpRef<ModuleOp> module = parse(chunk))
      examples.push_back(std::move(module));
    else
      ADD_FAILURE() << path << " does not parse";
}

bool OpExamplesTest::isOwn(Operation *op) {
  return llvm::is_contained({"gdn", "gdn_tile", "gdn_gpu"},
                            op->getName().getDialectNamespace());
}

Value OpExamplesTest::makeValue(OpBuilder &b, Type type) {
  OperationState state(b.getUnknownLoc(), "other.value");
  state.addTypes(type);
  return b.create(state)->getResult(0);
}

static std::string print(Operation *op, bool isGeneric) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream, OpPrintingFlags().printGenericOpForm(isGeneric));
  return text;
}

bool OpExamplesTest::check(ModuleOp module) {
  // Alone, an op is verified whatever it is in and has its operands from.
  module.walk([&](Operation *op) {
    if (isOwn(op))
      (void)op->getRegisteredInfo()->verifyInvariants(op);
  });
  const unsigned before = numErrors;
  const bool isRight = succeeded(verify(module));
  std::string generic = print(module, /*isGeneric=*/true);
  EXPECT_EQ(isRight, numErrors == before) << generic;
  std::string custom = print(module, /*isGeneric=*/false);
  OwningOpRef<ModuleOp> fromGeneric = parse(generic);
  if (!isRight)
    return false;
  EXPECT_TRUE(bool(fromGeneric)) << generic;
  OwningOpRef<ModuleOp> fromCustom = parse(custom);
  if (!fromCustom)
    ADD_FAILURE() << "is not read as it is printed:\n" << custom;
  else
    EXPECT_EQ(print(*fromCustom, /*isGeneric=*/true), generic);
  SmallVector<Operation *> all;
  module.walk([&](Operation *op) { all.push_back(op); });
  for (Operation *op : all) {
    SmallVector<OpFoldResult> folded;
    (void)op->fold(folded);
  }
  EXPECT_TRUE(succeeded(verify(module))) << generic;
  PassManager passes(&context);
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  EXPECT_TRUE(succeeded(passes.run(module))) << generic;
  return true;
}
