// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where tiles are, and how they get there. Barriers are not placed here:
// gdn-gpu-place-barriers puts them where an access has to wait for another.
#include "Products/SharedTiles.h"

#include "Kernel/KernelFunction.h"
#include "Kernel/OperandRoles.h"
#include "Products/ProductForm.h"

#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace gdn;

/// Of a tile that goes to memory by way of shared memory.
static constexpr int64_t maxStagedBytes = 16 * 1024;

static bool isNarrow(VectorType type) {
  return type.getElementTypeBitWidth() == 16;
}

ProductEmitter::ProductEmitter(OpBuilder &b, IRMapping &scalars, Block *entry,
                               int64_t numWarps)
    : b(b), scalars(scalars), entry(entry), numWarps(numWarps),
      matrixRows(gpu::RowsAttr::get(b.getContext(), numWarps, 4, 2)),
      vectorRows(gpu::RowsAttr::get(b.getContext(), 1, 1, 1)) {}

//===----------------------------------------------------------------------===//
// Layouts and buffers
//===----------------------------------------------------------------------===//

/// Rows dealt so that a row lies side by side in few lanes, 16 bytes each if
/// elements have 16 bits: for memory, and for tiles with too few rows for
/// matrix instructions.
gpu::RowsAttr ProductEmitter::wideRowsOf(VectorType tile) const {
  int64_t pieces = tile.getDimSize(1) / 8;
  // A slice of a shared tile goes by rows of 128 bytes.
  int64_t lanes = std::min<int64_t>(slice.rows == 0 ? 32 : 8, pieces & -pieces);
  return gpu::RowsAttr::get(b.getContext(), numWarps,
                            std::max<int64_t>(lanes, 1), 8);
}

gpu::RowsAttr ProductEmitter::rowsOf(VectorType tile) const {
  return slice.rows == 0 && tile.getDimSize(0) % (8 * numWarps) == 0
             ? matrixRows
             : wideRowsOf(tile);
}

gpu::FragmentType ProductEmitter::typeOf(VectorType tile) const {
  return gpu::FragmentType::get(tile, rowsOf(tile));
}

/// True if no op that is still to come uses `tile`.
bool ProductEmitter::isDead(Value tile) const {
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

/// Memory for a tile of `block`: that of one that nobody needs any more, if
/// there is one. What another block made may be needed when that comes round
/// again.
Value ProductEmitter::allocate(gpu::SharedType type, Block *block) {
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
  Location loc = b.getUnknownLoc();
  return gpu::AllocOp::create(b, loc, type);
}

/// Memory for `tile`, of `block`: where it has to go, or any.
Value ProductEmitter::bufferFor(Value tile, VectorType type, bool swizzled,
                                Block *block) {
  auto own = destinations.find(tile);
  return own != destinations.end()
             ? own->second()
             : allocate(gpu::SharedType::get(type, swizzled), block);
}

Value ProductEmitter::bufferOf(Value tile) {
  if (Value buffer = buffers.lookup(tile))
    return buffer;
  Location loc = tile.getLoc();
  auto transpose = tile.getDefiningOp<tile::TransposeOp>();
  Value source = transpose ? transpose.getTile() : tile;
  Value fragment = fragmentOf(source);
  Value buffer = bufferFor(tile, vectorType(tile), isNarrow(vectorType(tile)),
                           tile.getParentBlock());
  gpu::StoreSharedOp::create(b, loc, fragment, buffer, Value(),
                             bool(transpose));
  return buffers[tile] = buffer;
}

Value ProductEmitter::fragmentOf(Value tile) {
  return fragmentOf(tile, rowsOf(vectorType(tile)));
}

Value ProductEmitter::fragmentOf(Value tile, gpu::RowsAttr rows) {
  Value known = fragments.lookup(tile);
  if (known && cast<gpu::FragmentType>(known.getType()).getLayout() == rows)
    return known;
  auto type = gpu::FragmentType::get(shown(tile), rows);
  if (slice.rows != 0)
    return gpu::LoadSharedOp::create(
        b, tile.getLoc(), type, buffers.lookup(tile), sliceRow(tile.getLoc()));
  if (auto fill = tile.getDefiningOp<tile::FillOp>())
    return gpu::FillOp::create(b, tile.getLoc(), type,
                               scalars.lookupOrDefault(fill.getValue()));
  auto transpose = tile.getDefiningOp<tile::TransposeOp>();
  if (transpose && !buffers.contains(tile) && rows.isMatrix())
    return gpu::LoadSharedOp::create(b, tile.getLoc(), type,
                                     bufferOf(transpose.getTile()), Value(),
                                     /*transpose=*/true);
  return gpu::LoadSharedOp::create(b, tile.getLoc(), type, bufferOf(tile),
                                   Value(),
                                   /*transpose=*/false);
}

bool ProductEmitter::isVectorWork(Operation *op) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return vectorType(load.getTile()).getRank() == 1 && !isCopied(load);
  auto isVectorOrScalar = [](Value value) {
    return isVector(value) || !isa<VectorType>(value.getType());
  };
  return isa<tile::TileDialect>(op->getDialect()) &&
         llvm::all_of(op->getOperands(), isVectorOrScalar) &&
         llvm::all_of(op->getResults(), isVectorOrScalar) &&
         !isa<tile::BlockIdOp>(op);
}

