// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The types that operands of the chunk form's products are rounded to. Reasons
// and measured errors: docs/design/20261121-chunk-form.md.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_OPERANDTYPES_H
#define GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_OPERANDTYPES_H

#include "Program/KernelOperands.h"

#include "gdn/Conversion/Precision.h"

namespace gdn {

struct ChunkTypes {
  /// Of K, Q, the state and the decayed writes: what keys are multiplied with.
  mlir::FloatType key;
  /// Of the inverse, the decayed scores, and the writes among the tokens of a
  /// chunk.
  mlir::FloatType inner;
  /// A power of two. Values, and with them the state and all writes, are kept
  /// times this while the chunks of a sequence pass, so that they fit an f16.
  double valueScale = 1;
  /// Of how many parts each operand is the sum, but queries and values, and
  /// those: what is left behind the rounding of the first is the second.
  int64_t parts = 1, queryParts = 1;

  bool isExact() const { return key.isF32(); }
  /// For the image: the precision that these types are, as it is asked for.
  llvm::StringRef precision() const {
    return isExact()     ? "f32"
           : parts > 1   ? "parts"
           : key.isF16() ? "mixed"
                         : "mixed-io";
  }

  /// The types for the rule of `parts`. A kernel whose keys are made of f32
  /// inputs keeps f32 operands in every precision: 16 bits would lose what its
  /// caller pays for. So does a rule without a delta term, for now, one with a
  /// decay for each of channels that are no whole blocks, and one that may
  /// write with more than 1: the state turns in the plane of keys that repeat,
  /// and a key that is rounded turns it by another angle each time.
  static ChunkTypes choose(const KernelOperands &parts, Precision precision);
  /// The types in stages, where no product takes f32: operands in two parts for
  /// a rule that keeps f32, unless it has a decay per channel or no delta term.
  static ChunkTypes chooseStaged(const KernelOperands &parts,
                                 Precision precision);
};

/// True if a value of a kernel is loaded, not computed.
bool isInMemory(mlir::Value value);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_OPERANDTYPES_H
