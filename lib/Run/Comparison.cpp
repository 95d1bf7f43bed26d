// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares a run with the reference; see Comparison.h.
#include "gdn/Run/Comparison.h"

#include "gdn/Data/Compare.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

using namespace gdn;
using namespace gdn::run;

/// Of floats that are computed.
static double usualLimitOf(const Parameter &parameter) {
  bool isF32 = parameter.dtype == data::DType::f32;
  // Pending tokens: f32, but from a state that a narrow pool has rounded.
  if (parameter.name == "pending_deltas")
    return 2e-3;
  // The chunk form with rounded operands; docs/spec/numerics.md.
  if (parameter.precision == "mixed-io")
    return 5e-3;
  // Operands in two parts, of which values of a narrow type have one.
  bool isRounded = parameter.precision == "mixed" ||
                   (parameter.precision == "parts" && parameter.io != "f32");
  if (isRounded && (isF32 || parameter.name == "core"))
    return parameter.isPool ? 2e-3 : 5e-3;
  if (isF32)
    return 1e-5;
  if (parameter.isPool || parameter.name == "core")
    return 2e-3;
  return 5e-3;
}

double run::limitOf(const Parameter &parameter) {
  if (!data::isFloat(parameter.dtype))
    return 0; // counts
  if (parameter.isPool && parameter.dims.size() == 3 &&
      !llvm::StringRef(parameter.name).starts_with("pending_"))
    return 0; // the convolution's state
  return std::max(usualLimitOf(parameter), parameter.roundedLimit);
}

Comparison run::compareValues(const Parameter &parameter,
                              llvm::ArrayRef<double> got,
                              llvm::ArrayRef<double> want) {
  assert(got.size() == want.size() && "shapes have been checked");
  Comparison comparison;
  comparison.tensor = parameter.name;
  comparison.limit = limitOf(parameter);
  bool exact = comparison.limit == 0;
  std::vector<double> rounded =
      data::Array::fromDoubles(parameter.dtype, {int64_t(want.size())}, want)
          .toDoubles();
  data::Difference difference =
      data::compare(got, exact ? llvm::ArrayRef<double>(rounded) : want);
  comparison.relativeRMSE = difference.relativeRMSE;
  comparison.maxAbs = difference.maxAbs;
  if (exact) {
    comparison.ok = data::bitEqual(got, rounded);
    return comparison;
  }
  double floor = data::compare(rounded, want).relativeRMSE;
  if (std::isfinite(floor))
    comparison.limit = std::max(comparison.limit, 1.05 * floor);
  comparison.ok = comparison.relativeRMSE <= comparison.limit;
  return comparison;
}

/// Factors of the rows of a pool: what a run has made, and what the reference.
struct RowScales {
  std::vector<double> got, want;
};

/// Compares a pool: the changed slots by value, times `scales` if there are
/// some, the others by their bytes.
static void comparePool(const Parameter &parameter, const data::Array &got,
                        const data::Array &before, const reference::Pool &want,
                        std::vector<Comparison> &comparisons,
                        const RowScales &scales = {}) {
  std::vector<double> gotValues = got.toDoubles();
  const size_t width =
      scales.got.empty() ? 0 : gotValues.size() / scales.got.size();
  auto scaled = [&](double value, const std::vector<double> &rows, size_t i) {
    return width == 0 ? value : value * rows[i / width];
  };
  std::vector<double> oldValues = before.toDoubles();
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
    for (int64_t i = 0; i < size; ++i) {
      const double value = gotValues[slot * size + i];
      if (std::isnan(now[i]) && std::isnan(value))
        continue; // what nobody has written yet
      gotLive.push_back(scaled(value, scales.got, slot * size + i));
      wantLive.push_back(scaled(now[i], scales.want, slot * size + i));
    }
  }
  comparisons.push_back(compareValues(parameter, gotLive, wantLive));
  Comparison others;
  others.tensor = parameter.name + ", other slots";
  others.ok = othersKept;
  if (!othersKept)
    others.relativeRMSE = others.maxAbs =
        std::numeric_limits<double>::infinity();
  comparisons.push_back(others);
}

/// Pools of states in planes (docs/spec/slots.md): the reference does not round
/// to them.
static bool isPlane(llvm::StringRef name) {
  return name == "state_pool" || name == "state_scales" || name == "state_low";
}

