// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The last stage of the variants "staged": a sequence from state to state,
// chunk after chunk, with what the first stage left of each. A block has a
// value head, or a V-split of it: values are rows of the state, which do not
// know of each other. Where sequences are cut, it has a segment, whose state
// SequenceMaps.cpp and SequenceScan.cpp found. First segments, which know their
// state, may have a stage of their own, beside the maps of the others.
//
// The pools are written here, when all reading of them is over: windows of a
// key head by its first value head, those of values by whoever has these. Where
// values are convolved here, their windows are read here, too.
#include "Program/TokenOps.h"
#include "Recurrence/Checkpoints.h"
#include "Stages/KernelStage.h"
#include "Stages/SequenceOrder.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

namespace {

class InterChunkStage final : public KernelStage {
public:
  /// Of first segments alone, or without them, where they are apart.
  InterChunkStage(const StageInputs &inputs, bool isFirst)
      : KernelStage(inputs), isFirst(isFirst) {
    if (algorithm.convWithRule) {
      RuleOpInterface rule = parts.rule;
      auto values = cast<OpResult>(rule.getValue());
      convolution = llvm::find_if(parts.carries, [&](const Carry &carry) {
        return carry.op == values.getOwner() &&
               carry.section == values.getResultNumber();
      });
      // As in the stage that convolves queries and keys.
      fastExponentials = true;
    }
    std::optional<NormOperands> found = NormOperands::find(parts);
    if (!found || !algorithm.normWithRule) {
      norm = found;
      return;
    }
    handedOn = getElementTypeOrSelf(found->norm.getResult());
    normsOutputs = true;
  }

protected:
  SmallVector<std::string> gridOf(const std::string &) override {
    SmallVector<std::string> grid = {sequenceForm + " + 1", valueForm};
    if (algorithm.batchSegments != 0 && !isFirst)
      grid[0] = algorithm.firstApart // at most, of all sequences
                    ? std::to_string(algorithm.batchSegments - 1)
                    : sequenceForm + " + " +
                          std::to_string(algorithm.batchSegments + 1);
    if (algorithm.vSplit > 1) {
      grid.push_back(std::to_string(algorithm.vSplit));
      haveSameChunks(algorithm.vSplit);
    }
    if (algorithm.copiesAhead)
      copyAhead();
    if (algorithm.blocksStay)
      views.stage().setBlocksStay();
    return grid;
  }
  void emitBlock(Value sequence) override;

private:
  Value scaled(Value state) {
    return scaleTile(b, loc, state, chunkTypes.valueScale);
  }
  Value unscaled(Value state) {
    return scaleTile(b, loc, state, 1 / chunkTypes.valueScale);
  }
  Value lastInputs(const Carry &carry, Value to, Value count);
  void moveWindow(const Carry &carry);
  Value convolve(TokenBlock &block, Value t, Value valid, Value &window);
  Value emitChunks(TokenBlock &block, Value state, Value from, Value to);
  Value emitPieces(TokenBlock &block, Value start);
  void emitSequence();
  void storeLast(TokenBlock &block, Value state);
  void emitFirst(const SegmentCut &cut);
  void emitSegmentBlock(Value slot);

  std::optional<NormOperands> norm; // the stage behind this one
  Type handedOn; // of outputs, where the norm is in this stage; else null
  const Carry *convolution = nullptr; // the window of values convolved here
  bool isFirst;
  Value writesShared; // whether the block writes what blocks share
};

} // namespace

/// The last inputs of `carry` before the token `to`: `count` of them.
Value InterChunkStage::lastInputs(const Carry &carry, Value to, Value count) {
  auto conv = cast<Conv1dOp>(carry.op);
  Value own = loadInput(conv.getInputs()[carry.section], sub(to, count), count,
                        carry.type.getDimSize(0), /*wholeValues=*/false);
  if (own.getType() != carry.stored)
    own = castTile(b, loc, castTile(b, loc, own, b.getF32Type()),
                   carry.stored.getElementType());
  return own;
}

/// Writes the window of `carry` after the sequence: its last inputs, ahead of
/// them what was there where they are fewer. Tiles are stored as they are
/// loaded.
void InterChunkStage::moveWindow(const Carry &carry) {
  auto conv = cast<Conv1dOp>(carry.op);
  Value memory = views.pools.find(carry.pool)->second.memory;
  Value width = index(carry.type.getDimSize(0));
  Value length = sub(end, begin);
  Value count = minimum(length, width);
  Value rest = sub(width, count);
  Value kept = rest;
  if (Value start = startRows(carry))
    kept = minimum(start, rest);
  Value at = channel(conv, carry.section, head);
  if (!carry.perKeyHead)
    at = add(at, valueStart());
  const int64_t dims[] = {2, 1};
  Value old = tile::LoadOp::create(b, loc, carry.stored, memory,
                                   ValueRange{slot, at, count}, dims, kept);
  Value own = lastInputs(carry, end, count);
  OpBuilder::InsertionGuard guard(b);
  Value to = enterWrite(carry);
  tile::StoreOp::create(b, loc, old, memory, ValueRange{to, at, index(0)}, dims,
                        rest);
  tile::StoreOp::create(b, loc, own, memory, ValueRange{to, at, rest}, dims,
                        count);
}

