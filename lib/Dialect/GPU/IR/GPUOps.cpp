// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of the gdn_gpu ops without regions; (Cn) are the constraints that
// GPUOps.td lists.
#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/Tile/IR/StageFields.h"
#include "gdn/Dialect/TileChecks.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace gdn::gpu;

#define GET_OP_CLASSES
#include "gdn/Dialect/GPU/IR/GPUOps.cpp.inc"

LogicalResult gdn::gpu::verifyDirectlyInFunction(Operation *op) {
  Operation *around = op->getParentOp();
  if (isa_and_nonnull<FunctionOpInterface>(around))
    return success();
  return op->emitOpError("expects to be directly in the function, but is in '")
         << (around ? around->getName().getStringRef() : "nothing") << "'";
}

LogicalResult BlockIdOp::verify() {
  // block_id_c1
  auto function = (*this)->getParentOfType<FunctionOpInterface>();
  return gdn::verifyAxis(*this, gdn::tile::StageFields(function).getGrid(),
                         getAxis());
}

/// The constraints that load, store, prefetch and copy share: (C1) and (C2) of
/// each.
template <typename OpTy, typename TileTy>
static LogicalResult verifyAccess(OpTy op, TileTy tile) {
  auto view = cast<MemRefType>(op.getView().getType());
  if (failed(gdn::verifyViewDims(op, view, op.getIndices().size(), op.getDims(),
                                 tile.getShape().size(), "the tile")))
    return failure();
  return gdn::verifyViewElement(op, view, tile.getElementType(), "the tile");
}

/// True if `begin` begins a load of what `load` loads. It may stand further
/// down, where it has not been verified yet.
static bool begins(BeginLoadOp begin, LoadOp load) {
  return begin->getNumOperands() >= 2 && begin.getTileAttr() &&
         begin.getDimsAttr() && begin.getTile() == load.getTile().getType() &&
         begin.getDims() == load.getDims() &&
         begin->getOperand(0) == load.getView() &&
         begin->getOperands().drop_front().drop_back() == load.getIndices();
}

LogicalResult LoadOp::verify() {
  if (failed(verifyAccess(*this, getTile().getType())))
    return failure();
  // load_c5
  if (getWhole() && !getRows())
    return emitOpError("expects 'rows' where it has 'whole'");
  // load_c4
  if (!getBegun())
    return success();
  BeginLoadOp begin;
  for (Operation *user : getBegun().getUsers())
    if (auto other = dyn_cast<BeginLoadOp>(user))
      begin = other;
  if (!begin || !begins(begin, *this))
    return emitOpError("expects 'begun' to be the place of a "
                       "gdn_gpu.begin_load of the same tile");
  return success();
}
LogicalResult StoreOp::verify() {
  return verifyAccess(*this, getTile().getType());
}
LogicalResult BeginLoadOp::verify() {
  auto tile = cast<FragmentType>(getTile());
  if (failed(verifyAccess(*this, tile)))
    return failure();
  // begin_load_c4
  int64_t elements = 1;
  for (int64_t size : tile.getShape())
    elements *= size;
  if (tile.getRows().getWarps() != 1 ||
      tile.getLocalSize() * warpThreads != elements)
    return emitOpError("expects a tile of which each thread of one warp holds "
                       "as many elements, but got ")
           << tile;
  SharedType buffer = getBuffer().getType();
  if (buffer.getShape() != ArrayRef<int64_t>{elements} ||
      buffer.getElementType() != tile.getElementType())
    return emitOpError("expects a place of ")
           << elements << " elements of the tile's type, but got " << buffer;
  return success();
}
LogicalResult PrefetchOp::verify() {
  return verifyAccess(*this, cast<FragmentType>(getTile()));
}

LogicalResult CopyOp::verify() {
  SharedType tile = getTile().getType();
  if (failed(verifyAccess(*this, tile)))
    return failure();
  // copy_c3
  auto acquire = getTile().getDefiningOp<AcquireOp>();
  // It may stand further down, where it has not been verified yet.
  auto channel = acquire && acquire->getNumOperands() == 1
                     ? dyn_cast<ChannelType>(acquire->getOperand(0).getType())
                     : ChannelType();
  if (!channel)
    return emitOpError("expects 'tile' to come from a gdn_gpu.acquire");
  SharedType whole = channel.getTile();
  if (tile != whole || tile.getShape().size() != 2)
    return emitOpError("expects a tile of rank 2 in the shape of its channel, ")
           << whole << ", but got " << tile;
  int64_t bytes =
      tile.getShape()[1] * tile.getElementType().getIntOrFloatBitWidth() / 8;
  if (bytes % 16 != 0)
    return emitOpError("expects rows of a multiple of 16 bytes, but got ")
           << bytes;
  auto view = cast<MemRefType>(getView().getType());
  auto [strides, offset] = view.getStridesAndOffset();
  if (strides[getDims().back()] != 1)
    return emitOpError("expects the elements of a row to lie side by side in "
                       "'view', but got ")
           << view;
  return success();
}

