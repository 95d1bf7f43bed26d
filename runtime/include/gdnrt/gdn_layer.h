// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The core of a GatedDeltaNetAttention layer: the kernels, weights and pools of
// one layer, and the launches of a step. The engine does the work before it
// (projections) and after it (all-reduce).

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

/// The name of a gdnrt_verify_states: "slots", "tree", "lazy" or "buffer".
const char *nameOfVerifyStates(int64_t states);

/// The metadata of a step, and the address of its arena on the device. Null:
/// kernels read the arena on the host.
struct GDNMetadataView {
  const gdnrt_gdn_metadata &metadata;
  const void *deviceArena;

  /// The address at which kernels read an array of the arena.
  const void *onDevice(const void *host) const {
    if (!deviceArena || !host)
      return host;
    return static_cast<const char *>(deviceArena) +
           (static_cast<const char *>(host) -
            static_cast<const char *>(metadata.arena));
  }
};

/// The role of a parameter of an entry in a layer: what the layer passes for
/// it.
enum class ParamRole : uint8_t {
  /// Weights and pools. They are given once, when the layer is made.
  fixed,
  /// Arrays with one row per token. They are given in every step.
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

/// The stream of a launch, and whether it is being captured into a graph: a
/// graph begins when all that is ahead of it has ended, so its launches are
/// ordered on their own.
struct LaunchStream {
  void *stream;
  bool capturing;
  /// What launches are ordered on. Streams are aligned, so the two differ.
  void *order() const {
    return reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(stream) |
                                    uintptr_t{capturing});
  }
};

/// A kernel of a layer with its arguments. It is bound at its first launch, and
/// rebound when an argument has changed.
class LayerKernel {
public:
  LayerKernel(const LayerKernel &) = delete;
  LayerKernel &operator=(const LayerKernel &) = delete;
  static Result<std::unique_ptr<LayerKernel>>
  make(std::shared_ptr<LoadedKernel> kernel, const gdnrt_named_arg *fixed,
       size_t count);

  /// Checks that a run of a step can be launched: binds its arguments,
  /// allocates the memory that it needs, and checks slots if the device has
  /// debug checks. `tokens` have only the rows of the run.
  Status check(const GDNMetadataView &step, const gdnrt_run &run,
               const gdnrt_named_arg *tokens, size_t count,
               const LaunchStream &stream);
  /// Launches a run that `check` has accepted.
  Status launch(const GDNMetadataView &step, const gdnrt_run &run,
                const gdnrt_named_arg *tokens, size_t count,
                const LaunchStream &stream);
  /// Checks that the run can be recorded into a graph. It allocates nothing,
  /// waits for nothing and launches nothing.
  Status checkCapture(const GDNMetadataView &step, const gdnrt_run &run,
                      const gdnrt_named_arg *tokens, size_t count,
                      const LaunchStream &stream);
  /// Makes the kernel use `workspace`. Null: the kernel uses a workspace of its
  /// own, if it cannot run without one.
  Status shareWorkspace(std::shared_ptr<const Workspace> workspace);
  /// See Binding::setBatchInvariant.
  void setBatchInvariant(bool wanted);
  /// Whether a launch may begin before the kernel ahead of it has ended, unless
  /// slots have been written by something other than a step.
  void allowDependentLaunch(bool allowed) { allowsDependent_ = allowed; }
  /// Raises `size` to what runs of up to `rows` sequences and `tokens` tokens
  /// need.
  Status addWorkspace(int64_t rows, int64_t tokens,
                      gdnrt_workspace_size &size) const;
  const EntrySchema &entry() const { return *kernel_->entry; }
  const ParamSchema *tokenParam(const char *name) const;
  Device &device() const { return *kernel_->device; }
  bool hasDebugChecks() const { return kernel_->debugChecks; }
  /// The range of slots of its pool of states. Empty if the kernel has no such
  /// pool.
  SlotRange slotRange() const;

private:
  /// An argument that owns its sizes and strides.
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
                 const gdnrt_named_arg *tokens, size_t count,
                 const LaunchStream &stream);
  Status bind();
  bool mayOverlap(const LaunchStream &stream) const;
  Status giveWorkspace(void *stream);
  Status keepForGraph(void *stream);
  Status fill(const GDNMetadataView &step, const gdnrt_run &run,
              const gdnrt_named_arg *tokens, size_t count);
  Status setVector(size_t param, const void *data, int64_t size, DType dtype);
  void setTable(size_t param, const int32_t *data, int64_t rows,
                int64_t columns);
  static HeldArgument hold(const gdnrt_arg &arg);

  std::shared_ptr<LoadedKernel> kernel_;
  std::unique_ptr<Binding> binding_;
  /// For each parameter.
  std::vector<ParamRole> roles_;
  std::vector<HeldArgument> held_;
  /// The parameters whose role is not `fixed`.
  std::vector<size_t> varying_;
  std::vector<Argument> arguments_;
  /// Workspaces that the kernel allocated. Earlier ones are kept, because
  /// graphs may use them.
  std::vector<std::shared_ptr<void>> workspaces_;
  /// The workspace that layers share, and whether the binding uses it.
  std::shared_ptr<const Workspace> shared_;
  bool sharesWorkspace_ = false;
  /// The run whose arguments are bound. The pointer is only compared.
  const gdnrt_run *prepared_ = nullptr;
  bool changed_ = true;
  bool batchInvariant_ = false;
  bool allowsDependent_ = true;
  /// What the last launch was ordered on, and the writes to pools that had been
  /// noted on the device by then.
  void *lastOrder_ = nullptr;
  uint64_t lastWrites_ = 0;
};

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
  Status shareWorkspace(const std::shared_ptr<const Workspace> &workspace);
  void setBatchInvariant(bool wanted);
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
  Status checkTokens(const gdnrt_named_arg *tokens, size_t count,
                     int64_t needed) const;

  std::shared_ptr<Device> device_;
  std::unique_ptr<LayerKernel> decode_, prefill_, verify_, commit_;
  /// A gdnrt_verify_states.
  int32_t verifyStates_ = GDNRT_VERIFY_SLOTS;
  /// Slices of the arrays of tokens for one run, with their sizes and strides.
  std::vector<gdnrt_named_arg> slices_;
  std::vector<std::array<int64_t, kMaxRank>> sizes_, strides_;
};

} // namespace gdnrt

#endif // GDNRT_GDN_LAYER_H