/// The values of the chunk of `valid` tokens from `t` on, from the
/// convolution's inputs; `window` holds those in front of it, and receives its
/// last ones.
Value InterChunkStage::convolve(TokenBlock &block, Value t, Value valid,
                                Value &window) {
  RuleOpInterface rule = parts.rule;
  auto conv = cast<Conv1dOp>(convolution->op);
  Value input = conv.getInputs()[convolution->section];
  block.hold(input, loadInput(input, t, valid, algorithm.chunk,
                              /*wholeValues=*/false));
  SmallVector<Value> carried(parts.carries.size());
  Value &own = carried[convolution - parts.carries.begin()];
  own = window;
  // A chunk with fewer tokens is the last: no one wants the window behind it.
  Value tile =
      block.emitInputs(t, index(algorithm.chunk), rule.getValue(), carried)
          .front();
  window = own;
  return castTile(b, loc, tile, chunkTypes.inner);
}

/// The state after the tokens `from` to `to`, chunk after chunk; their outputs.
/// States are times the scale of values.
Value InterChunkStage::emitChunks(TokenBlock &block, Value state, Value from,
                                  Value to) {
  Value first = firstSlot(*this);
  const int64_t C = algorithm.chunk;
  SmallVector<Value> carried = {state};
  if (convolution)
    carried.push_back(loadCarry(windowCarry(*convolution), head));
  auto loop = scf::ForOp::create(b, loc, from, to, index(C), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value t = loop.getInductionVar();
  // A role may be ahead of the sequence's end.
  Value at = algorithm.fusedChunks != 0 ? minimum(t, to) : t;
  Value left = sub(to, at);
  Value valid = minimum(left, index(C));
  Value number = divideTokens(*this, sub(t, begin), index(C));
  Value chunkSlot = add(first, number);
  Value window, convolved;
  if (convolution) {
    window = loop.getRegionIterArg(1);
    convolved = convolve(block, t, valid, window);
  }
  StoredChunk chunk = algorithm.fusedChunks != 0
                          ? emitIntraChunkAt(chunkSlot, t, valid, valid,
                                             /*wantsOutput=*/true, convolved)
                          : loadChunk(chunkSlot, t, valid, valid,
                                      /*wantsOutput=*/true);
  ChunkResult result =
      emitStateRowsChunk(b, loc, loop.getRegionIterArg(0), chunk, chunkTypes);
  block.emitRuleResults(t, valid, result.output, norm ? &*norm : nullptr,
                        handedOn, /*fullUntilLast=*/true);
  if (algorithm.normFollows)
    tile::SignalOp::create(
        b, loc, valueCount(cast<VectorType>(stateCarry().type).getDimSize(0)),
        signals, ValueRange{chunkSlot, headIndex(head)});
  carried = {result.state};
  if (window)
    carried.push_back(window);
  scf::YieldOp::create(b, loc, carried);
  return loop.getResult(0);
}

/// The state after the live sequence, and the states and windows inside it that
/// were asked for, which lie between chunks and behind more tokens than a
/// window has.
Value InterChunkStage::emitPieces(TokenBlock &block, Value start) {
  emitCheckpointBounds(*this);
  return emitUpToCheckpoints(
             *this, start,
             [&](Value from, Value to, ArrayRef<Value> carried) {
               return SmallVector<Value>{
                   emitChunks(block, carried[0], from, to)};
             },
             [&](Value stop, Value to, ArrayRef<Value> carried) {
               for (const Carry &carry : parts.carries)
                 emitCheckpoint(*this, carry, head, to, [&] {
                   if (isa<Conv1dOp>(carry.op)) {
                     Value width = index(carry.type.getDimSize(0));
                     storeCarryAt(carry, lastInputs(carry, stop, width), head,
                                  to);
                   } else {
                     storeCarryAt(carry, unscaled(carried[0]), head, to);
                   }
                 });
             })
      .front();
}

/// The live sequence, chunk after chunk.
void InterChunkStage::emitSequence() {
  TokenBlock block(*this, head);
  // Windows of a key head are the same for each of its value heads.
  writesShared = compare(P::eq, head, index(0));
  Value start = scaled(loadSequenceState());
  storeLast(block, parts.checkpoints ? emitPieces(block, start)
                                     : emitChunks(block, start, begin, end));
}

/// Keeps the state at the end of the sequence, and its windows.
void InterChunkStage::storeLast(TokenBlock &block, Value state) {
  storeSequenceState(unscaled(state));
  if (firstValue)
    writesShared = both(writesShared, compare(P::eq, firstValue, index(0)));
  for (const Carry &window : parts.carries) {
    if (!isa<Conv1dOp>(window.op))
      continue;
    OpBuilder::InsertionGuard guard(b);
    if (window.perKeyHead)
      enterIf(writesShared);
    moveWindow(windowCarry(window));
  }
}

/// The first segment of the live sequence; there may be more.
void InterChunkStage::emitFirst(const SegmentCut &cut) {
  TokenBlock block(*this, head);
  writesShared = compare(P::eq, head, index(0));
  Value to = minimum(add(segmentsBegin(*this, cut), cut.tokens), end);
  Value start = scaled(loadSequenceState());
  Value last = emitChunks(block, start, begin, to);
  auto isLast =
      scf::IfOp::create(b, loc, compare(P::eq, to, end), /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(isLast.thenBlock());
  storeLast(block, last);
  b.setInsertionPointToStart(isLast.elseBlock());
  storeRows(last, states, add(firstSlot(*this, begin, n, cut.tokens), index(1)),
            valueStart());
}

/// The segment with the slot `at`, or zeros: for a sequence that is not live
/// where its first segment would be, and for the padding behind all slots.
/// Where first segments are apart, the one with the place `at` among all
/// others.
void InterChunkStage::emitSegmentBlock(Value at) {
  Value sequences = sequenceCount();
  SegmentCut cut = cutSequences(*this);
  Value tokens = cut.tokens;
  const bool hasZeros = !algorithm.firstApart;
  Value isPadding, live, number;
  if (hasZeros) {
    isPadding =
        compare(P::eq, at, add(sequences, index(algorithm.batchSegments)));
    n = select(isPadding, sequences, findSequence(*this, at, tokens));
    live = emitBounds();
    // Unsigned: a slot before the first sequence's is past every end.
    number = sub(at, firstSlot(*this, begin, n, tokens));
    number = select(isPadding, index(0), number);
  } else {
    number = findSegment(*this, at, cut, /*lastToo=*/false);
    live = emitBounds();
    at = add(firstSlot(*this, begin, n, tokens), number);
  }
  Value count = countSegments(*this, cut);
  // Zeros come first, so that nothing that they take is kept during the
  // recurrence.
  if (hasZeros) {
    Value isDead = arith::XOrIOp::create(
        b, loc, live, arith::ConstantIntOp::create(b, loc, 1, 1));
    OpBuilder::InsertionGuard guard(b);
    enterIf(both(isDead, compare(P::eq, number, index(0))));
    emitZeros(begin, end);
    emitZeros(index(0), lead);
  }
  Value isOwned = both(live, compare(P::ult, number, count));
  OpBuilder::InsertionGuard guard(b);
  enterIf(isOwned);
  TokenBlock block(*this, head);
  writesShared = compare(P::eq, head, index(0));
  Value from = add(segmentsBegin(*this, cut), mul(number, tokens));
  Value to = minimum(add(from, tokens), end);
  Value start =
      loadRows(states, at, valueStart(), stateCarry().type.getDimSize(0));
  Value last = emitChunks(block, start, from, to);
  enterIf(compare(P::eq, to, end));
  storeLast(block, last);
}

void InterChunkStage::emitBlock(Value sequence) {
  if (algorithm.vSplit > 1)
    takeVSplit(tile::BlockIdOp::create(b, loc, b.getIndexType(), 2),
               algorithm.vSplit);
  if (isFirst)
    overlapWith(tile::Neighbour::last);
  else if (algorithm.batchSegments != 0)
    return emitSegmentBlock(sequence);
  SegmentCut cut;
  if (isFirst) {
    cut = cutSequences(*this);
    sequence = longestFirst(*this, sequence, cut);
  }
  Value isWanted;
  if (algorithm.wholeCost != 0) {
    const bool isWhole = algorithm.vSplit == 1;
    // Two recurrences run beside each other, stages one behind the other.
    if (choosesHalves(parts, algorithm))
      overlapWith(isWhole ? tile::Neighbour::next : tile::Neighbour::last);
    SequenceChoice choice = chooseByLengths(*this, sequence);
    sequence = choice.sequence;
    isWanted = isChosen(*this, choice, isWhole);
  }
  n = order ? loadOrder(*this, order, sequence) : sequence;
  Value live = emitBounds();
  Value zerosEnd = end, zerosLead = lead;
  if (isWanted) {
    live = both(live, isWanted);
    zerosEnd = select(isWanted, end, begin);
    zerosLead = select(isWanted, lead, index(0));
  }
  auto branch = scf::IfOp::create(b, loc, live, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  if (isFirst)
    emitFirst(cut);
  else
    emitSequence();
  b.setInsertionPointToStart(branch.elseBlock());
  emitZeros(begin, zerosEnd);
  emitZeros(index(0), zerosLead);
}

LogicalResult gdn::emitFirstStage(const StageInputs &inputs) {
  return InterChunkStage(inputs, /*isFirst=*/true).emitStage();
}

LogicalResult gdn::emitInterChunkStage(const StageInputs &inputs) {
  return InterChunkStage(inputs, /*isFirst=*/false).emitStage();
}
