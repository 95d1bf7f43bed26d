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
#include "Stages/KernelStage.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

/// Sequences of a batch that is put in order. A block asks for the lengths of
/// all one after the other, and among more than this few are long beside all
/// others.
static constexpr int64_t mostOrderedSequences = 256;

/// The tokens of sequence `sequence`, which begins at `first` and ends ahead of
/// `next`, as the recurrence has them.
static Value lengthOf(OpBuilder &b, Location loc, Value first, Value next) {
  Value end = arith::MaxSIOp::create(b, loc, next, first);
  return arith::SubIOp::create(b, loc, end, first);
}

/// The rank of sequence `sequence` among `sequences`.
Value KernelStage::rankOf(Value sequence, Value sequences) {
  Value none = index(0);
  Value length = lengthOf(b, loc, sequenceBound(sequence, none),
                          sequenceBound(add(sequence, index(1)), none));
  Value isOrdered = compare(P::ule, sequences, index(mostOrderedSequences));
  Value count = arith::SelectOp::create(b, loc, isOrdered, sequences, none);
  Value start = arith::SelectOp::create(b, loc, isOrdered, none, sequence);
  auto loop = scf::ForOp::create(b, loc, none, count, index(1),
                                 ValueRange{start, sequenceBound(none, none)});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value other = loop.getInductionVar(), rank = loop.getRegionIterArg(0);
  Value next = sequenceBound(add(other, index(1)), none);
  Value tokens = lengthOf(b, loc, loop.getRegionIterArg(1), next);
  Value isAhead = arith::AndIOp::create(b, loc, compare(P::eq, tokens, length),
                                        compare(P::ult, other, sequence));
  isAhead =
      arith::OrIOp::create(b, loc, isAhead, compare(P::ugt, tokens, length));
  Value more = add(rank, index(1));
  scf::YieldOp::create(
      b, loc,
      ValueRange{arith::SelectOp::create(b, loc, isAhead, more, rank), next});
  return loop.getResult(0);
}

void KernelStage::storeOrder(Value at) {
  Value sequences = sequenceCount();
  Value isSequence =
      arith::AndIOp::create(b, loc, compare(P::ult, at, sequences),
                            compare(P::eq, headIndex(head), index(0)));
  auto branch = scf::IfOp::create(b, loc, isSequence, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value rank = rankOf(at, sequences);
  // Tiles are of floating point: the bits of one hold the number.
  Type f32 = b.getF32Type();
  Value sequence = arith::BitcastOp::create(
      b, loc, f32, arith::IndexCastOp::create(b, loc, b.getI32Type(), at));
  Value tile =
      tile::FillOp::create(b, loc, VectorType::get({1}, f32), sequence);
  tile::StoreOp::create(b, loc, tile, order, ValueRange{rank, index(0)},
                        ArrayRef<int64_t>{1}, Value());
}

Value KernelStage::loadOrder(Value at) {
  Value sequences = sequenceCount();
  auto isSequence =
      scf::IfOp::create(b, loc, b.getIndexType(),
                        compare(P::ult, at, sequences), /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(isSequence.thenBlock());
  Value sequence =
      memref::LoadOp::create(b, loc, order, ValueRange{at, index(0)});
  sequence = arith::BitcastOp::create(b, loc, b.getI32Type(), sequence);
  scf::YieldOp::create(b, loc,
                       ValueRange{arith::IndexCastOp::create(
                           b, loc, b.getIndexType(), sequence)});
  b.setInsertionPointToStart(isSequence.elseBlock());
  scf::YieldOp::create(b, loc, at);
  return isSequence.getResult(0);
}

SequenceChoice KernelStage::chooseByLengths(Value rank) {
  Value sequences = sequenceCount(), none = index(0);
  auto loop = scf::ForOp::create(
      b, loc, none, sequences, index(1),
      ValueRange{none, none, none, sequenceBound(none, none)});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    auto state = loop.getRegionIterArgs();
    Value sequence = loop.getInductionVar();
    Value next = sequenceBound(add(sequence, index(1)), none);
    Value tokens = lengthOf(b, loc, state[3], next);
    Value isLonger = compare(P::ugt, tokens, state[1]);
    scf::YieldOp::create(
        b, loc,
        ValueRange{
            arith::SelectOp::create(b, loc, isLonger, sequence, state[0]),
            arith::MaxUIOp::create(b, loc, tokens, state[1]),
            add(tokens, state[2]), next});
  }
  Value longest = loop.getResult(0), tokens = loop.getResult(1);
  Value rest = arith::SubIOp::create(b, loc, loop.getResult(2), tokens);
  // By V-splits the longest sequence has so many blocks at once, and those of
  // the rest go through the ranks that are left, or come behind it.
  Value blocks = mul(mul(heads, ratio), index(2));
  const int64_t workers = algorithm.workers, wholeCost = algorithm.wholeCost;
  Value most = index(workers - 1);
  Value left = arith::SubIOp::create(
      b, loc, index(workers), arith::MinUIOp::create(b, loc, blocks, most));
  Value rounds = divideTokens(
      add(blocks, arith::SubIOp::create(b, loc, left, index(1))), left);
  // Behind it: rest < (wholeCost - 100) / 100 of the longest.
  const int64_t behind = 100 * wholeCost / (wholeCost - 100);
  Value cost =
      arith::MinUIOp::create(b, loc, mul(rounds, index(100)), index(behind));
  SequenceChoice choice;
  choice.isWhole =
      compare(P::uge, mul(cost, rest), mul(index(wholeCost), tokens));
  Value before = arith::SubIOp::create(b, loc, rank, index(1));
  choice.sequence = arith::SelectOp::create(
      b, loc, compare(P::ule, rank, longest), before, rank);
  choice.sequence = arith::SelectOp::create(b, loc, compare(P::eq, rank, none),
                                            longest, choice.sequence);
  return choice;
}
