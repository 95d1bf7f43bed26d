// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-drop-unscheduled: what a GPU has no schedule for. See Passes.td.
#include "gdn/Schedule/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace gdn {
#define GEN_PASS_DEF_DROPUNSCHEDULED
#include "gdn/Schedule/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

/// The variants that `func` is a stage of.
static SmallVector<Attribute> getVariants(func::FuncOp func) {
  Attribute name = func->getAttr("gdn_tile.variant");
  if (auto names = dyn_cast_or_null<ArrayAttr>(name))
    return SmallVector<Attribute>(names.getValue());
  if (!name)
    return {};
  return {name};
}

namespace {
struct DropUnscheduled final : gdn::impl::DropUnscheduledBase<DropUnscheduled> {
  void runOnOperation() override {
    auto isScheduled = [](func::FuncOp func) {
      return func->hasAttr("gdn_gpu.threads");
    };
    // The variants that a function is a stage of; one stage is nothing.
    DenseSet<std::pair<Attribute, Attribute>> incomplete;
    SmallVector<func::FuncOp> programs;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!func->hasAttr("gdn_tile.grid"))
        continue;
      programs.push_back(func);
      if (!isScheduled(func))
        for (Attribute name : getVariants(func))
          incomplete.insert({func->getAttr("gdn_tile.stage_of"), name});
    }
    for (func::FuncOp func : programs) {
      auto owner = func->getAttrOfType<StringAttr>("gdn_tile.stage_of");
      SmallVector<Attribute> complete = getVariants(func);
      llvm::erase_if(complete, [&](Attribute name) {
        return incomplete.contains({owner, name});
      });
      if (isScheduled(func) && (!owner || !complete.empty())) {
        if (isa_and_nonnull<ArrayAttr>(func->getAttr("gdn_tile.variant")))
          func->setAttr("gdn_tile.variant",
                        ArrayAttr::get(&getContext(), complete));
        continue;
      }
      if (!owner)
        continue;
      func.erase();
      ++numDropped;
    }
    for (auto func :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (!func->hasAttr("gdn_tile.grid") || isScheduled(func))
        continue;
      func.erase();
      ++numDropped;
    }
  }
};
} // namespace
