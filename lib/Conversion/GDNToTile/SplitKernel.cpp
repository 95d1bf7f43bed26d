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
//   maps     where rows are cut into segments: what each does to the state
//   first    where a block prepares its chunks: beside the maps, a block per
//            row and part of a value head walks the row's first segment
//   scan     where rows are cut: the state before each segment
//   walk     a block per row and value head, and one for the padding: from
//            state to state, chunk after chunk; outputs, pools, zeros
//   norm     a block per group of tokens and value head: where there is one
//            behind the rule
//
// Where lengths of rows decide how a head is shared, there is a walk for each
// way, and blocks of one of them do nothing (RowOrder.cpp).
//
// The first and the last pass over memory. Where there are few tokens, more
// blocks with fewer of them have them sooner: a variant of its own.
//
// Here: which kernels are split, and in which variants. They have the first
// stage in common, and the last.
#include "SplitKernel.h"
#include "Checkpoints.h"
#include "NormStage.h"
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
               carry.type.getDimSize(0) > groupTokens;
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

/// True if all that the walk does behind the rule goes value by value.
static bool goesByValue(const KernelParts &parts) {
  if (NormStage::find(parts))
    return true;
  KernelOp kernel = parts.kernel;
  llvm::DenseSet<Value> inputs = parts.ruleInputs();
  return llvm::all_of(kernel.getBody().front().without_terminator(),
                      [&](Operation &op) {
                        return isa<DeltaRuleOp, CastOp, MaskRowsOp>(op) ||
                               llvm::any_of(op.getResults(), [&](Value result) {
                                 return inputs.contains(result);
                               });
                      });
}

/// The last dimension of `value`, an input of the rule: that of a head.
static int64_t getHeadSize(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}

/// Elements of a state, or of rows of one, that fit well into the registers of
/// eight warps.
static constexpr int64_t goodStateElements = 128 * 128;

/// How many blocks may share the walk of a value head: as many as asked for, or
/// more if the state is large, if they have the same number of values and all
/// that follows the rule goes value by value.
static int64_t chooseValueParts(const KernelParts &parts, int64_t wanted) {
  DeltaRuleOp rule = parts.rule;
  int64_t keys = getHeadSize(rule.getKey());
  int64_t values = getHeadSize(rule.getValue());
  if (!goesByValue(parts) || parts.checkpoints)
    return 1;
  while (values % (2 * wanted) == 0 &&
         values / wanted * keys > goodStateElements)
    wanted *= 2;
  return values % wanted == 0 ? wanted : 1;
}

/// Tokens of a chunk. A block of a GPU has a warp for 16 values. Of more than
/// eight warps a thread has too few registers for its state and results for 64
/// tokens; of fewer than eight each thread copies more beside a large state.
static int64_t chooseChunk(const KernelParts &parts,
                           const Algorithm &algorithm) {
  DeltaRuleOp rule = parts.rule;
  int64_t keys = getHeadSize(rule.getKey());
  int64_t values = getHeadSize(rule.getValue());
  bool isLarge =
      algorithm.valueHeads && (values > 128 || (values < 128 && keys > 64));
  return isLarge ? std::min<int64_t>(algorithm.chunk, 32) : algorithm.chunk;
}

/// Blocks of a value head that walk a segment: so many that one has as many
/// rows of the state as fit well into the registers of four warps.
static constexpr int64_t segmentParts = 2;

/// Keys of the largest map of a segment that the scan takes without spilling.
static constexpr int64_t mostMapKeys = 128;

/// True if rows of the kernel can be cut into segments of `valueParts` parts,
/// each of which fits into a map as well.
static bool canCut(const KernelParts &parts, int64_t valueParts) {
  DeltaRuleOp rule = parts.rule;
  int64_t keys = getHeadSize(rule.getKey());
  return !parts.checkpoints && keys <= mostMapKeys &&
         keys % (getHeadSize(rule.getValue()) / valueParts) == 0;
}

