// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How tiles come from memory and get there: by copies to shared memory, by
// whole pieces of rows, or element by element.
#include "Products/LoadsAndStores.h"

#include "Kernel/KernelFunction.h"
#include "Products/TransposedMaps.h"

#include "gdn/Target/GpuFacts.h"

#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace gdn;

/// Of a tile that goes to memory by way of shared memory.
static constexpr int64_t maxStagedBytes = 16 * 1024;

bool gdn::isCopied(tile::LoadOp load) {
  VectorType type = vectorType(load.getTile());
  auto view = cast<MemRefType>(load.getView().getType());
  auto [strides, offset] = view.getStridesAndOffset();
  if (strides[load.getDims().back()] != 1)
    return false;
  int64_t bytes = type.getShape().back() * type.getElementTypeBitWidth() / 8;
  if (bytes % 16 != 0)
    return false;
  // What only elementwise work reads goes to registers at once: a state.
  if (type.getRank() == 2)
    return isNarrow(type) &&
           (isReadTransposed(load) ||
            !llvm::all_of(load->getUsers(), llvm::IsaPred<tile::MapRowsOp>));
  return llvm::none_of(load->getUsers(), [](Operation *user) {
    return llvm::any_of(user->getResults(), isVector) &&
           isa<tile::TileDialect>(user->getDialect());
  });
}

void gdn::promiseAlignment(Value view) {
  while (Operation *op = view.getDefiningOp()) {
    if (!isa<ViewLikeOpInterface, memref::ReinterpretCastOp, memref::CastOp>(
            op))
      return;
    view = op->getOperand(0);
  }
  auto arg = cast<BlockArgument>(view);
  if (auto func = dyn_cast<func::FuncOp>(arg.getOwner()->getParentOp()))
    setAlignment(func, arg, 16);
}

/// Bytes that divide the address of a tile and of each of its rows; 0 where
/// nothing is known. Regions of the workspace begin at multiples of 64 bytes,
/// and lie row behind row.
static int64_t getTileAlignment(Value view, ValueRange indices,
                                VectorType tile) {
  auto type = cast<MemRefType>(view.getType());
  int64_t rowBytes = type.getShape().back() * type.getElementTypeBitWidth() / 8;
  bool isRegion = isa<BlockArgument>(view) && type.getLayout().isIdentity() &&
                  type.getRank() > 2;
  return isRegion && tile.getRank() == 2 && rowBytes % 16 == 0 &&
                 isZeroInteger(indices.back())
             ? 16
             : 0;
}

gpu::BeginCopyOp gdn::beginCopy(SharedTiles &tiles, tile::LoadOp load,
                                const IRMapping &at, Value rows, bool isPinned,
                                bool perWarpgroup) {
  Value tile = load.getTile();
  VectorType type = vectorType(tile);
  if (!tiles.findBuffer(tile)) {
    Value buffer = tiles.allocate(
        gpu::SharedType::get(type, type.getRank() == 2), tile.getParentBlock());
    isPinned ? tiles.pinBuffer(tile, buffer) : tiles.setBuffer(tile, buffer);
  }
  Value view = at.lookupOrDefault(load.getView());
  // Gates of tokens that lie apart are copied element by element.
  const bool scattered =
      isVector(tile) && type.getElementType().isF32() && !isCopied(load);
  if (!scattered)
    promiseAlignment(view);
  if (!rows)
    rows = at.lookupOrDefault(load.getRows());
  tiles.setEmitted(load);
  return gpu::BeginCopyOp::create(
      tiles.b, load.getLoc(), view, lookupAll(at, load.getIndices()),
      load.getDims(), rows, tiles.findBuffer(tile), scattered, perWarpgroup,
      /*tensor_map=*/false);
}

void gdn::emitLoad(SharedTiles &tiles, tile::LoadOp load, bool aligned) {
  const IRMapping &scalars = tiles.scalars;
  VectorType type = vectorType(load.getTile());
  Value view = scalars.lookupOrDefault(load.getView());
  if (aligned)
    promiseAlignment(view);
  tiles.setFragment(
      load.getTile(),
      gpu::LoadOp::create(
          tiles.b, load.getLoc(),
          gpu::FragmentType::get(type, tiles.rowsOf(load.getTile())), view,
          lookupAll(scalars, load.getIndices()), load.getDims(),
          scalars.lookupOrDefault(load.getRows()),
          aligned ? 16
                  : getTileAlignment(load.getView(), load.getIndices(), type)));
}

