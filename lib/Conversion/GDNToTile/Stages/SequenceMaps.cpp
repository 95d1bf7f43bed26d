// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The stage between the two of a variant "staged" that cuts sequences into
// segments: what a segment does to the state, M <- M P + H, from what the first
// stage left of its chunks. H is what it makes of nothing, and in a sequence's
// first segment of the sequence's state; P what it makes of the identity if its
// values are zero. A block has rows of H or rows of P, which do not know of
// each other; the last segment of a sequence needs neither. The state that a
// sequence begins with goes to the workspace: its first segment may be computed
// while the last one writes the pool. Where the first segments of sequences
// have a stage of their own, beside this one, all that is not done here. A
// variant may also have the maps alone, of whole sequences, for those who join
// the maps of several devices.
//
// Formulas: docs/design/20261121-segments.md.
#include "Program/TokenOps.h"
#include "Stages/KernelStage.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

namespace {

class SequenceMapsStage final : public KernelStage {
public:
  using KernelStage::KernelStage;

protected:
  SmallVector<std::string> gridOf(const std::string &) override;
  void emitBlock(Value at) override;

private:
  Value emitStart(Value number);
  Value emitChunks(Value from, Value to, Value start);
  void emitWholeSequence(Value at);
  void storeMap(Value last, Value at, Value ofState);
  void emitSegment(Value at, Value number, Value isLast, const SegmentCut &cut);

  Value isMap;    // the block has rows of P
  Value firstRow; // of P
};

} // namespace

SmallVector<std::string> SequenceMapsStage::gridOf(const std::string &) {
  auto state = cast<MemRefType>(states.getType());
  const int64_t rows = state.getDimSize(2) / algorithm.vSplit;
  const int64_t mapBlocks = llvm::divideCeil(state.getDimSize(3), rows);
  haveSameChunks(algorithm.vSplit + mapBlocks);
  std::string segments = sequenceForm;
  if (algorithm.firstApart) // at most, of all sequences
    segments = std::to_string(algorithm.batchSegments - 2);
  else if (!algorithm.mapsAlone)
    segments += " + " + std::to_string(algorithm.batchSegments);
  return {segments, valueForm, std::to_string(algorithm.vSplit + mapBlocks)};
}

/// The block's rows of the state before a segment: of the row's own, of the
/// identity or of nothing.
Value SequenceMapsStage::emitStart(Value number) {
  Carry carry = stateCarry();
  Value own;
  if (algorithm.firstApart || algorithm.mapsAlone) {
    own = tile::FillOp::create(
        b, loc, carry.type,
        arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f)));
  } else {
    Value all = wideStates ? Value() : startRows(carry), none = index(0);
    if (!all)
      all = index(carry.type.getDimSize(0));
    Value isFirst = compare(P::eq, number, none);
    own = scaleTile(b, loc, loadSequenceState(select(isFirst, all, none)),
                    chunkTypes.valueScale);
  }
  // No column is as far as the rows of a block of H.
  const int64_t dk = carry.type.getDimSize(1);
  Value diagonal = select(isMap, firstRow, index(dk));
  auto map =
      tile::MapRowsOp::create(b, loc, TypeRange{carry.type}, ValueRange{own});
  OpBuilder::InsertionGuard guard(b);
  auto row = VectorType::get({dk}, b.getF32Type());
  Block *body =
      b.createBlock(&map.getBody(), {}, {b.getIndexType(), row}, {loc, loc});
  auto indices = VectorType::get({dk}, b.getIndexType());
  Value column = vector::StepOp::create(b, loc, indices);
  Value at = vector::BroadcastOp::create(b, loc, indices,
                                         add(body->getArgument(0), diagonal));
  Value one =
      arith::ConstantOp::create(b, loc, DenseElementsAttr::get(row, 1.0f));
  tile::YieldOp::create(
      b, loc, select(compare(P::eq, column, at), one, body->getArgument(1)));
  return map.getResult(0);
}

/// The state after the tokens `from` to `to`, whole chunks.
Value SequenceMapsStage::emitChunks(Value from, Value to, Value start) {
  Value first = firstSlot(*this), chunk = index(algorithm.chunk);
  auto loop = scf::ForOp::create(b, loc, from, to, chunk, ValueRange{start});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value t = loop.getInductionVar();
  Value number = divideTokens(*this, sub(t, begin), index(algorithm.chunk));
  Value slot = add(first, number), none = index(0);
  StoredChunk stored;
  if (algorithm.fusedChunks != 0) {
    // A role may be ahead of the segment's end.
    Value at = minimum(t, to);
    Value valid = minimum(sub(to, at), chunk);
    stored = emitIntraChunkAt(slot, t, valid, select(isMap, none, valid),
                              /*wantsOutput=*/false);
  } else {
    // Segments are whole chunks, sequences are not.
    Value valid = chunk;
    if (algorithm.mapsAlone)
      valid = minimum(sub(to, t), chunk);
    stored = loadChunk(slot, t, valid, select(isMap, none, valid),
                       /*wantsOutput=*/false);
  }
  Value state =
      emitStateRowsChunk(b, loc, loop.getRegionIterArg(0), stored, chunkTypes)
          .state;
  scf::YieldOp::create(b, loc, state);
  return loop.getResult(0);
}

