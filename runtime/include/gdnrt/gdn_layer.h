// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The core of a GatedDeltaNetAttention layer: the kernels, weights and pools of
// one layer, and the launches of a step. The engine does the work before it
// (projections) and after it (all-reduce).

#ifndef GDNRT_GDN_LAYER_H
#define GDNRT_GDN_LAYER_H

#include "gdn-c/serving.h"
#include "gdnrt/layer_kernel.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gdnrt {

class MetadataBuilder;

/// The name of a gdnrt_verify_states: "slots", "tree", "lazy" or "buffer".
const char *nameOfVerifyStates(int64_t states);

class GDNLayer {
public:
  /// Makes a layer of one to four kernels. Runs of a kind without a kernel are
  /// UNSUPPORTED in `forward`. See gdnrt_gdn_layer_create.
  static Result<std::unique_ptr<GDNLayer>>
  make(std::shared_ptr<LoadedKernel> decode,
       std::shared_ptr<LoadedKernel> prefill,
       std::shared_ptr<LoadedKernel> verify,
       std::shared_ptr<LoadedKernel> commit, const gdnrt_named_arg *fixed,
       size_t count);

  /// See gdnrt_gdn_layer_forward.
  Status forward(const gdnrt_gdn_metadata *metadata, const void *deviceArena,
                 const gdnrt_named_arg *tokens, size_t count, void *stream);
  /// See gdnrt_gdn_layer_check_steps.
  Status checkSteps(const MetadataBuilder &builder) const;
  Device &device() const { return *device_; }
  /// Of all streams, or of one.
  Status shareWorkspace(const std::shared_ptr<const Workspace> &workspace,
                        const std::optional<void *> &stream = std::nullopt);
  void setBatchInvariant(bool wanted);
  /// Whether its kernels keep tokens pending over several steps.
  bool defersWrites() const { return defersWrites_; }
  /// See gdnrt_gdn_layer_allow_dependent_launch.
  void allowDependentLaunch(bool allowed);
  Status addWorkspace(int64_t rows, int64_t tokens,
                      gdnrt_workspace_size &size) const;

private:
  GDNLayer() = default;
  LayerKernel *kernelFor(int32_t kind) const;
  Status checkRuns(const gdnrt_gdn_metadata &metadata) const;
  void slice(const gdnrt_run &run, const gdnrt_named_arg *tokens, size_t count);
  Status checkCapture(const GDNMetadataView &step,
                      const gdnrt_named_arg *tokens, size_t count,
                      const LaunchStream &stream);
  Status checkLaunches(const GDNMetadataView &step,
                       const gdnrt_named_arg *tokens, size_t count,
                       const LaunchStream &stream);
  bool isWritten(const char *name) const;
  Status checkDeferred();
  Status checkTokens(const gdnrt_named_arg *tokens, size_t count,
                     int64_t needed) const;

  std::shared_ptr<Device> device_;
  std::unique_ptr<LayerKernel> decode_, prefill_, verify_, commit_;
  /// A gdnrt_verify_states.
  int32_t verifyStates_ = GDNRT_VERIFY_SLOTS;
  /// Whether slots count tokens that their states lack.
  bool defersWrites_ = false;
  /// Slices of the arrays of tokens for one run, with their sizes and strides.
  std::vector<gdnrt_named_arg> slices_;
  std::vector<std::array<int64_t, kMaxRank>> sizes_, strides_;
};

} // namespace gdnrt

#endif // GDNRT_GDN_LAYER_H
