// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of a mixed batch, verify takes the engine's arrays as they are, and a flag
// for each sequence; prefill takes lists of its own. The entry makes both.
#include "PlanEntry.h"

#include "PoolEntries.h"

using namespace mlir;
using namespace gdn;

void gdn::buildPlanEntry(OpBuilder &builder, const ModelConfig &config,
                         const EntryOptions &options, StringRef suffix) {
  OpBuilder::InsertionGuard guard(builder);
  Type i32 = builder.getI32Type(), flag = builder.getI1Type();
  Type ids = options.slots64 ? Type(builder.getI64Type()) : i32;
  Signature signature(builder);
  signature.addTensor("query_start_loc", i32, {"N + 1"});
  signature.addTensor("seq_lens", i32, {"N"});
  signature.addTensor("block_table", ids, {"N", "B"});
  signature.addTensor("num_drafts", i32, {"N"});
  if (options.verify == VerifyStates::slots)
    signature.addTensor("num_accepted", i32, {"N"});
  // Of verify, then of prefill.
  signature.addResult("is_prefill", flag, {"N"});
  signature.addResult("prefill_cu_seqlens", i32, {"N + 1"});
  signature.addResult("prefill_slots", ids, {"N"});
  signature.addResult("prefill_write_slots", ids, {"N"});
  signature.addResult("prefill_has_initial", flag, {"N"});
  signature.addResult("prefill_taken", flag, {"N"});
  func::FuncOp func = signature.createEntry(("plan" + suffix).str());
  addTypeFacts(func, config, options);
  Location loc = NameLoc::get(builder.getStringAttr("plan"));
  auto plan = PlanBatchOp::create(
      builder, loc, func.getResultTypes(), signature["query_start_loc"],
      signature["seq_lens"], signature["block_table"], signature["num_drafts"],
      signature["num_accepted"]);
  func::ReturnOp::create(builder, builder.getUnknownLoc(), plan.getResults());
}
