// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of the ops in GDNBatchOps.td.
#include "NamedSizes.h"

#include "gdn/Dialect/GDN/IR/GDN.h"

using namespace mlir;
using namespace gdn;

/// Checks that `got` has the element type of `want`.
static LogicalResult verifySameElement(Operation *op, StringRef wantName,
                                       Value want, StringRef gotName,
                                       Value got) {
  Type wantType = getElementTypeOrSelf(want);
  Type gotType = getElementTypeOrSelf(got);
  if (gotType == wantType)
    return success();
  return op->emitOpError("expects '")
         << gotName << "' to have the element type of '" << wantName << "', "
         << wantType << ", but got " << gotType;
}

LogicalResult PlanBatchOp::verify() {
  // plan_batch_c1
  NamedSizes sizes(*this);
  auto isList = [&](StringRef name, Value value) {
    return succeeded(sizes.agree(name, value.getType(), {"N"}));
  };
  if (failed(
          sizes.agree("block_table", getBlockTable().getType(), {"N", "B"})) ||
      failed(sizes.agree("query_start_loc", getQueryStartLoc().getType(),
                         {{"N", 1}})) ||
      failed(sizes.agree("cu_seqlens", getCuSeqlens().getType(), {{"N", 1}})))
    return failure();
  for (auto [name, value] : {std::pair("seq_lens", Value(getSeqLens())),
                             {"drafts", getDrafts()},
                             {"accepted", getAccepted()},
                             {"is_prefill", getIsPrefill()},
                             {"slots", getSlots()},
                             {"write_slots", getWriteSlots()},
                             {"has_initial", getHasInitial()},
                             {"taken", getTaken()}})
    if (value && !isList(name, value))
      return failure();
  // plan_batch_c2
  return failure(
      failed(verifySameElement(*this, "query_start_loc", getQueryStartLoc(),
                               "cu_seqlens", getCuSeqlens())) ||
      failed(verifySameElement(*this, "block_table", getBlockTable(), "slots",
                               getSlots())) ||
      failed(verifySameElement(*this, "block_table", getBlockTable(),
                               "write_slots", getWriteSlots())));
}
