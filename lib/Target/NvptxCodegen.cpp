// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM IR and PTX of kernels. Products and sums stay separate unless the IR
// says fma, and loops stay as they are unless the IR says to unroll them, so
// that neither results nor registers depend on an optimiser's mood.
#include "gdn/Target/NvptxCodegen.h"

#include "CheckKernels.h"
#include "CodegenKey.h"
#include "KernelModules.h"

#include "gdn/Target/KernelInfo.h"
#include "gdn/Target/PtxText.h"

#include "mlir/IR/Threading.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Triple.h"

#include <mutex>

using namespace mlir;
using namespace gdn;

void gdn::registerKernelDialects(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

namespace {
/// One module on its way to PTX.
class Generator {
public:
  Generator(ModuleOp module, const TargetModel &target,
            const ContentCache *cache)
      : module(module), target(target), cache(cache) {}
  LogicalResult translate();
  LogicalResult createMachine();
  /// Runs the optimiser and, on request, the code generator.
  FailureOr<KernelText> generate(bool wantsPtx);

private:
  void prepareFunctions();
  void optimise();
  LogicalResult checkDefined();
  std::string emitPtx();

  ModuleOp module;
  const TargetModel &target;
  const ContentCache *cache; // or null
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> ir;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::string complaint; // the first error that LLVM reported
};
} // namespace

/// What a loop says of itself stays behind as a foreign attribute of its branch
/// when scf becomes branches; the translation asks for the branch's own.
static void annotateLoops(ModuleOp module) {
  module.walk([](Operation *op) {
    auto annotation =
        op->getAttrOfType<LLVM::LoopAnnotationAttr>("llvm.loop_annotation");
    if (auto branch = dyn_cast<LLVM::BrOp>(op); branch && annotation)
      branch.setLoopAnnotationAttr(annotation);
    if (auto branch = dyn_cast<LLVM::CondBrOp>(op); branch && annotation)
      branch.setLoopAnnotationAttr(annotation);
  });
}

LogicalResult Generator::translate() {
  annotateLoops(module);
  ir = translateModuleToLLVMIR(module, context, "gdn");
  return success(ir != nullptr);
}

LogicalResult Generator::createMachine() {
  llvm::Triple triple(target.getLlvmTriple());
  std::string error;
  const llvm::Target *llvmTarget =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!llvmTarget)
    return module.emitError("no code generator for ")
           << triple.str() << ": " << error;
  llvm::TargetOptions options;
  // Standard: fuse where the IR says fmuladd, nowhere else. Every product and
  // sum carries .rn then, which keeps ptxas from fusing them.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  machine.reset(llvmTarget->createTargetMachine(
      triple, target.getLlvmCpu(), target.getLlvmFeatures(), options,
      std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  ir->setTargetTriple(triple);
  ir->setDataLayout(machine->createDataLayout());
  return success();
}

void Generator::prepareFunctions() {
  llvm::StringMap<bool> kernels;
  for (auto func : module.getOps<LLVM::LLVMFuncOp>())
    kernels[func.getName()] = isKernel(func);
  for (llvm::Function &function : *ir) {
    if (function.isDeclaration())
      continue;
    if (!kernels.lookup(function.getName()))
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.addFnAttr("no-builtins");
    for (llvm::BasicBlock &block : function)
      for (llvm::Instruction &instruction : block)
        if (auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction))
          // Assembly may synchronise threads; it must not move into or out of
          // a branch. The translation of nvvm does not say so.
          if (call->isInlineAsm())
            call->addFnAttr(llvm::Attribute::Convergent);
  }
}

void Generator::optimise() {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  tuning.LoopUnrolling = false;
  tuning.LoopInterleaving = false;
  llvm::PassBuilder passes(machine.get(), tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(calls);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, calls, modules);
  passes.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(*ir, modules);
}

/// Fails if a kernel refers to what it does not define.
LogicalResult Generator::checkDefined() {
  SmallVector<std::string> undefined;
  auto note = [&](const llvm::GlobalValue &value) {
    undefined.push_back(("'" + value.getName() + "'").str());
  };
  for (const llvm::Function &function : *ir)
    if (function.isDeclaration() && !function.isIntrinsic() &&
        !function.use_empty())
      note(function);
  // Dynamic shared memory is external by nature.
  constexpr unsigned sharedSpace = 3;
  for (const llvm::GlobalVariable &global : ir->globals())
    if (global.isDeclaration() && global.getAddressSpace() != sharedSpace &&
        !global.use_empty())
      note(global);
  if (undefined.empty())
    return success();
  llvm::sort(undefined);
  return module.emitError("the kernels refer to ")
         << llvm::join(undefined, ", ")
         << ", but an image has no library to take it from";
}

