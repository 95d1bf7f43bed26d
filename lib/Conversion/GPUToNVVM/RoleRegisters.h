// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registers for what single roles hold between two gdn_gpu.warps.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_ROLEREGISTERS_H
#define GDN_LIB_CONVERSION_GPUTONVVM_ROLEREGISTERS_H

#include "gdn/Dialect/GPU/IR/GPU.h"

#include <optional>

namespace gdn {

/// The results of gdn_gpu.warps as 32-bit words in slots. All threads of a
/// block have the same registers, so a value of warp 0 and one of warp 1 that
/// live at the same time would take two, each empty in the other warp. Roles of
/// different warps share slots instead: where one role begins, the others hand
/// on what they have.
class RoleRegisters {
public:
  /// True if a value of that type goes by words: f32, and pairs of 16 bits.
  static bool canHold(mlir::Type local);

  /// The words as they are before `role`, for the threads that skip it, for
  /// results of the given types; reserves their slots.
  llvm::SmallVector<mlir::Value> reserve(mlir::OpBuilder &b, mlir::Location loc,
                                         gpu::WarpsOp role,
                                         llvm::ArrayRef<mlir::Type> locals);
  /// The words of `local`.
  static llvm::SmallVector<mlir::Value>
  toWords(mlir::OpBuilder &b, mlir::Location loc, mlir::Value local);
  /// `words`, as many as `reserve` gave, are what the slots hold from here on;
  /// `results` are the results of the role that go by words.
  void fill(gpu::WarpsOp role, mlir::ValueRange words,
            llvm::ArrayRef<std::pair<mlir::Value, mlir::Type>> results);
  /// The result of a role, where a thread of it uses it; null for other values.
  mlir::Value get(mlir::OpBuilder &b, mlir::Location loc, mlir::Value result);

private:
  struct Slot {
    mlir::Value word;
    llvm::SmallVector<gpu::WarpsOp, 2> holders;
  };
  struct Held {
    mlir::Block *block;
    llvm::SmallVector<unsigned> slots;
    mlir::Type local;
  };
  /// Slots by the block that the roles stand in: its words reach to its end.
  llvm::DenseMap<mlir::Block *, llvm::SmallVector<Slot, 0>> slots;
  llvm::SmallVector<unsigned> reserved;
  llvm::DenseMap<mlir::Value, Held> held;
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_ROLEREGISTERS_H
