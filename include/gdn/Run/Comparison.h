// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How far a run is from what it should be, and how far it may be.
#ifndef GDN_RUN_COMPARISON_H
#define GDN_RUN_COMPARISON_H

#include "gdn/Run/ReferenceEntry.h"

namespace gdn::run {

/// One tensor of a run beside what it should be.
struct Comparison {
  std::string tensor;
  double relativeRMSE = 0;
  double maxAbs = 0;
  /// The largest relative RMSE allowed; 0 means that every bit has to agree.
  double limit = 0;
  bool ok = false;
};

/// The limit for a parameter of an entry. The convolution's state is a copy of
/// inputs, so that every bit has to agree. The rest is computed in f32 and
/// rounded once to the parameter's type; the norm may add to the core
/// output's error. Where the entry's chunk form rounds operands, the bounds are
/// those of its precision, and where it goes on from rounded states, those of
/// two roundings.
double limitOf(const Parameter &parameter);

/// Compares the values of `parameter`, or of a part of it, with `want`, which
/// is not rounded. No result can be closer to it than `want` rounded to the
/// parameter's type: where that alone passes the limit, as it may with few
/// values, it is the limit, with a twentieth to spare.
Comparison compareValues(const Parameter &parameter, llvm::ArrayRef<double> got,
                         llvm::ArrayRef<double> want);

/// Compares every parameter that `kernel` writes with the reference. `before`
/// holds the pools as they were: of a pool only those slots count that the
/// reference has changed, and all others have to have kept their bytes.
std::vector<Comparison> compareRun(const Kernel &kernel, const Arrays &got,
                                   const Arrays &before, const Outcome &want);

} // namespace gdn::run

#endif // GDN_RUN_COMPARISON_H
