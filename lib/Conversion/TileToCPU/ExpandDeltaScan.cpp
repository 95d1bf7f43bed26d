// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The gated delta rule on the CPU. A block of rows of the state stays in the
// first-level cache while the tokens pass over it:
//
//   decay = exp(log_decay)
//   for each block of rows:
//     for each token:
//       for each row i of the block:
//         m  = state[i] * decay              dk/lanes vectors
//         p  = m . key,  d = beta * (value[i] - p)
//         m  = m + d * key
//         output[i] = m . query;  state[i] = m
//
// Rows do not depend on each other, so the processor overlaps the long chain
// of one row (sum, d, sum) with the work of the next.
#include "ExpandTileOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace gdn;

namespace {

/// Bytes of state that stay in the first-level cache beside keys and queries.
constexpr int64_t kCacheBytes = 16 * 1024;

/// How far ahead of its use a state that streams from its pool is asked for.
/// That reaches into the next head's state, which lies behind this one, so
/// that memory is busy while the head's other work is done.
constexpr int64_t kPrefetchBytes = 8 * 1024;
constexpr int64_t kCacheLine = 64;

class ScanLoops {
public:
  ScanLoops(OpBuilder &b, tile::DeltaScanOp scan, const ScanPlaces &places,
            int64_t lanes)
      : b(b), loc(scan.getLoc()), scan(scan), places(places), lanes(lanes) {
    VectorType state = scan.getState().getType();
    rows = state.getDimSize(0);
    columns = state.getDimSize(1);
    tokens = scan.getKey().getType().getDimSize(0);
    while (columns % this->lanes != 0)
      this->lanes /= 2;
    vector = VectorType::get({this->lanes}, b.getF32Type());
    perChannel = cast<VectorType>(scan.getLogDecay().getType()).getRank() == 2;
  }

  void emit();

private:
  using Chunks = SmallVector<Value>;

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  scf::ForOp loop(Value from, Value to, int64_t step) {
    auto op = scf::ForOp::create(b, loc, from, to, index(step));
    b.setInsertionPointToStart(op.getBody());
    return op;
  }
  Value splat(Value scalar) {
    return vector::BroadcastOp::create(b, loc, vector, scalar);
  }
  /// A row in f32, whatever the place holds.
  Chunks read(Value place, Value row) {
    Type stored = cast<MemRefType>(place.getType()).getElementType();
    Chunks chunks;
    for (int64_t c = 0; c < columns; c += lanes) {
      Value chunk = vector::LoadOp::create(b, loc, vector.clone(stored), place,
                                           ValueRange{row, index(c)});
      if (!stored.isF32())
        chunk = arith::ExtFOp::create(b, loc, vector, chunk);
      chunks.push_back(chunk);
    }
    return chunks;
  }
  void write(Value chunk, Value place, Value row, int64_t column) {
    Type stored = cast<MemRefType>(place.getType()).getElementType();
    if (!stored.isF32())
      chunk = arith::TruncFOp::create(b, loc, vector.clone(stored), chunk);
    vector::StoreOp::create(b, loc, chunk, place,
                            ValueRange{row, index(column)});
  }
  /// Lane by lane in two chains, then the lanes in a fixed tree.
  Value sum(ArrayRef<Value> partial) {
    Value total = partial[0];
    if (partial.size() > 1)
      total = arith::AddFOp::create(b, loc, partial[0], partial[1]);
    return vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD,
                                       total, arith::FastMathFlags::reassoc);
  }
  void accumulate(SmallVector<Value> &partial, unsigned chunk, Value x,
                  Value y) {
    if (chunk < 2)
      partial.push_back(arith::MulFOp::create(b, loc, x, y));
    else
      partial[chunk % 2] =
          vector::FMAOp::create(b, loc, x, y, partial[chunk % 2]);
  }
  void emitDecay();
  void emitPrefetch(Value memory, Value row);
  void emitToken(Value from, Value t, Value first, Value last);

  OpBuilder &b;
  Location loc;
  tile::DeltaScanOp scan;
  const ScanPlaces &places;
  int64_t lanes, rows, columns, tokens;
  VectorType vector;
  bool perChannel;
};

} // namespace

/// exp(log_decay), in the place of the log decay.
void ScanLoops::emitDecay() {
  OpBuilder::InsertionGuard guard(b);
  auto each = loop(index(0), scan.getValid(), 1);
  Value t = each.getInductionVar();
  if (!perChannel) {
    Value g = memref::LoadOp::create(b, loc, places.logDecay, t);
    memref::StoreOp::create(b, loc, math::ExpOp::create(b, loc, g),
                            places.decay, t);
    return;
  }
  for (auto [i, g] : llvm::enumerate(read(places.logDecay, t)))
    vector::StoreOp::create(b, loc, math::ExpOp::create(b, loc, g),
                            places.decay, ValueRange{t, index(i * lanes)});
}

/// Asks for the row that is `kPrefetchBytes` behind `row`. A prefetch of memory
/// that is not there does nothing.
void ScanLoops::emitPrefetch(Value memory, Value row) {
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

/// One token over rows `first` to `last`; the state before it is in `from`.
void ScanLoops::emitToken(Value from, Value t, Value first, Value last) {
  Chunks key = read(places.key, t), query = read(places.query, t);
  Chunks decay;
  if (perChannel)
    decay = read(places.decay, t);
  else
    decay.assign(key.size(),
                 splat(memref::LoadOp::create(b, loc, places.decay, t)));
  Value beta = memref::LoadOp::create(b, loc, places.beta, t);

  OpBuilder::InsertionGuard guard(b);
  Value i = loop(first, last, 1).getInductionVar();
  if (places.stateIsInPool)
    emitPrefetch(from, i);
  Chunks state = read(from, i);
  SmallVector<Value> predicted, output;
  for (unsigned c = 0; c < state.size(); ++c) {
    state[c] = arith::MulFOp::create(b, loc, state[c], decay[c]);
    accumulate(predicted, c, state[c], key[c]);
  }
  Value v = memref::LoadOp::create(b, loc, places.value, ValueRange{t, i});
  Value error = arith::SubFOp::create(b, loc, v, sum(predicted));
  Value delta = splat(arith::MulFOp::create(b, loc, beta, error));
  for (unsigned c = 0; c < state.size(); ++c) {
    state[c] = vector::FMAOp::create(b, loc, delta, key[c], state[c]);
    accumulate(output, c, state[c], query[c]);
    write(state[c], places.newState, i, c * lanes);
  }
  memref::StoreOp::create(b, loc, sum(output), places.output, ValueRange{t, i});
}

void ScanLoops::emit() {
  emitDecay();
  Value from = places.state;
  // One token reads each row once, before it writes it; none leaves the rows.
  bool oneToken = tokens == 1 && getConstantIntValue(scan.getValid()) == 1;
  if (from != places.newState && !oneToken) {
    expandCopy(b, loc, from, places.newState);
    from = places.newState;
  }
  OpBuilder::InsertionGuard guard(b);
  int64_t block =
      std::max<int64_t>(1, std::min(rows, kCacheBytes / (4 * columns)));
  Value first = loop(index(0), index(rows), block).getInductionVar();
  Value last = arith::MinUIOp::create(
      b, loc, arith::AddIOp::create(b, loc, first, index(block)), index(rows));
  Value t = loop(index(0), scan.getValid(), 1).getInductionVar();
  emitToken(from, t, first, last);
}

void gdn::expandDeltaScan(OpBuilder &b, tile::DeltaScanOp scan,
                          const ScanPlaces &places, int64_t lanes) {
  ScanLoops(b, scan, places, lanes).emit();
}
