// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Generated inputs. The generator is the finaliser of SplitMix64 applied twice
// to the counter, keyed by seed and stream name.
#include "gdn/Data/RandomInputs.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

using namespace gdn::data;

static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

RandomStream::RandomStream(uint64_t seed, llvm::StringRef stream)
    : key(mix(seed)) {
  for (unsigned char c : stream)
    key = mix(key ^ c);
}

uint64_t RandomStream::bits(uint64_t index) const {
  return mix(mix(index ^ key) + key);
}

double RandomStream::uniform(uint64_t index) const {
  return (bits(index) >> 11) * 0x1p-53;
}

double RandomStream::normal(uint64_t index) const {
  // Twelve 16-bit values out of three words; the half makes the mean zero.
  int64_t sum = 0;
  for (uint64_t word = 0; word < 3; ++word)
    for (uint64_t rest = bits(3 * index + word), part = 0; part < 4; ++part)
      sum += (rest >> (16 * part)) & 0xffff;
  return (sum + 6) * 0x1p-16 - 6;
}

int64_t RandomStream::below(uint64_t index, int64_t bound) const {
  return int64_t((unsigned __int128)bits(index) * bound >> 64);
}

llvm::StringRef gdn::data::name(GateKind kind) {
  switch (kind) {
  case GateKind::realistic:
    return "realistic";
  case GateKind::nearOne:
    return "near_one";
  case GateKind::strong:
    return "strong";
  case GateKind::veryStrong:
    return "very_strong";
  }
  llvm_unreachable("covered switch");
}

std::optional<GateKind> gdn::data::parseGateKind(llvm::StringRef text) {
  for (GateKind kind : {GateKind::realistic, GateKind::nearOne,
                        GateKind::strong, GateKind::veryStrong})
    if (text == name(kind))
      return kind;
  return std::nullopt;
}

/// The mean of -g; nothing for `realistic`, whose heads differ.
static std::optional<double> meanDecay(GateKind kind) {
  switch (kind) {
  case GateKind::realistic:
    return std::nullopt;
  case GateKind::nearOne:
    return 1e-4;
  case GateKind::strong:
    return 2.5;
  case GateKind::veryStrong:
    return 25;
  }
  llvm_unreachable("covered switch");
}

/// The u with log(1 + exp(u)) = y.
static double inverseSoftplus(double y) {
  return y > 30 ? y : std::log(std::expm1(y));
}

GateWeights gdn::data::gateWeights(GateKind kind, int64_t heads,
                                   int64_t channels, uint64_t seed) {
  const RandomStream stream(seed, "gate weights");
  GateWeights weights;
  for (int64_t h = 0; h < heads; ++h) {
    const double part = heads > 1 ? double(h) / (heads - 1) : 0;
    const double aLog = part * std::log(16.0);
    weights.aLog.push_back(aLog);
    for (int64_t c = 0; c < channels; ++c) {
      const double u = stream.uniform(h * channels + c);
      const double step = meanDecay(kind) ? *meanDecay(kind) / std::exp(aLog)
                                          : 0.001 * std::pow(100.0, u);
      weights.dtBias.push_back(inverseSoftplus(step));
    }
  }
  return weights;
}

std::vector<double> gdn::data::logDecays(GateKind kind, int64_t count,
                                         uint64_t seed) {
  const RandomStream stream(seed, "log decay");
  const double mean = meanDecay(kind).value_or(0.2);
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = -mean * (0.5 + stream.uniform(i));
  return values;
}

std::vector<double> gdn::data::normalValues(int64_t count, double scale,
                                            const RandomStream &stream) {
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = scale * stream.normal(i);
  return values;
}

std::vector<double> gdn::data::correlatedKeys(int64_t tokens, int64_t heads,
                                              int64_t d, double correlation,
                                              const RandomStream &stream) {
  const double noise = std::sqrt(1 - correlation);
  const double common = std::sqrt(correlation);
  std::vector<double> keys(tokens * heads * d);
  const int64_t width = heads * d;
  for (int64_t i = 0; i < int64_t(keys.size()); ++i)
    keys[i] =
        noise * stream.normal(width + i) + common * stream.normal(i % width);
  return keys;
}

std::vector<int64_t> gdn::data::raggedLengths(int64_t sequences, int64_t tokens,
                                              uint64_t seed) {
  const RandomStream stream(seed, "row lengths");
  std::vector<int64_t> lengths(sequences, 0);
  if (sequences == 0)
    return lengths;
  int64_t empty = -1; // the sequence that stays empty
  if (sequences >= 3) {
    const int64_t choices[] = {0, sequences / 2, sequences - 1};
    empty = choices[stream.below(0, 3)];
  }
  // Cut the tokens at uniform places.
  std::vector<int64_t> cuts = {0, tokens};
  const int64_t used = sequences - (empty >= 0);
  for (int64_t i = 1; i < used; ++i)
    cuts.push_back(stream.below(i, tokens + 1));
  std::sort(cuts.begin(), cuts.end());
  for (int64_t n = 0, next = 0; n < sequences; ++n)
    if (n != empty) {
      lengths[n] = cuts[next + 1] - cuts[next];
      ++next;
    }
  return lengths;
}

