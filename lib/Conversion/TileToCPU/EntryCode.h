// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The outside of an entry's CPU code: words in, a range of blocks to run.
#ifndef GDN_LIB_CONVERSION_TILETOCPU_ENTRYCODE_H
#define GDN_LIB_CONVERSION_TILETOCPU_ENTRYCODE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gdn {

/// Replaces the tile function `source`, whose body already works on memory and
/// whose last argument is the scratch block, by the entry's code: a function of
/// (words, begin, end, scratch) that runs the body for each block of the
/// range.
void emitEntryCode(mlir::func::FuncOp source);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_TILETOCPU_ENTRYCODE_H
