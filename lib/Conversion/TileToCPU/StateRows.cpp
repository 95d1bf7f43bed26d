// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows of a state as vectors; see StateRows.h.
#include "StateRows.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace gdn;

/// Bytes of state that stay in the first-level cache beside keys and queries.
static constexpr int64_t kCacheBytes = 16 * 1024;

/// How far ahead of its use a state that streams from its pool is asked for.
/// That reaches into the next head's state, which lies behind this one, so
/// that memory is busy while the head's other work is done.
static constexpr int64_t kPrefetchBytes = 8 * 1024;
static constexpr int64_t kCacheLine = 64;

static bool isPerChannel(Value decay) {
  return cast<MemRefType>(decay.getType()).getRank() == 2;
}

StateRows::StateRows(OpBuilder &b, Location loc, VectorType state,
                     int64_t lanes)
    : b(b), loc(loc), lanes(lanes), rows(state.getDimSize(0)),
      columns(state.getDimSize(1)) {
  while (columns % this->lanes != 0)
    this->lanes /= 2;
  vector = VectorType::get({this->lanes}, b.getF32Type());
}

scf::ForOp StateRows::loop(Value from, Value to, int64_t step) {
  auto op = scf::ForOp::create(b, loc, from, to, index(step));
  b.setInsertionPointToStart(op.getBody());
  return op;
}

Value StateRows::readAt(Value buffer, Value row, Value column) {
  Type stored = cast<MemRefType>(buffer.getType()).getElementType();
  Value chunk = vector::LoadOp::create(b, loc, vector.clone(stored), buffer,
                                       ValueRange{row, column});
  return stored.isF32() ? chunk
                        : Value(arith::ExtFOp::create(b, loc, vector, chunk));
}

StateRows::Chunks StateRows::read(Value buffer, Value row) {
  Chunks chunks;
  for (int64_t c = 0; c < columns; c += lanes)
    chunks.push_back(readAt(buffer, row, index(c)));
  return chunks;
}

void StateRows::writeAt(Value chunk, Value buffer, Value row, Value column) {
  Type stored = cast<MemRefType>(buffer.getType()).getElementType();
  if (!stored.isF32())
    chunk = arith::TruncFOp::create(b, loc, vector.clone(stored), chunk);
  vector::StoreOp::create(b, loc, chunk, buffer, ValueRange{row, column});
}

void StateRows::emitDecay(Value logDecay, Value decay, Value valid) {
  OpBuilder::InsertionGuard guard(b);
  Value t = loop(index(0), valid, 1).getInductionVar();
  if (!isPerChannel(decay)) {
    Value g = memref::LoadOp::create(b, loc, logDecay, t);
    memref::StoreOp::create(b, loc, math::ExpOp::create(b, loc, g), decay, t);
    return;
  }
  for (auto [i, g] : llvm::enumerate(read(logDecay, t)))
    vector::StoreOp::create(b, loc, math::ExpOp::create(b, loc, g), decay,
                            ValueRange{t, index(i * lanes)});
}

StateRows::Chunks StateRows::decayOf(Value decay, Value t) {
  if (isPerChannel(decay))
    return read(decay, t);
  return Chunks(columns / lanes,
                splat(memref::LoadOp::create(b, loc, decay, t)));
}

void StateRows::forBlocks(Value valid,
                          function_ref<void(Value, Value, Value)> body) {
  OpBuilder::InsertionGuard guard(b);
  int64_t block =
      std::max<int64_t>(1, std::min(rows, kCacheBytes / (4 * columns)));
  Value first = loop(index(0), index(rows), block).getInductionVar();
  Value last = arith::MinUIOp::create(
      b, loc, arith::AddIOp::create(b, loc, first, index(block)), index(rows));
  Value t = loop(index(0), valid, 1).getInductionVar();
  body(t, first, last);
}

/// Asks for the row that is `kPrefetchBytes` behind `row`. A prefetch of memory
/// that is not there does nothing.
void StateRows::emitPrefetch(Value memory, Value row) {
  int64_t rowBytes =
      columns * cast<MemRefType>(memory.getType()).getElementTypeBitWidth() / 8;
  int64_t perLine = kCacheLine * columns / rowBytes;
  Value ahead = arith::AddIOp::create(
      b, loc, row, index(std::max<int64_t>(1, kPrefetchBytes / rowBytes)));
  for (int64_t c = 0; c < columns; c += perLine)
    memref::PrefetchOp::create(b, loc, memory, ValueRange{ahead, index(c)},
                               /*isWrite=*/false, /*localityHint=*/3,
                               /*isDataCache=*/true);
}
