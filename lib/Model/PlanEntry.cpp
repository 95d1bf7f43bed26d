// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The engine's arrays, and what verify, prefill and a commit of a mixed batch
// read instead of them or besides.
#include "PlanEntry.h"

#include "PoolEntries.h"

using namespace mlir;
using namespace gdn;

namespace {
/// A result of the op that the entry gives.
struct PlanResult {
  const char *name;
  Type element;
  const char *size;
  TypedValue<RankedTensorType> (PlanBatchOp::*get)();
};
} // namespace

static Commits commitsOf(const EntryOptions &options) {
  if (options.deferWrites)
    return Commits::counted;
  return options.verify == VerifyStates::lazy     ? Commits::prefill
         : options.verify == VerifyStates::buffer ? Commits::all
                                                  : Commits::none;
}

/// What the launches of an image read: only some kinds of verify have slots
/// apart from those of tokens, or counts.
static SmallVector<PlanResult> getPlanResults(const EntryOptions &options,
                                              Type ids, Type i32, Type flag) {
  using Op = PlanBatchOp;
  const VerifyStates states = options.verify;
  SmallVector<PlanResult> given = {
      {"is_prefill", flag, "N", &Op::getIsPrefill},
      {"verify_cu_seqlens", i32, "N + 1", &Op::getVerifyCuSeqlens}};
  if (states != VerifyStates::slots)
    given.push_back({"verify_slots", ids, "N", &Op::getVerifySlots});
  if (states == VerifyStates::slots || states == VerifyStates::lazy)
    given.push_back({"verify_accepted", i32, "N", &Op::getVerifyAccepted});
  given.append({{"prefill_cu_seqlens", i32, "N + 1", &Op::getPrefillCuSeqlens},
                {"prefill_slots", ids, "N", &Op::getPrefillSlots},
                {"prefill_write_slots", ids, "N", &Op::getPrefillWriteSlots},
                {"prefill_has_initial", flag, "N", &Op::getPrefillHasInitial},
                {"prefill_taken", flag, "N", &Op::getPrefillTaken}});
  if (commitsOf(options) != Commits::none)
    given.append({{"commit_slots", ids, "N", &Op::getCommitSlots},
                  {"commit_accepted", i32, "N", &Op::getCommitAccepted}});
  return given;
}

void gdn::buildPlanEntry(OpBuilder &builder, const ModelConfig &config,
                         const EntryOptions &options, StringRef suffix) {
  OpBuilder::InsertionGuard guard(builder);
  Type i32 = builder.getI32Type(), flag = builder.getI1Type();
  Type ids = options.slots64 ? Type(builder.getI64Type()) : i32;
  Signature signature(builder);
  signature.addSymbol("T");
  signature.addSymbol("S");
  signature.addTensor("query_start_loc", i32, {"N + 1"});
  signature.addTensor("seq_lens", i32, {"N"});
  signature.addTensor("block_table", ids, {"N", "B"});
  signature.addTensor("num_drafts", i32, {"N"});
  if (options.verify != VerifyStates::tree)
    signature.addTensor("num_accepted", i32, {"N"});
  // Symbols are sizes of arrays; nothing of this one is read.
  signature.addTensor("limits", flag, {"T", "S"});
  const SmallVector<PlanResult> given = getPlanResults(options, ids, i32, flag);
  for (const PlanResult &result : given)
    signature.addResult(result.name, result.element, {result.size});
  func::FuncOp func = signature.createEntry(("plan" + suffix).str());
  addTypeFacts(func, config, options);
  auto plan = PlanBatchOp::create(
      builder, NameLoc::get(builder.getStringAttr("plan")),
      signature["query_start_loc"], signature["seq_lens"],
      signature["block_table"], signature["num_drafts"], signature["T"],
      signature["S"], signature["num_accepted"], commitsOf(options));
  SmallVector<Value> results;
  for (const PlanResult &result : given)
    results.push_back((plan.*result.get)());
  func::ReturnOp::create(builder, builder.getUnknownLoc(), results);
}
