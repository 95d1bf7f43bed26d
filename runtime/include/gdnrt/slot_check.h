// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The debug check of slot ids. It reads the arrays `slots`, `write_slots`,
// `token_slots` with `num_accepted`, and those of checkpoints on the host,
// which binding and launching never do otherwise. It counts the ids that
// kernels skip. It refuses two sequences that race on a slot, and a checkpoint
// in a slot that is used otherwise.

#ifndef GDNRT_SLOT_CHECK_H
#define GDNRT_SLOT_CHECK_H

#include "gdnrt/binding.h"
#include "gdnrt/status.h"

namespace gdnrt {

/// The number of ids of `slots` by kind, for the pool with the fewest slots.
struct SlotReport {
  int64_t live = 0;
  int64_t skippedNegative = 0;
  int64_t skippedNull = 0;
  int64_t skippedPastEnd = 0;
};

class Device;

/// Checks the slot ids of `binding`. An entry without `slots` or without a pool
/// has none. The ids are in the memory of `device`, or on the host if `device`
/// is null. INVALID_ARGUMENT if sequences race.
Result<SlotReport> checkSlots(const Binding &binding, Device *device = nullptr);

} // namespace gdnrt

#endif // GDNRT_SLOT_CHECK_H
