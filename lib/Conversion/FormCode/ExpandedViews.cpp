// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the last of the dimensions that a dimension became to the first, a
// stride is that of the one behind times its size.
#include "gdn/Conversion/ExpandedViews.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace gdn;

static void lower(memref::ExpandShapeOp view) {
  OpBuilder b(view);
  Location loc = view.getLoc();
  auto meta = memref::ExtractStridedMetadataOp::create(b, loc, view.getSrc());
  SmallVector<OpFoldResult> sizes = view.getMixedOutputShape(),
                            sourceStrides = meta.getConstifiedMixedStrides();
  SmallVector<OpFoldResult> strides(sizes.size());
  for (auto [group, last] :
       llvm::zip(view.getReassociationIndices(), sourceStrides)) {
    OpFoldResult stride = last;
    for (int64_t dim : llvm::reverse(group)) {
      strides[dim] = stride;
      if (dim != group.front())
        stride = getAsOpFoldResult(b.createOrFold<arith::MulIOp>(
            loc, getValueOrCreateConstantIndexOp(b, loc, stride),
            getValueOrCreateConstantIndexOp(b, loc, sizes[dim])));
    }
  }
  auto made = memref::ReinterpretCastOp::create(
      b, loc, view.getType(), view.getSrc(), meta.getConstifiedMixedOffset(),
      sizes, strides);
  view.replaceAllUsesWith(made.getResult());
  view.erase();
}

void gdn::lowerExpandedViews(Operation *function) {
  function->walk([](memref::ExpandShapeOp view) { lower(view); });
}
