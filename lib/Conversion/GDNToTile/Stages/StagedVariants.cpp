// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which variants of a policy a kernel in stages can have, and with what in
// their recurrences: V-splits, segments, the norm, the convolution of values.
#include "Stages/StagedVariants.h"
#include "Program/NormOperands.h"
#include "Stages/KernelStage.h"

using namespace mlir;
using namespace gdn;

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

/// With a decay per channel, chunks of the variants in which blocks prepare
/// their own, and the channels of a head: two blocks of 16 tokens, and what two
/// warps have of a block.
static constexpr int64_t chunkOfChannels = 32, fusedChannels = 128;

/// Whether a block can prepare the chunks of its recurrence with a decay per
/// channel: of queries and keys of 16 bits, which are all in memory, or all
/// from a stage ahead, as gates are that are no numbers of f32 in memory.
static bool canFuseChannels(const KernelOperands &parts,
                            const Algorithm &algorithm) {
  RuleOpInterface rule = parts.rule;
  Value query = rule.getQuery(), key = rule.getKey();
  const bool isNarrow =
      !isInMemory(key) ||
      getElementTypeOrSelf(key.getType()).getIntOrFloatBitWidth() == 16;
  return isInMemory(query) == isInMemory(key) &&
         query.getType() == key.getType() && isNarrow &&
         getHeadSize(key) == fusedChannels;
}

/// Whether a block can do the intra-chunk work of its chunks: where products of
/// chunks are those of four warps, and the state of a head as many rows again
/// or twice as many. With a decay per channel that is chunk by chunk.
static bool canFuse(const KernelOperands &parts, const Algorithm &algorithm,
                    const VariantSpec &spec) {
  RuleOpInterface rule = parts.rule;
  const bool oneByOne = spec.fused == 1;
  if (rule.isPerChannel() != oneByOne ||
      (oneByOne && (spec.segments != 0 || spec.mapsAlone)))
    return false;
  const bool fits = oneByOne ? canFuseChannels(parts, algorithm)
                             : algorithm.chunk == groupRows;
  return goesByValue(parts) && !parts.checkpoints && fits &&
         partsOf(parts, algorithm) == 1 &&
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

/// Whether a norm can run beside the rule: where a stage ahead of that leaves
/// values, and clears signals with them, and none stands between the two.
static bool canFollow(const KernelOperands &parts) {
  RuleOpInterface rule = parts.rule;
  return NormOperands::find(parts) && !isInMemory(rule.getValue()) &&
         !parts.hasPlanes();
}

/// Whether `spec`, whose norm follows, stands ahead of all that have the
/// prologue of all others, and else says that it is left out: stages name
/// variants in the order in which launches ask for them, and the prologue of a
/// norm that follows is a stage of its own, ahead of theirs.
static bool isAheadOfOthers(const VariantSpec &spec,
                            const KernelOperands &parts,
                            ArrayRef<StagedVariant> chosen) {
  const StagedVariant *earlier =
      llvm::find_if(chosen, [](const StagedVariant &variant) {
        const bool isSecond = variant.wholeCost != 0 && variant.vSplit > 1;
        return !variant.convWithRule && !variant.normFollows &&
               !variant.mapsAlone && !isSecond;
      });
  if (earlier == chosen.end())
    return true;
  parts.kernel->emitRemark("variant '")
      << spec.name << "', whose norm follows, is left out: it has a prologue "
      << "of its own and stands ahead of variants that share one, but '"
      << earlier->variants.back().name << "' is ahead of it";
  return false;
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

std::optional<Conditions> gdn::specialise(const Conditions &conditions,
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
    if (symbol == "bounded" || symbol == "computed") {
      auto gates = rule.getLogDecay().getDefiningOp<GatesOp>();
      return std::to_string(rule.isPerChannel() && gates &&
                            (symbol == "computed" || gates.getLowerBound()));
    }
    if (symbol == "scaled")
      return std::to_string(hasNormsAlone(rule));
    if (symbol == "convs")
      return std::to_string(canConvolve(parts, algorithm));
    if (symbol == "follows")
      return std::to_string(canFollow(parts));
    return symbol.str();
  });
}

static std::optional<Conditions>
specialiseIfAny(const std::optional<Conditions> &conditions,
                const KernelOperands &parts, const Algorithm &algorithm) {
  return conditions ? specialise(*conditions, parts, algorithm) : std::nullopt;
}

/// Whether stages ahead of a recurrence can have chunks of so many tokens as a
/// variant wants, of its own: checkpoints lie between those of all, and
/// operands in parts take twice the memory.
static bool canHaveChunks(const KernelOperands &parts,
                          const Algorithm &algorithm) {
  RuleOpInterface rule = parts.rule;
  return !parts.checkpoints && partsOf(parts, algorithm) == 1 &&
         !rule.isPerChannel();
}