void gdn::prefetchRows(SharedTiles &tiles, tile::LoadOp load, Value ahead) {
  OpBuilder &b = tiles.b;
  VectorType type = vectorType(load.getTile());
  SmallVector<Value> indices = lookupAll(tiles.scalars, load.getIndices());
  Value &first = indices[load.getDims().front()];
  first = arith::AddIOp::create(b, load.getLoc(), first, ahead);
  // A lane asks for a line.
  const int64_t vector =
      gpufacts::lineBytes * 8 / type.getElementTypeBitWidth();
  const int64_t lines = std::max<int64_t>(type.getDimSize(1) / vector, 1);
  auto rows =
      gpu::RowsAttr::get(b.getContext(), tiles.numWarps,
                         std::min(lines & -lines, gpu::warpThreads), vector);
  gpu::PrefetchOp::create(
      b, load.getLoc(), tiles.scalars.lookupOrDefault(load.getView()), indices,
      load.getDims(), gpu::FragmentType::get(type, rows));
}

/// Of a view [T, Hk, R, d] that expands the heads of an argument [T, Hk R, d]
/// the argument, with `indices` and `dims` of it; else the view.
static Value joinHeads(OpBuilder &b, Value view,
                       SmallVectorImpl<Value> &indices,
                       SmallVectorImpl<int64_t> &dims) {
  auto grouped = view.getDefiningOp<memref::ExpandShapeOp>();
  const SmallVector<ReassociationIndices> heads = {{0}, {1, 2}, {3}};
  if (!grouped || !isa<BlockArgument>(grouped.getSrc()) ||
      grouped.getReassociationIndices() != heads ||
      dims != ArrayRef<int64_t>{0, 3})
    return view;
  Location loc = view.getLoc();
  Value ratio =
      getValueOrCreateConstantIndexOp(b, loc, grouped.getMixedOutputShape()[2]);
  Value head = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, indices[1], ratio), indices[2]);
  indices.assign({indices[0], head, indices[3]});
  dims.assign({0, 2});
  return grouped.getSrc();
}

void gdn::copyAsBox(OpBuilder &b, gpu::BeginCopyOp &copy) {
  SmallVector<Value> indices(copy.getIndices());
  SmallVector<int64_t> dims(copy.getDims());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(copy);
  Value view = joinHeads(b, copy.getView(), indices, dims);
  auto joined = gpu::BeginCopyOp::create(
      b, copy.getLoc(), view, indices, dims, copy.getRows(), copy.getBuffer(),
      copy.getScattered(), copy.getPerWarpgroup(), /*tensor_map=*/false);
  joined.setTensorMap(gpu::canUseTensorMap(joined));
  copy.erase();
  copy = joined;
}

void gdn::emitStore(SharedTiles &tiles, tile::StoreOp store,
                    bool perWarpgroup) {
  Location loc = store.getLoc();
  Value tile = store.getTile();
  VectorType type = vectorType(tile);
  Value view = tiles.scalars.lookupOrDefault(store.getView());
  Value rows = tiles.scalars.lookupOrDefault(store.getRows());
  SmallVector<Value> indices = lookupAll(tiles.scalars, store.getIndices());
  if (perWarpgroup && isNarrow(type) &&
      tile.getDefiningOp<tile::TransposeOp>() &&
      type.getDimSize(1) % (8 * tiles.numWarps) == 0) {
    Value buffer = tiles.bufferOf(tile);
    promiseAlignment(view);
    SmallVector<int64_t> dims(store.getDims());
    view = joinHeads(tiles.b, view, indices, dims);
    gpu::CopyOutOp::create(tiles.b, loc, buffer, view, indices, dims, rows,
                           /*tensor_map=*/false, store.getFullUntilLast());
    return;
  }
  bool inPieces = !perWarpgroup && isNarrow(type) &&
                  type.getDimSize(1) % 8 == 0 &&
                  type.getNumElements() * 2 <= maxStagedBytes;
  if (inPieces)
    promiseAlignment(view);
  Value fragment = tiles.fragmentOf(tile, inPieces ? tiles.wideRowsOf(type)
                                                   : tiles.rowsOf(type));
  gpu::StoreOp::create(
      tiles.b, loc, fragment, view, indices, store.getDims(), rows,
      inPieces ? 16
               : getTileAlignment(store.getView(), store.getIndices(), type));
}
