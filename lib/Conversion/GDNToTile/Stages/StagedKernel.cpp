// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A prefill in stages. What a chunk does not need the state for is most of
// its work, and all chunks can do it at the same time:
//
//   widening     where states are in planes: a block per sequence and part of a
//                value head's state, which it leaves in the workspace in f32
//   prologue     a block per group of tokens and value head: queries, keys and
//                values to the workspace, where they are not in memory as
//                products take them, and gates of channels for blocks that
//                prepare their chunks
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
// for each way, and blocks of one of them do nothing (SequenceOrder.cpp), nor
// do those of a norm that only one of the two leaves to a stage. With a decay
// per channel they decide who prepares chunks: intra_chunk, or blocks of the
// other recurrence.
//
// The first and the last pass over memory. Where there are few tokens, more
// blocks with fewer of them have them sooner: a variant of its own.
//
// A variant with chunks of its own has all of these of its own, from prologue
// to norm.
//
// Here: which kernels have stages, and these in the order of variants
// (StagedVariants.cpp). They have the first stage in common, and the last.
#include "Stages/StagedKernel.h"
#include "Program/NormOperands.h"
#include "Recurrence/Checkpoints.h"
#include "Stages/StagedVariants.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace gdn;

/// Whether the kernel can be computed in stages; see emitStagedKernel.
static bool canStage(const KernelOperands &parts, const Algorithm &algorithm) {
  if (!parts.cuSeqlens || !parts.rule || parts.tokenSlots ||
      parts.numAccepted || parts.hasErase())
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
  const bool hasMaps = llvm::any_of(
      chosen, [](const StagedVariant &variant) { return variant.mapsAlone; });
  for (const StagedVariant &variant : chosen) {
    if (hasMaps && variant.blocksStay)
      return entry.emitOpError("expects no variants of prefill with 'blocks' "
                               "beside 'maps', which lie where a workspace "
                               "begins, as counters do, but got '")
             << variant.variants.back().name << "'";
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
  // those of which it leaves the values to the recurrence, and those with a
  // norm behind that. Where lengths of sequences choose one of two recurrences,
  // a stage of its own has the values of the second, and another its norm.
  // Their queries and keys are a stage of their own, too: it does not let the
  // next one begin, as two recurrences beside each other do not begin early,
  // and where it did so for all variants, others took 2 to 4 % longer. What
  // many have in common does not say when each is taken. Those whose norm
  // follows have signals in their workspace, and a prologue that clears them.
  SmallVector<StageVariant, 0> brief, others, keysOnly, byLengths, normed,
      halvesNormed, followed, prepared, alone, ofChannels, channelsNormed,
      ownChunks;
  Algorithm ofKeys = perKeyHead, ofLengths = perKeyHead, ofAlone = perKeyHead,
            ofHalves = perKeyHead, ofFollowed = perKeyHead,
            oneByOne = perKeyHead;
  ofFollowed.hasSignals = true;
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
    if (variant.hasOwnStages()) {
      if (!others.empty())
        return entry.emitOpError("expects variants of prefill with 'chunk' "
                                 "ahead of those that share a first stage, but "
                                 "got '")
               << all.back().name << "' behind '" << others.back().name << "'";
      append(ownChunks, all);
      continue;
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
      if ((variant.convWithRule &&
           (failed(isBehind(others)) || failed(isBehind(ownChunks)))) ||
          (isChoice && failed(isBehind(keysOnly))))
        return failure();
      // With a decay per channel, whose chunks are shorter.
      const bool perChannel = variant.fusedChunks == 1;
      if (perChannel) {
        oneByOne.fusedChunks = 1;
        oneByOne.chunk = variant.chunk;
      }
      append(perChannel             ? ofChannels
             : isChoice             ? byLengths
             : variant.convWithRule ? keysOnly
             : variant.normFollows  ? followed
                                    : others,
             all.drop_front(variant.pieces != 0));
      if (isChoice) {
        ofLengths.wholeCost = variant.wholeCost;
        ofLengths.workers = variant.workers;
      }
      if (!variant.normWithRule && !variant.normFollows)
        append(perChannel ? channelsNormed : normed,
               all.drop_front(variant.pieces != 0));
    }
    if (variant.wholeCost != 0 && variant.normBehind) {
      append(halvesNormed, all);
      ofHalves.wholeCost = variant.wholeCost;
      ofHalves.workers = variant.workers;
      ofHalves.normBehind = true;
    }
    if (variant.fusedChunks == 0 && variant.wholeCost == 0)
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
  auto emitOwn = [&](EmitStage &emitStage, const Twine &name,
                     const StagedVariant &variant) -> LogicalResult {
    if (!variant.hasOwnStages())
      return success();
    Algorithm own = perKeyHead;
    own.chunk = variant.chunk;
    own.ownChunk = true;
    return emit(emitStage, name + variant.suffix, own, variant.variants);
  };
  const bool isComputed = hasPrologue(*parts, perKeyHead);
  if ((isComputed || (parts->rule && hasGatesAhead(parts->rule))) &&
      failed(emitPrologue("_fused", oneByOne, ofChannels)))
    return failure();
  if (isComputed && (failed(emitPrologue("_alone", ofAlone, alone)) ||
                     failed(emitPrologue("_short", shortPieces, brief)) ||
                     failed(emitPass(emitPrologueStage, "__values_by_lengths",
                                     ofLengths, byLengths)) ||
                     failed(emitPrologue("_by_lengths", ofKeys, byLengths)) ||
                     failed(emitPrologue("_keys", ofKeys, keysOnly)) ||
                     failed(emitPrologue("_followed", ofFollowed, followed))))
    return failure();
  for (const StagedVariant &variant : chosen)
    if (isComputed && failed(emitOwn(emitPrologueStage, "__prologue", variant)))
      return failure();
  if (isComputed && failed(emitPrologue("", perKeyHead, others)))
    return failure();
  for (const StagedVariant &variant : chosen) {
    Algorithm own = perKeyHead;
    own.vSplit = variant.vSplit;
    own.batchSegments = variant.segments;
    own.fusedChunks = variant.fusedChunks;
    if (variant.chunk != 0)
      own.chunk = variant.chunk;
    own.ownChunk = variant.hasOwnStages();
    own.wholeCost = variant.wholeCost;
    own.workers = variant.workers;
    own.scanTokens = variant.scanTokens;
    own.copiesAhead = variant.copiesAhead;
    own.blocksStay = variant.blocksStay;
    own.shortPieces = variant.pieces;
    own.normWithRule = variant.normWithRule;
    own.normBehind = variant.normBehind;
    own.normFollows = own.hasSignals = variant.normFollows;
    own.convWithRule = variant.convWithRule;
    // What they have in common stands before the first that has it.
    if (!prepared.empty() &&
        variant.variants.front().name == prepared.front().name &&
        failed(
            emit(emitIntraChunkStage, "__intra_chunk", perKeyHead, prepared)))
      return failure();
    if (failed(emitOwn(emitIntraChunkStage, "__intra_chunk", variant)))
      return failure();
    if (own.wholeCost != 0 && own.fusedChunks == 0 &&
        failed(emit(emitIntraChunkStage, "__intra_chunk_by_lengths", own,
                    variant.variants)))
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
  for (const StagedVariant &variant : chosen) {
    if (!variant.normFollows)
      continue;
    Algorithm own = ofNorms;
    own.batchSegments = variant.segments;
    own.fusedChunks = variant.fusedChunks;
    own.normFollows = own.hasSignals = true;
    SmallVector<StageVariant, 0> names;
    append(names, variant.variants);
    if (failed(emit(emitNormStage, "__norm" + variant.suffix, own, names)))
      return failure();
  }
  for (const StagedVariant &variant : chosen)
    if (NormOperands::find(*parts) &&
        failed(emitOwn(emitNormStage, "__norm", variant)))
      return failure();
  if (NormOperands::find(*parts) &&
      (failed(emitPass(emitNormStage, "__norm_short", shortPieces, brief)) ||
       failed(emitPass(emitNormStage, "__norm_by_lengths", ofHalves,
                       halvesNormed)) ||
       failed(
           emitPass(emitNormStage, "__norm_fused", oneByOne, channelsNormed)) ||
       failed(emitPass(emitNormStage, "__norm", ofNorms, normed))))
    return failure();
  return success();
}
