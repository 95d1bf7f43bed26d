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

Value gdn::segmentTokens(SequenceProgram &p) {
  OpBuilder &b = p.b;
  Location loc = p.loc;
  Value tokens = memref::DimOp::create(
      b, loc, p.operandViews.lookup(p.views.results.front()), 0);
  const int64_t C = p.algorithm.chunk, numSegments = p.algorithm.batchSegments;
  auto chunksOf = [&](Value some, int64_t segments) {
    return arith::CeilDivUIOp::create(b, loc, some, p.index(C * segments));
  };
  Value chunks = chunksOf(tokens, numSegments);
  chunks = arith::MaxUIOp::create(b, loc, chunks, p.index(1));
  Value length = p.mul(chunks, p.index(C));
  // A sequence of one segment beside a long one: with one segment less, maps
  // and first segments are as many as one sequence has.
  if (!p.algorithm.firstApart)
    return length;
  auto pair = scf::IfOp::create(b, loc, b.getIndexType(),
                                p.compare(P::eq, p.sequenceCount(), p.index(2)),
                                /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(pair.elseBlock());
  scf::YieldOp::create(b, loc, length);
  b.setInsertionPointToStart(pair.thenBlock());
  Value none = p.index(0), middle = p.sequenceBound(p.index(1), none);
  Value first = p.sub(middle, p.sequenceBound(none, none));
  Value second = p.sub(p.sequenceBound(p.index(2), middle), middle);
  first = arith::MaxSIOp::create(b, loc, first, none);
  Value longer = arith::MaxUIOp::create(b, loc, first, second);
  Value shorter = p.minimum(first, second);
  Value fewer = p.mul(chunksOf(longer, numSegments - 1), p.index(C));
  fewer = arith::MaxUIOp::create(b, loc, fewer, length);
  scf::YieldOp::create(
      b, loc, p.select(p.compare(P::ule, shorter, length), fewer, length));
  return pair.getResult(0);
}

Value gdn::countSegments(SequenceProgram &p, Value tokens) {
  Value length = p.sub(p.end, p.begin);
  return divideTokens(p, p.add(length, p.sub(tokens, p.index(1))), tokens);
}
