// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See SharedCode.h.
#include "gdn/Target/SharedCode.h"

#include "gdn/Target/PtxText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace gdn;

static constexpr StringLiteral codeName = "gdn_gpu.code";

llvm::StringRef gdn::getCodeOf(LLVM::LLVMFuncOp kernel) {
  auto code = kernel->getAttrOfType<FlatSymbolRefAttr>(codeName);
  return code ? code.getValue() : kernel.getName();
}

std::string gdn::shareCode(ModuleOp module,
                           const llvm::StringMap<std::string> &digests,
                           llvm::StringRef ptx) {
  if (ptx.contains("\t.loc\t"))
    return ptx.str();
  // What ptxas may do to a kernel is not in its digest.
  using Code = std::tuple<StringRef, Attribute, bool>;
  SmallVector<std::pair<Code, LLVM::LLVMFuncOp>> firsts;
  llvm::StringSet<> others;
  for (auto func : module.getOps<LLVM::LLVMFuncOp>()) {
    func->removeAttr(codeName);
    auto digest = digests.find(func.getName());
    if (digest == digests.end())
      continue;
    Code code(digest->second, func->getAttr("gdn_gpu.allow"),
              func->hasAttr("gdn_gpu.fewer_blocks"));
    auto *first = llvm::find_if(
        firsts, [&](const auto &known) { return known.first == code; });
    if (first == firsts.end()) {
      firsts.push_back({code, func});
      continue;
    }
    func->setAttr(codeName, FlatSymbolRefAttr::get(first->second));
    others.insert(func.getName());
  }
  if (others.empty())
    return ptx.str();
  return llvm::join(PtxLines(ptx).keep([&](llvm::StringRef kernel) {
    return !others.contains(kernel);
  }),
                    "\n");
}

void gdn::reportSharedCode(ModuleOp module, PtxasReport &report) {
  for (auto func : module.getOps<LLVM::LLVMFuncOp>()) {
    auto found = report.kernels.find(getCodeOf(func));
    if (getCodeOf(func) == func.getName() || found == report.kernels.end())
      continue;
    report.kernels[func.getName()] = KernelResources(found->second);
    for (size_t i = 0, end = report.warnings.size(); i < end; ++i)
      if (report.warnings[i].kernel == getCodeOf(func)) {
        PtxasWarning warning = report.warnings[i];
        warning.kernel = func.getName().str();
        report.warnings.push_back(std::move(warning));
      }
  }
}
