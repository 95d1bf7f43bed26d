// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM IR, its optimisation and the object file. The code is freestanding: no
// pass may invent a call of a C library, because an image has none. Products
// and sums stay separate unless the IR says fma, so that results do not depend
// on the optimiser.
#include "gdn/Target/CpuCodegen.h"

#include "gdn/Dialect/Tile/IR/StageFields.h"

#include "BFloatStorage.h"
#include "CodegenKey.h"
#include "SharedObject.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LowerMemIntrinsics.h"

using namespace mlir;
using namespace gdn;

/// Copies and fills up to this size become instructions; larger ones would
/// become calls of memcpy and memset.
static constexpr uint64_t maxInlineBytes = 64;

CpuCodegen::CpuCodegen(ModuleOp module, const TargetModel &target,
                       std::unique_ptr<llvm::LLVMContext> context)
    : module(module), target(target), context(std::move(context)) {}
CpuCodegen::CpuCodegen(CpuCodegen &&) = default;
CpuCodegen::~CpuCodegen() = default;

LogicalResult CpuCodegen::translate() {
  // A registry of its own: the translation must not depend on what the caller
  // has registered.
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  module.getContext()->appendDialectRegistry(registry);
  ir = translateModuleToLLVMIR(module, *context, "gdn");
  return success(ir != nullptr);
}

LogicalResult CpuCodegen::createMachine() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();

  llvm::Triple triple(target.getLlvmTriple());
  std::string error;
  const llvm::Target *llvmTarget =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!llvmTarget)
    return module.emitError("no code generator for ")
           << triple.str() << ": " << error;
  llvm::TargetOptions options;
  // Standard: fuse where the IR says fmuladd, nowhere else.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  options.FunctionSections = true;
  machine.reset(llvmTarget->createTargetMachine(
      triple, target.getLlvmCpu(), /*Features=*/"", options, llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  ir->setTargetTriple(triple);
  ir->setDataLayout(machine->createDataLayout());
  ir->setPICLevel(llvm::PICLevel::BigPIC);
  return success();
}

void CpuCodegen::prepareFunctions() {
  llvm::StringMap<bool> exported;
  for (auto func : module.getOps<LLVM::LLVMFuncOp>())
    exported[func.getName()] = bool(tile::StageFields(func).getGrid());
  for (llvm::Function &function : *ir) {
    if (function.isDeclaration())
      continue;
    if (!exported.lookup(function.getName()))
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.addFnAttr("no-builtins");
    function.addFnAttr("target-cpu", target.getLlvmCpu());
    function.addFnAttr("tune-cpu", target.getLlvmTuneCpu());
    function.addFnAttr("prefer-vector-width",
                       std::to_string(target.getVectorBits()));
  }
}

/// A description of the C library in which there is nothing.
static llvm::TargetLibraryInfoImpl emptyLibrary(const llvm::Triple &triple) {
  llvm::TargetLibraryInfoImpl library(triple);
  library.disableAllFunctions();
  return library;
}

/// Turns copies and fills that would become calls into loops.
static void expandMemoryIntrinsics(llvm::Module &ir,
                                   llvm::TargetMachine &machine) {
  for (llvm::Function &function : ir) {
    if (function.isDeclaration())
      continue;
    llvm::TargetTransformInfo info = machine.getTargetTransformInfo(function);
    llvm::SmallVector<llvm::MemIntrinsic *> large;
    for (llvm::BasicBlock &block : function)
      for (llvm::Instruction &instruction : block)
        if (auto *op = llvm::dyn_cast<llvm::MemIntrinsic>(&instruction)) {
          auto *length = llvm::dyn_cast<llvm::ConstantInt>(op->getLength());
          if (!length || length->getZExtValue() > maxInlineBytes)
            large.push_back(op);
        }
    for (llvm::MemIntrinsic *op : large) {
      if (auto *copy = llvm::dyn_cast<llvm::MemCpyInst>(op))
        llvm::expandMemCpyAsLoop(copy, info);
      else if (auto *move = llvm::dyn_cast<llvm::MemMoveInst>(op))
        llvm::expandMemMoveAsLoop(move, info);
      else if (auto *set = llvm::dyn_cast<llvm::MemSetInst>(op))
        llvm::expandMemSetAsLoop(set);
      op->eraseFromParent();
    }
  }
}

void CpuCodegen::optimise() {
  if (std::exchange(isOptimised, true))
    return;
  llvm::PipelineTuningOptions tuning;
  // The vectors are in the IR already, and loops are as long as they should be:
  // what these passes add is code that is fetched once and compile time.
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  tuning.LoopUnrolling = false;
  tuning.LoopInterleaving = false;
  // Loads that follow a store of the iteration before: looked for in every
  // loop, by proofs that take a tenth of the whole time, and there are none.
  llvm::PassInstrumentationCallbacks callbacks;
  callbacks.registerShouldRunOptionalPassCallback(
      [](llvm::StringRef pass, const llvm::Any &) {
        return pass != "LoopLoadEliminationPass";
      });
  llvm::PassBuilder passes(machine.get(), tuning, std::nullopt, &callbacks);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  llvm::TargetLibraryInfoImpl library =
      emptyLibrary(machine->getTargetTriple());
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(calls);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, calls, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(*ir, modules);
  expandMemoryIntrinsics(*ir, *machine);
  storeBFloatAsInteger(*ir);
}

FailureOr<CpuCodegen> CpuCodegen::create(ModuleOp module,
                                         const TargetModel &target) {
  CpuCodegen codegen(module, target, std::make_unique<llvm::LLVMContext>());
  if (failed(codegen.translate()) || failed(codegen.createMachine()))
    return failure();
  codegen.prepareFunctions();
  return codegen;
}

std::string CpuCodegen::getLlvmIr() {
  optimise();
  std::string text;
  llvm::raw_string_ostream stream(text);
  ir->print(stream, nullptr);
  return text;
}

FailureOr<Bytes> CpuCodegen::emit(bool assembly) {
  optimise();
  // The code generator changes the IR, so it works on a copy.
  std::unique_ptr<llvm::Module> copy = llvm::CloneModule(*ir);
  Bytes bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  passes.add(new llvm::TargetLibraryInfoWrapperPass(
      emptyLibrary(machine->getTargetTriple())));
  if (machine->addPassesToEmitFile(passes, stream, nullptr,
                                   assembly
                                       ? llvm::CodeGenFileType::AssemblyFile
                                       : llvm::CodeGenFileType::ObjectFile))
    return module.emitError(
        "the code generator cannot write this kind of file");
  passes.run(*copy);
  return bytes;
}

FailureOr<std::string> CpuCodegen::emitAssembly() {
  FailureOr<Bytes> bytes = emit(/*assembly=*/true);
  if (failed(bytes))
    return failure();
  return std::string(bytes->begin(), bytes->end());
}

FailureOr<Bytes> CpuCodegen::emitSharedObject(const ContentCache *cache) {
  std::optional<ContentKey> key;
  if (cache && !isOptimised) {
    key = keyOfCodegen("shared object", *ir, target);
    if (std::optional<std::string> bytes = cache->find(*key))
      return Bytes(bytes->begin(), bytes->end());
  }
  FailureOr<Bytes> object = emit(/*assembly=*/false);
  if (failed(object))
    return failure();
  llvm::Expected<Bytes> shared = linkSharedObject(*object);
  if (!shared)
    return module.emitError(llvm::toString(shared.takeError()));
  if (key)
    cache->store(*key, StringRef(shared->data(), shared->size()));
  return std::move(*shared);
}
