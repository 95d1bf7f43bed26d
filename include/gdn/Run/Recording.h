// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activations recorded from a model implementation (transformers): for each
// phase and layer what its projections gave, and what came of it.
#ifndef GDN_RUN_RECORDING_H
#define GDN_RUN_RECORDING_H

#include "gdn/Data/Safetensors.h"
#include "gdn/Run/Session.h"

namespace gdn::run {

/// One forward pass of one layer.
struct RecordedStep {
  std::string phase; // "prefill", "decode0", ...
  std::string layer; // "layer0", ...
  int64_t tokens = 0;

  bool isPrefill() const { return phase == "prefill"; }
};

/// A file of recorded activations. Tensors are named
/// `<phase>.<layer>.<module>` and `weights.<layer>.<parameter>`.
class Recording {
public:
  static llvm::Expected<Recording> load(llvm::StringRef path);

  const std::string &getOrigin() const { return tensors.origin; }
  /// Layer after layer, each from its prefill to its last decode step.
  const std::vector<RecordedStep> &getSteps() const { return steps; }

  /// What was recorded as an argument for `parameter` of an entry: a weight, or
  /// a projection put together and shaped as the entry takes it.
  llvm::Expected<data::Array> argument(const RecordedStep &step,
                                       const Parameter &parameter,
                                       const Symbols &symbols) const;

  /// Sizes of a step: T, N, P, Hk and Hv.
  llvm::Expected<Symbols> symbols(const RecordedStep &step, int64_t valueDim,
                                  int64_t keyDim, int64_t slots) const;

  /// What the model computed for a parameter that the entry writes, as
  /// [T, Hv, dv], [D, K-1] or [Hv, dv, dk]; nothing if it was not recorded.
  std::optional<data::Array> result(const RecordedStep &step,
                                    const Parameter &parameter) const;

private:
  const data::Array *find(const RecordedStep &step,
                          llvm::StringRef module) const;
  const data::Array *findWeight(const RecordedStep &step,
                                llvm::StringRef name) const;

  data::Tensors tensors;
  std::vector<RecordedStep> steps;
};

} // namespace gdn::run

#endif // GDN_RUN_RECORDING_H
