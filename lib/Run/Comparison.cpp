// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares a run with the reference; see Comparison.h.
#include "gdn/Run/Comparison.h"

#include "gdn/Data/Compare.h"

#include <cassert>
#include <cstring>

using namespace gdn;
using namespace gdn::run;

double run::limitOf(const Parameter &parameter) {
  bool isF32 = parameter.dtype == data::DType::f32;
  if (parameter.isPool && parameter.dims.size() == 3)
    return 0; // the convolution's state
  if (isF32)
    return 1e-5;
  if (parameter.isPool || parameter.name == "core")
    return 2e-3;
  return 5e-3;
}

Comparison run::compareValues(std::string tensor, llvm::ArrayRef<double> got,
                              llvm::ArrayRef<double> want, double limit) {
  assert(got.size() == want.size() && "shapes have been checked");
  data::Difference difference = data::compare(got, want);
  Comparison comparison;
  comparison.tensor = std::move(tensor);
  comparison.relativeRMSE = difference.relativeRMSE;
  comparison.maxAbs = difference.maxAbs;
  comparison.limit = limit;
  comparison.ok =
      limit == 0 ? data::bitEqual(got, want) : difference.relativeRMSE <= limit;
  return comparison;
}

/// Compares a pool: the changed slots by value, the others by their bytes.
static void comparePool(const Parameter &parameter, const data::Array &got,
                        const data::Array &before, const reference::Pool &want,
                        std::vector<Comparison> &comparisons) {
  std::vector<double> gotValues = got.toDoubles();
  std::vector<double> oldValues = before.toDoubles();
  double limit = limitOf(parameter);
  // Where bits count, the reference is rounded as a store would round it.
  std::vector<double> wantValues = want.data.data;
  if (limit == 0)
    wantValues =
        data::Array::fromDoubles(got.dtype, got.shape, wantValues).toDoubles();

  int64_t slots = got.shape[0];
  int64_t size = slots ? gotValues.size() / slots : 0;
  int64_t bytes = slots ? got.bytes.size() / slots : 0;
  std::vector<double> gotLive, wantLive;
  bool othersKept = true;
  for (int64_t slot = 0; slot < slots; ++slot) {
    llvm::ArrayRef<double> now(want.data.data.data() + slot * size, size);
    llvm::ArrayRef<double> old(oldValues.data() + slot * size, size);
    if (data::bitEqual(now, old)) {
      othersKept &= std::memcmp(got.bytes.data() + slot * bytes,
                                before.bytes.data() + slot * bytes, bytes) == 0;
      continue;
    }
    gotLive.insert(gotLive.end(), gotValues.begin() + slot * size,
                   gotValues.begin() + (slot + 1) * size);
    wantLive.insert(wantLive.end(), wantValues.begin() + slot * size,
                    wantValues.begin() + (slot + 1) * size);
  }
  comparisons.push_back(
      compareValues(parameter.name, gotLive, wantLive, limit));
  Comparison others;
  others.tensor = parameter.name + ", other slots";
  others.ok = othersKept;
  if (!othersKept)
    others.relativeRMSE = others.maxAbs =
        std::numeric_limits<double>::infinity();
  comparisons.push_back(others);
}

std::vector<Comparison> run::compareRun(const Kernel &kernel, const Arrays &got,
                                        const Arrays &before,
                                        const Outcome &want) {
  std::vector<Comparison> comparisons;
  for (const Parameter &parameter : kernel.getParameters()) {
    if (!parameter.isWritten)
      continue;
    const data::Array &array = got.at(parameter.name);
    if (parameter.isPool)
      comparePool(parameter, array, before.at(parameter.name),
                  want.pools.at(parameter.name), comparisons);
    else
      comparisons.push_back(compareValues(parameter.name, array.toDoubles(),
                                          want.results.at(parameter.name).data,
                                          limitOf(parameter)));
  }
  return comparisons;
}
