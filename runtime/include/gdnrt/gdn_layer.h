// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The core of a GatedDeltaNetAttention layer: kernels, weights and pools of one
// layer, and the launches of a step. What comes before (projections) and behind
// (all-reduce) is the engine's.

#ifndef GDNRT_GDN_LAYER_H
#define GDNRT_GDN_LAYER_H

#include "gdn-c/serving.h"
#include "gdnrt/binding.h"
#include "gdnrt/loaded_kernel.h"
#include "gdnrt/step_check.h"
#include "gdnrt/workspace.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace gdnrt {

class MetadataBuilder;

/// "slots", ..; of a gdnrt_verify_states.
const char *nameOfVerifyStates(int64_t states);

/// Metadata of a step, and where its arena is on the device: null for the
/// host's own.
struct GDNMetadataView {
  const gdnrt_gdn_metadata &metadata;
  const void *deviceArena;

  /// What a kernel reads for an array of the arena.
  const void *onDevice(const void *host) const {
    if (!deviceArena || !host)
      return host;
    return static_cast<const char *>(deviceArena) +
           (static_cast<const char *>(host) -
            static_cast<const char *>(metadata.arena));
  }
};

/// What a parameter of an entry is to a layer.
enum class ParamRole : uint8_t {
  /// Weights and pools: given once.
  fixed,
  /// A row per token: given in every step.
  token,
  slots,
  writeSlots,
  cuSeqlens,
  hasInitial,
  tokenSlots,
  numAccepted,
  cuCheckpoints,
  checkpointTokens,
  checkpointSlots,
  parents,
};

/// One kernel of a layer with its arguments, bound at its first launch and
/// rebound where something changed.
class LayerKernel {
public:
  LayerKernel(const LayerKernel &) = delete;
  LayerKernel &operator=(const LayerKernel &) = delete;
  static Result<std::unique_ptr<LayerKernel>>
  make(std::shared_ptr<LoadedKernel> kernel, const gdnrt_named_arg *fixed,
       size_t count);

  /// Whether one run of a step can be launched: binds its arguments, takes what
  /// memory it needs, and checks slots where that is wanted. `tokens` have the
  /// rows of the run alone.
  Status check(const GDNMetadataView &step, const gdnrt_run &run,
               const gdnrt_named_arg *tokens, size_t count, void *stream);
  /// Launches a run that was checked.
  Status launch(const GDNMetadataView &step, const gdnrt_run &run,
                const gdnrt_named_arg *tokens, size_t count, void *stream);
  /// Whether the run could be recorded into a graph: nothing is taken, waited
  /// for or launched.
  Status checkCapture(const GDNMetadataView &step, const gdnrt_run &run,
                      const gdnrt_named_arg *tokens, size_t count);
  /// Null: a workspace of its own, where the kernel cannot do without.
  Status shareWorkspace(std::shared_ptr<const Workspace> workspace);
  /// See Binding::setBatchInvariant.
  void setBatchInvariant(bool wanted);
  /// Raises `size` to what runs of up to so many sequences and tokens need.
  Status addWorkspace(int64_t rows, int64_t tokens,
                      gdnrt_workspace_size &size) const;
  const EntrySchema &entry() const { return *kernel_->entry; }
  const ParamSchema *tokenParam(const char *name) const;
  Device &device() const { return *kernel_->device; }
  bool hasDebugChecks() const { return kernel_->debugChecks; }
  /// The slots of its pool of states, with the null slot; no slots without one.
  SlotRange slotRange() const;

private:
  /// An argument with sizes and strides of its own.
  struct HeldArgument {
    void *data = nullptr;
    int32_t dtype = 0, rank = 0;
    int64_t nullSlot = 0;
    std::array<int64_t, kMaxRank> sizes = {}, strides = {};
    bool operator==(const HeldArgument &other) const;
    Argument view() const;
  };
  explicit LayerKernel(std::shared_ptr<LoadedKernel> kernel);
  Status prepare(const GDNMetadataView &step, const gdnrt_run &run,
                 const gdnrt_named_arg *tokens, size_t count);
  Status bind();
  Status giveWorkspace(void *stream);
  Status fill(const GDNMetadataView &step, const gdnrt_run &run,
              const gdnrt_named_arg *tokens, size_t count);
  Status setVector(size_t param, const void *data, int64_t size, DType dtype);
  void setTable(size_t param, const int32_t *data, int64_t rows,
                int64_t columns);
  static HeldArgument hold(const gdnrt_arg &arg);

  std::shared_ptr<LoadedKernel> kernel_;
  std::unique_ptr<Binding> binding_;
  /// By parameter.
  std::vector<ParamRole> roles_;
  std::vector<HeldArgument> held_;
  /// Those that are not fixed.
  std::vector<size_t> varying_;
  std::vector<Argument> arguments_;
  /// Memory of the device that launches work in. Graphs may know the old ones,
  /// so they stay.
  std::vector<std::shared_ptr<void>> workspaces_;
  /// That of all layers, and whether the binding has it.
  std::shared_ptr<const Workspace> shared_;
  bool sharesWorkspace_ = false;
  /// The run whose arguments the binding has; only compared.
  const gdnrt_run *prepared_ = nullptr;
  bool changed_ = true;
  bool batchInvariant_ = false;
};

class GDNLayer {
public:
  /// Any of the kernels may be missing; sequences that need it are then
  /// refused.
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
  Status shareWorkspace(const std::shared_ptr<const Workspace> &workspace);
  void setBatchInvariant(bool wanted);
  Status addWorkspace(int64_t rows, int64_t tokens,
                      gdnrt_workspace_size &size) const;

private:
  GDNLayer() = default;
  LayerKernel *kernelFor(int32_t kind) const;
  Status checkRuns(const gdnrt_gdn_metadata &metadata) const;
  void slice(const gdnrt_run &run, const gdnrt_named_arg *tokens, size_t count);
  Status checkCapture(const GDNMetadataView &step,
                      const gdnrt_named_arg *tokens, size_t count);
  Status checkLaunches(const GDNMetadataView &step,
                       const gdnrt_named_arg *tokens, size_t count,
                       void *stream);
  bool isWritten(const char *name) const;
  Status checkTokens(const gdnrt_named_arg *tokens, size_t count,
                     int64_t needed) const;

  std::shared_ptr<Device> device_;
  std::unique_ptr<LayerKernel> decode_, prefill_, verify_, commit_;
  /// A gdnrt_verify_states.
  int32_t verifyStates_ = GDNRT_VERIFY_SLOTS;
  /// Slices of the token arrays, with their sizes.
  std::vector<gdnrt_named_arg> slices_;
  std::vector<std::array<int64_t, kMaxRank>> sizes_, strides_;
};

} // namespace gdnrt

#endif // GDNRT_GDN_LAYER_H
