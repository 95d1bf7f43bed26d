// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of the ops in GDNPoolOps.td.
#include "NamedSizes.h"
#include "OpChecks.h"

#include "gdn/Dialect/GDN/IR/GDN.h"

using namespace mlir;
using namespace gdn;

LogicalResult PoolCopyOp::verify() {
  PoolType source = getSource().getType(), target = getTarget().getType();
  // pool_copy_c1; dimension 0 is dynamic in both.
  if (failed(verifySameShape(*this, "source", source, "target", target)))
    return failure();
  // pool_copy_c2
  if (target.getElementType() != source.getElementType())
    return emitOpError(
               "expects 'target' to have the element type of 'source', ")
           << source.getElementType() << ", but got "
           << target.getElementType();
  // pool_copy_c3
  NamedSizes sizes(*this);
  return failure(
      failed(sizes.agree("slots", getSlots().getType(), {"N"})) ||
      failed(sizes.agree("write_slots", getWriteSlots().getType(), {"N"})));
}