/// Rows of a product that four warps make together, and its inner size in
/// steps that their instructions read from one row of shared memory.
static constexpr int64_t groupRows = 64, panelElements = 64;

/// Whether a block can prepare the chunks that it walks: where products of
/// chunks are those of four warps, and the state of a head as many rows again
/// or twice as many.
static bool canPrepare(const KernelParts &parts, const Algorithm &algorithm) {
  DeltaRuleOp rule = parts.rule;
  return goesByValue(parts) && !parts.checkpoints &&
         algorithm.chunk == groupRows &&
         getHeadSize(rule.getValue()) == 2 * groupRows &&
         getHeadSize(rule.getKey()) % panelElements == 0;
}

namespace {
/// A variant and what its stages but the first are called.
struct SplitVariant {
  SmallVector<std::string> names;
  std::string suffix;
  int64_t valueParts, cuts, together;
  bool isShort = false; // the first name is that of the variant for few tokens
  bool byLengths = false; // one of two walks, as lengths of rows say
  bool mayBeCut = false;  // another variant cuts rows of its batches
};
} // namespace

/// The variants in the order in which they are preferred, but the one for few
/// tokens, which comes first of all.
static SmallVector<SplitVariant> chooseVariants(const KernelParts &parts,
                                                const Algorithm &algorithm,
                                                const SplitVariants &wanted) {
  SmallVector<SplitVariant> chosen;
  auto descending = [](ArrayRef<int64_t> numbers) {
    SmallVector<int64_t> sorted(numbers);
    llvm::sort(sorted, std::greater<>());
    sorted.erase(llvm::unique(sorted), sorted.end());
    return sorted;
  };
  const int64_t together = canPrepare(parts, algorithm) ? wanted.together : 0;
  if (together != 0) {
    for (int64_t count : {1, 2}) {
      chosen.push_back({{"fused-by-lengths"},
                        "_by_lengths_" + std::to_string(count),
                        count,
                        0,
                        together});
      chosen.back().byLengths = true;
    }
    chosen.push_back({{"fused"}, "_fused", 1, 0, together});
    if (canCut(parts, segmentParts))
      for (int64_t cuts : descending(wanted.fusedCuts)) {
        std::string number = std::to_string(cuts);
        chosen.push_back({{"fused-cuts-" + number},
                          "_fused_cuts_" + number,
                          fusedCuts(cuts).parts,
                          cuts,
                          together});
      }
    chosen.push_back({{"fused-parts-2"}, "_fused_parts_2", 2, 0, together});
    chosen.back().mayBeCut =
        !wanted.cuts.empty() && canCut(parts, segmentParts);
  }
  const int64_t ofSegment = chooseValueParts(parts, segmentParts);
  if (canCut(parts, ofSegment))
    for (int64_t cuts : descending(wanted.cuts)) {
      std::string number = std::to_string(cuts);
      chosen.push_back(
          {{"split-cuts-" + number}, "_cuts_" + number, ofSegment, cuts, 0});
    }
  SmallVector<int64_t> counts;
  for (int64_t count : wanted.valueParts)
    counts.push_back(chooseValueParts(parts, count));
  for (int64_t count : descending(counts)) {
    std::string number = std::to_string(count);
    if (count > 1)
      chosen.push_back(
          {{"split-parts-" + number}, "_parts_" + number, count, 0, 0});
  }
  chosen.push_back({{"split"}, "", 1, 0, 0});
  if (wanted.shortPieces != 0 && hasPrologue(parts, algorithm)) {
    DeltaRuleOp rule = parts.rule;
    auto first = llvm::find_if(chosen, [&](const SplitVariant &variant) {
      return variant.cuts == 0 && variant.together == 0 &&
             takesFewTokens(rule, variant.valueParts);
    });
    first->names.insert(first->names.begin(), first->names.front() + "-short");
    first->isShort = true;
  }
  return chosen;
}

