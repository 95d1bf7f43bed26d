// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From a module of the llvm dialect to a shared object for a CPU: LLVM IR,
// LLVM's optimiser and code generator, and the linker, all in this process.
#ifndef GDN_TARGET_CPUCODEGEN_H
#define GDN_TARGET_CPUCODEGEN_H

#include "gdn/Support/ContentCache.h"
#include "gdn/Target/TargetModel.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

#include <memory>
#include <string>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace gdn {

/// Bytes of a file that may be large.
using Bytes = llvm::SmallVector<char, 0>;

/// One module on its way to machine code. Failures are reported as errors on
/// the module given to `create`, which has to outlive the object.
class CpuCodegen {
public:
  /// Translates `module` to LLVM IR for `target`. Functions with
  /// a grid are exported; all others become internal.
  static mlir::FailureOr<CpuCodegen> create(mlir::ModuleOp module,
                                            const TargetModel &target);
  CpuCodegen(CpuCodegen &&);
  ~CpuCodegen();

  /// The optimised LLVM IR as text.
  std::string getLlvmIr();

  /// The assembly as text.
  mlir::FailureOr<std::string> emitAssembly();

  /// A position-independent shared object without needed libraries. Fails if
  /// the code refers to any symbol that it does not define, and names it. With
  /// a cache, what was made of the same IR is taken from there.
  mlir::FailureOr<Bytes> emitSharedObject(const ContentCache *cache = nullptr);

private:
  CpuCodegen(mlir::ModuleOp module, const TargetModel &target,
             std::unique_ptr<llvm::LLVMContext> context);
  mlir::LogicalResult translate();
  mlir::LogicalResult createMachine();
  void prepareFunctions();
  /// Once, when it is needed.
  void optimise();
  mlir::FailureOr<Bytes> emit(bool assembly);

  mlir::ModuleOp module;
  TargetModel target;
  bool isOptimised = false;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> ir;
  std::unique_ptr<llvm::TargetMachine> machine;
};

} // namespace gdn

#endif // GDN_TARGET_CPUCODEGEN_H
