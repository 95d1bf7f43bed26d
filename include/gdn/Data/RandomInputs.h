// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inputs for tests, checks and benchmarks. Element i of a stream is a function
// of (seed, stream, i) alone, in integer arithmetic: the same on every machine
// and standard library, in any order, from any number of threads.
#ifndef GDN_DATA_RANDOMINPUTS_H
#define GDN_DATA_RANDOMINPUTS_H

#include "gdn/Data/Array.h"

namespace gdn::data {

/// A stream of random numbers that are looked up, not drawn.
class RandomStream {
public:
  /// Streams of different names (say, of parameters) are independent.
  RandomStream(uint64_t seed, llvm::StringRef stream);

  /// 64 uniform bits.
  uint64_t bits(uint64_t index) const;
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform(uint64_t index) const;
  /// Mean 0 and variance 1: the sum of twelve uniform values less 6, so never
  /// beyond 6 and free of library functions.
  double normal(uint64_t index) const;
  /// Uniform in [0, bound); `bound` is positive.
  int64_t below(uint64_t index, int64_t bound) const;

private:
  uint64_t key;
};

/// How fast states decay: the mean of the log decay g per token, over heads.
enum class GateKind {
  realistic,  ///< as models are initialised: A in [1, 16], step 0.001 to 0.1
  nearOne,    ///< -1e-4: sums of many tokens stay
  strong,     ///< -2.5: a chunk's sum is far below the smallest float
  veryStrong, ///< -25: the state is forgotten at once
};

/// `realistic`, `near_one`, `strong`, `very_strong`.
llvm::StringRef name(GateKind kind);
std::optional<GateKind> parseGateKind(llvm::StringRef name);

/// Parameters of the gates of one layer. With `a` from `normalValues(0.5)`,
/// gdn.gates gives log decays of about the mean that `GateKind` says.
struct GateWeights {
  std::vector<double> aLog;   ///< [Hv]; 0 for the first head, log 16 the last
  std::vector<double> dtBias; ///< [Hv * channels]
};
/// `channels` is 1, or dk for a decay per channel.
GateWeights gateWeights(GateKind kind, int64_t heads, int64_t channels,
                        uint64_t seed);

/// Log decays themselves, at most 0, with the mean of `kind` and a spread of
/// half of it to one and a half.
std::vector<double> logDecays(GateKind kind, int64_t count, uint64_t seed);

/// `count` normal values times `scale`.
std::vector<double> normalValues(int64_t count, double scale,
                                 const RandomStream &stream);

/// Keys [tokens, heads, d] of length about sqrt(d): each is `correlation`
/// (0 to 1) parts of one direction per head plus noise. At 1 all tokens write
/// to one direction, which makes the triangular systems of the chunked form
/// hard.
std::vector<double> correlatedKeys(int64_t tokens, int64_t heads, int64_t d,
                                   double correlation,
                                   const RandomStream &stream);

/// Lengths of `sequences` sequences that add up to `tokens`, uneven; with at
/// least three sequences some are zero: the first, the middle or the last, by
/// the seed.
std::vector<int64_t> raggedLengths(int64_t sequences, int64_t tokens,
                                   uint64_t seed);

/// Running sum with a zero in front: lengths to `cu_seqlens`.
std::vector<int64_t> runningSum(llvm::ArrayRef<int64_t> lengths);

/// `sequences` different slots of a pool of `slots`, none of them `nullSlot`
/// (give -1 for none). Needs enough slots.
std::vector<int64_t> distinctSlots(int64_t sequences, int64_t slots,
                                   int64_t nullSlot, uint64_t seed);

/// What `randomParameter` may vary.
struct InputOptions {
  uint64_t seed = 0;
  GateKind gates = GateKind::realistic;
  /// Of the keys of parameter `k`; the packed forms have independent keys.
  double keyCorrelation = 0;
  /// Whether the heads (the last dimension) of `q` and `k` have unit length.
  bool unitKeys = false;
  /// Times every projection.
  double scale = 1;
};

/// Contents for a parameter of floats or bytes of a generated entry, by its
/// name: the projections (normal; `a` and `b` alike), `conv_weight`, `A_log`,
/// `dt_bias`, `norm_weight`, `norm_constants` (either gate), `log_decay`,
/// `beta` (uniform below 1), the pools, `state_scales` (uniform below 0.002).
/// Bytes are any. An unknown name gets normal values. The
/// size must be known: no dimension negative.
Array randomParameter(llvm::StringRef name, DType dtype,
                      llvm::ArrayRef<int64_t> shape,
                      const InputOptions &options);

} // namespace gdn::data

#endif // GDN_DATA_RANDOMINPUTS_H
