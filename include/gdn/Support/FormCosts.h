// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What tokens and chunks cost on a CPU, from which convert-gdn-to-tile chooses
// between the two forms of the delta rule.
#ifndef GDN_SUPPORT_FORMCOSTS_H
#define GDN_SUPPORT_FORMCOSTS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace gdn {

/// Nanoseconds on one core; only their ratios matter.
struct FormCosts {
  /// A row of the state per token: by itself, for each vector of it, and for
  /// each vector for whose key and query there is no register.
  double row, rowVector, spilledVector;
  double registerVectors;
  /// How much longer a token takes right behind a chunk: products of the widest
  /// vectors lower the processor's frequency, and it takes a while to rise.
  double behindChunk;
  /// A chunk: its products, where blocks of 2 vectors of columns come out even;
  /// how much of that it takes with blocks of 3, and with columns left over;
  /// and each element of a C x C tile.
  double flop, blocksOf3, leftOver, scoreElement;
  /// Turning the state around and back, once per run of chunks.
  double stateElement;

  static constexpr unsigned count = 10;
  /// The numbers in the order of the members; `numbers` has `count`.
  static FormCosts of(llvm::ArrayRef<double> numbers) {
    return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4],
            numbers[5], numbers[6], numbers[7], numbers[8], numbers[9]};
  }
  llvm::SmallVector<double> numbers() const {
    return {row,  rowVector, spilledVector, registerVectors, behindChunk,
            flop, blocksOf3, leftOver,      scoreElement,    stateElement};
  }
};

} // namespace gdn

#endif // GDN_SUPPORT_FORMCOSTS_H
