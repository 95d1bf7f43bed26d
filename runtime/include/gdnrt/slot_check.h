// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The debug check of slot ids. It reads the tensors `slots`, `write_slots`,
// `token_slots` with `num_accepted`, and those of checkpoints on the host,
// which binding and launching never do otherwise, counts the ids that kernels
// skip, and refuses two sequences that would race on one slot, and a checkpoint
// in a slot that something else uses.

#ifndef GDNRT_SLOT_CHECK_H
#define GDNRT_SLOT_CHECK_H

#include "gdnrt/binding.h"
#include "gdnrt/status.h"

namespace gdnrt {

/// Counts over the ids of `slots`, against the pool with the fewest slots.
struct SlotReport {
  int64_t live = 0;
  int64_t skippedNegative = 0;
  int64_t skippedNull = 0;
  int64_t skippedPastEnd = 0;
};

class Device;

/// Checks the slot ids of `binding`. An entry without `slots` or without a
/// pool has none. The ids are in memory of `device`, or of the host if that is
/// null.
Result<SlotReport> checkSlots(const Binding &binding, Device *device = nullptr);

} // namespace gdnrt

#endif // GDNRT_SLOT_CHECK_H
