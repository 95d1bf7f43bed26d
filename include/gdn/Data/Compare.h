// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How far a result is from what it should be.
#ifndef GDN_DATA_COMPARE_H
#define GDN_DATA_COMPARE_H

#include "gdn/Data/Array.h"

namespace gdn::data {

/// Differences between two lists of values of the same length.
struct Difference {
  /// sqrt(sum (got - want)^2 / sum want^2). Where all of `want` is zero, 0 if
  /// so is `got` and infinity otherwise.
  double relativeRMSE = 0;
  /// max |got - want|.
  double maxAbs = 0;
  /// Where `maxAbs` is found; -1 for empty lists.
  int64_t worst = -1;
  /// The first place where one value is NaN or infinite and the other is not
  /// the same (two NaNs are the same); -1 if there is none. Where there is one,
  /// both errors above are infinite.
  int64_t firstNonFinite = -1;
};

/// Lengths must be equal.
Difference compare(llvm::ArrayRef<double> got, llvm::ArrayRef<double> want);

/// Same type, shape and bytes.
bool bitEqual(const Array &a, const Array &b);

/// Same length and same bits, so that -0 differs from 0.
bool bitEqual(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b);

} // namespace gdn::data

#endif // GDN_DATA_COMPARE_H
