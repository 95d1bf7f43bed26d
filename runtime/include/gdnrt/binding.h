// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A complete and checked set of arguments for one entry, stored as the array of
// words that code takes. Binding uses the addresses, types, sizes and strides
// of arrays. It never reads or writes their elements.

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

/// An argument that has passed the checks of a single argument.
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
  /// Binds `count` arguments in the order of the parameters. `code`, which is
  /// copied, is the code that will run, on a device with `workers` workers.
  /// `encoder` belongs to the loaded code, which must outlive the binding; null
  /// if the code has no tensor maps.
  static Result<std::unique_ptr<Binding>>
  make(std::shared_ptr<const EntrySchema> entry, const CodeSchema &code,
       const Argument *args, size_t count, int workers = 1,
       const TensorMapEncoder *encoder = nullptr);

  /// Replaces the arguments of some parameters and checks all arguments again.
  /// On failure the binding is unchanged. Allocates nothing on success.
  Status rebind(const size_t *params, const Argument *args, size_t count);

  /// Gives launches a workspace of `bytes` bytes at `data`, a multiple of 64,
  /// which must overlap no argument. Null and 0 remove it. On failure the
  /// binding is unchanged.
  Status setWorkspace(void *data, uint64_t bytes);
  /// As setWorkspace, for a workspace that launches of other entries use as
  /// well, one launch at a time. Its first `counterBytes` bytes, a multiple of
  /// 64, hold the counters, which are zero when this is called. No entry puts a
  /// region there.
  Status shareWorkspace(void *data, uint64_t bytes, uint64_t counterBytes);
  /// The number of bytes at the start of a workspace of `bytes` bytes that the
  /// caller must fill with zeros when it gives the workspace, in the order of
  /// the launches.
  uint64_t bytesToZero(uint64_t bytes) const {
    return plan_.bytesToZero(bytes);
  }
  void *workspace() const { return workspace_.data; }
  uint64_t workspaceSize() const { return workspace_.bytes; }
  /// Makes launches take variant `index` whatever its conditions say. Without a
  /// value, launches choose a variant again. If the arguments do not lie as the
  /// variant asks, launches fail.
  Status forceVariant(std::optional<size_t> index);
  /// Makes launches run only one stage of their variant. Without a value, they
  /// run all stages.
  void forceStage(std::optional<size_t> index) { stage_ = index; }
  /// Whether launches take only variants that give a sequence the same bits in
  /// any batch; see gdnrt_binding_set_batch_invariant.
  void setBatchInvariant(bool wanted);
  /// Whether launches may begin before the previous kernel has ended.
  /// Conditions of variants may ask for that (`dependent`).
  void allowDependentLaunch(bool allowed);
  bool allowsDependentLaunch() const { return dependentLaunch_; }
  /// Launches take the variant for `sequences` sequences, those that is_prefill
  /// leaves to this entry; 0: the variant for all. Fails if the entry has no
  /// is_prefill.
  Status expectSequences(int64_t sequences);

  const EntrySchema &entry() const { return *entry_; }
  /// The words: all parameters, all symbols, then the address of each region of
  /// the workspace of the chosen variant.
  const std::vector<int64_t> &words() const { return words_; }
  /// The tensor maps of stage `index` of the chosen variant, kMapWords words
  /// for each.
  const int64_t *maps(size_t index) const { return maps_.ofStage(index); }
  /// Whether the binding has tensor maps: the code has some, and the binding
  /// was made with its encoder.
  bool hasMaps() const { return maps_.areNeeded(); }
  const std::vector<BoundParam> &params() const { return params_; }
  int64_t symbol(size_t index) const {
    return words_[entry_->firstSymbolWord() + index];
  }

  /// The variant that a launch takes.
  size_t variant() const { return variant_; }
  /// Fails if no variant's workspace fits, if the workspace of the forced
  /// variant does not fit, if the arguments do not lie as the forced variant
  /// asks, or if one of its tensor maps could not be made.
  Status checkVariant() const;
  /// Whether the workspace is large enough for the chosen variant. If it is,
  /// checkVariant fails only for another reason.
  bool hasPlace() const { return workspace_.fits(plan_.variants()[variant_]); }
  /// The number of units of stage `index` of the chosen variant. 0 if another
  /// stage is forced.
  int64_t stageUnits(size_t index) const {
    if (stage_ && *stage_ != index)
      return 0;
    return plan_.variants()[variant_].stageUnits[index];
  }
  /// The number of units of one launch, over all stages.
  int64_t units() const;
  /// The bytes of workspace that the preferred variant needs: the variant that
  /// a launch takes if the workspace is large enough. Fails if the size is
  /// negative or too large.
  Result<uint64_t> workspaceBytes() const;

private:
  Binding(std::shared_ptr<const EntrySchema> entry, const CodeSchema &code,
          int workers, const TensorMapEncoder *encoder);

  struct Workspace {
    void *data = nullptr;
    uint64_t bytes = 0;
    /// Bytes at the start that are reserved for counters, including those of
    /// other entries.
    uint64_t reservedBytes = 0;
    /// Bytes at the start that were filled with zeros and that no region has
    /// used since.
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
  /// The arguments that are bound, and those that the next commit binds.
  std::vector<BoundParam> params_, nextParams_;
  std::vector<const int64_t *> nextSizes_;
  LaunchPlan plan_, nextPlan_;
  TensorMaps maps_, nextMaps_;
  std::vector<int64_t> words_;
  /// The values of the symbols for the bound arguments.
  std::vector<int64_t> symbols_;
  Workspace workspace_;
  std::optional<size_t> forced_, stage_;
  size_t variant_ = 0;
  /// The reason why maps_ are not the tensor maps of variant_, if a call chose
  /// the variant that could not report a failure.
  Status mapStatus_;
  bool batchInvariant_ = false;
  bool dependentLaunch_ = false;
  int64_t expectedSequences_ = 0;
};

} // namespace gdnrt

#endif // GDNRT_BINDING_H
