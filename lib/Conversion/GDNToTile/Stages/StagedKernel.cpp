// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A prefill in stages. What a chunk does not need the state for is most of
// its work, and all chunks can do it at the same time:
//
//   widening     where states are in planes: a block per sequence and part of a
//                value head's state, which it leaves in the workspace in f32
//   prologue     a block per group of tokens and value head: queries, keys and
//                values to the workspace, where they are not in memory as
//                products take them
//   intra_chunk  a block per chunk and value head: Y, Z and the gates of the
//                chunk to the workspace
//   maps         where sequences are cut: what each segment does to the state
//   first        beside the maps, where a block does the intra-chunk work of
//                its chunks: a block per sequence and V-split of a value head
//                computes the sequence's first segment
//   scan         where sequences are cut: the state before each segment
//   inter_chunk  a block per sequence and value head, and one for the padding:
//                from state to state; outputs, pools, zeros
//   rounding     where states are in planes: from the workspace back to them
//   norm         a block per group of tokens and value head: where there is one
//                behind the rule that is not in the recurrence
//
// Where lengths of sequences decide how a head is shared, there is a recurrence
// for each way, and blocks of one of them do nothing (SequenceOrder.cpp).
//
// The first and the last pass over memory. Where there are few tokens, more
// blocks with fewer of them have them sooner: a variant of its own.
//
// Here: which kernels have stages, and in which variants, with the first stage
// and the last in common.
#include "Stages/StagedKernel.h"
#include "Program/NormOperands.h"
#include "Recurrence/Checkpoints.h"
#include "Stages/KernelStage.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace gdn;

/// Whether the kernel can be computed in stages; see emitStagedKernel.
static bool canStage(const KernelOperands &parts, const Algorithm &algorithm) {
  if (!parts.cuSeqlens || !parts.rule || parts.tokenSlots || parts.numAccepted)
    return false;
  if (parts.checkpoints &&
      (parts.hasPlanes() || checkpointTokens % algorithm.chunk != 0))
    return false;
  RuleOpInterface rule = parts.rule;
  if (ChunkTypes::chooseStaged(parts, algorithm.precision).isExact() ||
      getChunkForm(rule, algorithm.chunk).empty())
    return false;
  // A window before a group of tokens has to lie in the sequence.
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
    if (!isInput && !isa<RuleOpInterface>(op) &&
        llvm::any_of(op.getOperands(), isBefore))
      return false;
  }
  return true;
}

/// How many parts operands of products have.
static int64_t partsOf(const KernelOperands &parts,
                       const Algorithm &algorithm) {
  return ChunkTypes::chooseStaged(parts, algorithm.precision).parts;
}

/// True if all that the recurrence does behind the rule goes value by value.
static bool goesByValue(const KernelOperands &parts) {
  if (NormOperands::find(parts))
    return true;
  KernelOp kernel = parts.kernel;
  llvm::DenseSet<Value> inputs = parts.ruleInputs();
  return llvm::all_of(
      kernel.getBody().front().without_terminator(), [&](Operation &op) {
        return isa<RuleOpInterface, CastOp, MaskSequencesOp>(op) ||
               llvm::any_of(op.getResults(), [&](Value result) {
                 return inputs.contains(result);
               });
      });
}

/// The last dimension of `value`, an input of the rule: that of a head.
static int64_t getHeadSize(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}

/// Whether so many blocks may share a value head, each with some values.
static bool canShare(const KernelOperands &parts, int64_t vSplit) {
  RuleOpInterface rule = parts.rule;
  return vSplit == 1 || (goesByValue(parts) && !parts.checkpoints &&
                         getHeadSize(rule.getValue()) % vSplit == 0);
}

/// True if sequences of the kernel can be cut into segments, with `vSplit`
/// blocks for a value head, each of which has as many rows as fit into a map.
static bool canSegment(const KernelOperands &parts, const Algorithm &algorithm,
                       int64_t vSplit) {
  RuleOpInterface rule = parts.rule;
  int64_t keys = getHeadSize(rule.getKey());
  return !parts.checkpoints && partsOf(parts, algorithm) == 1 &&
         keys % (getHeadSize(rule.getValue()) / vSplit) == 0;
}

/// What a recurrence convolves at most: inputs in front of a chunk are a block
/// of eight tokens of a matrix.
static constexpr int64_t maxConvTaps = 8;