/// Adds a variant that is wanted and can be had.
static void addVariant(const VariantSpec &spec, const Conditions &when,
                       const KernelOperands &parts, const Algorithm &algorithm,
                       SmallVectorImpl<StagedVariant> &chosen) {
  auto add = [&](const Twine &suffix, int64_t vSplit) -> StagedVariant & {
    // Of no sequences each place of a segment in one grid with all others would
    // be that of the padding, and several blocks would store its zeros.
    Conditions conditions = when;
    const bool areTogether = spec.fused == 0 || vSplit == 1;
    if (spec.segments != 0 && areTogether && !spec.mapsAlone)
      conditions.all.push_back({{"1"}, {"sequences"}});
    chosen.push_back({{{spec.name, conditions, /*saysWhen=*/true,
                        specialiseIfAny(spec.anyBatch, parts, algorithm)}},
                      suffix.str(),
                      vSplit,
                      spec.segments,
                      spec.fused});
    StagedVariant &made = chosen.back();
    if (spec.fused == 1)
      made.chunk = chunkOfChannels;
    made.scanTokens = spec.scanTokens;
    made.copiesAhead = spec.copiesAhead;
    made.blocksStay = spec.blocksStay;
    made.normWithRule =
        spec.normWithRule && canHaveNorm(parts, algorithm, vSplit);
    made.normFollows = spec.normFollows;
    made.normBehind =
        (spec.normBehind || (spec.normFollows && spec.segments == 0)) &&
        canHaveNorm(parts, algorithm, vSplit);
    made.convWithRule = spec.convWithRule && canConvolve(parts, algorithm);
    return made;
  };
  if (spec.mapsAlone) {
    // Blocks prepare chunks with a decay per head themselves.
    RuleOpInterface rule = parts.rule;
    const int64_t vSplit = canShare(parts, spec.vSplit) ? spec.vSplit : 1;
    if ((spec.fused != 0 ? canFuse(parts, algorithm, spec)
                         : rule.isPerChannel() && !parts.hasPlanes()) &&
        canSegment(parts, algorithm, vSplit))
      add("_alone", vSplit).mapsAlone = true;
    return;
  }
  std::string segments;
  if (spec.segments != 0)
    segments = "_segments_" + std::to_string(spec.segments);
  if (spec.fused != 0) {
    if (!canFuse(parts, algorithm, spec) || !canShare(parts, spec.vSplit) ||
        (spec.segments != 0 &&
         !canSegment(parts, algorithm, std::max<int64_t>(2, spec.vSplit))))
      return;
    if (spec.wholeCost != 0 && !choosesHalves(parts, algorithm)) {
      for (int64_t count : {2, 1}) { // stages first
        StagedVariant &one = add("_by_lengths_" + Twine(count), count);
        one.wholeCost = spec.wholeCost;
        one.workers = spec.workers;
        if (count == 2)
          one.fusedChunks = one.chunk = 0;
      }
      return;
    }
    if (spec.wholeCost != 0) {
      for (int64_t count : {1, 2}) {
        StagedVariant &one = add("_by_lengths_" + Twine(count), count);
        // V-splits have no time for it, nor for the norm: a chunk takes them
        // half as long.
        one.convWithRule &= count == 1;
        if (count == 2)
          one.normBehind = std::exchange(one.normWithRule, false);
        one.wholeCost = spec.wholeCost;
        one.workers = spec.workers;
      }
      return;
    }
    const bool isShared = spec.segments == 0 && spec.vSplit > 1;
    add("_fused" + segments +
            (isShared ? "_v_split_" + Twine(spec.vSplit) : Twine()).str() +
            (spec.blocksStay ? "_stay" : "") +
            (spec.normFollows ? "_followed" : ""),
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
  std::string end = spec.copiesAhead ? "_ahead" : "";
  if (spec.chunk != 0) {
    if (!canHaveChunks(parts, algorithm))
      return;
    end = "_chunk_" + std::to_string(spec.chunk);
  }
  if (isShared)
    add((spec.vSplit > 1 ? "_v_split_" + Twine(spec.vSplit) : Twine()) + end,
        spec.vSplit)
        .chunk = spec.chunk;
}

SmallVector<StagedVariant, 0>
gdn::chooseVariants(const KernelOperands &parts, const Algorithm &algorithm,
                    ArrayRef<VariantSpec> wanted) {
  SmallVector<StagedVariant, 0> chosen;
  SmallVector<std::pair<const VariantSpec *, Conditions>, 0> brief;
  for (const VariantSpec &spec : wanted) {
    Algorithm own = algorithm;
    if (spec.chunk != 0)
      own.chunk = spec.chunk;
    std::optional<Conditions> when = specialise(spec.when, parts, own);
    if (!when || !specialise(spec.where, parts, own) ||
        (spec.normFollows &&
         !(canFollow(parts) && isAheadOfOthers(spec, parts, chosen))))
      continue;
    if (spec.pieces != 0)
      brief.emplace_back(&spec, *when);
    else
      addVariant(spec, *when, parts, own, chosen);
  }
  for (const auto &each : brief) {
    const VariantSpec &spec = *each.first;
    auto same = llvm::find_if(chosen, [&](const StagedVariant &variant) {
      return variant.segments == 0 && variant.fusedChunks == 0 &&
             variant.vSplit == spec.vSplit && !variant.copiesAhead &&
             variant.wholeCost == 0 && !variant.hasOwnStages();
    });
    if (same == chosen.end() || !hasPrologue(parts, algorithm))
      continue;
    same->variants.insert(
        same->variants.begin(),
        StageVariant{spec.name, each.second, /*saysWhen=*/true});
    same->pieces = spec.pieces;
    break;
  }
  return chosen;
}
