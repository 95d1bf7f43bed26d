// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See KernelModules.h.
#include "KernelModules.h"

#include "gdn/Target/KernelInfo.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace gdn;

/// Whether instructions say which lines of a source they are of.
static bool hasLines(LLVM::LLVMFuncOp func) {
  return func.getLoc()
             ->findInstanceOf<FusedLocWith<LLVM::DISubprogramAttr>>() !=
         nullptr;
}

SmallVector<OwningOpRef<ModuleOp>> gdn::makeKernelModules(ModuleOp module) {
  SmallVector<LLVM::LLVMFuncOp> kernels;
  for (auto func : module.getOps<LLVM::LLVMFuncOp>()) {
    if (func.isDeclaration())
      continue;
    if (!isKernel(func) || hasLines(func))
      return {};
    kernels.push_back(func);
  }

  DenseMap<Operation *, DenseSet<Operation *>> referred; // by kernel
  DenseSet<Operation *> memory;                          // of a kernel so far
  SymbolTable symbols(module);
  for (LLVM::LLVMFuncOp kernel : kernels) {
    auto uses = SymbolTable::getSymbolUses(&kernel.getBody());
    if (!uses)
      return {};
    for (const SymbolTable::SymbolUse &use : *uses) {
      Operation *op =
          symbols.lookup(use.getSymbolRef().getRootReference().getValue());
      if (!op || !referred[kernel].insert(op).second)
        continue;
      auto global = dyn_cast<LLVM::GlobalOp>(op);
      if (global &&
          (!global.getInitializerRegion().empty() || !memory.insert(op).second))
        return {};
    }
  }

  SmallVector<OwningOpRef<ModuleOp>> parts;
  for (LLVM::LLVMFuncOp kernel : kernels) {
    OwningOpRef<ModuleOp> part(ModuleOp::create(module.getLoc()));
    (*part)->setAttrs(module->getAttrDictionary());
    OpBuilder b = OpBuilder::atBlockEnd(part->getBody());
    for (Operation &op : module.getBody()->getOperations())
      if (&op == kernel || referred[kernel].contains(&op) ||
          !isa<LLVM::LLVMFuncOp, LLVM::GlobalOp>(op))
        b.clone(op);
    parts.push_back(std::move(part));
  }
  return parts;
}
