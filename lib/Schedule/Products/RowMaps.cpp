// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The bodies of maps go to kernels as they are; inputs come as fragments, and
// what a body takes from outside as elements or as rows. The role that scales
// has registers for a few rows of shared matrices.
#include "Products/RowMaps.h"

using namespace mlir;
using namespace gdn;

void gdn::cloneBody(OpBuilder &b, Block &from, Block *to, IRMapping &mapping) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(to);
  auto cloneConstant = [&](Value value) {
    if (Operation *constant = value.getDefiningOp();
        constant && constant->hasTrait<OpTrait::ConstantLike>() &&
        !mapping.contains(value))
      b.clone(*constant, mapping);
  };
  for (Operation &op : from.without_terminator()) {
    if (mapping.contains(op.getResult(0)))
      continue; // taken out of the body
    llvm::for_each(op.getOperands(), cloneConstant);
    b.clone(op, mapping);
  }
  SmallVector<Value> yielded;
  for (Value value : from.getTerminator()->getOperands()) {
    cloneConstant(value);
    yielded.push_back(mapping.lookupOrDefault(value));
  }
  gpu::YieldOp::create(b, from.getTerminator()->getLoc(), yielded);
}

void gdn::emitMap(SharedTiles &tiles, tile::MapRowsOp map) {
  OpBuilder &b = tiles.b;
  Location loc = map.getLoc();
  gpu::RowsAttr rows;
  for (Value tile : llvm::concat<Value>(map.getInputs(), map.getResults()))
    if (!isVector(tile))
      rows = tiles.rowsOf(tile);
  auto perRow = gpu::PerRowAttr::get(b.getContext(), rows);
  auto perColumn = gpu::PerColumnAttr::get(b.getContext(), rows);
  Block &from = map.getBody().front();
  IRMapping mapping = tiles.scalars;
  SmallVector<Value> inputs;
  for (Value input : map.getInputs())
    inputs.push_back(isVector(input) ? tiles.vectorOf(input, perRow)
                                     : tiles.fragmentOf(input, rows));
  // Tiles of rank 1 from outside: single elements, and rows as they are.
  SetVector<Value> captured;
  map.getBody().walk([&](Operation *op) {
    if (auto extract = dyn_cast<vector::ExtractOp>(op))
      if (Value buffer = tiles.findBuffer(extract.getSource());
          buffer && extract.getStaticPosition().size() == 1) {
        Value at = arith::ConstantIndexOp::create(
            b, loc, extract.getStaticPosition().front());
        mapping.map(extract.getResult(),
                    gpu::LoadSharedElementOp::create(b, loc, extract.getType(),
                                                     buffer, at)
                        .getResult());
        return;
      }
    for (Value operand : op->getOperands())
      if (isVector(operand) && tiles.findBuffer(operand) &&
          !map.getBody().isAncestor(operand.getParentRegion()))
        captured.insert(operand);
  });
  for (Value tile : captured)
    inputs.push_back(tiles.vectorOf(tile, perColumn));

  SmallVector<Type> types;
  for (Value result : map.getResults())
    types.push_back(gpu::FragmentType::get(
        tiles.shown(result), isVector(result) ? Attribute(perRow) : rows));
  auto result = gpu::MapRowsOp::create(b, loc, types, inputs);
  OpBuilder::InsertionGuard guard(b);
  Block *body = result.openBody(b);
  mapping.map(from.getArguments(), body->getArguments());
  mapping.map(captured,
              body->getArguments().drop_front(from.getNumArguments()));
  cloneBody(b, from, body, mapping);
  for (auto [tile, fragment] : llvm::zip(map.getResults(), result.getResults()))
    tiles.setFragment(tile, fragment);
}

/// Rows behind which the swizzle of a shared tile repeats: slices of a multiple
/// of them differ by a number of bytes.
static constexpr int64_t swizzleRows = 8;

void gdn::emitInSlices(SharedTiles &tiles, ArrayRef<Operation *> maps) {
  if (maps.empty())
    return;
  Location loc = maps.front()->getLoc();
  VectorType whole = vectorType(maps.back()->getResult(0));
  tiles.setSlice(swizzleRows);
  gpu::RowsAttr rows = tiles.wideRowsOf(whole);
  // Each warp has rows of its own.
  const int64_t sliceRows =
      std::max(swizzleRows, rows.getWarps() * rows.getGroups());
  const int64_t count = whole.getDimSize(0) / sliceRows;
  DenseMap<Value, Value> buffers;
  for (Operation *map : maps)
    for (Value tile : map->getResults())
      buffers[tile] = tiles.findDestination(tile);
  // No loop: slices differ by constants then, which take no registers.
  for (int64_t i = 0; i < count; ++i) {
    tiles.setSlice(sliceRows, i);
    for (Operation *map : maps)
      emitMap(tiles, cast<tile::MapRowsOp>(map));
    for (Operation *map : maps)
      for (Value tile : map->getResults()) {
        Value fragment = tiles.takeFragment(tile);
        if (Value buffer = buffers.lookup(tile))
          gpu::StoreSharedOp::create(tiles.b, loc, fragment, buffer,
                                     tiles.sliceRow(loc));
      }
  }
  tiles.setSlice(0);
  llvm::for_each(maps, [&](Operation *map) { tiles.setEmitted(map); });
}
