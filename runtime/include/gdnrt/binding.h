// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A complete, checked set of arguments for one entry, held as the flat words
// that code consumes. Binding looks at descriptions of arrays and never at
// what their pointers point at.

#ifndef GDNRT_BINDING_H
#define GDNRT_BINDING_H

#include "gdnrt/entry_schema.h"
#include "gdnrt/footprint.h"
#include "gdnrt/launch_plan.h"
#include "gdnrt/status.h"
#include "gdnrt/symbol_solver.h"
#include "gdnrt/tensor_maps.h"

#include <memory>
#include <vector>

namespace gdnrt {

/// One argument as the caller describes it. Sizes and strides are read during
/// the call only; strides are in elements, and null strides mean row-major.
/// Null data with rank 0 leaves out an optional parameter.
struct Argument {
  void *data = nullptr;
  int32_t dtype = 0;
  int32_t rank = 0;
  const int64_t *sizes = nullptr;
  const int64_t *strides = nullptr;
  int64_t nullSlot = 0;
};

/// An argument that passed the checks which concern it alone.
struct BoundParam {
  bool present = false;
  void *data = nullptr;
  int64_t nullSlot = 0;
  int64_t sizes[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};
  Footprint footprint;
};

class Binding {
public:
  /// Binds `count` arguments in parameter order. `code` will run, on a device
  /// with `workers` workers; it is copied. `encoder` is that of the loaded
  /// code, which has to live as long as the binding.
  static Result<std::unique_ptr<Binding>>
  make(std::shared_ptr<const EntrySchema> entry, const CodeSchema &code,
       const Argument *args, size_t count, int workers = 1,
       const TensorMapEncoder *encoder = nullptr);

  /// Replaces the arguments of some parameters and checks everything again.
  /// On failure the binding is what it was. Takes no memory on success.
  Status rebind(const size_t *params, const Argument *args, size_t count);

  /// Gives launches `bytes` bytes at `data` (a multiple of 64) to work in; null
  /// and 0 take them away. They must overlap no argument. On failure the
  /// binding is what it was.
  Status setWorkspace(void *data, uint64_t bytes);
  /// The same for a workspace that launches of other entries have as well, one
  /// launch at a time: its first `counterBytes` bytes, a multiple of 64, are
  /// counters, zero now, and no regions of any of them.
  Status shareWorkspace(void *data, uint64_t bytes, uint64_t counterBytes);
  /// Bytes at the start of a workspace of `bytes` bytes that whoever gives it
  /// zeroes, in the order of the launches.
  uint64_t bytesToZero(uint64_t bytes) const {
    return plan_.bytesToZero(bytes);
  }
  void *workspace() const { return workspace_.data; }
  /// Makes launches take variant `index` whatever its conditions say; nothing:
  /// they choose again. Where arguments do not lie as it asks, they fail.
  Status forceVariant(std::optional<size_t> index);
  /// Makes launches run one stage of their variant alone; nothing: all of them.
  void forceStage(std::optional<size_t> index) { stage_ = index; }
  /// Whether launches take only variants that give a sequence the same bits in
  /// any batch; see gdnrt_binding_set_batch_invariant.
  void setBatchInvariant(bool wanted);
  /// Whether launches may begin before the kernel ahead of them has ended,
  /// which conditions of variants may ask for.
  void allowDependentLaunch(bool allowed);
  bool allowsDependentLaunch() const { return dependentLaunch_; }

  const EntrySchema &entry() const { return *entry_; }
  /// All parameters, all symbols, then the address of each region of the
  /// chosen variant's workspace.
  const std::vector<int64_t> &words() const { return words_; }
  /// kMapWords words for each box of stage `index` of the chosen variant.
  const int64_t *maps(size_t index) const { return maps_.ofStage(index); }
  /// Whether it was made with the encoder of its code, so that there are maps.
  bool hasMaps() const { return maps_.areNeeded(); }
  const std::vector<BoundParam> &params() const { return params_; }
  int64_t symbol(size_t index) const {
    return words_[entry_->firstSymbolWord() + index];
  }

  /// The variant that a launch takes.
  size_t variant() const { return variant_; }
  /// Fails if there is no variant whose workspace fits, or the forced one's
  /// does not, or arguments do not lie as that one asks, or a map of its boxes
  /// could not be made.
  Status checkVariant() const;
  /// Whether the workspace is enough for that variant; then `checkVariant` says
  /// what else is wrong.
  bool hasPlace() const { return workspace_.fits(plan_.variants()[variant_]); }
  /// Units of stage `index` of the chosen variant; none if another is forced.
  int64_t stageUnits(size_t index) const {
    if (stage_ && *stage_ != index)
      return 0;
    return plan_.variants()[variant_].stageUnits[index];
  }
  /// Units of work of one launch, of all stages.
  int64_t units() const;
  /// Bytes of workspace with which a launch takes the variant that it would
  /// take if there was enough. Fails if that cannot be told.
  Result<uint64_t> workspaceBytes() const;

private:
  Binding(std::shared_ptr<const EntrySchema> entry, const CodeSchema &code,
          int workers, const TensorMapEncoder *encoder);

  struct Workspace {
    void *data = nullptr;
    uint64_t bytes = 0;
    /// The start that is kept for counters, also those of other entries.
    uint64_t reservedBytes = 0;
    /// The start that was zeroed and that no region used since.
    uint64_t zeroBytes = 0;

    bool fits(const LaunchPlan::Variant &variant) const {
      return variant.workspaceBytes && *variant.workspaceBytes <= bytes &&
             variant.counterBytes <= zeroBytes;
    }
  };

  Status checkAll();
  Status takeWorkspace(const Workspace &next);
  void commit();
  void tellLayouts(LaunchPlan &plan,
                   const std::vector<BoundParam> &params) const;
  void chooseVariant();
  size_t choose(const LaunchPlan &plan, uint64_t bytes,
                uint64_t zeroBytes) const;
  Status encodeNextMaps(const LaunchPlan &plan,
                        const std::vector<BoundParam> &params,
                        const std::vector<int64_t> &symbols,
                        const Workspace &workspace);
  void takeVariant();

  std::shared_ptr<const EntrySchema> entry_;
  CodeSchema code_;
  int workers_;
  SymbolSolver solver_;
  /// What is bound now, and what the next commit will bind.
  std::vector<BoundParam> params_, nextParams_;
  std::vector<const int64_t *> nextSizes_;
  LaunchPlan plan_, nextPlan_;
  TensorMaps maps_, nextMaps_;
  std::vector<int64_t> words_;
  /// The values of the symbols that are bound now.
  std::vector<int64_t> symbols_;
  Workspace workspace_;
  std::optional<size_t> forced_, stage_;
  size_t variant_ = 0;
  /// Why maps_ are not those of variant_, where the call that chose it could
  /// not fail.
  Status mapStatus_;
  bool batchInvariant_ = false;
  bool dependentLaunch_ = false;
};

} // namespace gdnrt

#endif // GDNRT_BINDING_H