LogicalResult AllocOp::verify() {
  // alloc_c1
  return verifyDirectlyInFunction(*this);
}

LogicalResult ReshapeOp::verify() {
  // reshape_c1
  SharedType from = getBuffer().getType(), to = getResult().getType();
  auto count = [](SharedType type) {
    return ShapedType::getNumElements(type.getShape());
  };
  unsigned bits = from.getElementType().getIntOrFloatBitWidth();
  if (to.getApart() > 1 && to.getBytes() <= from.getBytes())
    return success();
  if (bits == to.getElementType().getIntOrFloatBitWidth() &&
      count(to) <= count(from) && to.getApart() == 1)
    return success();
  return emitOpError(
             "expects 'result' to have no more elements than 'buffer', ")
         << count(from) << " of " << bits << " bits, but got " << to;
}

/// (C1) and (C4) of share and load.
template <typename OpTy>
static LogicalResult verifySameTile(OpTy op, FragmentType fragment,
                                    SharedType buffer) {
  bool isRow = bool(op.getRow()), transpose = op.getTranspose();
  SmallVector<int64_t> shape(buffer.getShape());
  if ((isRow || transpose) && shape.size() != 2)
    return op.emitOpError("expects 'buffer' to have rank 2, of which ")
           << (isRow ? "'row' is a row" : "it takes the transpose")
           << ", but got " << buffer;
  // Some of its rows, or one.
  bool hasRows = isRow && fragment.getRank() == 2;
  if (hasRows)
    shape[0] = std::min(fragment.getDimSize(0), shape[0]);
  else if (isRow)
    shape.erase(shape.begin());
  if (transpose)
    std::swap(shape[0], shape[1]);
  if (fragment.getShape() != ArrayRef<int64_t>(shape) ||
      fragment.getElementType() != buffer.getElementType())
    return op.emitOpError(
               "expects a fragment of the shape and element type of ")
           << SharedType::get(op.getContext(), shape, buffer.getElementType(),
                              /*swizzled=*/false)
           << (hasRows     ? ", rows of 'buffer'"
               : isRow     ? ", a row of 'buffer'"
               : transpose ? ", the transpose of 'buffer'"
                           : ", the type of 'buffer'")
           << ", but got " << fragment;
  if (!transpose && !buffer.getSwizzled())
    return success();
  RowsAttr rows = fragment.getRows();
  int64_t bytes = buffer.getElementType().getIntOrFloatBitWidth() / 8;
  bool isMatrix = bytes == 2 && rows.isMatrix() && shape.size() == 2 &&
                  shape[0] % 8 == 0 && shape[1] % 8 == 0;
  bool isPieces =
      !transpose && shape.size() == 2 && rows.getVector() * bytes <= 16;
  // Element by element.
  if (transpose && !isRow && bytes == 4 && !buffer.getSwizzled())
    return success();
  if (isRow ? !(hasRows && isPieces) : !(isMatrix || isPieces))
    return op.emitOpError(
               "expects all of a tile of 16-bit elements in a layout "
               "of matrix instructions, or pieces of up to 16 bytes, "
               "since 'buffer' is ")
           << (transpose ? "transposed" : "swizzled") << ", but got "
           << fragment;
  llvm::APInt row;
  if (isRow && matchPattern(op.getRow(), m_ConstantInt(&row)) &&
      row.urem(8) != 0)
    return op.emitOpError("expects a 'row' that is a multiple of 8, since "
                          "'buffer' is swizzled, but got ")
           << row.getSExtValue();
  return success();
}

/// True if one warp runs the body; also asked of what is not right itself.
template <typename OpTy> static bool hasOneWarp(OpTy warps) {
  IntegerAttr count = warps.getCountAttr();
  return count && count.getInt() == 1;
}