/// What the planes of a slot stand for.
static void appendStates(llvm::function_ref<double(llvm::StringRef, size_t)> at,
                         size_t size, size_t columns, bool hasLow,
                         std::vector<double> &states) {
  for (size_t i = 0; i < size; ++i) {
    double number = at("state_pool", i) - 128;
    if (hasLow)
      number += (at("state_low", i) - 128) / 256;
    states.push_back(at("state_scales", i / columns) * number);
  }
}

/// Compares states in planes: those of changed slots by what they stand for,
/// all pools of the others by their bytes.
static void comparePlanes(const Parameter &scales, const Arrays &got,
                          const Arrays &before, const Outcome &want,
                          std::vector<Comparison> &comparisons) {
  const bool hasLow = want.pools.count("state_low");
  std::map<llvm::StringRef, std::vector<double>> gotPools, oldPools;
  for (const auto &[name, pool] : want.pools)
    if (isPlane(name)) {
      gotPools[name] = got.at(name).toDoubles();
      oldPools[name] = before.at(name).toDoubles();
    }
  const std::vector<int64_t> &shape = got.at("state_pool").shape;
  const size_t slots = shape[0], columns = shape.back();
  const size_t size = slots ? gotPools["state_pool"].size() / slots : 0;
  auto sizeOf = [&](llvm::StringRef name) {
    return name == "state_scales" ? size / columns : size;
  };
  std::vector<double> gotStates, wantStates;
  bool othersKept = true;
  for (size_t slot = 0; slot < slots; ++slot) {
    auto isSame = [&](auto get) {
      return llvm::all_of(oldPools, [&](const auto &pool) {
        const size_t count = sizeOf(pool.first);
        llvm::ArrayRef<double> old(pool.second);
        return data::bitEqual(get(pool.first).slice(slot * count, count),
                              old.slice(slot * count, count));
      });
    };
    auto wanted = [&](llvm::StringRef name) {
      return llvm::ArrayRef<double>(want.pools.at(name.str()).data.data);
    };
    auto made = [&](llvm::StringRef name) {
      return llvm::ArrayRef<double>(gotPools[name]);
    };
    if (isSame(wanted)) {
      othersKept &= isSame(made);
      continue;
    }
    auto append = [&](auto from, std::vector<double> &to) {
      appendStates(
          [&, slot](llvm::StringRef name, size_t i) {
            return from(name)[slot * sizeOf(name) + i];
          },
          size, columns, hasLow, to);
    };
    append(made, gotStates);
    append(wanted, wantStates);
  }
  const data::Difference difference = data::compare(gotStates, wantStates);
  Comparison states;
  states.tensor = "states in planes";
  states.limit = hasLow ? 1e-4 : 2e-2;
  // What chunks with rounded operands leave is rounded once more.
  if (scales.precision == "mixed" || scales.precision == "mixed-io")
    states.limit = std::max(states.limit, 2e-3);
  states.relativeRMSE = difference.relativeRMSE;
  states.maxAbs = difference.maxAbs;
  states.ok = states.relativeRMSE <= states.limit;
  comparisons.push_back(states);
  Comparison others;
  others.tensor = "states in planes, other slots";
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
  const Parameter *scales = kernel.find("state_scales");
  if (scales && scales->isWritten)
    comparePlanes(*scales, got, before, want, comparisons);
  for (const Parameter &parameter : kernel.getParameters()) {
    if (!parameter.isWritten || (scales && isPlane(parameter.name)))
      continue;
    const data::Array &array = got.at(parameter.name);
    const bool isDelta = parameter.name == "pending_deltas";
    if (parameter.name == "pending_scales")
      continue; // with the deltas
    if (isDelta && kernel.find("pending_scales"))
      comparePool(parameter, array, before.at(parameter.name),
                  want.pools.at(parameter.name), comparisons,
                  {got.at("pending_scales").toDoubles(),
                   want.pools.at("pending_scales").data.data});
    else if (parameter.isPool)
      comparePool(parameter, array, before.at(parameter.name),
                  want.pools.at(parameter.name), comparisons);
    else
      comparisons.push_back(compareValues(
          parameter, array.toDoubles(), want.results.at(parameter.name).data));
  }
  return comparisons;
}
