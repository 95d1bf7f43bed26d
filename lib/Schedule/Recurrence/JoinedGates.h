// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gates that the warp of the value makes: what they are made of is asked for
// with what the value is made of.
#ifndef GDN_LIB_SCHEDULE_RECURRENCE_JOINEDGATES_H
#define GDN_LIB_SCHEDULE_RECURRENCE_JOINEDGATES_H

#include "Kernel/ScheduledKernel.h"

namespace gdn {

/// Numbers of a head that gates are made of, as tiles of one.
using HeadNumbers = llvm::MapVector<mlir::Value, mlir::Value>;

/// Loads what the gates are made of.
HeadNumbers emitGateLoads(mlir::OpBuilder &b, const RoleWork &gates,
                          FragmentEmitter &warp);

/// Makes the gates, behind the value.
void emitGates(mlir::OpBuilder &b, mlir::Location loc, const RoleWork &gates,
               const HeadNumbers &numbers, FragmentEmitter &warp);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_RECURRENCE_JOINEDGATES_H
