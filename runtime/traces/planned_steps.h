// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps of an engine whose arrays are on the device.

#ifndef GDNRT_TRACES_PLANNED_STEPS_H
#define GDNRT_TRACES_PLANNED_STEPS_H

#include "engine.h"

#include <vector>

namespace gdnrt::traces {

class PlannedSteps {
public:
  explicit PlannedSteps(Engine &engine) : engine_(engine) {}
  ~PlannedSteps();
  PlannedSteps(const PlannedSteps &) = delete;
  PlannedSteps &operator=(const PlannedSteps &) = delete;

  void makePlanner(int32_t verifyStates);
  /// `fits`: in a graph. `isBeyond`: it has more sequences of prefill than one.
  std::vector<Outputs> serve(StepArrays step, bool fits, bool isBeyond);
  size_t numPlanned() const { return numPlanned_; }

private:
  gdnrt_device_batch writeBatch(StepArrays step, int64_t numSeqs);

  Engine &engine_;
  gdnrt_batch_planner *planner_ = nullptr;
  size_t numPlanned_ = 0;
};

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_PLANNED_STEPS_H