LogicalResult StoreSharedOp::verify() {
  // store_shared_c5
  auto each = (*this)->getParentOfType<EachWarpOp>();
  if (!getRow() && each && !hasOneWarp(each))
    return emitOpError(
        "expects a 'row' inside gdn_gpu.each_warp, so that warps "
        "write different rows");
  return verifySameTile(*this, getTile().getType(), getBuffer().getType());
}

LogicalResult LoadSharedOp::verify() {
  return verifySameTile(*this, getTile().getType(), getBuffer().getType());
}

LogicalResult LoadSharedElementOp::verify() {
  // load_shared_element_c1
  SharedType buffer = getBuffer().getType();
  if (buffer.getShape().size() != 1)
    return emitOpError("expects 'buffer' to have rank 1, but got ") << buffer;
  if (getValue().getType() != buffer.getElementType())
    return emitOpError("expects 'value' to have the element type of 'buffer' ")
           << buffer.getElementType() << ", but got " << getValue().getType();
  return success();
}

LogicalResult StoreElementOp::verify() {
  // store_element_c1
  auto view = cast<MemRefType>(getView().getType());
  if (int64_t(getIndices().size()) != view.getRank())
    return emitOpError("expects one index per dimension of 'view', which is ")
           << view.getRank() << ", but got " << getIndices().size();
  // store_element_c2
  if (getValue().getType() != view.getElementType())
    return emitOpError("expects 'value' to have the element type of 'view' ")
           << view.getElementType() << ", but got " << getValue().getType();
  return success();
}

LogicalResult FillOp::verify() {
  // fill_c1
  Type element = getTile().getType().getElementType();
  if (getValue().getType() != element)
    return emitOpError("expects 'value' to have the tile's element type ")
           << element << ", but got " << getValue().getType();
  return success();
}

/// Checks the shape and type of one fragment of a conv1d.
static LogicalResult verifyConvTile(Operation *op, StringRef name,
                                    FragmentType got, ArrayRef<int64_t> want,
                                    StringRef why) {
  if (got.getShape() != want)
    return op->emitOpError("expects '")
           << name << "' to be a tile "
           << VectorType::get(want, got.getElementType()) << ", " << why
           << ", but got " << got.getTile();
  if (!got.getElementType().isF32())
    return op->emitOpError("expects '")
           << name << "' to have elements of f32, but got "
           << got.getElementType();
  return success();
}

LogicalResult Conv1dOp::verify() {
  // conv1d_c1
  for (auto [name, tile] :
       {std::pair<StringRef, FragmentType>{"input", getInput().getType()},
        {"window", getWindow().getType()},
        {"weight", getWeight().getType()},
        {"result", getResult().getType()},
        {"new_window", getNewWindow().getType()}})
    if (tile.getRank() != 2)
      return emitOpError("expects '")
             << name << "' to have rank 2, but got " << tile;
  FragmentType input = getInput().getType();
  int64_t channels = input.getDimSize(1);
  int64_t width = getWeight().getType().getDimSize(0);
  if (width < 2)
    return emitOpError("expects 'weight' to have at least 2 rows, but got ")
           << width;
  if (failed(verifyConvTile(*this, "input", input, input.getShape(), "")) ||
      failed(verifyConvTile(*this, "weight", getWeight().getType(),
                            {width, channels}, "channels set by 'input'")) ||
      failed(verifyConvTile(*this, "window", getWindow().getType(),
                            {width - 1, channels},
                            "one row fewer than 'weight'")) ||
      failed(verifyConvTile(*this, "result", getResult().getType(),
                            input.getShape(), "set by 'input'")) ||
      failed(verifyConvTile(*this, "new_window", getNewWindow().getType(),
                            {width - 1, channels}, "set by 'window'")))
    return failure();
  if (Value bias = getBias())
    if (failed(verifyConvTile(*this, "bias", cast<FragmentType>(bias.getType()),
                              {channels}, "channels set by 'input'")))
      return failure();
  // conv1d_c2
  RowsAttr rows = input.getRows();
  if (rows.getWarps() != 1 || rows.getLanes() != warpThreads)
    return emitOpError("expects a layout of one warp and ")
           << warpThreads << " lanes, but got " << rows;
  for (Value tile :
       llvm::concat<Value>(getOperands().drop_back(), getResults()))
    if (auto type = cast<FragmentType>(tile.getType()); type.getRows() != rows)
      return emitOpError("expects every layout to belong to ")
             << rows << ", the layout of 'input', but got " << type.getLayout();
  if (Value bias = getBias())
    if (auto type = cast<FragmentType>(bias.getType()); !type.isPerColumn())
      return emitOpError("expects 'bias' to be 'per_column', but got ")
             << type.getLayout();
  return success();
}

