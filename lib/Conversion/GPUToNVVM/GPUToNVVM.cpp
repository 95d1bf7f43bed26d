// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// convert-gdn-gpu-to-nvvm: one walk over a program that writes its kernel. A
// fragment becomes the vector of the elements that a thread holds, a shared
// tile a pointer, gdn_gpu.warps a branch. See Passes.td.
#include "Kernel/CheckKernel.h"
#include "KernelLowering.h"

#include "gdn/Conversion/ExpandedViews.h"
#include "gdn/Conversion/Passes.h"
#include "gdn/Dialect/GPU/Transforms/CheckGPUProgram.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace gdn {
#define GEN_PASS_DEF_CONVERTGPUTONVVM
#include "gdn/Conversion/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {
struct ConvertGPUToNVVM final
    : gdn::impl::ConvertGPUToNVVMBase<ConvertGPUToNVVM> {
  using ConvertGPUToNVVMBase::ConvertGPUToNVVMBase;

  void runOnOperation() override {
    SmallVector<func::FuncOp> programs;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (gdn::gpu::KernelFields(function) && !function.isExternal())
        programs.push_back(function);
    for (func::FuncOp program : programs)
      if (failed(checkGPUProgram(program)) ||
          failed(checkKernel(program, bulkCopies)))
        return signalPassFailure();
    for (func::FuncOp program : programs) {
      lowerExpandedViews(program);
      KernelLowering(program, dependentLaunch, everyThreadArrives).run();
      ++numKernels;
    }
  }
};

} // namespace
