// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The debug check of a step's slots over all of its runs. slot_check.h looks at
// one launch, as kernels see it; this at what the builder says of all of them.

#ifndef GDNRT_STEP_CHECK_H
#define GDNRT_STEP_CHECK_H

#include "gdn-c/serving.h"
#include "gdnrt/status.h"

#include <cstdint>

namespace gdnrt {

/// Slots that a pool has; the null slot is none.
struct SlotRange {
  int64_t numSlots = 0;
  int64_t nullSlot = 0;
  bool isLive(int64_t slot) const {
    return slot >= 0 && slot != nullSlot && slot < numSlots;
  }
};

/// Refuses a step in which a sequence writes a slot that another sequence, of
/// the same or of another run, reads or writes. Reads the host's metadata.
Status checkStepSlots(const gdnrt_gdn_metadata &metadata, SlotRange range);

} // namespace gdnrt

#endif // GDNRT_STEP_CHECK_H