LogicalResult gdn::emitSplitKernel(func::FuncOp entry, KernelOp kernel,
                                   const Algorithm &algorithm,
                                   const SplitVariants &variants,
                                   int64_t &numStages) {
  FailureOr<KernelParts> parts = KernelParts::analyse(entry, kernel);
  if (failed(parts))
    return failure();
  Algorithm perKeyHead = algorithm;
  perKeyHead.valueHeads = false;
  if (parts->rule)
    perKeyHead.chunk = chooseChunk(*parts, algorithm);
  // Where "fused" is wanted it takes the batches of many blocks, and rows of
  // few tokens would pay for an order (3 to 5 %).
  perKeyHead.ordersRows = variants.together == 0;
  if (!canSplit(*parts, perKeyHead))
    return success();
  auto emit = [&](decltype(emitPrepareStage) &emitStage, const Twine &name,
                  const Algorithm &chosen, ArrayRef<std::string> names) {
    EntryViews views = createEntryViews(entry, (entry.getName() + name).str());
    if (failed(emitStage(views, *parts, chosen, names))) {
      views.function.erase();
      return failure();
    }
    ++numStages;
    return success();
  };
  SmallVector<SplitVariant> chosen =
      chooseVariants(*parts, perKeyHead, variants);
  // Those that have a pass over memory of their own, and others.
  SmallVector<std::string> brief, names, prepared;
  for (const SplitVariant &variant : chosen) {
    ArrayRef<std::string> all = variant.names;
    brief.append(all.begin(), all.begin() + variant.isShort);
    if (names.empty() || names.back() != all.back())
      names.append(all.begin() + variant.isShort, all.end());
    if (variant.together == 0)
      prepared.append(all.begin(), all.end());
  }
  Algorithm shortPieces = perKeyHead;
  shortPieces.shortPieces = variants.shortPieces;
  auto emitPass = [&](decltype(emitPrepareStage) &emitStage,
                      const Twine &name) -> LogicalResult {
    if (!brief.empty() &&
        failed(emit(emitStage, name + "_short", shortPieces, brief)))
      return failure();
    return emit(emitStage, name, perKeyHead, names);
  };
  if (hasPrologue(*parts, perKeyHead) &&
      failed(emitPass(emitPrologueStage, "__prologue")))
    return failure();
  for (const SplitVariant &variant : chosen) {
    Algorithm own = perKeyHead;
    own.valueParts = variant.valueParts;
    own.cuts = variant.cuts;
    own.together = variant.together;
    own.byLengths = variant.byLengths;
    own.mayBeCut = variant.mayBeCut;
    own.shortPieces = variant.isShort ? variants.shortPieces : 0;
    // What they have in common stands before the first that has it.
    if (variant.names.front() == prepared.front() &&
        failed(emit(emitPrepareStage, "__prepare", perKeyHead, prepared)))
      return failure();
    own.firstApart =
        variant.cuts != 0 && variant.together != 0 && variant.valueParts > 1;
    // Maps of what a block prepares itself have whole states.
    Algorithm ofMaps = own;
    if (variant.together != 0)
      ofMaps.valueParts = 1;
    if (variant.cuts != 0 &&
        failed(emit(emitMapsStage, "__maps" + variant.suffix, ofMaps,
                    variant.names)))
      return failure();
    if (own.firstApart &&
        failed(emit(emitFirstStage, "__first" + variant.suffix, own,
                    variant.names)))
      return failure();
    if (variant.cuts != 0 &&
        failed(
            emit(emitScanStage, "__scan" + variant.suffix, own, variant.names)))
      return failure();
    if (failed(
            emit(emitWalkStage, "__walk" + variant.suffix, own, variant.names)))
      return failure();
  }
  if (NormStage::find(*parts) && failed(emitPass(emitNormStage, "__norm")))
    return failure();
  return success();
}
