// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Addresses are 64 bits wide throughout, and said to be in global memory: no
// view of a program is anywhere else.
#include "Kernel/ViewMemory.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;

/// The argument that `view` is a part of, or null.
static Value getRoot(Value view) {
  while (Operation *op = view.getDefiningOp()) {
    auto viewLike = dyn_cast<ViewLikeOpInterface>(op);
    if (!viewLike && !isa<memref::ReinterpretCastOp, memref::CastOp>(op))
      return nullptr;
    view = op->getOperand(0);
  }
  return view;
}

ViewMemory::ViewMemory(func::FuncOp program) {
  auto note = [&](auto store) {
    if (Value root = getRoot(store.getView()))
      written.insert(root);
    else
      writesUnknown = true;
  };
  program.walk([&](gdn::gpu::StoreOp store) { note(store); });
  program.walk([&](gdn::gpu::StoreElementOp store) { note(store); });
}

/// Whether `root` is an input of the call, as far as roles read it: no region
/// of the workspace, which has no name, and no pool.
static bool isInput(Value root) {
  auto argument = dyn_cast<BlockArgument>(root);
  auto program =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
               : func::FuncOp();
  if (!program)
    return false;
  auto name =
      program.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "gdn.name");
  return name && !name.getValue().ends_with("_pool");
}

/// Arguments of which one is written do not overlap others, so that what no op
/// writes stays as it is.
bool ViewMemory::isInvariant(Value view) const {
  Value root = getRoot(view);
  return root && !writesUnknown && !isAwaited && !written.contains(root) &&
         (!isBehindStage || isInput(root));
}

/// Address of the element, and the strides of all dimensions in bytes.
static Value getAddress(OpBuilder &b, Location loc, Value view,
                        ValueRange indices, SmallVectorImpl<Stride> &strides) {
  Arithmetic a{b, loc};
  auto type = cast<MemRefType>(view.getType());
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  auto meta = memref::ExtractStridedMetadataOp::create(b, loc, view);
  auto [known, offset] = type.getStridesAndOffset();
  Value elements;
  if (ShapedType::isDynamic(offset))
    elements = a.toI64(meta.getOffset());
  else
    elements = a.i64(offset);
  for (auto [dim, index] : llvm::enumerate(indices)) {
    Stride stride;
    Value count;
    if (ShapedType::isDynamic(known[dim])) {
      count = a.toI64(meta.getStrides()[dim]);
      stride.value = a.mul(count, a.i64(bytes));
    } else {
      count = a.i64(known[dim]);
      stride.known = known[dim] * bytes;
    }
    strides.push_back(stride);
    elements = a.add(elements, a.mul(a.toI64(index), count));
  }
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(b, loc, view);
  Value address = a.add(a.toI64(base), a.mul(elements, a.i64(bytes)));
  auto global = LLVM::LLVMPointerType::get(
      b.getContext(), unsigned(NVVM::NVVMMemorySpace::Global));
  return LLVM::IntToPtrOp::create(b, loc, global, address);
}

TileMemory ViewMemory::getTile(OpBuilder &b, Location loc, Value view,
                               const IRMapping &values, ValueRange indices,
                               ArrayRef<int64_t> dims,
                               gdn::gpu::FragmentType type, int64_t aligned) {
  TileMemory tile;
  SmallVector<Stride> strides;
  tile.pointer =
      getAddress(b, loc, values.lookupOrDefault(view), indices, strides);
  int64_t bytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  tile.row = tile.column = {bytes, Value()};
  if (!type.isPerColumn())
    tile.row = strides[dims.front()];
  if (!type.isPerRow())
    tile.column = strides[dims.back()];
  tile.aligned = aligned;
  tile.isGlobal = true;
  tile.isInvariant = isInvariant(view);
  return tile;
}

TileMemory ViewMemory::getTile(OpBuilder &b, Location loc, Value view,
                               const IRMapping &values, ValueRange indices,
                               ArrayRef<int64_t> dims,
                               gdn::gpu::SharedType type) {
  TileMemory tile;
  SmallVector<Stride> strides;
  tile.pointer =
      getAddress(b, loc, values.lookupOrDefault(view), indices, strides);
  tile.row = strides[dims.front()];
  tile.column = strides[dims.back()];
  tile.isGlobal = true;
  return tile;
}

TileMemory ViewMemory::getRows(OpBuilder &b, Location loc,
                               gdn::gpu::CopyOp copy, const IRMapping &values) {
  SmallVector<Stride> strides;
  SmallVector<Value> indices =
      llvm::map_to_vector(copy.getIndices(), [&](Value index) {
        return values.lookupOrDefault(index);
      });
  TileMemory tile;
  tile.pointer = getAddress(b, loc, values.lookupOrDefault(copy.getView()),
                            indices, strides);
  tile.row = strides[copy.getDims().front()];
  tile.isGlobal = true;
  return tile;
}

Value ViewMemory::getElement(OpBuilder &b, Location loc, Value view,
                             const IRMapping &values, ValueRange indices) {
  SmallVector<Stride> strides;
  return getAddress(b, loc, values.lookupOrDefault(view), indices, strides);
}

void ViewMemory::storeElement(OpBuilder &b, Location loc, Value value,
                              Value view, const IRMapping &values,
                              ValueRange indices) {
  SmallVector<Stride> strides;
  Value pointer =
      getAddress(b, loc, values.lookupOrDefault(view), indices, strides);
  // A truth value is a byte in memory.
  if (value.getType().isInteger(1))
    value = arith::ExtUIOp::create(b, loc, b.getI8Type(), value);
  LLVM::StoreOp::create(b, loc, value, pointer,
                        value.getType().getIntOrFloatBitWidth() / 8);
}

Value ViewMemory::loadElement(OpBuilder &b, Location loc, Value view,
                              const IRMapping &values, ValueRange indices) {
  SmallVector<Stride> strides;
  Value pointer =
      getAddress(b, loc, values.lookupOrDefault(view), indices, strides);
  Type type = cast<MemRefType>(view.getType()).getElementType();
  int64_t bytes = llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
  // A truth value is a byte in memory.
  Type stored = type.isInteger(1) ? b.getI8Type() : type;
  Value value =
      LLVM::LoadOp::create(b, loc, stored, pointer, bytes,
                           /*isVolatile=*/false,
                           /*isNonTemporal=*/false, isInvariant(view));
  if (stored != type)
    value = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::ne, value,
        arith::ConstantOp::create(b, loc, b.getI8IntegerAttr(0)));
  return value;
}