LogicalResult ExtractOp::verify() {
  // extract_c1
  FragmentType tile = getTile().getType();
  if (tile.getRank() != 1 || tile.getRows().getWarps() != 1)
    return emitOpError("expects a tile of rank 1 over one warp, but got ")
           << tile;
  if (int64_t(getIndex()) >= tile.getDimSize(0))
    return emitOpError("expects an index below ")
           << tile.getDimSize(0) << ", the size of 'tile', but got "
           << getIndex();
  // extract_c2
  if (getValue().getType() != tile.getElementType())
    return emitOpError("expects 'value' to have the tile's element type ")
           << tile.getElementType() << ", but got " << getValue().getType();
  return success();
}

LogicalResult BarrierOp::verify() { return verifyOutsideWarps(*this); }
LogicalResult ArriveOp::verify() {
  // arrive_c2
  auto function = (*this)->getParentOfType<FunctionOpInterface>();
  if (!function)
    return emitOpError("expects a function around it");
  int64_t count = 0;
  function->walk([&](ArriveOp) { ++count; });
  if (count != 1)
    return emitOpError("expects to be the only one of its function, but there "
                       "are ")
           << count;
  if (std::optional<int64_t> warps = countWarps(*this);
      warps && int64_t(getWarp()) >= *warps)
    return emitOpError("expects a warp below ")
           << *warps << ", but got " << getWarp();
  return verifyOutsideWarps(*this);
}
LogicalResult AwaitArrivalsOp::verify() {
  // await_arrivals_c1
  auto warps = dyn_cast_or_null<WarpsOp>((*this)->getParentOp());
  auto function = (*this)->getParentOfType<FunctionOpInterface>();
  if (!function)
    return emitOpError("expects a function around it");
  // It may stand further down, where it has not been verified yet.
  IntegerAttr waits;
  function->walk([&](ArriveOp arrive) { waits = arrive.getWarpAttr(); });
  if (!waits)
    return emitOpError("expects a gdn_gpu.arrive in its function");
  if (!warps || !hasOneWarp(warps) || warps.getFirstAttr() != waits)
    return emitOpError("expects to be in the body of a gdn_gpu.warps of warp ")
           << waits.getInt() << " alone, which the gdn_gpu.arrive names";
  if (getOperation() != &warps.getBody().front().front())
    return emitOpError("expects to be the first op of its gdn_gpu.warps");
  return success();
}
LogicalResult AwaitLaunchOp::verify() {
  return getRole(*this) ? success() : verifyOutsideWarps(*this);
}
LogicalResult ReleaseLaunchOp::verify() {
  return getRole(*this) ? success() : verifyOutsideWarps(*this);
}

/// (C1) of the ops on counters and, outside of gdn_gpu.each_warp, of the
/// barrier of a warp.
static LogicalResult verifyInOneWarp(Operation *op) {
  auto warps = op->getParentOfType<WarpsOp>();
  if (!warps || !hasOneWarp(warps))
    return op->emitOpError("expects to be inside a gdn_gpu.warps of one warp");
  return success();
}

LogicalResult WarpBarrierOp::verify() {
  return getOperation()->getParentOfType<EachWarpOp>() ? success()
                                                       : verifyInOneWarp(*this);
}
/// (C1) and (C2) of signals and of who awaits them.
template <typename OpTy> static LogicalResult verifySignal(OpTy op) {
  if (!op->template getParentOfType<EachWarpOp>() &&
      !op->template getParentOfType<WarpsOp>())
    return op.emitOpError("expects to be inside a gdn_gpu.warps or a "
                          "gdn_gpu.each_warp");
  return gdn::verifyCounter(op, cast<MemRefType>(op.getView().getType()),
                            op.getIndices().size());
}

LogicalResult SignalOp::verify() { return verifySignal(*this); }
LogicalResult AwaitSignalsOp::verify() { return verifySignal(*this); }

LogicalResult LastReaderOp::verify() { return verifyInOneWarp(*this); }
LogicalResult TakeTicketOp::verify() { return verifyInOneWarp(*this); }
LogicalResult IsLastOp::verify() { return verifyInOneWarp(*this); }