/// Rows of a product that four warps make together, and its inner size in
/// steps that their instructions read from one row of shared memory.
static constexpr int64_t groupRows = 64, panelElements = 64;

/// Whether a block can do the intra-chunk work of its chunks: where products of
/// chunks are those of four warps, and the state of a head as many rows again
/// or twice as many.
static bool canFuse(const KernelOperands &parts, const Algorithm &algorithm) {
  RuleOpInterface rule = parts.rule;
  return goesByValue(parts) && !parts.checkpoints && !rule.isPerChannel() &&
         partsOf(parts, algorithm) == 1 && algorithm.chunk == groupRows &&
         getHeadSize(rule.getValue()) == 2 * groupRows &&
         getHeadSize(rule.getKey()) % panelElements == 0;
}

/// Whether a recurrence of a variant can have the gated norm. Two blocks at
/// most share a row. The state takes errors as keys are rounded, and bf16 would
/// leave 6e-3 of it in doubt.
static bool canHaveNorm(const KernelOperands &parts, const Algorithm &algorithm,
                        int64_t vSplit) {
  ChunkTypes types = ChunkTypes::chooseStaged(parts, algorithm.precision);
  return KernelOp(parts.kernel).getNormWithRule() && vSplit <= 2 &&
         types.key.isF16() && NormOperands::find(parts);
}

/// Whether a recurrence of a variant can convolve the values: as far as it
/// holds inputs and windows as they are in memory.
static bool canConvolve(const KernelOperands &parts,
                        const Algorithm &algorithm) {
  KernelOp kernel = parts.kernel;
  RuleOpInterface rule = parts.rule;
  if (!kernel.getConvWithRule())
    return false;
  Conv1dOp conv = KernelOp::findConvOfValues(kernel.getBody().front());
  Value input =
      conv.getInputs()[cast<OpResult>(rule.getValue()).getResultNumber()];
  Type element = getElementTypeOrSelf(input.getType());
  ChunkTypes types = ChunkTypes::chooseStaged(parts, algorithm.precision);
  return !conv.getBias() && element.getIntOrFloatBitWidth() == 16 &&
         types.inner.getIntOrFloatBitWidth() == 16 &&
         conv.getPool().getType().getElementType() == element &&
         conv.getWeight().getType().getDimSize(1) <= maxConvTaps;
}

namespace {
/// A kernel of variants that differ in their conditions alone, or in passes
/// over memory, and what its stages but the first are called.
struct StagedVariant {
  SmallVector<StageVariant, 0> variants;
  std::string suffix;
  int64_t vSplit, segments, fusedChunks;
  int64_t pieces = 0; // of the first's own passes over memory; 0: none
  int64_t wholeCost = 0,
          workers = 0; // one of two recurrences, as lengths of sequences say
  int64_t scanTokens = 0;
  bool normWithRule = false, normBehind = false;
  bool convWithRule = false, mapsAlone = false, copiesAhead = false;
};
} // namespace

/// The conditions with what is known of the heads and of chunks; nothing if
/// they never hold.
static std::optional<Conditions> specialise(const Conditions &conditions,
                                            const KernelOperands &parts,
                                            const Algorithm &algorithm) {
  RuleOpInterface rule = parts.rule;
  return conditions.substitute([&](StringRef symbol) -> std::string {
    if (symbol == "keys")
      return std::to_string(getHeadSize(rule.getKey()));
    if (symbol == "values")
      return std::to_string(getHeadSize(rule.getValue()));
    if (symbol == "chunk")
      return std::to_string(algorithm.chunk);
    if (symbol == "parts")
      return std::to_string(partsOf(parts, algorithm));
    if (symbol == "channels")
      return std::to_string(rule.isPerChannel());
    if (symbol == "norms")
      return std::to_string(canHaveNorm(parts, algorithm, /*vSplit=*/1));
    return symbol.str();
  });
}

static std::optional<Conditions>
specialiseIfAny(const std::optional<Conditions> &conditions,
                const KernelOperands &parts, const Algorithm &algorithm) {
  return conditions ? specialise(*conditions, parts, algorithm) : std::nullopt;
}

