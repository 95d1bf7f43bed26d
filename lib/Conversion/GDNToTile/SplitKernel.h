// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form in two stages: the stages of an entry's variants "split".
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_SPLITKERNEL_H
#define GDN_LIB_CONVERSION_GDNTOTILE_SPLITKERNEL_H

#include "RecurrentKernel.h"

namespace gdn {

/// Ways to share the walk from state to state among more blocks than there are
/// rows and value heads.
struct SplitVariants {
  /// Blocks of a value head, each with some of its values: each number is a
  /// variant "split-parts-<n>" with the bits of "split".
  mlir::ArrayRef<int64_t> valueParts;
  /// Segments of a batch: each number is a variant "split-cuts-<n>".
  mlir::ArrayRef<int64_t> cuts;
  /// Likewise of batches whose blocks prepare their chunks themselves:
  /// "fused-cuts-<n>".
  mlir::ArrayRef<int64_t> fusedCuts;
  /// Chunks that a block of the variant "fused" prepares at once, at most: as
  /// many as have the state's number of rows. 0: no such variant.
  int64_t together;
  /// Tokens of a piece in the passes over memory of a variant for few tokens,
  /// "short", which has all else of the first that any launch can take. 0: no
  /// such variant.
  int64_t shortPieces;
};

/// Creates the stage functions of `kernel` before `entry`, which has a program
/// already, and adds their number to `numStages`. Variants that leave fewer
/// multiprocessors idle come first, and have conditions. Creates none for a
/// kernel that is not split: with windows of the convolution longer than a
/// group of tokens, without row bounds, without the recurrence, with a decay
/// per channel, with keys made of f32 inputs, with states after tokens, with
/// results that are not made of the rule's output.
mlir::LogicalResult emitSplitKernel(mlir::func::FuncOp entry, KernelOp kernel,
                                    const Algorithm &algorithm,
                                    const SplitVariants &variants,
                                    int64_t &numStages);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_SPLITKERNEL_H
