// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plays a trace: keeps sequences as an engine's scheduler does, runs each both
// through the kernels and through the float64 model, and after every step
// compares outputs, all states, and who owns which slot.

#ifndef GDNRT_TRACES_SCHEDULER_H
#define GDNRT_TRACES_SCHEDULER_H

#include "state.h"

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace gdnrt::traces {

struct Failure {
  /// The step in which it was found.
  size_t step;
  std::string what;
};

class Scheduler : private State {
public:
  /// Says what it does to `log` unless that is null.
  Scheduler(const Kernels &kernels, const Trace &trace, Bug bug,
            std::ostream *log);
  /// Plays all steps, finishes what is left, and expects an empty pool.
  std::optional<Failure> play();
  const Coverage &ran() const { return coverage; }

private:
  void perform(const Step &step);
  void admit(const Step &step);
  void fork(const Step &step);
  void keep(const Step &step);
  void resume(const Step &step);
  void drop(const Step &step);
  void evict(const Step &step);
  void readmit(const Step &step);
  void finish(size_t index);
  /// Takes slots for a sequence; false: full.
  bool take(Sequence &sequence);
  void freeSlots(const std::vector<int32_t> &slots);
};

} // namespace gdnrt::traces

#endif // GDNRT_TRACES_SCHEDULER_H