std::string Generator::emitPtx() {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr,
                                   llvm::CodeGenFileType::AssemblyFile))
    llvm::reportFatalUsageError("the code generator cannot write PTX");
  passes.run(*ir);
  return text.str().str();
}

FailureOr<KernelText> Generator::generate(bool wantsPtx) {
  KernelText result;
  context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo *info, void *self) {
        if (info->getSeverity() != llvm::DS_Error)
          return;
        std::string &complaint = static_cast<Generator *>(self)->complaint;
        llvm::raw_string_ostream stream(complaint);
        llvm::DiagnosticPrinterRawOStream printer(stream);
        if (complaint.empty())
          info->print(printer);
      },
      this);
  prepareFunctions();
  std::optional<ContentKey> key;
  if (cache && wantsPtx) {
    key = keyOfCodegen("ptx", *ir, target);
    if (std::optional<std::string> ptx = cache->find(*key)) {
      result.ptx = std::move(*ptx);
      return result;
    }
  }
  optimise();
  if (failed(checkDefined()))
    return failure();
  if (wantsPtx)
    result.ptx = emitPtx();
  else
    llvm::raw_string_ostream(result.llvmIr) << *ir;
  if (!complaint.empty())
    return module.emitError("the code generator for ")
           << target.getName() << " refuses the kernels: " << complaint;
  if (key)
    cache->store(*key, result.ptx);
  return result;
}

namespace {
/// While it lives, a fatal error of LLVM ends `RunSafely` instead of the
/// process, and leaves its message.
class FatalErrors {
public:
  FatalErrors() {
    llvm::CrashRecoveryContext::Enable();
    llvm::install_fatal_error_handler(
        [](void *self, const char *reason, bool) {
          static_cast<FatalErrors *>(self)->note(reason);
          if (auto *recovery = llvm::CrashRecoveryContext::GetCurrent())
            recovery->HandleExit(1);
        },
        this);
  }
  ~FatalErrors() {
    llvm::remove_fatal_error_handler();
    llvm::CrashRecoveryContext::Disable();
  }
  /// The first line of the first one; empty if there was none.
  std::string getMessage() {
    std::lock_guard<std::mutex> guard(mutex);
    return StringRef(message).split('\n').first.str();
  }

private:
  void note(StringRef reason) {
    std::lock_guard<std::mutex> guard(mutex);
    if (message.empty())
      message = reason.str();
  }

  std::mutex mutex;
  std::string message;
};
} // namespace

/// The text of kernels that become code in one piece.
static FailureOr<KernelText>
generatePiece(ModuleOp module, const TargetModel &target, bool wantsPtx,
              const ContentCache *cache, FatalErrors &fatal) {
  // On a fatal error the generator's memory is in an unknown state: it is
  // given up, not freed.
  auto *generator = new Generator(module, target, cache);
  if (failed(generator->translate()) || failed(generator->createMachine())) {
    delete generator;
    return failure();
  }
  FailureOr<KernelText> result = failure();
  llvm::CrashRecoveryContext recovery;
  if (!recovery.RunSafely([&] { result = generator->generate(wantsPtx); })) {
    std::string message = fatal.getMessage();
    return module.emitError("the code generator for ")
           << target.getName() << (message.empty() ? " crashed" : " failed: ")
           << message;
  }
  delete generator;
  return result;
}

FailureOr<KernelText> gdn::generateKernels(ModuleOp module,
                                           const TargetModel &target,
                                           bool wantsPtx,
                                           const ContentCache *cache) {
  if (failed(checkKernels(module, target)))
    return failure();
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  DialectRegistry registry;
  registerKernelDialects(registry);
  MLIRContext *context = module.getContext();
  context->appendDialectRegistry(registry);

  FatalErrors fatal;
  SmallVector<OwningOpRef<ModuleOp>> parts;
  if (wantsPtx)
    parts = makeKernelModules(module);
  if (parts.size() < 2)
    return generatePiece(module, target, wantsPtx, cache, fatal);
  std::vector<std::string> texts(parts.size());
  auto generatePart = [&](size_t i) -> LogicalResult {
    FailureOr<KernelText> part =
        generatePiece(*parts[i], target, wantsPtx, cache, fatal);
    if (succeeded(part))
      texts[i] = std::move(part->ptx);
    return part;
  };
  if (failed(failableParallelForEachN(context, 0, parts.size(), generatePart)))
    return failure();
  KernelText result;
  result.ptx = joinPtx(texts);
  return result;
}
