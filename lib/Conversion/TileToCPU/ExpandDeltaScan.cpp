// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A rule on the CPU, with the delta term or without. A block of rows of the
// state stays in the first-level cache while the tokens pass over it:
//
//   decay = exp(log_decay)
//   for each block of rows:
//     for each token:
//       for each row i of the block:
//         m  = state[i] * decay              dk/lanes vectors
//         p  = m . key,  d = beta * (value[i] - p)      without beta: value[i]
//                                                       with erase: m . erase
//         m  = m + d * key
//         output[i] = m . query;  state[i] = m
//
// Rows do not depend on each other, so the processor overlaps the long chain
// of one row (sum, d, sum) with the work of the next.
#include "ExpandTileOps.h"
#include "StateRows.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace gdn;

namespace {

class ScanLoops : private StateRows {
public:
  ScanLoops(OpBuilder &b, tile::DeltaScanOp scan, const ScanBuffers &buffers,
            int64_t lanes)
      : StateRows(b, scan.getLoc(), scan.getState().getType(), lanes),
        scan(scan), buffers(buffers),
        tokens(scan.getKey().getType().getDimSize(0)) {}

  void emit();

private:
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
  void emitToken(Value from, Value t, Value first, Value last);

  tile::DeltaScanOp scan;
  const ScanBuffers &buffers;
  int64_t tokens;
};

} // namespace

/// One token over rows `first` to `last`; the state before it is in `from`.
void ScanLoops::emitToken(Value from, Value t, Value first, Value last) {
  Chunks key = read(buffers.key, t), query = read(buffers.query, t);
  Chunks erase = buffers.erase ? read(buffers.erase, t) : key;
  Chunks decay = decayOf(buffers.decay, t);
  Value beta;
  if (buffers.beta)
    beta = memref::LoadOp::create(b, loc, buffers.beta, t);

  OpBuilder::InsertionGuard guard(b);
  Value i = loop(first, last, 1).getInductionVar();
  if (buffers.stateIsInPool)
    emitPrefetch(from, i);
  Chunks state = read(from, i);
  SmallVector<Value> predicted, output;
  for (unsigned c = 0; c < state.size(); ++c) {
    state[c] = arith::MulFOp::create(b, loc, state[c], decay[c]);
    if (beta)
      accumulate(predicted, c, state[c], erase[c]);
  }
  Value d = memref::LoadOp::create(b, loc, buffers.value, ValueRange{t, i});
  if (beta) {
    Value error = arith::SubFOp::create(b, loc, d, sum(predicted));
    d = arith::MulFOp::create(b, loc, beta, error);
  }
  if (buffers.deltas)
    memref::StoreOp::create(b, loc, d, buffers.deltas, ValueRange{t, i});
  Value delta = splat(d);
  for (unsigned c = 0; c < state.size(); ++c) {
    state[c] = vector::FMAOp::create(b, loc, delta, key[c], state[c]);
    accumulate(output, c, state[c], query[c]);
    write(state[c], buffers.newState, i, c * lanes);
  }
  memref::StoreOp::create(b, loc, sum(output), buffers.output,
                          ValueRange{t, i});
}

void ScanLoops::emit() {
  emitDecay(buffers.logDecay, buffers.decay, scan.getValid());
  Value from = buffers.state;
  // One token reads each row once, before it writes it; none leaves the rows.
  bool oneToken = tokens == 1 && getConstantIntValue(scan.getValid()) == 1;
  if (from != buffers.newState && !oneToken) {
    expandCopy(b, loc, from, buffers.newState);
    from = buffers.newState;
  }
  forBlocks(scan.getValid(), [&](Value t, Value first, Value last) {
    emitToken(from, t, first, last);
  });
}

void gdn::expandDeltaScan(OpBuilder &b, tile::DeltaScanOp scan,
                          const ScanBuffers &buffers, int64_t lanes) {
  ScanLoops(b, scan, buffers, lanes).emit();
}

namespace {
/// The second half of a scan, with deltas that are known.
class FoldLoops : private StateRows {
public:
  FoldLoops(OpBuilder &b, tile::DeltaFoldOp fold, const FoldBuffers &buffers,
            int64_t lanes)
      : StateRows(b, fold.getLoc(), fold.getState().getType(), lanes),
        fold(fold), buffers(buffers) {}

  void emit() {
    emitDecay(buffers.logDecay, buffers.decay, fold.getValid());
    if (buffers.state != buffers.newState)
      expandCopy(b, loc, buffers.state, buffers.newState);
    forBlocks(fold.getValid(), [&](Value t, Value first, Value last) {
      emitToken(t, first, last);
    });
  }

private:
  void emitToken(Value t, Value first, Value last) {
    Chunks key = read(buffers.key, t), decay = decayOf(buffers.decay, t);
    OpBuilder::InsertionGuard guard(b);
    Value i = loop(first, last, 1).getInductionVar();
    Value delta =
        splat(memref::LoadOp::create(b, loc, buffers.deltas, ValueRange{t, i}));
    for (auto [c, state] : llvm::enumerate(read(buffers.newState, i))) {
      Value kept = arith::MulFOp::create(b, loc, state, decay[c]);
      write(vector::FMAOp::create(b, loc, delta, key[c], kept),
            buffers.newState, i, c * lanes);
    }
  }

  tile::DeltaFoldOp fold;
  const FoldBuffers &buffers;
};
} // namespace

void gdn::expandDeltaFold(OpBuilder &b, tile::DeltaFoldOp fold,
                          const FoldBuffers &buffers, int64_t lanes) {
  FoldLoops(b, fold, buffers, lanes).emit();
}
