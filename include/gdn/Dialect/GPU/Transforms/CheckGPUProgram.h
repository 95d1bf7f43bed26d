// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What holds of a whole GPU program and no verifier of one op can see.
#ifndef GDN_DIALECT_GPU_TRANSFORMS_CHECKGPUPROGRAM_H
#define GDN_DIALECT_GPU_TRANSFORMS_CHECKGPUPROGRAM_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace gdn {

/// Checks the function's layouts outside `gdn_gpu.warps`, the order of its
/// accesses to shared tiles, and its channels and units; emits an error on the
/// first op that breaks a rule.
mlir::LogicalResult checkGPUProgram(mlir::FunctionOpInterface function);

} // namespace gdn

#endif // GDN_DIALECT_GPU_TRANSFORMS_CHECKGPUPROGRAM_H
