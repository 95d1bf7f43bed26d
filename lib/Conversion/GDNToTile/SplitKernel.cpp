// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A prefill in stages. What a chunk does not need the state for is most of
// its work, and all chunks can do it at the same time:
//
//   prologue a block per group of tokens and value head: queries, keys and
//            values to the workspace, where they are not in memory as products
//            take them
//   prepare  a block per chunk and value head: Y, Z and the gates of the chunk
//            to the workspace
//   walk     a block per row and value head, and one for the padding: from
//            state to state, chunk after chunk; outputs, pools, zeros
//
// Here: which kernels are split, and into how many parts.
#include "SplitKernel.h"
#include "Checkpoints.h"
#include "SplitStage.h"

using namespace mlir;
using namespace gdn;

/// Whether the kernel can be split; see emitSplitKernel.
static bool canSplit(const KernelParts &parts, const Algorithm &algorithm) {
  if (!parts.cuSeqlens || !parts.rule || parts.tokenSlots || parts.numAccepted)
    return false;
  if (parts.checkpoints && checkpointTokens % algorithm.chunk != 0)
    return false;
  DeltaRuleOp rule = parts.rule;
  if (ChunkTypes::choose(parts, algorithm.precision).isExact() ||
      getChunkForm(rule, algorithm.chunk).empty())
    return false;
  // A window before a group of tokens has to lie in the row.
  if (llvm::any_of(parts.carries, [&](const Carry &carry) {
        return isa<Conv1dOp>(carry.op) &&
               carry.type.getDimSize(0) > getGroupTokens(parts, algorithm);
      }))
    return false;
  // Behind the rule stand ops on its output and on what is in memory.
  llvm::DenseSet<Value> inputs = parts.ruleInputs();
  auto isBefore = [&](Value value) {
    return inputs.contains(value) && value.getDefiningOp() &&
           value.getDefiningOp()->getParentOp() == parts.kernel;
  };
  KernelOp kernel = parts.kernel;
  for (Operation &op : kernel.getBody().front()) {
    bool isInput = llvm::any_of(op.getResults(), isBefore);
    if (!isInput && !isa<DeltaRuleOp>(op) &&
        llvm::any_of(op.getOperands(), isBefore))
      return false;
  }
  return true;
}

/// How many blocks may share the walk of a value head: as many as asked for, if
/// they have the same number of values and all that follows the rule goes value
/// by value.
static int64_t chooseValueParts(const KernelParts &parts, int64_t wanted) {
  KernelOp kernel = parts.kernel;
  DeltaRuleOp rule = parts.rule;
  auto value = cast<RankedTensorType>(rule.getValue().getType());
  llvm::DenseSet<Value> inputs = parts.ruleInputs();
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    bool isInput = llvm::any_of(
        op.getResults(), [&](Value result) { return inputs.contains(result); });
    if (!isInput && !isa<DeltaRuleOp, CastOp, MaskRowsOp>(op))
      return 1;
  }
  return parts.checkpoints || value.getShape().back() % wanted != 0 ? 1
                                                                    : wanted;
}

/// Tokens of a chunk. A block of a GPU has a warp for 16 values. Of more than
/// eight warps a thread has too few registers for its state and results for 64
/// tokens; of fewer than eight each thread copies more beside a large state.
static int64_t chooseChunk(const KernelParts &parts,
                           const Algorithm &algorithm) {
  DeltaRuleOp rule = parts.rule;
  auto last = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape().back();
  };
  int64_t keys = last(rule.getKey()), values = last(rule.getValue());
  bool isLarge =
      algorithm.valueHeads && (values > 128 || (values < 128 && keys > 64));
  return isLarge ? std::min<int64_t>(algorithm.chunk, 32) : algorithm.chunk;
}

LogicalResult gdn::emitSplitKernel(func::FuncOp entry, KernelOp kernel,
                                   const Algorithm &algorithm,
                                   int64_t &numStages) {
  FailureOr<KernelParts> parts = KernelParts::analyse(entry, kernel);
  if (failed(parts))
    return failure();
  Algorithm perKeyHead = algorithm;
  perKeyHead.valueHeads = false;
  if (parts->rule)
    perKeyHead.chunk = chooseChunk(*parts, algorithm);
  if (!canSplit(*parts, perKeyHead))
    return success();
  perKeyHead.valueParts = chooseValueParts(*parts, algorithm.valueParts);
  for (auto [emitStage, name] : {std::pair(&emitPrologueStage, "__prologue"),
                                 std::pair(&emitPrepareStage, "__prepare"),
                                 std::pair(&emitWalkStage, "__walk")}) {
    if (emitStage == &emitPrologueStage && !hasPrologue(*parts, perKeyHead))
      continue;
    EntryViews views = createEntryViews(entry, (entry.getName() + name).str());
    if (failed(emitStage(views, *parts, perKeyHead))) {
      views.function.erase();
      return failure();
    }
    ++numStages;
  }
  return success();
}
