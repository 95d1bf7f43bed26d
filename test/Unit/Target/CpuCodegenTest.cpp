// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the llvm dialect to a shared object that needs nothing.
#include "CodegenTest.h"

#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace gdn;
using namespace mlir;

namespace {

/// Fills `count` bytes: a loop that an optimiser likes to call memset for.
constexpr llvm::StringLiteral fillBytes = R"(
  llvm.func @helper(%p: !llvm.ptr, %n: i64) {
    %zero = llvm.mlir.constant(0 : i8) : i8
    "llvm.intr.memset"(%p, %zero, %n) <{isVolatile = false}>
        : (!llvm.ptr, i8, i64) -> ()
    llvm.return
  }
  llvm.func @entry(%words: !llvm.ptr, %begin: i64, %end: i64, %s: !llvm.ptr)
      attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
    llvm.call @helper(%s, %end) : (!llvm.ptr, i64) -> ()
    llvm.return
  }
)";

/// `a * b + c`, which nobody asked to fuse.
constexpr llvm::StringLiteral multiplyAdd = R"(
  llvm.func @entry(%words: !llvm.ptr, %begin: i64, %end: i64, %s: !llvm.ptr)
      attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
    %a = llvm.load %words : !llvm.ptr -> vector<8xf32>
    %p = llvm.fmul %a, %a : vector<8xf32>
    %r = llvm.fadd %p, %a : vector<8xf32>
    llvm.store %r, %s : vector<8xf32>, !llvm.ptr
    llvm.return
  }
)";

/// The names that a shared object exports.
std::vector<std::string> exportedNames(const Bytes &bytes) {
  llvm::MemoryBufferRef buffer(llvm::StringRef(bytes.data(), bytes.size()),
                               "so");
  auto object =
      llvm::cantFail(llvm::object::ObjectFile::createELFObjectFile(buffer));
  std::vector<std::string> names;
  auto *elf = llvm::cast<llvm::object::ELFObjectFileBase>(object.get());
  for (const auto &symbol : elf->getDynamicSymbolIterators()) {
    uint32_t flags = llvm::cantFail(symbol.getFlags());
    EXPECT_FALSE(flags & llvm::object::SymbolRef::SF_Undefined)
        << llvm::cantFail(symbol.getName()).str();
    names.push_back(llvm::cantFail(symbol.getName()).str());
  }
  return names;
}

class CpuCodegenTest : public CodegenTest {};

TEST_F(CpuCodegenTest, ExportsEntriesAndNeedsNothing) {
  auto module = parse(fillBytes);
  FailureOr<CpuCodegen> codegen = CpuCodegen::create(*module, target);
  ASSERT_TRUE(succeeded(codegen));
  FailureOr<Bytes> bytes = codegen->emitSharedObject();
  ASSERT_TRUE(succeeded(bytes)) << said;
  EXPECT_THAT(exportedNames(*bytes), testing::ElementsAre("entry"));
}

TEST_F(CpuCodegenTest, TheSameInputGivesTheSameBytes) {
  auto module = parse(fillBytes);
  Bytes first = *CpuCodegen::create(*module, target)->emitSharedObject();
  Bytes second = *CpuCodegen::create(*module, target)->emitSharedObject();
  EXPECT_TRUE(first == second);
}

TEST_F(CpuCodegenTest, FusesOnlyWhatTheProgramFuses) {
  auto module = parse(multiplyAdd);
  FailureOr<CpuCodegen> codegen = CpuCodegen::create(*module, target);
  FailureOr<std::string> assembly = codegen->emitAssembly();
  ASSERT_TRUE(succeeded(assembly));
  EXPECT_THAT(*assembly, testing::HasSubstr("vmulps"));
  EXPECT_THAT(*assembly, testing::HasSubstr("vaddps"));
  EXPECT_THAT(*assembly, testing::Not(testing::HasSubstr("vfmadd")));
  EXPECT_THAT(codegen->getLlvmIr(), testing::HasSubstr("x86-64-v3"));
}

TEST_F(CpuCodegenTest, NamesTheLibraryFunctionsItWouldNeed) {
  auto module = parse(R"(
    llvm.func @expf(f32) -> f32
    llvm.func @entry(%words: !llvm.ptr, %begin: i64, %end: i64, %s: !llvm.ptr)
        attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
      %a = llvm.load %words : !llvm.ptr -> f32
      %b = llvm.call @expf(%a) : (f32) -> f32
      %c = llvm.intr.cos(%b) : (f32) -> f32
      llvm.store %c, %s : f32, !llvm.ptr
      llvm.return
    })");
  FailureOr<CpuCodegen> codegen = CpuCodegen::create(*module, target);
  ASSERT_TRUE(succeeded(codegen));
  EXPECT_TRUE(failed(codegen->emitSharedObject()));
  EXPECT_EQ(said, "the code calls 'cosf', 'expf', but an image has no library "
                  "to take it from\n");
}

TEST_F(CpuCodegenTest, CarriesBFloatsFromBlockToBlockWithoutACall) {
  auto module = parse(R"(
    llvm.func @entry(%words: !llvm.ptr, %begin: i64, %end: i64, %s: !llvm.ptr)
        attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
      %one = llvm.mlir.constant(1 : i64) : i64
      %init = llvm.load %words : !llvm.ptr -> bf16
      %lanes = llvm.load %words : !llvm.ptr -> vector<4xbf16>
      llvm.br ^loop(%begin, %init, %lanes : i64, bf16, vector<4xbf16>)
    ^loop(%i: i64, %x: bf16, %v: vector<4xbf16>):
      %more = llvm.icmp "slt" %i, %end : i64
      llvm.cond_br %more, ^body, ^done
    ^body:
      %from = llvm.getelementptr %words[%i] : (!llvm.ptr, i64) -> !llvm.ptr, bf16
      %y = llvm.load volatile %from : !llvm.ptr -> bf16
      %w = llvm.insertelement %y, %v[%i : i64] : vector<4xbf16>
      %next = llvm.add %i, %one : i64
      llvm.br ^loop(%next, %y, %w : i64, bf16, vector<4xbf16>)
    ^done:
      llvm.store %x, %s : bf16, !llvm.ptr
      llvm.store volatile %v, %s : vector<4xbf16>, !llvm.ptr
      llvm.return
    })");
  FailureOr<CpuCodegen> codegen = CpuCodegen::create(*module, target);
  ASSERT_TRUE(succeeded(codegen));
  EXPECT_THAT(codegen->getLlvmIr(),
              testing::Not(testing::HasSubstr("load bfloat")));
  EXPECT_TRUE(succeeded(codegen->emitSharedObject())) << said;
}

TEST_F(CpuCodegenTest, OtherDialectsDoNotTranslate) {
  auto module = parse("func.func @f() { return }");
  EXPECT_TRUE(failed(CpuCodegen::create(*module, target)));
  EXPECT_NE(said, "");
}

} // namespace
