// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A ragged convolution without a rule, whose sequences are cut into segments:
// the variant "segments" of its entry, on GPUs.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_CONVSEGMENTS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_CONVSEGMENTS_H

#include "Recurrence/RecurrentKernel.h"

namespace gdn {

/// Creates the program of that variant before `entry`, which has a program
/// already, and adds 1 to `numStages`. Creates none if `algorithm` asks for no
/// segments, and none for a kernel that has none: with a rule, without sequence
/// bounds, with states inside of sequences, with windows longer than what a
/// block works on at once, or for CPUs.
mlir::LogicalResult emitConvSegments(mlir::func::FuncOp entry, KernelOp kernel,
                                     const Algorithm &algorithm,
                                     int64_t &numStages);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_CONVSEGMENTS_H
