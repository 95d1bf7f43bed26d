// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads from shared memory whose values may not have arrived. An instruction
// that uses a value waits for it; an arrival at a barrier does not. So a bulk
// copy, which a barrier allows to overwrite the bytes, may overtake the load.

#ifndef GDN_TEST_PTX_PENDINGREADS_H
#define GDN_TEST_PTX_PENDINGREADS_H

#include "Program.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ptx {

/// Of one warp. Times are the warp's; no two loads have the same.
class PendingReads {
public:
  /// A load to the first `count` operands of `instruction` begins.
  void begin(const Instruction &instruction, unsigned count, uint32_t time,
             size_t numValues) {
    timeOf_.resize(numValues);
    for (unsigned k = 0; k < count; ++k)
      if (int value = instruction.operands[k].value; value >= 0)
        timeOf_[static_cast<size_t>(value)] = time;
    pending_.push_back({time, false});
  }

  /// `instruction` is about to run at `now`: loads whose values it names are
  /// over. A move is none of the hardware's instructions: what it moves to is
  /// loaded, too.
  void use(const Instruction &instruction, uint32_t now);

  /// All loads are over, as behind a fence.
  void finish(uint32_t now) {
    while (!pending_.empty())
      end(0, now);
  }

  /// Others are told of all that the warp has done.
  void tell() {
    for (Load &load : pending_)
      if (!load.isTold) {
        told_.push_back({load.time, 0});
        load.isTold = true;
      }
  }

  bool empty() const { return pending_.empty(); }

  /// Whether the value of a load at `time` may not have arrived when the warp
  /// told what it did up to `known`, which is `time` or later.
  bool isUnderWay(uint32_t time, uint32_t known) const {
    auto found = std::lower_bound(
        told_.begin(), told_.end(), time,
        [](const Told &told, uint32_t at) { return told.time < at; });
    return found != told_.end() && found->time == time &&
           (found->end == 0 || found->end > known);
  }

private:
  struct Load {
    uint32_t time;
    bool isTold;
  };
  /// A load that was under way when the warp told of it, and when its value was
  /// used first; 0: it was not.
  struct Told {
    uint32_t time, end;
  };
  void end(size_t index, uint32_t now);
  /// Of the load that makes a value, when it began; 0: none does.
  uint32_t loadOf(int value) const {
    const size_t index = static_cast<size_t>(value); // -1 is beyond all
    return index < timeOf_.size() ? timeOf_[index] : 0;
  }

  std::vector<Load> pending_;
  /// In the order of their times.
  std::vector<Told> told_;
  /// By value, the load that makes it; 0: none.
  std::vector<uint32_t> timeOf_;
};

} // namespace ptx

#endif // GDN_TEST_PTX_PENDINGREADS_H
