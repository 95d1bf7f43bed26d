// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The norm behind the rule as a stage of its own: it needs whole rows of the
// output, which a block of a V-split has not, and registers that recurrences
// without roles have a better use for. With roles, two blocks may add up what
// they know of rows, and the norm takes outputs where they are made.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_NORMOPERANDS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_NORMOPERANDS_H

#include "Program/KernelOperands.h"

namespace gdn {

struct NormOperands {
  GatedRMSNormOp norm;
  /// The entry's result in which the norm finds its input, in that result's
  /// type: the input itself, or else what the norm makes of it, in place.
  unsigned inputResult;
  /// The values of the kernel that are computed from the norm.
  llvm::DenseSet<mlir::Value> behind;

  /// The stage of a kernel whose rule has one norm behind it, if the results
  /// have a place for its input.
  static std::optional<NormOperands> find(const KernelOperands &parts);
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_NORMOPERANDS_H
