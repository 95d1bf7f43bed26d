// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers from hashes, and the recurrence in doubles.

#include "model.h"

#include <cmath>
#include <cstddef>

using namespace gdnrt::traces;

uint64_t gdnrt::traces::mix(uint64_t a, uint64_t b, uint64_t c) {
  uint64_t state = a;
  for (uint64_t value : {b, c, uint64_t{0}}) {
    state += 0x9e3779b97f4a7c15u;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
    state = (state ^ (state >> 31)) + value;
  }
  return state;
}

/// `count` numbers, uniform in [low, high).
static std::vector<float> numbers(int64_t count, uint64_t seed, double low,
                                  double high) {
  std::vector<float> result(static_cast<size_t>(count));
  for (size_t i = 0; i < result.size(); ++i) {
    double unit = static_cast<double>(mix(seed, i) >> 11) / 9007199254740992.0;
    result[i] = static_cast<float>(low + (high - low) * unit);
  }
  return result;
}

LayerWeights::LayerWeights(const LayerSizes &sizes, uint64_t seed)
    : conv(numbers(sizes.channels() * sizes.width, mix(seed, 1), -1, 1)),
      // Decays from about 0.99 to 0.5 a token: a wrong state stays visible.
      aLog(numbers(sizes.valueHeads, mix(seed, 2), -2, 0)),
      dtBias(numbers(sizes.valueHeads * sizes.decays(), mix(seed, 3), -2, 0)) {}

TokenInputs::TokenInputs(const LayerSizes &sizes, uint64_t token, int64_t layer)
    : mixed(numbers(sizes.channels(),
                    mix(token, 1, static_cast<uint64_t>(layer)), -2, 2)),
      b(numbers(sizes.valueHeads, mix(token, 2, static_cast<uint64_t>(layer)),
                -1, 2)),
      a(numbers(sizes.valueHeads * sizes.decays(),
                mix(token, 3, static_cast<uint64_t>(layer)), -1, 1)) {}

LayerState::LayerState(const LayerSizes &sizes)
    : window(static_cast<size_t>(sizes.channels() * (sizes.width - 1))),
      state(static_cast<size_t>(sizes.valueHeads * sizes.valueDim *
                                sizes.keyDim)) {}

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

static double softplus(double x) {
  return x > 20 ? x : std::log1p(std::exp(x));
}

/// The decays of the channels of a value head.
static std::vector<double> decaysOf(const LayerSizes &sizes,
                                    const LayerWeights &weights,
                                    const TokenInputs &inputs, size_t head) {
  const auto count = static_cast<size_t>(sizes.decays());
  const double rate = std::exp(double(weights.aLog[head]));
  std::vector<double> decays;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = head * count + i;
    const double u = double(inputs.a[at]) + weights.dtBias[at];
    decays.push_back(std::exp(sizes.decayBound < 0
                                  ? sizes.decayBound * sigmoid(rate * u)
                                  : -rate * softplus(u)));
  }
  decays.resize(static_cast<size_t>(sizes.keyDim), decays.back());
  return decays;
}

/// `count` numbers at `from`, over the root of the sum of their squares.
static std::vector<double> unit(const double *from, int64_t count) {
  double sum = 1e-6;
  for (int64_t i = 0; i < count; ++i)
    sum += from[i] * from[i];
  std::vector<double> result(from, from + count);
  for (double &value : result)
    value /= std::sqrt(sum);
  return result;
}

std::vector<double> gdnrt::traces::step(const LayerSizes &sizes,
                                        const LayerWeights &weights,
                                        const TokenInputs &inputs,
                                        LayerState &state) {
  const int64_t width = sizes.width, dk = sizes.keyDim, dv = sizes.valueDim;
  std::vector<double> mixed(inputs.mixed.size());
  for (size_t c = 0; c < mixed.size(); ++c) {
    double *window = &state.window[c * static_cast<size_t>(width - 1)];
    const float *kernel = &weights.conv[c * static_cast<size_t>(width)];
    const double input = inputs.mixed[c];
    double sum = kernel[width - 1] * input;
    for (int64_t j = 0; j < width - 1; ++j)
      sum += kernel[j] * window[j];
    for (int64_t j = 0; j + 1 < width - 1; ++j)
      window[j] = window[j + 1];
    window[width - 2] = input;
    mixed[c] = sum * sigmoid(sum);
  }
  std::vector<double> out;
  const double *values = &mixed[static_cast<size_t>(2 * sizes.keyHeads * dk)];
  for (int64_t h = 0; h < sizes.valueHeads; ++h) {
    const int64_t keyHead = h / (sizes.valueHeads / sizes.keyHeads);
    std::vector<double> q = unit(&mixed[static_cast<size_t>(keyHead * dk)], dk);
    std::vector<double> k =
        unit(&mixed[static_cast<size_t>((sizes.keyHeads + keyHead) * dk)], dk);
    const auto head = static_cast<size_t>(h);
    const std::vector<double> decays = decaysOf(sizes, weights, inputs, head);
    const double beta = sigmoid(inputs.b[head]);
    for (int64_t v = 0; v < dv; ++v) {
      double *row = &state.state[static_cast<size_t>((h * dv + v) * dk)];
      double known = 0, sum = 0;
      for (int64_t i = 0; i < dk; ++i) {
        row[i] *= decays[static_cast<size_t>(i)];
        known += row[i] * k[static_cast<size_t>(i)];
      }
      const double delta = beta * (values[h * dv + v] - known);
      for (int64_t i = 0; i < dk; ++i) {
        row[i] += delta * k[static_cast<size_t>(i)];
        sum += row[i] * q[static_cast<size_t>(i)];
      }
      out.push_back(sum / std::sqrt(double(dk)));
    }
  }
  return out;
}
