// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers that one warp of a block finds in memory for all of them: where a
// sequence begins and ends, and its slot.
#ifndef GDN_LIB_SCHEDULE_TOKENS_BLOCKSCALARS_H
#define GDN_LIB_SCHEDULE_TOKENS_BLOCKSCALARS_H

#include "Kernel/KernelFunction.h"

namespace gdn {

class BlockScalars {
public:
  /// Of the ops of `block`, those that load numbers and those that depend on
  /// them, as far as all that they make are numbers; ops of which `isOther`
  /// holds are none.
  BlockScalars(mlir::Block &block,
               llvm::function_ref<bool(mlir::Operation &)> isOther);

  bool contains(mlir::Operation &op) const { return ops.contains(&op); }
  /// Whether it uses what they make.
  bool isUsedBy(mlir::Operation &op) const;
  /// The first warp runs the ops; all have the results that others use, which
  /// `mapping` then knows. They lie in tiles of `kernel`.
  void emit(mlir::OpBuilder &b, mlir::func::FuncOp kernel,
            mlir::IRMapping &mapping) const;

private:
  llvm::SetVector<mlir::Operation *> ops;
  llvm::SmallVector<mlir::Value> results; // used elsewhere
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_TOKENS_BLOCKSCALARS_H
