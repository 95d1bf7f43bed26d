// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chunks have slots in the workspace. Chunk i of sequence n, which begins at
// token c[n], has the slot floor(c[n] / C) + n + i. A sequence of L tokens has
// ceil(L / C) chunks, and the next sequence's first slot is at least as much
// farther, so that no slot has two owners; floor(T / C) + N of them are enough.
// So nothing is planned. Segments have slots in the same way; how long they are
// follows from the number of tokens of the batch.
#include "Stages/ChunkSlots.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

Value gdn::divideTokens(TileProgram &p, Value x, Value y) {
  OpBuilder &b = p.b;
  if (matchPattern(y, m_Constant()))
    return arith::DivUIOp::create(b, p.loc, x, y);
  auto cast = [&](Type type, Value value) -> Value {
    return arith::IndexCastOp::create(b, p.loc, type, value);
  };
  Type i32 = b.getI32Type();
  Value quotient = arith::DivUIOp::create(b, p.loc, cast(i32, x), cast(i32, y));
  return cast(b.getIndexType(), quotient);
}

Value gdn::firstSlot(TileProgram &p, Value begin, Value sequence,
                     Value tokens) {
  return p.add(divideTokens(p, begin, tokens), sequence);
}

Value gdn::firstSlot(SequenceProgram &p) {
  return firstSlot(p, p.begin, p.n, p.index(p.algorithm.chunk));
}

Value gdn::findSequence(SequenceProgram &p, Value slot, Value tokens) {
  OpBuilder &b = p.b;
  Location loc = p.loc;
  Value sequences = p.sequenceCount();
  Type i64 = b.getI64Type();
  Value zeros = math::CountLeadingZerosOp::create(
      b, loc, arith::IndexCastOp::create(b, loc, i64, sequences));
  Value bits = p.sub(
      p.index(64), arith::IndexCastOp::create(b, loc, b.getIndexType(), zeros));
  auto loop = scf::ForOp::create(b, loc, p.index(0), bits, p.index(1),
                                 ValueRange{p.index(0)});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value found = loop.getRegionIterArg(0);
  Value bit = p.sub(p.sub(bits, p.index(1)), loop.getInductionVar());
  Value sequence = p.add(found, arith::ShLIOp::create(b, loc, p.index(1), bit));
  // One past the last sequence has a bound as well: that of its end.
  Value at = p.minimum(sequence, sequences);
  Value first = firstSlot(p, p.sequenceBound(at, p.index(0)), at, tokens);
  Value owns = p.both(p.compare(P::ult, sequence, sequences),
                      p.compare(P::ule, first, slot));
  scf::YieldOp::create(b, loc, p.select(owns, sequence, found));
  return loop.getResult(0);
}

/// What blocks of the shorter sequence take to begin behind others, in tokens
/// of a wave: on an H200 7,168 + 1,024 tokens of 16 heads lost 10 us to 8 us of
/// the waves, and 28,672 + 4,096 won 15.
static constexpr int64_t shiftTokens = 256;

static Value ceilDivideTokens(TileProgram &p, Value x, Value y) {
  return divideTokens(p, p.add(x, p.sub(y, p.index(1))), y);
}

/// The shortest segments of which neither sequence has more than it has of
/// `length` tokens: so many chunks that they are as long as each other.
static Value evenSegments(SequenceProgram &p, Value longer, Value shorter,
                          Value length) {
  Value chunk = p.index(p.algorithm.chunk);
  auto chunksOf = [&](Value tokens) {
    Value count = arith::MaxUIOp::create(
        p.b, p.loc, ceilDivideTokens(p, tokens, length), p.index(1));
    return ceilDivideTokens(p, tokens, p.mul(count, chunk));
  };
  Value ofLonger = chunksOf(longer), ofShorter = chunksOf(shorter);
  return p.mul(arith::MaxUIOp::create(p.b, p.loc, ofLonger, ofShorter), chunk);
}

