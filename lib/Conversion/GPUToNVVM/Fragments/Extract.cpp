// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.extract: an element by a shuffle from the lane that holds it.
#include "Rows/RowWork.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace gdn;

Value gdn::emitExtract(OpBuilder &b, gdn::gpu::ExtractOp extract, Value local) {
  Location loc = extract.getLoc();
  Arithmetic a{b, loc};
  gdn::gpu::FragmentType type = extract.getTile().getType();
  gdn::gpu::RowsAttr layout = type.getRows();
  int64_t index = extract.getIndex(), buffer, lane;
  bool isEverywhere;
  if (type.isPerRow()) {
    int64_t step = layout.getGroupStep(type.getDimSize(0));
    buffer = layout.getTall() ? index % step : index / layout.getGroups();
    lane = index / step % layout.getGroups() *
           (layout.getCrossed() ? 1 : layout.getLanes());
    isEverywhere = layout.getGroups() == 1;
  } else {
    int64_t vector = layout.getVector(), piece = index / vector;
    buffer = piece / layout.getLanes() * vector + index % vector;
    lane = piece % layout.getLanes() * layout.getLaneStep();
    isEverywhere = layout.getLanes() == 1;
  }
  Value element = vector::ExtractOp::create(b, loc, local, buffer);
  if (isEverywhere)
    return element;
  // A shuffle moves 32 bits.
  Type elementType = type.getElementType();
  bool isHalf = elementType.getIntOrFloatBitWidth() == 16;
  if (isHalf)
    element = arith::ExtUIOp::create(
        b, loc, b.getI32Type(),
        arith::BitcastOp::create(b, loc, b.getI16Type(), element));
  element = NVVM::ShflOp::create(b, loc, element.getType(), a.i32(-1), element,
                                 a.i32(lane), a.i32(31), NVVM::ShflKind::idx,
                                 UnitAttr());
  if (isHalf)
    element = arith::BitcastOp::create(
        b, loc, elementType,
        arith::TruncIOp::create(b, loc, b.getI16Type(), element));
  return element;
}
