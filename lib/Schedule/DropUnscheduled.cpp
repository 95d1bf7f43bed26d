// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-drop-unscheduled: what a GPU has no schedule for. See Passes.td.
#include "gdn/Dialect/GPU/IR/KernelFields.h"
#include "gdn/Dialect/Tile/IR/StageFields.h"
#include "gdn/Schedule/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace gdn {
#define GEN_PASS_DEF_DROPUNSCHEDULED
#include "gdn/Schedule/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {
struct DropUnscheduled final : gdn::impl::DropUnscheduledBase<DropUnscheduled> {
  void runOnOperation() override {
    auto isScheduled = [](func::FuncOp func) {
      return bool(gpu::KernelFields(func));
    };
    // The variants that a function is a stage of; one stage is nothing.
    DenseSet<std::pair<Attribute, Attribute>> incomplete;
    SmallVector<func::FuncOp> programs;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!tile::StageFields(func).getGrid())
        continue;
      programs.push_back(func);
      if (!isScheduled(func))
        for (StringAttr name : tile::StageFields(func).getVariants())
          incomplete.insert({tile::StageFields(func).getStageOf(), name});
    }
    for (func::FuncOp func : programs) {
      tile::StageFields stage(func);
      StringAttr owner = stage.getStageOf();
      SmallVector<StringAttr> complete = stage.getVariants();
      const size_t numVariants = complete.size();
      llvm::erase_if(complete, [&](StringAttr name) {
        return incomplete.contains({owner, name});
      });
      if (isScheduled(func) && (!owner || !complete.empty())) {
        if (complete.size() < numVariants)
          stage.setVariants(complete);
        continue;
      }
      if (!owner)
        continue;
      func.erase();
      ++numDropped;
    }
    auto isForAll = [](tile::StageFields stage) {
      return [=](StringAttr name) { return !stage.getConditions(name); };
    };
    // Programs that take no call of every size, of owners that are dropped, and
    // those that take every one.
    llvm::MapVector<StringRef, SmallVector<func::FuncOp>> left;
    DenseSet<StringRef> served;
    for (auto func :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      tile::StageFields stage(func);
      if (!stage.getGrid())
        continue;
      StringAttr owner = stage.getStageOf();
      if (!isScheduled(func)) {
        func.erase();
        ++numDropped;
      } else if (!owner || llvm::any_of(stage.getVariants(), isForAll(stage))) {
        served.insert(owner ? owner.getValue() : func.getName());
      } else {
        left[owner.getValue()].push_back(func);
      }
    }
    for (auto &[owner, variants] : left) {
      if (served.contains(owner))
        continue;
      for (func::FuncOp func : variants)
        func.erase();
      numDropped += variants.size();
    }
  }
};
} // namespace
