// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The passes from GPU programs (gdn_gpu) to kernels in the LLVM dialect.
#ifndef GDN_PIPELINES_GPUTOLLVM_H
#define GDN_PIPELINES_GPUTOLLVM_H

#include "mlir/Pass/PassManager.h"

namespace gdn {

struct ConvertGPUToNVVMOptions;
struct ExpandGPUMathOptions;

/// Adds the passes that turn a module of gdn_gpu programs into one of kernels,
/// `llvm.func`s of llvm and nvvm ops alone. `kernels` says what the target has,
/// and `math` what was measured on it.
void buildGPUToLlvmPipeline(mlir::OpPassManager &passes,
                            const ConvertGPUToNVVMOptions &kernels,
                            const ExpandGPUMathOptions &math);

/// Makes the passes known to the opt tools as `gdn-gpu-to-llvm`.
void registerGPUToLlvmPipeline();

} // namespace gdn

#endif // GDN_PIPELINES_GPUTOLLVM_H
