// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile program of a gdn.kernel that copies or zeroes slots.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_SLOTMOVES_H
#define GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_SLOTMOVES_H

#include "Program/EntryViews.h"

namespace gdn {

/// True if the kernel copies or zeroes slots.
bool hasSlotMoves(KernelOp kernel);

/// Fills `views.function` with the program of such a kernel, a unit of which
/// moves up to `pieceBytes` bytes of a state, at least a row. Fails with an
/// error on the op that has no tile program.
mlir::LogicalResult emitSlotMoves(EntryViews &views, KernelOp kernel,
                                  int64_t pieceBytes);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_SLOTMOVES_H
