// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Error measures. Values that are not finite must agree as they are: they
// would turn any sum into NaN, and a NaN passes every `error > bound`.
#include "gdn/Data/Compare.h"

#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

using namespace gdn::data;

Difference gdn::data::compare(llvm::ArrayRef<double> got,
                              llvm::ArrayRef<double> want) {
  assert(got.size() == want.size() && "expects lists of one length");
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Difference result;
  double errors = 0, values = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i]) || !std::isfinite(want[i])) {
      const bool same =
          got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]));
      if (!same && result.firstNonFinite < 0)
        result.firstNonFinite = i;
      continue;
    }
    const double error = std::abs(got[i] - want[i]);
    errors += error * error;
    values += want[i] * want[i];
    if (result.worst < 0 || error > result.maxAbs) {
      result.maxAbs = error;
      result.worst = i;
    }
  }
  if (result.firstNonFinite >= 0) {
    result.worst = result.firstNonFinite;
    result.maxAbs = result.relativeRMSE = infinity;
  } else if (errors > 0) {
    result.relativeRMSE = values > 0 ? std::sqrt(errors / values) : infinity;
  }
  return result;
}

bool gdn::data::bitEqual(const Array &a, const Array &b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.bytes == b.bytes;
}

bool gdn::data::bitEqual(llvm::ArrayRef<double> a, llvm::ArrayRef<double> b) {
  return a.size() == b.size() &&
         (a.empty() ||
          std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}
