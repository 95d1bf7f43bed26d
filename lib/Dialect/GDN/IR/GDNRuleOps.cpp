// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of the ops in GDNRuleOps.td. A label such as delta_rule_c1 is
// constraint (C1) of that op, there and in docs/spec.
#include "NamedSizes.h"
#include "OpChecks.h"
#include "PendingChecks.h"
#include "StateChecks.h"

#include "gdn/Dialect/GDN/IR/GDN.h"

#include <cmath>

using namespace mlir;
using namespace gdn;

double gdn::getScaleOrDefault(std::optional<APFloat> scale, int64_t dk) {
  return scale ? double(scale->convertToFloat()) : 1.0 / std::sqrt(double(dk));
}

/// Checks what all rules have in common.
static LogicalResult verifyRule(RuleOpInterface op, NamedSizes &sizes) {
  SmallVector<SizeName> decay = {"T", "Hv"};
  if (op.isPerChannel())
    decay.push_back("dk");
  // delta_rule_c1, gated_linear_attention_c1
  auto agree = [&](StringRef name, Value operand, ArrayRef<SizeName> names) {
    return sizes.agree(name, operand.getType(), names);
  };
  if (failed(agree("query", op.getQuery(), {"T", "Hk", "dk"})) ||
      failed(agree("key", op.getKey(), {"T", "Hk", "dk"})) ||
      // delta_rule_c14
      (op.getErase() &&
       failed(agree("erase", op.getErase(), {"T", "Hk", "dk"}))) ||
      failed(agree("value", op.getValue(), {"T", "Hv", "dv"})) ||
      failed(agree("log_decay", op.getLogDecay(), decay)) ||
      (op.getBeta() && failed(agree("beta", op.getBeta(), {"T", "Hv"}))) ||
      failed(agree("output", op.getOutput(), {"T", "Hv", "dv"})))
    return failure();
  // delta_rule_c2, gated_linear_attention_c2
  if (failed(sizes.verifyHeadDim("dk")) || failed(sizes.verifyHeadDim("dv")))
    return failure();
  // delta_rule_c4, gated_linear_attention_c4, before c3, as the pool may be
  // what tells Hv
  if (failed(agree("pool", op.getPool(), {"P", "Hv", "dv", "dk"})) ||
      failed(verifyStates(op, sizes, op.getPool().getType(),
                          op.getStateScales(), op.getStateLow())))
    return failure();
  // delta_rule_c12
  if (op.getStateScales() && op.getTokenSlots())
    return op->emitOpError("expects no 'token_slots' beside 'state_scales'");
  // delta_rule_c3, gated_linear_attention_c3
  if (failed(sizes.verifyHeadCounts()))
    return failure();
  // delta_rule_c5, gated_linear_attention_c5
  if (failed(verifySequences(op, sizes)))
    return failure();
  // delta_rule_c6, gated_linear_attention_c6
  if (std::optional<APFloat> scale = op.getScale();
      scale && !scale->isFinite()) {
    SmallString<16> text;
    scale->toString(text);
    return op->emitOpError("expects 'scale' to be finite, but got ") << text;
  }
  // delta_rule_c7, gated_linear_attention_c7
  if (failed(verifyCheckpoints(op, sizes)))
    return failure();
  // delta_rule_c8, delta_rule_c9, gated_linear_attention_c8,
  // gated_linear_attention_c9
  if (failed(verifyTokenSlots(op, sizes)))
    return failure();
  return verifyTokenPool(op); // delta_rule_c11, gated_linear_attention_c10
}

/// Checks the pools of pending tokens of the rule.
static LogicalResult verifyPending(DeltaRuleOp op, NamedSizes &sizes) {
  auto keys = op.getPendingKeys(), deltas = op.getPendingDeltas(),
       decays = op.getPendingDecays(), counts = op.getPendingCounts(),
       scales = op.getPendingScales();
  if (!keys)
    return op.emitOpError("expects 'pending' to be given with '")
           << (counts   ? "counts"
               : scales ? "delta_scales"
                        : "accepted")
           << "', but got none";
  for (auto [name, operand] :
       {std::pair<StringRef, Value>{"pending_deltas", deltas},
        {"pending_decays", decays}})
    if (!operand)
      return op.emitOpError("expects '")
             << name << "' to be given with 'pending_keys', but got none";
  if (!counts && !op.getNumAccepted())
    return op.emitOpError("expects 'accepted' or 'counts' to be given with "
                          "'pending', but got neither");
  if (failed(verifyPendingStates(op, sizes)))
    return failure();
  if (int64_t want = op.isPerChannel() ? 4 : 3;
      decays.getType().getRank() != want)
    return op.emitOpError("expects 'pending_decays' to have rank ")
           << want << ", set by 'log_decay', but got rank "
           << decays.getType().getRank();
  return verifyPendingPools(op, sizes, "pending_",
                            {keys.getType(), deltas.getType(), decays.getType(),
                             counts ? counts.getType() : PoolType(),
                             scales ? scales.getType() : PoolType()});
}

LogicalResult DeltaRuleOp::verify() {
  NamedSizes sizes(*this, {"dk", "dv"}); // static: delta_rule_c2
  if (failed(verifyRule(*this, sizes)))
    return failure();
  // delta_rule_c14
  if (getErase() && (getPendingCounts() || getDoubleBeta()))
    return emitOpError("expects no '")
           << (getPendingCounts() ? "counts" : "double_beta")
           << "' beside 'erase'";
  // delta_rule_c13
  if (getReadsUpper() && (!getStateLow() || !getPendingCounts()))
    return emitOpError("expects 'low' and 'counts' to be given with "
                       "'reads_upper', but got no '")
           << (getStateLow() ? "counts" : "low") << "'";
  if (getReadsUpper() && getNumAccepted())
    return emitOpError("expects no 'accepted' with 'reads_upper'");
  if (!getNumAccepted() && !getPendingKeys() && !getPendingCounts() &&
      !getPendingScales())
    return success();
  return verifyPending(*this, sizes); // delta_rule_c10
}

LogicalResult GatedLinearAttentionOp::verify() {
  // Static: gated_linear_attention_c2.
  NamedSizes sizes(*this, {"dk", "dv"});
  return verifyRule(*this, sizes);
}
