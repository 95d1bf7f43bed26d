// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How kernels that memory bounds are scheduled on a target: everything about
// decode and commit that was measured on chips, or that ptxas makes of them,
// in one place.
#ifndef GDN_LIB_PIPELINES_DECODEPOLICY_H
#define GDN_LIB_PIPELINES_DECODEPOLICY_H

#include "gdn/Schedule/Passes.h"
#include "gdn/Target/TargetModel.h"

#include <optional>

namespace gdn {

struct DecodePolicy {
  /// Of the variant "persistent"; none where there are no bulk copies.
  std::optional<SchedulePersistentRecurrenceOptions> persistent;
  /// Of the variants "rows" and "narrow".
  ScheduleResidentRecurrenceOptions resident;
  /// Of commits and moves of slots.
  ScheduleSlotMovesOptions moves;
  /// Bytes of a state that a block copies or zeroes.
  int64_t slotPiece = 16 * 1024;

  static DecodePolicy get(const TargetModel &target);
};

} // namespace gdn

#endif // GDN_LIB_PIPELINES_DECODEPOLICY_H
