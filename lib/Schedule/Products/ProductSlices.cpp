// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work on shared matrices by a role that has registers for a few rows of them.
#include "Products/SharedTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace gdn;

/// Rows behind which the swizzle of a shared tile repeats: slices of a multiple
/// of them differ by a number of bytes.
static constexpr int64_t swizzleRows = 8;

VectorType ProductEmitter::shown(Value tile) const {
  auto type = cast<VectorType>(tile.getType());
  if (slice.rows == 0)
    return type;
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = slice.rows;
  return VectorType::get(shape, type.getElementType());
}

/// The first row of the slice.
Value ProductEmitter::sliceRow(Location loc) {
  return arith::ConstantIndexOp::create(b, loc, slice.number * slice.rows);
}

/// The elements of a vector that belong to the rows of the slice.
Value ProductEmitter::fetchSlice(Value vector, gpu::PerRowAttr layout) {
  Location loc = vector.getLoc();
  auto type = cast<VectorType>(vector.getType());
  auto apart = VectorType::get({type.getDimSize(0) / slice.rows, slice.rows},
                               type.getElementType());
  Value buffer = gpu::ReshapeOp::create(
      b, loc, gpu::SharedType::get(apart, /*swizzled=*/false),
      buffers.lookup(vector));
  return gpu::LoadSharedOp::create(
      b, loc, gpu::FragmentType::get(shown(vector), layout), buffer,
      arith::ConstantIndexOp::create(b, loc, slice.number));
}

void ProductEmitter::emitInSlices(ArrayRef<Operation *> maps) {
  if (maps.empty())
    return;
  Location loc = maps.front()->getLoc();
  VectorType whole = vectorType(maps.back()->getResult(0));
  slice.rows = swizzleRows;
  gpu::RowsAttr rows = wideRowsOf(whole);
  // Each warp has rows of its own.
  const int64_t sliceRows =
      std::max(swizzleRows, rows.getWarps() * rows.getGroups());
  const int64_t count = whole.getDimSize(0) / sliceRows;
  llvm::MapVector<Value, Value> made;
  for (Operation *map : maps)
    for (Value tile : map->getResults())
      if (auto own = destinations.find(tile); own != destinations.end())
        made[tile] = own->second();
  // No loop: slices differ by constants then, which take no registers.
  for (int64_t i = 0; i < count; ++i) {
    slice = {sliceRows, i};
    for (Operation *map : maps)
      emitMap(cast<tile::MapRowsOp>(map));
    for (auto [tile, buffer] : made)
      gpu::StoreSharedOp::create(b, loc, fragments.lookup(tile), buffer,
                                 sliceRow(loc));
    for (Operation *map : maps)
      for (Value tile : map->getResults())
        fragments.erase(tile);
  }
  slice = {};
  emitted.insert(maps.begin(), maps.end());
}
