// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-use-warpgroups: which products four warps make together. See
// Passes.td.
#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/GPU/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gdn {
#define GEN_PASS_DEF_USEWARPGROUPS
#include "gdn/Dialect/GPU/Transforms/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {
struct UseWarpgroups final : gdn::impl::UseWarpgroupsBase<UseWarpgroups> {
  void runOnOperation() override {
    getOperation().walk([&](func::FuncOp func) {
      gdn::gpu::KernelFields kernel(func);
      func.walk([&](Operation *op) {
        if (isa<gdn::gpu::DecayOperandsOp, gdn::gpu::DecayWithinOp>(op))
          kernel.setStoresMatrices();
      });
      if (kernel.getSingleWarps())
        return kernel.setSingleWarps(false);
      bool any = false;
      func.walk([&](gdn::gpu::MatmulOp matmul) {
        gdn::gpu::FragmentType result = matmul.getResult().getType();
        if (!gdn::gpu::MatmulOp::fitsWarpgroups(result.getRows(),
                                                matmul.getRhs().getType(),
                                                result.getDimSize(1)))
          return;
        matmul.setWarpgroup(true);
        any = true;
        ++numProducts;
      });
      if (any)
        kernel.setWarpgroups();
    });
  }
};
} // namespace
