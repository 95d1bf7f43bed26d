// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel of a layer: its arguments, its workspace, and its launches.

#ifndef GDNRT_LAYER_KERNEL_H
#define GDNRT_LAYER_KERNEL_H

#include "gdnrt/layer_arguments.h"
#include "gdnrt/layer_workspaces.h"
#include "gdnrt/loaded_kernel.h"
#include "gdnrt/symbol_solver.h"
#include "gdnrt/workspace.h"

#include <memory>
#include <optional>

namespace gdnrt {

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
  /// Where the kernel works. Without a workspace it takes memory of its own, if
  /// it cannot run without.
  LayerWorkspaces &workspaces() { return workspaces_; }
  /// See Binding::setBatchInvariant.
  void setBatchInvariant(bool wanted);
  /// Whether a launch may begin before the kernel ahead of it has ended, unless
  /// slots have been written by something other than a step.
  void allowDependentLaunch(bool allowed) { allowsDependent_ = allowed; }
  /// Raises `size` to what runs of up to `rows` sequences and `tokens` tokens
  /// need.
  Status addWorkspace(int64_t rows, int64_t tokens,
                      gdnrt_workspace_size &size) const;
  /// Of a verify whose tokens stay pending: how many of a step its pools keep.
  /// Nothing for another kernel.
  std::optional<int64_t> keptTokens() const;
  const EntrySchema &entry() const { return *kernel_->entry; }
  const ParamSchema *tokenParam(const char *name) const {
    return arguments_.tokenParam(name);
  }
  Device &device() const { return *kernel_->device; }
  bool hasDebugChecks() const { return kernel_->debugChecks; }
  /// The range of slots of its pool of states. Empty if the kernel has no such
  /// pool.
  SlotRange slotRange() const { return arguments_.slotRange(); }

private:
  LayerKernel(std::shared_ptr<LoadedKernel> kernel, LayerArguments arguments)
      : kernel_(std::move(kernel)), arguments_(std::move(arguments)),
        layerSymbols_(*kernel_->entry) {}
  Status prepare(const GDNMetadataView &step, const gdnrt_run &run,
                 const gdnrt_named_arg *tokens, size_t count,
                 const LaunchStream &stream);
  Status bind();
  bool mayOverlap(const LaunchStream &stream) const;
  std::vector<int64_t> symbolsOf(int64_t rows, int64_t tokens) const;

  std::shared_ptr<LoadedKernel> kernel_;
  LayerArguments arguments_;
  /// What the sizes of weights and pools say.
  SymbolSolver layerSymbols_;
  std::unique_ptr<Binding> binding_;
  LayerWorkspaces workspaces_;
  /// The run whose arguments are bound. The pointer is only compared.
  const gdnrt_run *prepared_ = nullptr;
  bool batchInvariant_ = false;
  bool allowsDependent_ = true;
  /// What the last launch was ordered on, and the writes to pools that had been
  /// noted on the device by then.
  void *lastOrder_ = nullptr;
  uint64_t lastWrites_ = 0;
};

} // namespace gdnrt

#endif // GDNRT_LAYER_KERNEL_H