/// Adds a variant that is wanted and can be had.
static void addVariant(const VariantSpec &spec, const Conditions &when,
                       const KernelOperands &parts, const Algorithm &algorithm,
                       SmallVectorImpl<StagedVariant> &chosen) {
  auto add = [&](const Twine &suffix, int64_t vSplit) -> StagedVariant & {
    chosen.push_back({{{spec.name, when, /*saysWhen=*/true,
                        specialiseIfAny(spec.anyBatch, parts, algorithm)}},
                      suffix.str(),
                      vSplit,
                      spec.segments,
                      spec.fused});
    StagedVariant &made = chosen.back();
    made.scanTokens = spec.scanTokens;
    made.copiesAhead = spec.copiesAhead;
    made.normWithRule =
        spec.normWithRule && canHaveNorm(parts, algorithm, vSplit);
    made.normBehind = spec.normBehind && canHaveNorm(parts, algorithm, vSplit);
    made.convWithRule = spec.convWithRule && canConvolve(parts, algorithm);
    return made;
  };
  if (spec.mapsAlone) {
    // Blocks prepare chunks with a decay per head themselves.
    RuleOpInterface rule = parts.rule;
    const int64_t vSplit = canShare(parts, spec.vSplit) ? spec.vSplit : 1;
    if ((spec.fused != 0 ? canFuse(parts, algorithm)
                         : rule.isPerChannel() && !parts.hasPlanes()) &&
        canSegment(parts, algorithm, vSplit))
      add("_alone", vSplit).mapsAlone = true;
    return;
  }
  std::string segments;
  if (spec.segments != 0)
    segments = "_segments_" + std::to_string(spec.segments);
  if (spec.fused != 0) {
    if (!canFuse(parts, algorithm) || !canShare(parts, spec.vSplit) ||
        (spec.segments != 0 &&
         !canSegment(parts, algorithm, std::max<int64_t>(2, spec.vSplit))))
      return;
    if (spec.wholeCost != 0) {
      for (int64_t count : {1, 2}) {
        StagedVariant &one = add("_by_lengths_" + Twine(count), count);
        // V-splits have no time for it: a chunk takes them half as long.
        one.convWithRule &= count == 1;
        one.wholeCost = spec.wholeCost;
        one.workers = spec.workers;
      }
      return;
    }
    const bool isShared = spec.segments == 0 && spec.vSplit > 1;
    add("_fused" + segments +
            (isShared ? "_v_split_" + Twine(spec.vSplit) : Twine()).str(),
        spec.vSplit);
    return;
  }
  const bool isShared = canShare(parts, spec.vSplit);
  if (spec.segments != 0) {
    const int64_t vSplit = isShared ? spec.vSplit : 1;
    if (canSegment(parts, algorithm, vSplit))
      add(segments, vSplit);
    return;
  }
  StringRef end = spec.copiesAhead ? "_ahead" : "";
  if (isShared)
    add((spec.vSplit > 1 ? "_v_split_" + Twine(spec.vSplit) : Twine()) + end,
        spec.vSplit);
}

/// The variants that are wanted for the heads and that can be had, in the order
/// of preference; the one for few tokens comes first.
static SmallVector<StagedVariant, 0>
chooseVariants(const KernelOperands &parts, const Algorithm &algorithm,
               ArrayRef<VariantSpec> wanted) {
  SmallVector<StagedVariant, 0> chosen;
  SmallVector<std::pair<const VariantSpec *, Conditions>, 0> brief;
  for (const VariantSpec &spec : wanted) {
    std::optional<Conditions> when = specialise(spec.when, parts, algorithm);
    if (!when || !specialise(spec.where, parts, algorithm))
      continue;
    if (spec.pieces != 0)
      brief.emplace_back(&spec, *when);
    else
      addVariant(spec, *when, parts, algorithm, chosen);
  }
  for (const auto &[spec, when] : brief) {
    auto same = llvm::find_if(chosen, [&](const StagedVariant &variant) {
      return variant.segments == 0 && variant.fusedChunks == 0 &&
             variant.vSplit == spec->vSplit && !variant.copiesAhead;
    });
    if (same == chosen.end() || !hasPrologue(parts, algorithm))
      continue;
    same->variants.insert(same->variants.begin(),
                          StageVariant{spec->name, when, /*saysWhen=*/true});
    same->pieces = spec->pieces;
    break;
  }
  return chosen;
}

