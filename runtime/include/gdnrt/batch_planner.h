// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Metadata of steps whose arrays are on the device; see gdn-c/batch_planner.h.

#ifndef GDNRT_BATCH_PLANNER_H
#define GDNRT_BATCH_PLANNER_H

#include "gdn-c/batch_planner.h"
#include "gdnrt/binding.h"
#include "gdnrt/loaded_kernel.h"

#include <array>
#include <memory>
#include <vector>

namespace gdnrt {

class BatchPlanner {
public:
  static Result<std::unique_ptr<BatchPlanner>>
  make(std::shared_ptr<LoadedKernel> plan,
       const gdnrt_batch_planner_options &options);

  Status plan(const gdnrt_device_batch &batch, void *stream,
              gdnrt_gdn_metadata &metadata);

private:
  BatchPlanner(std::shared_ptr<LoadedKernel> plan,
               const gdnrt_batch_planner_options &options)
      : plan_(std::move(plan)), options_(options),
        args_(plan_->entry->params.size()), params_(args_.size()) {}
  Device &device() const { return *plan_->device; }
  int64_t columns() const { return options_.num_speculative_tokens + 1; }
  bool isKind(int32_t kind) const { return options_.verify_states == kind; }
  bool hasCounts() const { return !isKind(GDNRT_VERIFY_TREE); }
  bool hasCommits() const {
    return isKind(GDNRT_VERIFY_LAZY) || isKind(GDNRT_VERIFY_BUFFER);
  }
  /// Whether states after tokens have slots that the table does not name.
  bool hasTokenSlots() const {
    return isKind(GDNRT_VERIFY_TREE) || isKind(GDNRT_VERIFY_BUFFER);
  }

  Status takeMemory();
  Status check(const gdnrt_device_batch &batch) const;
  Status bind(const gdnrt_device_batch &batch);
  gdnrt_gdn_metadata describe(const gdnrt_device_batch &batch);
  void describeVerify(const gdnrt_device_batch &batch, gdnrt_gdn_metadata &m);
  void describeRuns(int64_t rows, int64_t elements, gdnrt_gdn_metadata &m);

  std::shared_ptr<LoadedKernel> plan_;
  gdnrt_batch_planner_options options_;
  /// One for each parameter, for the time of a bind.
  std::vector<Argument> args_;
  std::vector<size_t> params_;
  std::unique_ptr<Binding> binding_;
  /// The batch that is bound.
  gdnrt_device_batch bound_ = {};
  /// Memory of the device, and the arrays in it.
  std::shared_ptr<void> memory_;
  uint8_t *isPrefill_ = nullptr, *hasInitial_ = nullptr, *taken_ = nullptr;
  int32_t *verifyCuSeqlens_ = nullptr, *verifySlots_ = nullptr,
          *verifyAccepted_ = nullptr;
  int32_t *cuSeqlens_ = nullptr, *slots_ = nullptr, *writeSlots_ = nullptr;
  int32_t *commitSlots_ = nullptr, *commitAccepted_ = nullptr;
  int32_t *zeros_ = nullptr;
  std::array<gdnrt_run, 3> runs_ = {};
};

} // namespace gdnrt

#endif // GDNRT_BATCH_PLANNER_H
