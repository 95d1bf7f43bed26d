// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks of gdn_gpu programs on channels and units.
#ifndef GDN_LIB_DIALECT_GPU_TRANSFORMS_CHECKCHANNELS_H
#define GDN_LIB_DIALECT_GPU_TRANSFORMS_CHECKCHANNELS_H

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace gdn {

/// The part of `checkGPUProgram` on channels and units.
mlir::LogicalResult checkChannels(mlir::FunctionOpInterface function);

} // namespace gdn

#endif // GDN_LIB_DIALECT_GPU_TRANSFORMS_CHECKCHANNELS_H