LogicalResult gdn::emitStagedKernel(func::FuncOp entry, KernelOp kernel,
                                    const Algorithm &algorithm,
                                    const StagedPolicy &policy,
                                    int64_t &numStages) {
  FailureOr<KernelOperands> parts = KernelOperands::analyse(entry, kernel);
  if (failed(parts))
    return failure();
  ArrayRef<VariantSpec> wanted = policy.variants;
  Algorithm perKeyHead = algorithm;
  perKeyHead.valueHeads = false;
  if (parts->rule && algorithm.valueHeads && policy.shortChunk != 0 &&
      specialise(policy.shortWhere, *parts, algorithm))
    perKeyHead.chunk = std::min(algorithm.chunk, policy.shortChunk);
  perKeyHead.ordersSequences =
      policy.longestFirst && llvm::all_of(wanted, [](const VariantSpec &spec) {
        return spec.fused == 0;
      });
  if (!canStage(*parts, perKeyHead))
    return success();
  auto emit = [&](EmitStage &emitStage, const Twine &name,
                  const Algorithm &chosen, ArrayRef<StageVariant> names) {
    return emitStageOf(entry, name, numStages, [&](EntryViews &views) {
      return emitStage({views, *parts, chosen, names});
    });
  };
  SmallVector<StagedVariant, 0> chosen =
      chooseVariants(*parts, perKeyHead, wanted);
  llvm::StringSet<> suffixes, names;
  for (const StagedVariant &variant : chosen) {
    if (!suffixes.insert(variant.suffix).second)
      return entry.emitOpError("expects variants of prefill that differ in how "
                               "work is split, but got '")
             << variant.variants.back().name << "' besides another";
    // The second of two recurrences is of the variant of the first.
    const bool isSecond = variant.wholeCost != 0 && variant.vSplit > 1;
    for (const StageVariant &one : variant.variants)
      if (!isSecond && !names.insert(one.name).second)
        return entry.emitOpError("expects variants of prefill with names of "
                                 "their own, but got '")
               << one.name << "' twice";
  }
  // Those of all variants, without saying when each is taken.
  SmallVector<StageVariant, 0> every;
  auto addOnce = [&](const StageVariant &one) {
    if (llvm::none_of(every, [&](const StageVariant &known) {
          return known.name == one.name;
        }))
      every.push_back({one.name, {}, /*saysWhen=*/false});
  };
  for (const StagedVariant &variant : chosen)
    if (variant.pieces != 0)
      addOnce(variant.variants.front());
  for (const StagedVariant &variant : chosen)
    llvm::for_each(variant.variants, addOnce);
  // Those that have a pass over memory of their own, and others: of these,
  // those of which it leaves the values to the recurrence, or to one of two, as
  // lengths of sequences say, and those with a norm behind that. What many have
  // in common does not say when each is taken.
  SmallVector<StageVariant, 0> brief, others, keysOnly, byLengths, normed,
      prepared, alone;
  Algorithm ofKeys = perKeyHead, ofLengths = perKeyHead, ofAlone = perKeyHead;
  ofKeys.convWithRule = ofAlone.mapsAlone = true;
  using Names = ArrayRef<StageVariant>;
  auto append = [](SmallVector<StageVariant, 0> &list, Names some) {
    for (const StageVariant &one : some)
      list.push_back({one.name, {}, /*saysWhen=*/false});
  };
  StringRef last;
  Algorithm shortPieces = perKeyHead;
  for (const StagedVariant &variant : chosen) {
    ArrayRef<StageVariant> all = variant.variants;
    if (variant.mapsAlone) { // all of its stages are its own
      append(alone, all);
      continue;
    }
    if (variant.pieces != 0) {
      brief.push_back(all.front());
      shortPieces.shortPieces = variant.pieces;
    }
    if (std::exchange(last, all.back().name) != all.back().name) {
      // The order of variants is that in which stages name them.
      auto isBehind = [&](Names earlier) -> LogicalResult {
        if (earlier.empty())
          return success();
        return entry.emitOpError("expects variants of prefill with 'conv' "
                                 "ahead of those without, 'by-lengths' first, "
                                 "but got '")
               << all.back().name << "' behind '" << earlier.back().name << "'";
      };
      const bool isChoice = variant.convWithRule && variant.wholeCost != 0;
      if ((variant.convWithRule && failed(isBehind(others))) ||
          (isChoice && failed(isBehind(keysOnly))))
        return failure();
      append(isChoice               ? byLengths
             : variant.convWithRule ? keysOnly
                                    : others,
             all.drop_front(variant.pieces != 0));
      if (isChoice) {
        ofLengths.wholeCost = variant.wholeCost;
        ofLengths.workers = variant.workers;
      }
      if (!variant.normWithRule)
        append(normed, all.drop_front(variant.pieces != 0));
    }
    if (variant.fusedChunks == 0)
      append(prepared, all);
  }
  auto emitPass = [&](EmitStage &emitStage, const Twine &name,
                      const Algorithm &pass, Names those) -> LogicalResult {
    return those.empty() ? success() : emit(emitStage, name, pass, those);
  };
  auto emitPrologue = [&](const Twine &name, const Algorithm &pass,
                          Names those) {
    return emitPass(emitPrologueStage, "__prologue" + name, pass, those);
  };
  if (parts->hasPlanes() &&
      failed(emitPass(emitWideningStage, "__widening", perKeyHead, every)))
    return failure();
  if (hasPrologue(*parts, perKeyHead) &&
      (failed(emitPrologue("_alone", ofAlone, alone)) ||
       failed(emitPrologue("_short", shortPieces, brief)) ||
       failed(emitPrologue("_by_lengths", ofLengths, byLengths)) ||
       failed(emitPrologue("_keys", ofKeys, keysOnly)) ||
       failed(emitPrologue("", perKeyHead, others))))
    return failure();
  for (const StagedVariant &variant : chosen) {
    Algorithm own = perKeyHead;
    own.vSplit = variant.vSplit;
    own.batchSegments = variant.segments;
    own.fusedChunks = variant.fusedChunks;
    own.wholeCost = variant.wholeCost;
    own.workers = variant.workers;
    own.scanTokens = variant.scanTokens;
    own.copiesAhead = variant.copiesAhead;
    own.shortPieces = variant.pieces;
    own.normWithRule = variant.normWithRule;
    own.normBehind = variant.normBehind;
    own.convWithRule = variant.convWithRule;
    // What they have in common stands before the first that has it.
    if (!prepared.empty() &&
        variant.variants.front().name == prepared.front().name &&
        failed(
            emit(emitIntraChunkStage, "__intra_chunk", perKeyHead, prepared)))
      return failure();
    own.firstApart =
        variant.segments != 0 && variant.fusedChunks != 0 && variant.vSplit > 1;
    // Maps of what a block prepares itself have whole states.
    Algorithm ofMaps = own;
    if (variant.fusedChunks != 0)
      ofMaps.vSplit = 1;
    ofMaps.normWithRule = false; // they have no outputs
    if (variant.mapsAlone) {
      ofMaps.mapsAlone = true;
      ofMaps.ordersSequences = false;
      // Others know chunks at another place of the workspace.
      if ((variant.fusedChunks == 0 &&
           failed(emit(emitIntraChunkStage, "__intra_chunk" + variant.suffix,
                       ofMaps, alone))) ||
          failed(emit(emitMapsStage, "__maps" + variant.suffix, ofMaps,
                      variant.variants)))
        return failure();
      continue;
    }
    if (variant.segments != 0 &&
        failed(emit(emitMapsStage, "__maps" + variant.suffix, ofMaps,
                    variant.variants)))
      return failure();
    if (own.firstApart &&
        failed(emit(emitFirstStage, "__first" + variant.suffix, own,
                    variant.variants)))
      return failure();
    if (variant.segments != 0 &&
        failed(emit(emitScanStage, "__scan" + variant.suffix, own,
                    variant.variants)))
      return failure();
    if (failed(emit(emitInterChunkStage, "__inter_chunk" + variant.suffix, own,
                    variant.variants)))
      return failure();
  }
  if (parts->hasPlanes() &&
      failed(emitPass(emitRoundingStage, "__rounding", perKeyHead, every)))
    return failure();
  // All have one norm, of which some want the bits of the recurrence's.
  Algorithm ofNorms = perKeyHead;
  ofNorms.normBehind = shortPieces.normBehind = llvm::any_of(
      chosen, [](const StagedVariant &variant) { return variant.normBehind; });
  if (NormOperands::find(*parts) &&
      (failed(emitPass(emitNormStage, "__norm_short", shortPieces, brief)) ||
       failed(emitPass(emitNormStage, "__norm", ofNorms, normed))))
    return failure();
  return success();
}
