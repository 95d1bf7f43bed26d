// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The norm of a kernel is one by itself if nothing but casts and masks stands
// between the rule and it, and between it and the results.
#include "Program/NormOperands.h"

using namespace mlir;
using namespace gdn;

/// `value` without the casts and masks that it went through.
static Value sourceOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto cast = dyn_cast<CastOp>(op))
      value = cast.getInput();
    else if (auto mask = dyn_cast<MaskSequencesOp>(op))
      value = mask.getInput();
    else
      break;
  }
  return value;
}

std::optional<NormOperands> NormOperands::find(const KernelOperands &parts) {
  RuleOpInterface rule = parts.rule;
  KernelOp kernel = parts.kernel;
  if (!rule)
    return std::nullopt;
  NormOperands stage;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    auto norm = dyn_cast<GatedRMSNormOp>(op);
    if (norm && (stage.norm || sourceOf(norm.getInput()) != rule.getOutput()))
      return std::nullopt;
    if (norm)
      stage.norm = norm;
    if (norm || llvm::any_of(op.getOperands(), [&](Value operand) {
          return stage.behind.contains(operand);
        }))
      stage.behind.insert(op.result_begin(), op.result_end());
  }
  if (!stage.norm)
    return std::nullopt;
  std::optional<unsigned> own, input;
  for (auto [number, value] : parts.results) {
    Value source = sourceOf(value);
    if (source == rule.getOutput())
      input = number;
    else if (source == stage.norm.getResult())
      own = number;
    else
      return std::nullopt;
  }
  if (!input && !own)
    return std::nullopt;
  stage.inputResult = input ? *input : *own;
  return stage;
}
