// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses the types of operands; see OperandTypes.h.
#include "Program/OperandTypes.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace gdn;

/// Values of 1e4 write at most 1e4 (1 + sqrt(dk)), below 2e5; an f16 ends at
/// 65504. Values of 1e-3 still keep ten bits.
static constexpr double scaleOfValues = 1.0 / 16;

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

/// Whether tokens may write with strengths of more than 1.
static bool hasDoubledBeta(RuleOpInterface rule) {
  auto gates = rule.getBeta().getDefiningOp<GatesOp>();
  return rule.getDoubleBeta() || (gates && gates.getDoubleBeta());
}

/// Whether the channels of keys that decay on their own are whole blocks of a
/// gdn_tile.decay_operands.
static bool hasWholeBlocks(RuleOpInterface rule) {
  auto key = cast<RankedTensorType>(rule.getKey().getType());
  return !rule.isPerChannel() ||
         key.getShape().back() % tile::DecayOperandsOp::block == 0;
}

bool gdn::isInMemory(Value value) {
  Operation *op = value.getDefiningOp();
  return !op || isa<UnpackOp>(op);
}

ChunkTypes ChunkTypes::choose(const KernelOperands &parts,
                              Precision precision) {
  RuleOpInterface rule = parts.rule;
  Builder b(rule.getContext());
  Type input = inputTypeOf(rule.getKey());
  if (precision == Precision::f32 || input.isF32() || !rule.getBeta() ||
      hasDoubledBeta(rule) || !hasWholeBlocks(rule))
    return {b.getF32Type(), b.getF32Type()};
  // Keys that the kernel computes are nowhere in memory, and f16 is closer. So
  // are keys with a decay for each of their channels.
  FloatType key = b.getF16Type();
  if (precision == Precision::mixedIo && isInMemory(rule.getKey()) &&
      !rule.isPerChannel())
    key = cast<FloatType>(input);
  return {key, b.getF16Type(), scaleOfValues};
}

ChunkTypes ChunkTypes::chooseStaged(const KernelOperands &parts,
                                    Precision precision) {
  ChunkTypes types = choose(parts, precision);
  RuleOpInterface rule = parts.rule;
  if (!types.isExact() || precision == Precision::f32 || !rule.getBeta() ||
      rule.isPerChannel())
    return types;
  FloatType part = Builder(rule.getContext()).getF16Type();
  const bool isF32 = inputTypeOf(rule.getKey()).isF32();
  return {part, part, scaleOfValues, /*parts=*/2, /*queryParts=*/isF32 ? 2 : 1};
}