Value ProductEmitter::fetchVector(Value tile, Attribute layout) {
  if (Value known = fragments.lookup(tile)) // of this layout: sums of rows
    return known;
  if (slice.rows != 0 && isa<gpu::PerRowAttr>(layout))
    return fetchSlice(tile, cast<gpu::PerRowAttr>(layout));
  return gpu::LoadSharedOp::create(
      b, tile.getLoc(), gpu::FragmentType::get(vectorType(tile), layout),
      buffers.lookup(tile), Value());
}

SmallVector<Value> ProductEmitter::mapped(ValueRange values,
                                          const IRMapping &at) {
  return llvm::map_to_vector(
      values, [&](Value value) { return at.lookupOrDefault(value); });
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

bool ProductEmitter::isElements(tile::LoadOp load) {
  VectorType type = vectorType(load.getTile());
  return type.getRank() == 1 && type.getElementType().isF32();
}

bool ProductEmitter::isCopied(tile::LoadOp load) {
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

/// What the caller promises about an argument: 16 bytes divide its address and
/// strides.
static void promiseAlignment(Value view) {
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

/// Regions of the workspace begin at multiples of 64 bytes, and lie row behind
/// row.
int64_t ProductEmitter::getAlignment(Value view, ValueRange indices,
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

gpu::BeginCopyOp ProductEmitter::emitCopy(tile::LoadOp load,
                                          const IRMapping &at, Value rows,
                                          bool isPinned) {
  VectorType type = vectorType(load.getTile());
  if (!buffers.contains(load.getTile())) {
    Value buffer = allocate(gpu::SharedType::get(type, type.getRank() == 2),
                            load.getTile().getParentBlock());
    buffers[load.getTile()] = buffer;
    if (isPinned)
      pinned.insert(buffer);
  }
  Value view = at.lookupOrDefault(load.getView());
  const bool scattered = isElements(load) && !isCopied(load);
  if (!scattered)
    promiseAlignment(view);
  if (!rows && load.getRows())
    rows = at.lookupOrDefault(load.getRows());
  emitted.insert(load);
  return gpu::BeginCopyOp::create(
      b, load.getLoc(), view, mapped(load.getIndices(), at), load.getDims(),
      rows, buffers.lookup(load.getTile()), scattered, /*per_warpgroup=*/false,
      /*tensor_map=*/false);
}

void ProductEmitter::emitOwnCopy(tile::LoadOp load, const IRMapping &at,
                                 Value rows) {
  Value buffer = buffers.lookup(load.getTile());
  if (!buffer)
    pinBuffer(load.getTile(),
              buffer = allocate(
                  gpu::SharedType::get(vectorType(load.getTile()), true),
                  load.getTile().getParentBlock()));
  Value view = at.lookupOrDefault(load.getView());
  promiseAlignment(view);
  if (!rows && load.getRows())
    rows = at.lookupOrDefault(load.getRows());
  gpu::BeginCopyOp::create(b, load.getLoc(), view,
                           mapped(load.getIndices(), at), load.getDims(), rows,
                           buffer, /*scattered=*/false, /*per_warpgroup=*/true,
                           /*tensor_map=*/false);
  emitted.insert(load);
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

/// 16 bits go to memory in whole pieces of rows, by way of shared memory; not
/// so a state, which is large and stored once.
void ProductEmitter::emitStore(tile::StoreOp store) {
  VectorType type = vectorType(store.getTile());
  if (storesOwn && isNarrow(type) &&
      store.getTile().getDefiningOp<tile::TransposeOp>() &&
      type.getDimSize(1) % (8 * numWarps) == 0) {
    Value buffer = bufferOf(store.getTile());
    Value view = scalars.lookupOrDefault(store.getView());
    promiseAlignment(view);
    SmallVector<Value> indices = mapped(store.getIndices());
    SmallVector<int64_t> dims(store.getDims());
    view = joinHeads(b, view, indices, dims);
    gpu::CopyOutOp::create(
        b, store.getLoc(), buffer, view, indices, dims,
        store.getRows() ? scalars.lookupOrDefault(store.getRows()) : Value(),
        /*tensor_map=*/false, store.getFullUntilLast());
    return;
  }
  bool inPieces = !storesOwn && isNarrow(type) && type.getDimSize(1) % 8 == 0 &&
                  type.getNumElements() * 2 <= maxStagedBytes;
  Value fragment = inPieces ? fragmentOf(store.getTile(), wideRowsOf(type))
                            : fragmentOf(store.getTile());
  Value view = scalars.lookupOrDefault(store.getView());
  Value rows =
      store.getRows() ? scalars.lookupOrDefault(store.getRows()) : Value();
  if (inPieces)
    promiseAlignment(view);
  gpu::StoreOp::create(
      b, store.getLoc(), fragment, view, mapped(store.getIndices()),
      store.getDims(), rows,
      inPieces ? 16 : getAlignment(store.getView(), store.getIndices(), type));
}
