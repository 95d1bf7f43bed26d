// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States in planes: integers of 8 bits, or of 8 and 8 more, times a scale for
// each row. docs/spec/slots.md has the format.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_STATEPLANES_H
#define GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_STATEPLANES_H

#include "mlir/IR/Builders.h"

namespace gdn {

/// Memory of the states of all slots.
struct StateMemory {
  mlir::Value states;      // numbers, or the upper plane
  mlir::Value scales, low; // null without planes, or without a lower one
};

/// Loads the state at `at` (slot, head, row, column), in f32 if it is in
/// planes; `stored` is its type in memory. Rows from number `rows` on are zero,
/// none where that is null; of planes their bytes are read nevertheless.
mlir::Value loadState(mlir::OpBuilder &b, mlir::Location loc,
                      const StateMemory &memory, mlir::VectorType stored,
                      mlir::ValueRange at, mlir::Value rows);

/// The tiles that a state has in memory, each with its memory.
struct StoredState {
  mlir::Value states, scales, low;
};

/// What the f32 tile `state` is in memory of elements `element`, rounded.
StoredState roundState(mlir::OpBuilder &b, mlir::Location loc,
                       const StateMemory &memory, mlir::Value state,
                       mlir::Type element);

/// Stores what `roundState` gave.
void storeState(mlir::OpBuilder &b, mlir::Location loc,
                const StateMemory &memory, const StoredState &state,
                mlir::ValueRange at);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_STATEPLANES_H