std::vector<int64_t> gdn::data::runningSum(llvm::ArrayRef<int64_t> lengths) {
  std::vector<int64_t> bounds = {0};
  for (int64_t length : lengths)
    bounds.push_back(bounds.back() + length);
  return bounds;
}

std::vector<int64_t> gdn::data::distinctSlots(int64_t sequences, int64_t slots,
                                              int64_t nullSlot, uint64_t seed) {
  const RandomStream stream(seed, "slots");
  std::vector<int64_t> ids(slots);
  std::iota(ids.begin(), ids.end(), 0);
  if (nullSlot >= 0 && nullSlot < slots)
    ids.erase(ids.begin() + nullSlot);
  assert(sequences <= int64_t(ids.size()) &&
         "expects a slot for every sequence");
  // The first `sequences` steps of a Fisher-Yates shuffle.
  for (int64_t n = 0; n < sequences; ++n)
    std::swap(ids[n], ids[n + stream.below(n, ids.size() - n)]);
  ids.resize(sequences);
  return ids;
}

/// Scales each `width` values to unit length; zeros stay zeros.
static void normalise(std::vector<double> &values, int64_t width) {
  for (size_t i = 0; i + width <= values.size(); i += width) {
    double sum = 0;
    for (int64_t j = 0; j < width; ++j)
      sum += values[i + j] * values[i + j];
    for (int64_t j = 0; j < width && sum > 0; ++j)
      values[i + j] /= std::sqrt(sum);
  }
}

Array gdn::data::randomParameter(llvm::StringRef name, DType dtype,
                                 llvm::ArrayRef<int64_t> shape,
                                 const InputOptions &options) {
  const RandomStream stream(options.seed, name);
  const int64_t count = *elementCount(shape);
  std::vector<double> values;
  if (dtype == DType::u8) {
    values.resize(count);
    for (int64_t i = 0; i < count; ++i)
      values[i] = stream.below(i, 256);
  } else if (name == "state_scales") {
    values.resize(count);
    for (int64_t i = 0; i < count; ++i)
      values[i] = 0.002 * stream.uniform(i);
  } else if (name == "A_log" || name == "dt_bias") {
    const int64_t heads = shape.empty() ? 1 : shape[0];
    GateWeights gates = gateWeights(options.gates, heads,
                                    heads ? count / heads : 0, options.seed);
    values = name == "A_log" ? gates.aLog : gates.dtBias;
    values.resize(count);
  } else if (name == "norm_weight") {
    values = normalValues(count, 0.1, stream);
    for (double &value : values)
      value += 1;
  } else if (name == "norm_constants") {
    values.assign(count, stream.below(0, 2));
    if (count > 0)
      values[0] = 1e-5;
  } else if (name == "conv_weight") {
    const double width = shape.empty() ? 1 : std::max<int64_t>(shape.back(), 1);
    values = normalValues(count, 1 / std::sqrt(width), stream);
  } else if (name == "log_decay") {
    values = logDecays(options.gates, count, options.seed);
  } else if (name == "beta") {
    values.resize(count);
    for (int64_t i = 0; i < count; ++i)
      values[i] = stream.uniform(i);
  } else if (name == "pending_decays") {
    values = normalValues(count, 1, stream);
    for (double &value : values)
      value = -std::abs(value);
  } else if (name == "pending_scales") { // powers of two
    values.resize(count);
    for (int64_t i = 0; i < count; ++i)
      values[i] = std::ldexp(1.0, -int(stream.below(i, 5)));
  } else if (name == "pending_keys") { // of unit length, nearly
    const double width = std::max<int64_t>(shape.back(), 1);
    values = normalValues(count, 1 / std::sqrt(width), stream);
  } else if (name == "state_pool") {
    values = normalValues(count, 0.1, stream);
  } else if (name == "a") {
    values = normalValues(count, 0.5, stream);
  } else if (name == "k" && shape.size() >= 2) {
    // One direction for all columns: [T, Hk*dk] and [T, Hk, dk] alike.
    const int64_t width = shape[0] ? count / shape[0] : 0;
    values = correlatedKeys(shape[0], 1, width, options.keyCorrelation, stream);
    for (double &value : values)
      value *= options.scale;
  } else {
    values = normalValues(count, options.scale, stream);
  }
  const bool isKey = name == "q" || name == "k" || name == "erase";
  if (options.unitKeys && isKey && !shape.empty() && shape.back() > 0)
    normalise(values, shape.back());
  return Array::fromDoubles(dtype, shape, values);
}
