// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-drop-unscheduled: what a GPU has no schedule for. See Passes.td.
#include "gdn/Schedule/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"

namespace gdn {
#define GEN_PASS_DEF_DROPUNSCHEDULED
#include "gdn/Schedule/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {
struct DropUnscheduled final : gdn::impl::DropUnscheduledBase<DropUnscheduled> {
  void runOnOperation() override {
    // Entries of which some variant has been scheduled.
    llvm::StringSet<> present;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (auto owner = func->getAttrOfType<StringAttr>("gdn_tile.stage_of");
          owner && func->hasAttr("gdn_gpu.threads"))
        present.insert(owner.getValue());
    for (auto func :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (!func->hasAttr("gdn_tile.grid") || func->hasAttr("gdn_gpu.threads"))
        continue;
      if (!present.contains(func.getName()))
        func.emitRemark() << "entry '" << func.getName()
                          << "' has no schedule for a GPU and is left out";
      func.erase();
      ++numDropped;
    }
  }
};
} // namespace
