// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last stage of the variants "split" of a kernel with a norm behind the
// rule: a block per group of tokens and value head. The walk left the rule's
// output in a result of the entry, rounded to its type, as it is between the
// layers of a model; so the norm is a pass over memory.
#include "NormStage.h"
#include "SplitChunk.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace gdn;

/// `value` without the casts and masks that it went through.
static Value sourceOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto cast = dyn_cast<CastOp>(op))
      value = cast.getInput();
    else if (auto mask = dyn_cast<MaskRowsOp>(op))
      value = mask.getInput();
    else
      break;
  }
  return value;
}

std::optional<NormStage> NormStage::find(const KernelParts &parts) {
  DeltaRuleOp rule = parts.rule;
  KernelOp kernel = parts.kernel;
  if (!rule)
    return std::nullopt;
  NormStage stage;
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

namespace {

class SplitNorm final : public SplitChunkStage {
public:
  SplitNorm(EntryViews &views, const KernelParts &parts,
            const Algorithm &algorithm, ArrayRef<std::string> variants,
            const NormStage &stage)
      : SplitChunkStage(views, parts, algorithm, variants), stage(stage) {
    blockTokens = getGroupTokens(parts, algorithm);
  }

protected:
  SmallVector<std::string> gridOf(const std::string &slots) override {
    return {slots, valueForm, std::to_string(algorithm.chunk / blockTokens)};
  }
  bool knowsPrepared() const override { return false; }
  void emitChunkSlot(Value, Value, Value valid) override {
    Value first = mul(tile::BlockIdOp::create(b, loc, b.getIndexType(), 2),
                      index(blockTokens));
    // A group without tokens may lie past all of them.
    first = arith::MinUIOp::create(b, loc, first, valid);
    Value count = arith::MinUIOp::create(
        b, loc, arith::SubIOp::create(b, loc, valid, first),
        index(blockTokens));
    TokenBlock block(*this, head);
    block.emitNormResults(add(begin, first), count, stage);
  }

private:
  const NormStage &stage;
};

} // namespace

LogicalResult gdn::emitNormStage(EntryViews &views, const KernelParts &parts,
                                 const Algorithm &algorithm,
                                 ArrayRef<std::string> variants) {
  std::optional<NormStage> stage = NormStage::find(parts);
  return SplitNorm(views, parts, algorithm, variants, *stage).emit();
}