/// Of two sequences, which cost as much as one of all their tokens: a wave of
/// maps and first segments, a scan, and a wave of the other segments.
static SegmentCut cutPair(SequenceProgram &p, Value length) {
  OpBuilder &b = p.b;
  Location loc = p.loc;
  const int64_t C = p.algorithm.chunk;
  auto wholeChunks = [&](Value tokens) {
    return p.sub(tokens, arith::RemUIOp::create(b, loc, tokens, p.index(C)));
  };
  Value none = p.index(0), middle = p.sequenceBound(p.index(1), none);
  Value lead = p.sequenceBound(none, none);
  Value first = p.sub(middle, lead);
  Value second = p.sub(p.sequenceBound(p.index(2), middle), middle);
  first = arith::MaxSIOp::create(b, loc, first, none);
  Value isSecond = p.compare(P::ugt, second, first);
  Value longer = p.select(isSecond, second, first);
  Value shorter = p.select(isSecond, first, second);
  // The slots of the next sequence begin behind as many segments as there are
  // without a shift.
  Value last = p.sub(longer, p.mul(divideTokens(p, longer, length), length));
  Value shift = wholeChunks(p.minimum(shorter, p.sub(length, last)));
  Value isShort = p.compare(P::ult, shorter, length);
  Value cost =
      p.add(p.mul(length, p.index(2)), p.index(p.algorithm.scanTokens));
  Value isWhole = p.compare(P::ule, longer, cost);
  Value whole = arith::MaxUIOp::create(
      b, loc, wholeChunks(p.add(longer, p.index(C - 1))), length);
  // With one segment less there is a place beside the maps for the shorter one.
  Value fewer =
      p.mul(arith::CeilDivUIOp::create(
                b, loc, longer, p.index(C * (p.algorithm.batchSegments - 1))),
            p.index(C));
  fewer = arith::MaxUIOp::create(b, loc, fewer, length);
  Value isLittle =
      p.compare(P::ule, fewer, p.add(length, p.index(shiftTokens)));
  // Slots count from token 0: with shorter segments, tokens ahead of both
  // sequences would take more of them than there are.
  Value even = p.select(p.compare(P::eq, lead, none),
                        evenSegments(p, longer, shorter, length), length);
  Value tokens = p.select(isShort, p.select(isLittle, fewer, length), even);
  Value taken = p.select(isShort, p.select(isLittle, none, shift), none);
  return {p.select(isWhole, whole, tokens),
          p.select(isSecond, p.index(1), none), p.select(isWhole, none, taken)};
}

SegmentCut gdn::cutSequences(SequenceProgram &p) {
  OpBuilder &b = p.b;
  Location loc = p.loc;
  Value tokens = memref::DimOp::create(
      b, loc, p.operandViews.lookup(p.views.results.front()), 0);
  const int64_t C = p.algorithm.chunk;
  Value chunks = arith::CeilDivUIOp::create(
      b, loc, tokens, p.index(C * p.algorithm.batchSegments));
  chunks = arith::MaxUIOp::create(b, loc, chunks, p.index(1));
  Value length = p.mul(chunks, p.index(C));
  if (!p.algorithm.firstApart)
    return {length, Value(), Value()};
  Type type = b.getIndexType();
  auto pair = scf::IfOp::create(b, loc, {type, type, type},
                                p.compare(P::eq, p.sequenceCount(), p.index(2)),
                                /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(pair.elseBlock());
  scf::YieldOp::create(b, loc, ValueRange{length, p.index(0), p.index(0)});
  b.setInsertionPointToStart(pair.thenBlock());
  SegmentCut cut = cutPair(p, length);
  scf::YieldOp::create(b, loc, ValueRange{cut.tokens, cut.longer, cut.shift});
  return {pair.getResult(0), pair.getResult(1), pair.getResult(2)};
}

Value gdn::segmentsBegin(SequenceProgram &p, const SegmentCut &cut) {
  if (!cut.shift)
    return p.begin;
  return p.sub(p.begin, p.select(p.compare(P::eq, p.n, cut.longer), cut.shift,
                                 p.index(0)));
}

Value gdn::longestFirst(SequenceProgram &p, Value at, const SegmentCut &cut) {
  // 0 is that of any other number of sequences.
  Value isPair = p.compare(P::ule, at, cut.longer);
  return p.select(isPair, p.sub(cut.longer, at), at);
}

/// The segments of so many tokens.
static Value countSegments(SequenceProgram &p, const SegmentCut &cut,
                           Value tokens) {
  return ceilDivideTokens(p, tokens, cut.tokens);
}

Value gdn::countSegments(SequenceProgram &p, const SegmentCut &cut) {
  return ::countSegments(p, cut, p.sub(p.end, segmentsBegin(p, cut)));
}

Value gdn::findSegment(SequenceProgram &p, Value at, const SegmentCut &cut,
                       bool lastToo) {
  OpBuilder &b = p.b;
  Location loc = p.loc;
  Value none = p.index(0), one = p.index(1);
  auto loop =
      scf::ForOp::create(b, loc, none, p.sequenceCount(), one,
                         ValueRange{none, at, p.sequenceBound(none, none)});
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value sequence = loop.getInductionVar(), found = loop.getRegionIterArg(0);
    Value rest = loop.getRegionIterArg(1), begin = loop.getRegionIterArg(2);
    Value next = p.sequenceBound(p.add(sequence, one), begin);
    Value shift =
        p.select(p.compare(P::eq, sequence, cut.longer), cut.shift, none);
    Value count = ::countSegments(p, cut, p.add(p.sub(next, begin), shift));
    Value left = p.index(lastToo ? 2 : 1);
    Value own = p.sub(arith::MaxUIOp::create(b, loc, count, left), left);
    Value isBehind =
        p.both(p.compare(P::eq, found, sequence), p.compare(P::uge, rest, own));
    scf::YieldOp::create(
        b, loc,
        ValueRange{p.select(isBehind, p.add(found, one), found),
                   p.select(isBehind, p.sub(rest, own), rest), next});
  }
  p.n = loop.getResult(0);
  return p.add(loop.getResult(1), one);
}
