// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A loop over chunks with a decay per channel in roles of its own.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_CHANNELROLES_H
#define GDN_LIB_SCHEDULE_PRODUCTS_CHANNELROLES_H

#include "Products/RoleProgram.h"

namespace gdn {

/// Emits the kernel of `source`, whose plan has a chunk with a decay per
/// channel, ahead of it; `numWarps` of it have the recurrence.
mlir::FailureOr<mlir::func::FuncOp> emitChannelRoles(mlir::func::FuncOp source,
                                                     const RolePlan &plan,
                                                     int64_t numWarps);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_CHANNELROLES_H
