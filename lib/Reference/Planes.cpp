// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From planes to states, and rounded back.
#include "Planes.h"

#include <cmath>

using namespace gdn::reference;

/// What a byte has for zero; the largest integer of a row; parts of a step that
/// the lower plane counts.
static constexpr double zeroByte = 128, largest = 127, lowParts = 256;
/// Rows without a larger element are zero.
static constexpr double leastRow = 1e-30;

Pool Planes::decode() const {
  Pool states = upper;
  const size_t columns = states.data.shape.back();
  for (size_t i = 0; i < states.data.data.size(); ++i) {
    double value = upper.data.data[i] - zeroByte;
    if (low)
      value += (low->data.data[i] - zeroByte) / lowParts;
    states.data.data[i] = scales.data.data[i / columns] * value;
  }
  return states;
}

void Planes::encode(const Pool &states, const Pool &before) const {
  const size_t columns = states.data.shape.back();
  auto same = [](double x, double y) {
    return x == y || (std::isnan(x) && std::isnan(y));
  };
  for (size_t row = 0; row < scales.data.data.size(); ++row) {
    const double *now = states.data.data.data() + row * columns,
                 *old = before.data.data.data() + row * columns;
    double most = 0;
    bool isKept = true, isFinite = true;
    for (size_t j = 0; j < columns; ++j) {
      isKept &= same(now[j], old[j]);
      isFinite &= std::isfinite(now[j]);
      most = std::max(most, std::abs(now[j]));
    }
    if (isKept)
      continue;
    const bool isZero = !isFinite || most < leastRow;
    const double scale = !isFinite ? std::nan("") : isZero ? 0 : most / largest;
    scales.data.data[row] = scale;
    for (size_t j = 0; j < columns; ++j) {
      upper.data.data[row * columns + j] =
          zeroByte + (isZero ? 0 : now[j] / scale);
      if (low)
        low->data.data[row * columns + j] = zeroByte;
    }
  }
}
