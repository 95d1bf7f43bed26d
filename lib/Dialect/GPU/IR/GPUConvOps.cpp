// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifier of gdn_gpu.conv_columns; (Cn) are the constraints that GPUConvOps.td
// lists.
#include "gdn/Dialect/GPU/IR/GPU.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace gdn::gpu;

/// Rows that a warp has, tokens that it takes at a time, and the most taps: the
/// inputs in front of the tokens are one block of a matrix.
static constexpr int64_t warpRows = 16, tokenStep = 16, mostTaps = 8;

static VectorType getRowOf(SharedType tile, Type element) {
  return VectorType::get(tile.getShape().front(), element);
}

Block *ConvColumnsOp::openBody(OpBuilder &builder) {
  Type row = getRowOf(getInputs().getType(), builder.getF32Type());
  return builder.createBlock(&getBody(), {}, row, getLoc());
}

/// (C1).
static LogicalResult verifyShapes(ConvColumnsOp conv) {
  SharedType inputs = conv.getInputs().getType(),
             values = conv.getValues().getType();
  FragmentType window = conv.getWindow().getType(),
               weight = conv.getWeight().getType();
  auto isNarrow = [](SharedType tile) {
    return tile.getSwizzled() &&
           (tile.getElementType().isBF16() || tile.getElementType().isF16());
  };
  if (!isNarrow(inputs) || inputs.getShape()[0] % tokenStep != 0)
    return conv.emitOpError("expects 'inputs' to be swizzled, of 16 bits, with "
                            "a multiple of ")
           << tokenStep << " rows, but got " << inputs;
  if (!isNarrow(values) || values.getShape() != inputs.getShape())
    return conv.emitOpError("expects 'values' to be swizzled, of 16 bits, in "
                            "the shape of ")
           << inputs << ", but got " << values;
  auto rows = dyn_cast<RowsAttr>(window.getLayout());
  const int64_t channels = inputs.getShape()[1];
  if (!rows || !rows.isMatrix() || rows.getWarps() * warpRows != channels)
    return conv.emitOpError("expects 'window' to be in a layout of matrix "
                            "instructions over ")
           << channels / warpRows << " warps, " << warpRows
           << " rows to a warp, but got " << window;
  const int64_t taps = weight.getRank() == 2 ? weight.getDimSize(1) : 0;
  if (taps < 2 || taps > mostTaps || weight.getLayout() != rows ||
      weight.getDimSize(0) != channels ||
      !isa<FloatType>(weight.getElementType()))
    return conv.emitOpError("expects 'weight' to be ")
           << channels << "x2 to " << channels << "x" << mostTaps
           << " in the layout of 'window', but got " << weight;
  auto want = FragmentType::get(conv.getContext(), {channels, taps - 1},
                                inputs.getElementType(), rows);
  if (window != want)
    return conv.emitOpError("expects 'window' to be ")
           << want << ", but got " << window;
  return success();
}

LogicalResult ConvColumnsOp::verifyRegions() {
  // conv_columns_c1
  if (failed(verifyShapes(*this)))
    return failure();
  // conv_columns_c2
  Block &body = getBody().front();
  SharedType values = getValues().getType();
  Type in = getRowOf(values, Float32Type::get(getContext())),
       out = getRowOf(values, values.getElementType());
  if (body.getArgumentTypes() != TypeRange(in) ||
      body.getTerminator()->getOperandTypes() != TypeRange(out))
    return emitOpError("expects the body to take ")
           << in << " and to give " << out;
  // conv_columns_c3
  for (Operation &op : body.without_terminator()) {
    DenseElementsAttr elements;
    if (matchPattern(&op, m_Constant(&elements)) && elements.isSplat())
      continue;
    if (!isa<arith::ArithDialect, math::MathDialect>(op.getDialect()) ||
        !OpTrait::hasElementwiseMappableTraits(&op))
      return op.emitOpError("expects to be outside gdn_gpu.conv_columns, whose "
                            "body has arith and math on elements only");
  }
  for (Operation &op : body)
    for (Value operand : op.getOperands()) {
      DenseElementsAttr elements;
      if (!getBody().isAncestor(operand.getParentRegion()) &&
          !(matchPattern(operand, m_Constant(&elements)) && elements.isSplat()))
        return op.emitOpError("expects vectors of the gdn_gpu.conv_columns "
                              "around it or constants of one value, but got "
                              "one from outside");
    }
  // conv_columns_c5
  return verifyOutsideWarps(*this);
}