/// Segment `number` of the sequence, with the slot `at`.
void SequenceMapsStage::emitSegment(Value at, Value number, Value isLast,
                                    const SegmentCut &cut) {
  Value start = emitStart(number);
  if (!algorithm.firstApart) {
    Value keeps =
        both(compare(P::eq, number, index(0)),
             arith::XOrIOp::create(b, loc, isMap,
                                   arith::ConstantIntOp::create(b, loc, 1, 1)));
    OpBuilder::InsertionGuard guard(b);
    enterIf(keeps);
    storeRows(start, states, at, valueStart());
  }
  Value from = add(segmentsBegin(*this, cut), mul(number, cut.tokens));
  Value to = select(isLast, from, add(from, cut.tokens));
  Value last = emitChunks(from, to, start);
  OpBuilder::InsertionGuard guard(b);
  enterIf(compare(P::ne, from, to));
  storeMap(last, at, add(at, index(1)));
}

/// Keeps rows of P at slot `at`, or of H at `ofState`.
void SequenceMapsStage::storeMap(Value last, Value at, Value ofState) {
  OpBuilder::InsertionGuard guard(b);
  auto branch = scf::IfOp::create(b, loc, isMap, /*withElse=*/true);
  b.setInsertionPointToStart(branch.thenBlock());
  // A block may have more rows than P, which are zero.
  const int64_t dk = stateCarry().type.getDimSize(1);
  Value rows;
  if (dk % numValues != 0)
    rows = sub(index(dk), firstRow);
  Value map =
      algorithm.mapsAlone ? last : castTile(b, loc, last, chunkTypes.inner);
  storeRows(map, maps, at, firstRow, rows);
  b.setInsertionPointToStart(branch.elseBlock());
  // Others than the stages of this variant read it.
  if (algorithm.mapsAlone)
    last = scaleTile(b, loc, last, 1 / chunkTypes.valueScale);
  storeRows(last, states, ofState, valueStart());
}

/// The map of the sequence, whose number is `at`.
void SequenceMapsStage::emitWholeSequence(Value at) {
  n = at;
  Value live = emitBounds();
  OpBuilder::InsertionGuard guard(b);
  enterIf(live);
  storeMap(emitChunks(begin, end, emitStart(Value())), at, at);
}

void SequenceMapsStage::emitBlock(Value at) {
  if (algorithm.firstApart)
    overlapWith(tile::Neighbour::next);
  Value which = tile::BlockIdOp::create(b, loc, b.getIndexType(), 2);
  Value vSplit = index(algorithm.vSplit);
  isMap = compare(P::uge, which, vSplit);
  takeVSplit(select(isMap, index(0), which), algorithm.vSplit);
  firstRow = mul(sub(which, vSplit), index(numValues));
  if (algorithm.mapsAlone)
    return emitWholeSequence(at);
  SegmentCut cut = cutSequences(*this);
  Value tokens = cut.tokens;
  Value number;
  if (algorithm.firstApart)
    number = findSegment(*this, at, cut, /*lastToo=*/true);
  else
    n = findSequence(*this, at, tokens);
  Value live = emitBounds();
  Value firstOne = firstSlot(*this, begin, n, tokens);
  if (number)
    at = add(firstOne, number);
  else
    number = sub(at, firstOne);
  Value count = countSegments(*this, cut);
  // Unsigned: a slot before the first sequence's is past every end. There is no
  // map of a first segment, and of a last one nothing but the state if it is
  // the first.
  Value next = add(number, index(1));
  Value isLast = compare(P::uge, next, count);
  Value isFirst = compare(P::eq, number, index(0));
  auto hasMap = [&] {
    return both(compare(P::ne, number, index(0)), compare(P::ult, next, count));
  };
  Value hasH;
  if (algorithm.firstApart)
    hasH = hasMap();
  else
    hasH = arith::OrIOp::create(b, loc, isFirst, compare(P::ult, next, count));
  Value hasP = hasMap();
  Value wanted =
      both(compare(P::ult, number, count), select(isMap, hasP, hasH));
  live = both(live, wanted);
  OpBuilder::InsertionGuard guard(b);
  enterIf(live);
  emitSegment(at, number, isLast, cut);
}

LogicalResult gdn::emitMapsStage(const StageInputs &inputs) {
  return SequenceMapsStage(inputs).emitStage();
}
