// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The words of these checks are the same for both dialects; see TileChecks.h.
#include "gdn/Dialect/TileChecks.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace gdn;

LogicalResult gdn::verifyAxis(Operation *op, ArrayAttr grid, uint64_t axis) {
  if (!grid)
    return op->emitOpError("expects a function with 'grid' of 'gdn_tile.stage' "
                           "around it");
  if (axis >= grid.size())
    return op->emitOpError("expects an axis below ")
           << grid.size()
           << ", the size of 'grid' of 'gdn_tile.stage', but got " << axis;
  return success();
}

LogicalResult gdn::verifyViewDims(Operation *op, MemRefType view,
                                  size_t numIndices, ArrayRef<int64_t> dims,
                                  int64_t rank, StringRef what) {
  if (int64_t(numIndices) != view.getRank())
    return op->emitOpError(
               "expects one index per dimension of 'view', which is ")
           << view.getRank() << ", but got " << numIndices;
  if (int64_t(dims.size()) != rank)
    return op->emitOpError("expects one entry of 'dims' per dimension of ")
           << what << ", which is " << rank << ", but got " << dims.size();
  llvm::SmallSet<int64_t, 2> seen;
  for (int64_t dim : dims)
    if (dim < 0 || dim >= view.getRank() || !seen.insert(dim).second)
      return op->emitOpError("expects 'dims' to name distinct dimensions of "
                             "'view' below ")
             << view.getRank() << ", but got " << dim;
  return success();
}

LogicalResult gdn::verifyCounter(Operation *op, MemRefType view,
                                 size_t numIndices) {
  if (failed(verifyViewDims(op, view, numIndices, {}, 0, "the counter")))
    return failure();
  if (!view.getElementType().isF32())
    return op->emitOpError("expects counters in a view of f32, but got ")
           << view;
  return success();
}

LogicalResult gdn::verifyViewElement(Operation *op, MemRefType view,
                                     Type element, StringRef what) {
  if (element == view.getElementType())
    return success();
  return op->emitOpError("expects ")
         << what << " to have the view's element type " << view.getElementType()
         << ", but got " << element;
}

LogicalResult gdn::verifyYield(Operation *yield, TypeRange types,
                               StringRef what) {
  if (yield->getNumOperands() != types.size())
    return yield->emitOpError("expects ")
           << types.size() << " operands, one per result, but got "
           << yield->getNumOperands();
  for (auto [index, got, want] :
       llvm::enumerate(yield->getOperandTypes(), types))
    if (got != want)
      return yield->emitOpError("expects operand ")
             << index << " to be " << want << ", " << what << ", but got "
             << got;
  return success();
}

LogicalResult gdn::verifyRowBody(Operation *op, Block &body, TypeRange inputs,
                                 TypeRange results, StringRef what) {
  if (body.getNumArguments() != inputs.size() + 1)
    return op->emitOpError("expects the body to have ")
           << inputs.size() + 1
           << " arguments, the row number and one per input, but got "
           << body.getNumArguments();
  if (!body.getArgument(0).getType().isIndex())
    return op->emitOpError("expects the first argument of the body to be the "
                           "row number, an index, but got ")
           << body.getArgument(0).getType();
  for (auto [arg, want] : llvm::zip(body.getArguments().drop_front(), inputs))
    if (arg.getType() != want)
      return op->emitOpError("expects argument ")
             << arg.getArgNumber() << " of the body to be " << want << ", "
             << what << " of its input, but got " << arg.getType();
  return verifyYield(body.getTerminator(), results,
                     (what + " of its result").str());
}
