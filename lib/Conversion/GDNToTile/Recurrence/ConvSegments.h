// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A ragged convolution without a rule, whose sequences are cut into segments.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_CONVSEGMENTS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_CONVSEGMENTS_H

#include "Recurrence/RecurrentKernel.h"

namespace gdn {

/// Whether `parts` is a kernel that emitConvSegments takes: convolutions of a
/// ragged batch, without a rule, and without states inside of sequences. A
/// window has no more tokens than a block works on at once.
bool isConvOfSegments(const KernelOperands &parts, const Algorithm &algorithm);

/// Fills `views.function` with the program of such a kernel.
mlir::LogicalResult emitConvSegments(EntryViews &views,
                                     const KernelOperands &parts,
                                     const Algorithm &algorithm);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_CONVSEGMENTS_H
