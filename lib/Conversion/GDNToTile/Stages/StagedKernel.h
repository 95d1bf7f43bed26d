// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form in stages: the stages of an entry's variants "staged".
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_STAGES_STAGEDKERNEL_H
#define GDN_LIB_CONVERSION_GDNTOTILE_STAGES_STAGEDKERNEL_H

#include "Program/SequenceProgram.h"
#include "VariantSpec.h"

namespace gdn {

/// Creates the stage functions of `kernel` before `entry`, which has a program
/// already, and adds their number to `numStages`: those of the variants that
/// the policy wants and that can be had, in that order. Creates none for a
/// kernel that has none: with windows of the convolution longer than a group of
/// tokens, without sequence bounds, without the recurrence, with a decay per
/// channel, with keys made of f32 inputs, with states after tokens, with states
/// in planes that are wanted inside of sequences, with results that are not
/// made of the rule's output.
mlir::LogicalResult emitStagedKernel(mlir::func::FuncOp entry, KernelOp kernel,
                                     const Algorithm &algorithm,
                                     const StagedPolicy &policy,
                                     int64_t &numStages);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_STAGES_STAGEDKERNEL_H
