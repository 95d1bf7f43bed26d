// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slot ids in a tile program: where they come from, and which are skipped.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_SLOTS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_SLOTS_H

#include "Program/EntryViews.h"

namespace gdn {

/// Element `at` of an integer tensor, an argument of the entry, as an index.
mlir::Value emitElement(mlir::OpBuilder &b, mlir::Location loc,
                        const EntryViews &views, mlir::Value tensor,
                        mlir::ValueRange at);

/// Element `sequence` of `slots`, an argument of the entry or the result of
/// gdn.accepted_slots or gdn.counted_slots of some, as an index.
mlir::Value emitSlot(mlir::OpBuilder &b, mlir::Location loc,
                     const EntryViews &views, mlir::Value slots,
                     mlir::Value sequence);

/// The number of elements of such `slots`.
mlir::Value emitSequenceCount(mlir::OpBuilder &b, mlir::Location loc,
                              const EntryViews &views, mlir::Value slots);

/// The slot contract: `id` is not negative, not the null slot and below P;
/// `size` is P where it is at hand, and else read from the pool's view.
mlir::Value emitIsLive(mlir::OpBuilder &b, mlir::Location loc,
                       const EntryViews &views, mlir::Value id,
                       mlir::Value pool, mlir::Value size = {});

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_SLOTS_H
