// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sequences cut into segments that blocks work on at the same time: the stages
// of an entry's variant "segments".
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_STAGES_SPLITSEQUENCES_H
#define GDN_LIB_CONVERSION_GDNTOTILE_STAGES_SPLITSEQUENCES_H

#include "Recurrence/RecurrentKernel.h"

namespace gdn {

/// Creates the stage functions of `kernel` before `entry`, which has a program
/// already, and adds their number to `numStages`. Creates none for a kernel
/// that has no segments: without sequence bounds or without the recurrence,
/// with checkpoints, with a block per value head, or with windows of the
/// convolution that are longer than a chunk.
mlir::LogicalResult emitSegmentedKernel(mlir::func::FuncOp entry,
                                        KernelOp kernel,
                                        const Algorithm &algorithm,
                                        int64_t &numStages);

/// Creates the stage function of the variant `segment-maps` in the same way:
/// what each sequence does to the state, to the workspace. Of the same kernels.
mlir::LogicalResult emitSequenceMaps(mlir::func::FuncOp entry, KernelOp kernel,
                                     const Algorithm &algorithm,
                                     int64_t &numStages);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_STAGES_SPLITSEQUENCES_H
