// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The float64 model of a layer, one token of one sequence at a time, written
// from the formulas of docs/spec and not from the kernels. A token is an id,
// from which its projections follow, so that a sequence is a list of ids.

#ifndef GDNRT_TRACES_MODEL_H
#define GDNRT_TRACES_MODEL_H

#include <cstdint>
#include <vector>

namespace gdnrt::traces {

/// A good hash of up to three numbers.
uint64_t mix(uint64_t a, uint64_t b = 0, uint64_t c = 0);

struct LayerSizes {
  int64_t keyHeads = 1, valueHeads = 2, keyDim = 16, valueDim = 16, width = 4;
  /// Decays per channel of the key, not per head.
  bool decayPerChannel = false;
  /// The least logarithm of a decay; 0 where there is none.
  double decayBound = 0;
  int64_t channels() const {
    return 2 * keyHeads * keyDim + valueHeads * valueDim;
  }
  int64_t outputs() const { return valueHeads * valueDim; }
  /// Of a value head.
  int64_t decays() const { return decayPerChannel ? keyDim : 1; }
};

/// Weights of a layer, as the kernels get them.
struct LayerWeights {
  LayerWeights(const LayerSizes &sizes, uint64_t seed);
  /// [channels, width], [Hv], [Hv, decays]
  std::vector<float> conv, aLog, dtBias;
};

/// What a layer is given for a token, as the kernels get it.
struct TokenInputs {
  TokenInputs(const LayerSizes &sizes, uint64_t token, int64_t layer);
  /// [channels] as q, k, v; [Hv]; [Hv, decays]
  std::vector<float> mixed, b, a;
};

/// State of a sequence in a layer: zero at first.
struct LayerState {
  explicit LayerState(const LayerSizes &sizes);
  /// [channels, width - 1], the oldest input first.
  std::vector<double> window;
  /// [Hv, dv, dk]
  std::vector<double> state;
};

/// Runs a token, and gives the layer's output before the norm, [Hv, dv].
std::vector<double> step(const LayerSizes &sizes, const LayerWeights &weights,
                         const TokenInputs &inputs, LayerState &state);

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_MODEL_H
