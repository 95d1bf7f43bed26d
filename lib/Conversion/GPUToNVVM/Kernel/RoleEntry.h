// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a role of gdn_gpu.roles begins.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_ROLEENTRY_H
#define GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_ROLEENTRY_H

#include "Kernel/BlockThreads.h"

namespace gdn {

/// Where `role` is the first of several in a group of four warps: the registers
/// of the group, all of whose warps take the same instruction. `warp` is the
/// number of the warp in the block.
void setGroupRegisters(mlir::OpBuilder &b, gpu::WarpsOp role,
                       int64_t blockThreads, mlir::Value warp);

/// Makes `threads`, whose numbers count in `role` already, those of the role
/// in a block of `blockThreads`. A role with registers of its own takes what it
/// lacks, or gives back what it has too many, unless that was done for its
/// group; and keeps its thread's numbers.
void enterRole(mlir::OpBuilder &b, gpu::WarpsOp role, int64_t blockThreads,
               BlockThreads &threads);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_KERNEL_ROLEENTRY_H
