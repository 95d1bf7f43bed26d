// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verification and canonicalisation of gdn.kernel.
#include "gdn/Dialect/GDN/IR/GDN.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace gdn;

GatedRMSNormOp KernelOp::findNormOfRule(Block &body) {
  RuleOpInterface rule;
  GatedRMSNormOp norm;
  for (Operation &op : body) {
    auto isSecond = [&](auto &known, auto found) {
      bool hasBoth = known && found;
      known = found ? found : known;
      return hasBoth;
    };
    if (isSecond(rule, dyn_cast<RuleOpInterface>(op)) ||
        isSecond(norm, dyn_cast<GatedRMSNormOp>(op)))
      return {};
  }
  if (!rule || !norm)
    return {};
  Value value = rule.getOutput();
  while (value.hasOneUse() && isa<CastOp>(*value.user_begin()))
    value = cast<CastOp>(*value.user_begin()).getResult();
  return value.hasOneUse() && norm.getInput() == value ? norm
                                                       : GatedRMSNormOp();
}

Conv1dOp KernelOp::findConvOfValues(Block &body) {
  auto rules = body.getOps<RuleOpInterface>();
  if (!llvm::hasSingleElement(rules))
    return {};
  Value values = (*rules.begin()).getValue();
  auto conv = values.getDefiningOp<Conv1dOp>();
  return conv && conv->getBlock() == &body && values.hasOneUse() ? conv
                                                                 : Conv1dOp();
}

LogicalResult KernelOp::verifyRegions() {
  Block &body = getBody().front();
  // kernel_c2
  for (Operation &op : body) {
    if (!isa_and_nonnull<GDNDialect>(op.getDialect()))
      return emitOpError("expects gdn ops only in its body, but got '")
             << op.getName() << "'";
    if (isa<KernelOp>(op))
      return emitOpError("expects no other kernel in its body, but got ")
             << cast<KernelOp>(op).getNameAttr();
  }
  // kernel_c3
  if (getNormWithRule() && !findNormOfRule(body))
    return emitOpError(
        "expects one rule, and one gdn.gated_rms_norm that alone "
        "uses its output, with 'norm_with_rule'");
  // kernel_c4
  if (getConvWithRule() && !findConvOfValues(body))
    return emitOpError("expects one rule, whose values are a result of a "
                       "gdn.conv1d that nothing else uses, with "
                       "'conv_with_rule'");
  // kernel_c1
  Operation *yield = body.getTerminator();
  if (yield->getNumOperands() != getNumResults())
    return yield->emitOpError("expects one operand per result of the kernel, "
                              "which is ")
           << getNumResults() << ", but got " << yield->getNumOperands();
  for (auto [index, got, want] :
       llvm::enumerate(yield->getOperandTypes(), getResultTypes()))
    if (got != want)
      return yield->emitOpError("expects operand ")
             << index << " to be " << want << ", set by result " << index
             << " of the kernel, but got " << got;
  return success();
}

namespace {
/// Drops results that nobody reads, that the kernel did not compute, or that
/// repeat an earlier one; drops the kernel when nothing is left of it.
struct SimplifyKernelResults final : OpRewritePattern<KernelOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(KernelOp op,
                                PatternRewriter &rewriter) const override {
    Block *body = &op.getBody().front();
    Operation *yield = body->getTerminator();
    SmallVector<Value> kept, replacements(op.getNumResults());
    for (auto [result, value] :
         llvm::zip(op.getResults(), yield->getOperands())) {
      if (value.getParentBlock() != body)
        replacements[result.getResultNumber()] = value;
      else if (!result.use_empty() && !llvm::is_contained(kept, value)) {
        kept.push_back(value);
      }
    }
    bool isEmpty = llvm::hasSingleElement(*body);
    if (kept.size() == op.getNumResults() && !isEmpty)
      return failure();

    SmallVector<Value> yielded = llvm::to_vector(yield->getOperands());
    KernelOp slim;
    if (!isEmpty) {
      rewriter.modifyOpInPlace(yield, [&] { yield->setOperands(kept); });
      slim = KernelOp::create(
          rewriter, op.getLoc(), TypeRange(ValueRange(kept)), op.getNameAttr(),
          op.getNormWithRuleAttr(), op.getConvWithRuleAttr());
      slim->setDiscardableAttrs(op->getDiscardableAttrDictionary());
      rewriter.inlineRegionBefore(op.getBody(), slim.getBody(),
                                  slim.getBody().begin());
    }
    for (auto [index, value] : llvm::enumerate(yielded)) {
      if (replacements[index])
        continue;
      auto *it = llvm::find(kept, value);
      if (it != kept.end())
        replacements[index] = slim.getResult(it - kept.begin());
    }
    for (auto [result, value] : llvm::zip(op.getResults(), replacements))
      if (value)
        rewriter.replaceAllUsesWith(result, value);
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void KernelOp::getCanonicalizationPatterns(RewritePatternSet &results,
                                           MLIRContext *context) {
  results.add<SimplifyKernelResults>(context);
}
