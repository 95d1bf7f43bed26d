// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The debug check of the slots of a step, over all of its runs. slot_check.h
// checks one launch, with the arrays that its kernel reads. This check uses the
// metadata of the builder.

#ifndef GDNRT_STEP_CHECK_H
#define GDNRT_STEP_CHECK_H

#include "gdn-c/serving.h"
#include "gdnrt/status.h"

#include <cstdint>

namespace gdnrt {

/// The range of the slots of a pool. An id is live if it names a slot other
/// than the null slot.
struct SlotRange {
  int64_t numSlots = 0;
  int64_t nullSlot = 0;
  bool isLive(int64_t slot) const {
    return slot >= 0 && slot != nullSlot && slot < numSlots;
  }
};

/// The index in the step of element `row` of a run. In a mixed batch that is of
/// sequences only.
int64_t sequenceOf(const gdnrt_gdn_metadata &metadata, const gdnrt_run &run,
                   int64_t row);

/// INVALID_ARGUMENT if a sequence writes a slot that another sequence of the
/// step, in the same run or in another one, reads or writes. Reads the metadata
/// on the host.
Status checkStepSlots(const gdnrt_gdn_metadata &metadata, SlotRange range);

} // namespace gdnrt

#endif // GDNRT_STEP_CHECK_H
