// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order in which a recurrence takes the sequences of a batch: longest
// first. Where there are more blocks than ranks, a long sequence that begins
// last would run on alone. The rank of a sequence is the number of sequences
// that are longer, or as long and ahead of it; the first stage finds it from
// `cu_seqlens`, so nothing is planned on the host and a captured launch takes
// other lengths.
//
// A recurrence without such a stage finds the longest sequence alone, and
// whether it is so long that its heads are better shared by two blocks each.
#include "Stages/SequenceOrder.h"

#include "Stages/ChunkSlots.h"
#include "Stages/KernelStage.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

/// Sequences of a batch that is put in order. A block asks for the lengths of
/// all one after the other, and among more than this few are long beside all
/// others.
static constexpr int64_t mostOrderedSequences = 256;

/// The tokens of a sequence, which begins at `first` and ends ahead of `next`,
/// as the recurrence has them.
static Value lengthOf(SequenceProgram &p, Value first, Value next) {
  return p.sub(arith::MaxSIOp::create(p.b, p.loc, next, first), first);
}

/// The rank of sequence `sequence` among `sequences`.
static Value rankOf(SequenceProgram &p, Value sequence, Value sequences) {
  OpBuilder &b = p.b;
  Value none = p.index(0);
  Value begin = p.sequenceBound(sequence, none);
  Value length =
      lengthOf(p, begin, p.sequenceBound(p.add(sequence, p.index(1)), none));
  Value isOrdered = p.compare(P::ule, sequences, p.index(mostOrderedSequences));
  Value count = p.select(isOrdered, sequences, none);
  Value start = p.select(isOrdered, none, sequence);
  auto loop =
      scf::ForOp::create(b, p.loc, none, count, p.index(1),
                         ValueRange{start, p.sequenceBound(none, none)});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value other = loop.getInductionVar(), rank = loop.getRegionIterArg(0);
  Value next = p.sequenceBound(p.add(other, p.index(1)), none);
  Value tokens = lengthOf(p, loop.getRegionIterArg(1), next);
  Value isAhead = p.both(p.compare(P::eq, tokens, length),
                         p.compare(P::ult, other, sequence));
  isAhead = arith::OrIOp::create(b, p.loc, isAhead,
                                 p.compare(P::ugt, tokens, length));
  Value more = p.add(rank, p.index(1));
  scf::YieldOp::create(b, p.loc,
                       ValueRange{p.select(isAhead, more, rank), next});
  return loop.getResult(0);
}

void gdn::storeOrder(SequenceProgram &p, Value order, Value at) {
  OpBuilder &b = p.b;
  Location loc = p.loc;
  Value sequences = p.sequenceCount();
  Value isSequence = p.both(p.compare(P::ult, at, sequences),
                            p.compare(P::eq, p.headIndex(p.head), p.index(0)));
  OpBuilder::InsertionGuard guard(b);
  p.enterIf(isSequence);
  Value rank = rankOf(p, at, sequences);
  // Tiles are of floating point: the bits of one hold the number.
  Type f32 = b.getF32Type();
  Value sequence = arith::BitcastOp::create(
      b, loc, f32, arith::IndexCastOp::create(b, loc, b.getI32Type(), at));
  Value tile =
      tile::FillOp::create(b, loc, VectorType::get({1}, f32), sequence);
  tile::StoreOp::create(b, loc, tile, order, ValueRange{rank, p.index(0)},
                        ArrayRef<int64_t>{1}, Value());
}

Value gdn::loadOrder(SequenceProgram &p, Value order, Value at) {
  OpBuilder &b = p.b;
  Location loc = p.loc;
  Value sequences = p.sequenceCount();
  auto isSequence =
      scf::IfOp::create(b, loc, b.getIndexType(),
                        p.compare(P::ult, at, sequences), /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(isSequence.thenBlock());
  Value sequence =
      memref::LoadOp::create(b, loc, order, ValueRange{at, p.index(0)});
  sequence = arith::BitcastOp::create(b, loc, b.getI32Type(), sequence);
  sequence = arith::IndexCastOp::create(b, loc, b.getIndexType(), sequence);
  scf::YieldOp::create(b, loc, sequence);
  b.setInsertionPointToStart(isSequence.elseBlock());
  scf::YieldOp::create(b, loc, at);
  return isSequence.getResult(0);
}

SequenceChoice gdn::chooseByLengths(SequenceProgram &p, Value rank) {
  OpBuilder &b = p.b;
  Location loc = p.loc;
  Value sequences = p.sequenceCount(), none = p.index(0);
  auto loop = scf::ForOp::create(
      b, loc, none, sequences, p.index(1),
      ValueRange{none, none, none, p.sequenceBound(none, none)});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    auto state = loop.getRegionIterArgs();
    Value sequence = loop.getInductionVar();
    Value next = p.sequenceBound(p.add(sequence, p.index(1)), none);
    Value tokens = lengthOf(p, state[3], next);
    Value isLonger = p.compare(P::ugt, tokens, state[1]);
    scf::YieldOp::create(
        b, loc,
        ValueRange{p.select(isLonger, sequence, state[0]),
                   arith::MaxUIOp::create(b, loc, tokens, state[1]),
                   p.add(tokens, state[2]), next});
  }
  Value longest = loop.getResult(0), tokens = loop.getResult(1);
  auto longestFirst = [&] {
    Value before = p.sub(rank, p.index(1));
    Value sequence = p.select(p.compare(P::ule, rank, longest), before, rank);
    return p.select(p.compare(P::eq, rank, none), longest, sequence);
  };
  RuleOpInterface rule = p.parts.rule;
  if (rule.isPerChannel()) {
    // Blocks have a multiprocessor each, and stages, or halves of which there
    // are more than multiprocessors, share all of them.
    Value all = p.mul(p.mul(p.heads, p.ratio), loop.getResult(2));
    return {choosesHalves(p.parts, p.algorithm) ? longestFirst() : rank,
            p.compare(P::ule, p.mul(p.index(p.algorithm.wholeCost), tokens),
                      p.mul(p.index(100), all))};
  }
  Value rest = p.sub(loop.getResult(2), tokens);
  // By V-splits the longest sequence has so many blocks at once, and those of
  // the rest go through the ranks that are left, or come behind it.
  Value blocks = p.mul(p.mul(p.heads, p.ratio), p.index(2));
  const int64_t workers = p.algorithm.workers;
  const int64_t wholeCost = p.algorithm.wholeCost;
  // Where all V-splits fit beside each other, nobody has to wait for the
  // longest.
  Value fit = p.compare(P::ule, p.mul(sequences, blocks), p.index(workers));
  rest = p.select(fit, none, rest);
  Value most = p.index(workers - 1);
  Value left = p.sub(p.index(workers), p.minimum(blocks, most));
  Value rounds = divideTokens(p, p.add(blocks, p.sub(left, p.index(1))), left);
  // Behind it: rest < (wholeCost - 100) / 100 of the longest.
  const int64_t behind = 100 * wholeCost / (wholeCost - 100);
  Value cost = p.minimum(p.mul(rounds, p.index(100)), p.index(behind));
  SequenceChoice choice;
  choice.isWhole =
      p.compare(P::uge, p.mul(cost, rest), p.mul(p.index(wholeCost), tokens));
  choice.sequence = longestFirst();
  return choice;
}

Value gdn::isChosen(SequenceProgram &p, const SequenceChoice &choice,
                    bool ofWhole) {
  return arith::XOrIOp::create(
      p.b, p.loc, choice.isWhole,
      arith::ConstantIntOp::create(p.b, p.loc, !ofWhole, 1));
}
