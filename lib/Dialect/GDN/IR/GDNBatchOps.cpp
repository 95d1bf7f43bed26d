// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of the ops in GDNBatchOps.td, and the types of their results.
#include "NamedSizes.h"

#include "gdn/Dialect/GDN/IR/GDN.h"

using namespace mlir;
using namespace gdn;

LogicalResult PlanBatchOp::verify() {
  // plan_batch_c1
  NamedSizes sizes(*this);
  if (failed(
          sizes.agree("block_table", getBlockTable().getType(), {"N", "B"})) ||
      failed(sizes.agree("query_start_loc", getQueryStartLoc().getType(),
                         {{"N", 1}})))
    return failure();
  for (auto [name, value] : {std::pair("seq_lens", Value(getSeqLens())),
                             {"drafts", getDrafts()},
                             {"accepted", getAccepted()}})
    if (value && failed(sizes.agree(name, value.getType(), {"N"})))
      return failure();
  // plan_batch_c2
  if (getCommits() != Commits::none && !getAccepted())
    return emitOpError("expects 'commits' to be none without 'accepted', but "
                       "got ")
           << stringifyCommits(getCommits());
  return success();
}

LogicalResult
PlanBatchOp::inferReturnTypes(MLIRContext *context, std::optional<Location>,
                              ValueRange operands, DictionaryAttr attributes,
                              OpaqueProperties properties, RegionRange,
                              SmallVectorImpl<Type> &types) {
  PlanBatchOpAdaptor op(operands, attributes, properties);
  auto lens = cast<RankedTensorType>(op.getSeqLens().getType());
  auto listOf = [&](Type element) -> Type { return lens.clone(element); };
  Type flags = listOf(IntegerType::get(context, 1));
  Type starts = op.getQueryStartLoc().getType();
  Type slots = listOf(getElementTypeOrSelf(op.getBlockTable()));
  Type counts = listOf(op.getAccepted() ? getElementTypeOrSelf(op.getAccepted())
                                        : IntegerType::get(context, 32));
  types.assign({flags, starts, slots, counts, starts, slots, slots, flags,
                flags, slots, counts});
  return success();
}
