// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Log decays of the 16 tokens of a warp, on their way to shared memory.
#ifndef GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_LOGDECAYS_H
#define GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_LOGDECAYS_H

#include "Fragments/SharedMatrix.h"

namespace gdn {

/// The thread's elements `local` of log decays, to base 2.
llvm::SmallVector<mlir::Value>
toPowersOfTwo(mlir::OpBuilder &b, mlir::Location loc, mlir::Value local);

/// `logs`, to base 2 in the layout of `type`, in f16; for the warp itself.
void storeLogs(mlir::OpBuilder &b, mlir::Location loc,
               const BlockThreads &threads, gpu::FragmentType type,
               llvm::ArrayRef<mlir::Value> logs, const SharedMatrix &to);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GPUTONVVM_PRODUCTS_LOGDECAYS_H
