// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which elements of a pool lie side by side in memory: `gdn.contiguous` of
// docs/spec/entry.md.
#ifndef GDN_DIALECT_GDN_IR_POOLORDER_H
#define GDN_DIALECT_GDN_IR_POOLORDER_H

#include "gdn/Dialect/GDN/IR/GDN.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <optional>

namespace gdn {

/// The attribute of arguments that says it.
inline constexpr llvm::StringLiteral contiguousAttr = "gdn.contiguous";

/// The dimension of the pool, argument `index` of `func`, in which elements lie
/// side by side. Without the attribute that is the last one of states, which
/// have rank 4; nothing is known of other pools.
std::optional<int64_t> getContiguousDim(mlir::FunctionOpInterface func,
                                        unsigned index);

} // namespace gdn

#endif // GDN_DIALECT_GDN_IR_POOLORDER_H
