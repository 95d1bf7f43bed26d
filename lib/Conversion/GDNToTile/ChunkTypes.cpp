// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses the types of operands; see ChunkTypes.h.
#include "ChunkTypes.h"

using namespace mlir;
using namespace gdn;

/// The type of what the caller hands over as, or for, the keys.
static Type inputTypeOf(Value key) {
  while (Operation *op = key.getDefiningOp()) {
    if (auto conv = dyn_cast<Conv1dOp>(op))
      key = conv.getInputs()[cast<OpResult>(key).getResultNumber()];
    else if (isa<L2NormOp, CastOp>(op))
      key = op->getOperand(0);
    else
      break;
  }
  return getElementTypeOrSelf(key.getType());
}

ChunkTypes ChunkTypes::choose(const KernelParts &parts, Precision precision) {
  DeltaRuleOp rule = parts.rule;
  Builder b(rule.getContext());
  Type input = inputTypeOf(rule.getKey());
  if (precision == Precision::f32 || input.isF32())
    return {b.getF32Type(), b.getF32Type()};
  ChunkTypes t{cast<FloatType>(input), b.getF16Type(), 1.0 / 16};
  if (const char *s = getenv("GDN_TYPES")) { // XXX experiment
    auto ty = [&](char c) -> FloatType {
      return c == 'b' ? FloatType(b.getBF16Type()) : c == 'h' ? FloatType(b.getF16Type()) : FloatType(b.getF32Type());
    };
    t.key = ty(s[0]);
    t.inner = ty(s[1]);
  }
  return t;
}
