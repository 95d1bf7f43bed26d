// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.decay_between. A warp has the queries or the keys of tokens 16 to 31,
// in eight slices of 16 channels: as they are multiplied they get the decay of
// the tokens before them.
#include "Products/ChunkCode.h"
#include "Products/ChunkOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

using gdn::gpu::DecayBetweenOp;

namespace {

class DecayBetween : public ChunkCode {
public:
  DecayBetween(OpBuilder &b, const BlockThreads &threads, DecayBetweenOp op,
               const IRMapping &values)
      : ChunkCode(b, op.getLoc(), threads), op(op), values(values),
        hasKeys(a.isEqual(threads.warp, a.i32(1))) {}
  void emit();

private:
  static constexpr int64_t slices = channels / 16;

  Value addressOf(Value tile) { return address(values.lookup(tile)); }
  Words decaysOf(int64_t block, int64_t slice);
  void storeEnd();

  DecayBetweenOp op;
  const IRMapping &values;
  Value hasKeys, decays;
};

} // namespace

/// Of a block, on words of a slice of rows.
DecayBetween::Words DecayBetween::decaysOf(int64_t block, int64_t slice) {
  Words words;
  for (int64_t half = 0; half < 2; ++half) {
    Numbers pair =
        loadNumbers(decays, (block * channels + slice * 16 + half * 8) * 4, 2);
    words.append(2, roundPair(pair[0], pair[1]));
  }
  return words;
}

/// Decays of the chunk.
void DecayBetween::storeEnd() {
  auto branch = scf::IfOp::create(b, loc, hasKeys, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value at = left(lane, 4);
  Value from = add(addressOf(op.getDecays()), at);
  Numbers end = loadNumbers(from, 0, 4),
          second = loadNumbers(from, channels * 4, 4);
  for (int64_t i = 0; i < 4; ++i)
    end[i] = mul(end[i], second[i]);
  storeNumbers(end, add(addressOf(op.getEnd()), at), 0);
}

void DecayBetween::emit() {
  Value rows = rowOfBlocks(), columns = rowOfBlocks(/*isRight=*/true);
  Value input =
      add(add(select(hasKeys, addressOf(op.getKey()), addressOf(op.getQuery())),
              blockBytes),
          rows);
  Value firstKeys = add(addressOf(op.getFirstKeys()), columns);
  Value logDecay = addressOf(op.getLogDecay()), toEnd = add(logDecay, rows);
  decays = add(addressOf(op.getDecays()), left(column, 2));
  // Even and odd slices.
  std::array<std::array<Numbers, 2>, 2> sums;
  for (auto &ofSlices : sums)
    ofSlices.fill(zeros());
  for (int64_t slice = 0; slice < slices; ++slice) {
    const int64_t panel = slice / 4, at = slice % 4 * sliceBytes;
    Value from = add(flip(input, at), panel * panelBytes);
    Words left = loadBlocks(from);
    Words right = loadBlocks(add(flip(firstKeys, at), panel * blockBytes));
    for (int64_t half = 0; half < 2; ++half) {
      Numbers &sum = sums[slice % 2][half];
      sum = addProduct(left, ArrayRef(right).slice(2 * half, 2), sum);
    }
    syncWarp(); // all have loaded what is written below
    Words decay = decaysOf(0, slice);
    for (int64_t i = 0; i < 4; ++i)
      left[i] = mulWords(left[i], decay[i]);
    storeBlocks(from, left);
    // The first keys, as rows.
    auto branch = scf::IfOp::create(
        b, loc, a.isEqual(threads.warp, a.i32(panel)), /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    decay = decaysOf(1, slice);
    Words keys = {right[0], right[2], right[1], right[3]};
    for (int64_t i = 0; i < 4; ++i)
      keys[i] = mulWords(keys[i], decay[i]);
    storeBlocks(add(flip(toEnd, at), 2 * panel * panelBytes), keys);
  }
  storeEnd();
  Value scale = select(hasKeys, f32(1), values.lookup(op.getScale()));
  Words scores;
  for (int64_t half = 0; half < 2; ++half)
    for (int64_t i = 0; i < 4; i += 2) {
      auto sum = [&](int64_t e) {
        Value both =
            arith::AddFOp::create(b, loc, sums[0][half][e], sums[1][half][e]);
        return mul(both, scale);
      };
      scores.push_back(roundPair(sum(i), sum(i + 1)));
    }
  Value ofQueries =
      add(add(addressOf(op.getProducts()), flip(rows, 64)), blockBytes);
  Value ofKeys = add(logDecay, rowOfKeyScores());
  storeBlocks(select(hasKeys, ofKeys, ofQueries), scores);
  syncWarp();
}

void gdn::emitDecayBetween(OpBuilder &b, const BlockThreads &threads,
                           DecayBetweenOp op, const IRMapping &values) {
  DecayBetween(b, threads, op, values).emit();
}
