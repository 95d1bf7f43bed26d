// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What maps multiply rows with.
#ifndef GDN_LIB_SCHEDULE_PRODUCTS_ROWFACTORS_H
#define GDN_LIB_SCHEDULE_PRODUCTS_ROWFACTORS_H

#include "Products/SharedTiles.h"

#include <optional>

namespace gdn {

/// A tile that a map multiplies rows with: each row with an element, or all of
/// them with the same vector.
struct RowFactor {
  mlir::Value factor;
  bool isPerRow;

  bool operator==(const RowFactor &other) const {
    return factor == other.factor && isPerRow == other.isPerRow;
  }
};

/// What `map` multiplies its first input with in f32, rounded once to f16 if
/// that has the result; none if it does anything else.
std::optional<llvm::SmallVector<RowFactor, 1>> getFactors(tile::MapRowsOp map);
/// The number that all rows are multiplied with: 1 if `factors` are none; none
/// if they are something else.
std::optional<double> getNumber(llvm::ArrayRef<RowFactor> factors);
/// Whether the result is f16.
bool isRounded(tile::MapRowsOp map);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_PRODUCTS_ROWFACTORS_H
