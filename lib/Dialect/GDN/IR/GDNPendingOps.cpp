// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of the ops in GDNPendingOps.td, and of pending tokens wherever an
// op has some. A label such as commit_conv1d_c1 is constraint (C1) of that op,
// there and in docs/spec.
#include "OpChecks.h"
#include "PendingChecks.h"

using namespace mlir;
using namespace gdn;

/// Most tokens that are pending over several steps.
static constexpr int64_t mostDeferred = 32;

LogicalResult gdn::verifySteps(Operation *op, const NamedSizes &sizes,
                               int64_t most) {
  int64_t steps = sizes.get("S");
  if (ShapedType::isDynamic(steps) || (steps >= 1 && steps <= most))
    return success();
  return op->emitOpError("expects S, set by ")
         << sizes.setBy("S") << ", to be from 1 to " << most << ", but got "
         << steps;
}

LogicalResult gdn::verifyHistory(Operation *op, NamedSizes &sizes,
                                 PoolType pool, int64_t window) {
  if (failed(sizes.agree("pool", pool, {"P", "D", "columns"})))
    return failure();
  int64_t columns = sizes.get("columns");
  if (ShapedType::isDynamic(columns) ||
      (columns > window && columns <= window + 8))
    return success();
  return op->emitOpError("expects dim 2 of 'pool' to be ")
         << window << " + S with S from 1 to 8, but got " << columns;
}

LogicalResult gdn::verifyPendingPools(Operation *op, NamedSizes &sizes,
                                      StringRef prefix,
                                      const PendingPools &pools) {
  const std::string keys = (prefix + "keys").str(),
                    deltas = (prefix + "deltas").str(),
                    decays = (prefix + "decays").str(),
                    counts = (prefix + "counts").str();
  if (pools.scales && !pools.counts)
    return op->emitOpError("expects '")
           << counts << "' to be given with 'pending_scales', but got none";
  Builder b(op->getContext());
  Type f32 = b.getF32Type();
  Type element = pools.scales ? b.getF16Type() : f32;
  using Expected = std::tuple<StringRef, PoolType, Type>;
  for (auto [name, pool, want] :
       {Expected{keys, pools.keys, element},
        Expected{deltas, pools.deltas, element},
        Expected{decays, pools.decays, f32},
        Expected{"pending_scales", pools.scales, f32}})
    if (pool && pool.getElementType() != want)
      return op->emitOpError("expects the elements of '")
             << name << "' to be " << want
             << (want.isF16() ? " beside 'pending_scales'" : "") << ", but got "
             << pool.getElementType();
  SmallVector<SizeName> decay = {"P", "Hv", "S"};
  if (pools.decays.getRank() == 4)
    decay.push_back("dk");
  if (failed(sizes.agree(keys, pools.keys, {"P", "Hk", "S", "dk"})) ||
      failed(sizes.agree(deltas, pools.deltas, {"P", "Hv", "S", "dv"})) ||
      failed(sizes.agree(decays, pools.decays, decay)))
    return failure();
  if (!pools.counts)
    return verifySteps(op, sizes);
  if (!pools.counts.getElementType().isSignlessInteger(32))
    return op->emitOpError("expects the elements of '")
           << counts << "' to be 'i32', but got "
           << pools.counts.getElementType();
  if (failed(sizes.agree(counts, pools.counts, {"P", "Hk"})) ||
      (pools.scales &&
       failed(sizes.agree("pending_scales", pools.scales, {"P", "Hv", "S"}))))
    return failure();
  return verifySteps(op, sizes, mostDeferred);
}

LogicalResult CountedSlotsOp::verify() {
  // counted_slots_c1
  NamedSizes sizes(*this);
  if (failed(sizes.agree("slots", getSlots().getType(), {"N"})) ||
      failed(sizes.agree("num_accepted", getNumAccepted().getType(), {"N"})))
    return failure();
  if (Value bounds = getCuSeqlens())
    if (failed(sizes.agree("cu_seqlens", bounds.getType(), {{"N", 1}})))
      return failure();
  // counted_slots_c2
  return verifyMaxTokens(*this, getCuSeqlens(), getMaxTokens());
}

/// Checks the operands that say what is accepted of which slot.
template <typename OpTy>
static LogicalResult verifyAccepted(OpTy op, NamedSizes &sizes) {
  Value accepted = op.getNumAccepted();
  return failure(failed(sizes.agree("slots", op.getSlots().getType(), {"N"})) ||
                 (accepted && failed(sizes.agree("num_accepted",
                                                 accepted.getType(), {"N"}))));
}

LogicalResult CommitConv1dOp::verify() {
  NamedSizes sizes(*this);
  int64_t window = getWindow();
  if (window < 1 || window > 7) // commit_conv1d_c3
    return emitOpError("expects 'window' to be from 1 to 7, but got ")
           << window;
  // commit_conv1d_c1
  if (failed(verifyHistory(*this, sizes, getPool().getType(), window)))
    return failure();
  return verifyAccepted(*this, sizes); // commit_conv1d_c2
}

LogicalResult CommitDeltaRuleOp::verify() {
  NamedSizes sizes(*this, {"dk", "dv"});
  // commit_delta_rule_c1
  if (failed(
          sizes.agree("pool", getPool().getType(), {"P", "Hv", "dv", "dk"})) ||
      failed(verifyStates(*this, sizes, getPool().getType(), getStateScales(),
                          getStateLow())) ||
      failed(verifyAccepted(*this, sizes))) // commit_delta_rule_c2
    return failure();
  // commit_delta_rule_c3
  if (!getNumAccepted() && !getCounts())
    return emitOpError(
        "expects 'accepted' or 'counts' to be given, but got neither");
  if (failed(verifyPendingPools(
          *this, sizes, "",
          {getKeys().getType(), getDeltas().getType(), getDecays().getType(),
           getCounts() ? getCounts().getType() : PoolType(),
           getPendingScales() ? getPendingScales().getType() : PoolType()})))
    return failure();
  return sizes.verifyHeadCounts();
}
