// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layouts and buffers of tiles. Barriers are not placed here:
// gdn-gpu-place-barriers puts them where an access has to wait for another.
#include "Products/SharedTiles.h"

using namespace mlir;
using namespace gdn;

SharedTiles::SharedTiles(OpBuilder &b, IRMapping &scalars, Block *entry,
                         int64_t numWarps)
    : b(b), scalars(scalars), numWarps(numWarps),
      matrixRows(gpu::RowsAttr::get(b.getContext(), numWarps, 4, 2)),
      entry(entry) {}

gpu::RowsAttr SharedTiles::wideRowsOf(VectorType tile) const {
  int64_t pieces = tile.getDimSize(1) / 8;
  // A slice of a shared tile goes by rows of 128 bytes.
  int64_t lanes = std::min<int64_t>(slice.rows == 0 ? 32 : 8, pieces & -pieces);
  return gpu::RowsAttr::get(b.getContext(), numWarps,
                            std::max<int64_t>(lanes, 1), 8);
}

gpu::RowsAttr SharedTiles::rowsOf(VectorType tile) const {
  return slice.rows == 0 && !dealsWide &&
                 tile.getDimSize(0) % (8 * numWarps) == 0
             ? matrixRows
             : wideRowsOf(tile);
}

/// Whether `decay_operands` take `tile`, or what elementwise work makes of it,
/// and nothing else does.
static bool isForLogDecays(Value tile) {
  return !tile.use_empty() && llvm::all_of(tile.getUses(), [](OpOperand &use) {
    if (auto operands = dyn_cast<tile::DecayOperandsOp>(use.getOwner()))
      return use.get() == operands.getLogDecay();
    auto map = dyn_cast<tile::MapRowsOp>(use.getOwner());
    return map && llvm::all_of(map.getResults(), isForLogDecays);
  });
}

gpu::RowsAttr SharedTiles::rowsOf(Value tile) const {
  VectorType type = shown(tile);
  return isForLogDecays(tile) ? gpu::DecayOperandsOp::getLogRows(type, numWarps)
                              : rowsOf(type);
}

VectorType SharedTiles::shown(Value tile) const {
  VectorType type = vectorType(tile);
  if (slice.rows == 0)
    return type;
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = slice.rows;
  return VectorType::get(shape, type.getElementType());
}

bool SharedTiles::isDead(Value tile) const {
  return llvm::all_of(tile.getUsers(), [&](Operation *user) {
    while (user && !emitted.contains(user) &&
           !isa<tile::TileDialect>(user->getDialect()))
      user = user->getParentOp();
    if (!user)
      return false;
    if (auto transpose = dyn_cast<tile::TransposeOp>(user))
      return emitted.contains(user) && isDead(transpose.getResult());
    return emitted.contains(user);
  });
}

/// What another block made may be needed when that comes round again.
Value SharedTiles::allocate(gpu::SharedType type, Block *block) {
  Value free;
  for (auto &[owner, buffer] : buffers)
    if (buffer.getType() == type && owner.getParentBlock() == block &&
        !pinned.contains(buffer) && isDead(owner))
      free = owner;
  if (free) {
    Value buffer = buffers.lookup(free);
    buffers.erase(free);
    return buffer;
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(entry);
  return gpu::AllocOp::create(b, b.getUnknownLoc(), type);
}

Value SharedTiles::bufferFor(Value tile, VectorType type, bool swizzled,
                             Block *block) {
  Value own = findDestination(tile);
  return own ? own : allocate(gpu::SharedType::get(type, swizzled), block);
}

Value SharedTiles::bufferOf(Value tile) {
  if (Value buffer = buffers.lookup(tile))
    return buffer;
  auto transpose = tile.getDefiningOp<tile::TransposeOp>();
  Value fragment = fragmentOf(transpose ? transpose.getTile() : tile);
  Value buffer = bufferFor(tile, vectorType(tile), isNarrow(vectorType(tile)),
                           tile.getParentBlock());
  gpu::StoreSharedOp::create(b, tile.getLoc(), fragment, buffer, Value(),
                             bool(transpose));
  return buffers[tile] = buffer;
}

Value SharedTiles::fragmentOf(Value tile, gpu::RowsAttr rows) {
  Value known = fragments.lookup(tile);
  if (known && cast<gpu::FragmentType>(known.getType()).getLayout() == rows)
    return known;
  Location loc = tile.getLoc();
  auto type = gpu::FragmentType::get(shown(tile), rows);
  if (slice.rows != 0)
    return gpu::LoadSharedOp::create(b, loc, type, buffers.lookup(tile),
                                     sliceRow(loc));
  if (auto fill = tile.getDefiningOp<tile::FillOp>())
    return gpu::FillOp::create(b, loc, type,
                               scalars.lookupOrDefault(fill.getValue()));
  auto transpose = tile.getDefiningOp<tile::TransposeOp>();
  bool isTransposed = transpose && !buffers.contains(tile) && rows.isMatrix();
  Value source = isTransposed ? transpose.getTile() : tile;
  return gpu::LoadSharedOp::create(b, loc, type, bufferOf(source), Value(),
                                   isTransposed);
}

Value SharedTiles::vectorOf(Value tile, Attribute layout) {
  if (Value known = fragments.lookup(tile)) // of this layout: sums of rows
    return known;
  Location loc = tile.getLoc();
  VectorType type = vectorType(tile);
  Value buffer = buffers.lookup(tile);
  if (slice.rows == 0 || !isa<gpu::PerRowAttr>(layout))
    return gpu::LoadSharedOp::create(
        b, loc, gpu::FragmentType::get(type, layout), buffer, Value());
  // The elements that belong to the rows of the slice.
  auto apart = VectorType::get({type.getDimSize(0) / slice.rows, slice.rows},
                               type.getElementType());
  Value rows = gpu::ReshapeOp::create(
      b, loc, gpu::SharedType::get(apart, /*swizzled=*/false), buffer);
  return gpu::LoadSharedOp::create(
      b, loc, gpu::FragmentType::get(shown(tile), layout), rows,
      arith::ConstantIndexOp::create(b, loc, slice.number));
}

Value SharedTiles::sliceRow(Location loc) {
  return arith::ConstantIndexOp::create(b, loc, slice.number * slice.rows);
}
