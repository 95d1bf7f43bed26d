// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.decay_between. A warp has the queries or the keys of tokens 16 to 31,
// in eight slices of 16 channels: as they are multiplied they get the decay of
// the tokens before them. Of the first keys a warp has one of two panels, which
// comes first.
#include "Products/ChunkCode.h"
#include "Products/ChunkOps.h"

using namespace mlir;
using namespace gdn;

using gdn::gpu::DecayBetweenOp;

namespace {

class DecayBetween : public ChunkCode {
public:
  DecayBetween(OpBuilder &b, const BlockThreads &threads, DecayBetweenOp op,
               const IRMapping &values)
      : ChunkCode(b, op.getLoc(), threads, values), op(op),
        hasKeys(isEqual(warp, i32(1))) {}
  void emit();

private:
  /// Of a panel of 64 channels.
  static constexpr int64_t slices = 4;

  /// Where a panel begins.
  struct Panel {
    Value input, firstKeys, decays, toEnd;
  };
  struct Slice {
    Words left, right;
  };

  Panel panelOf(Value number);
  Slice loadSlice(const Panel &panel, int64_t slice);
  Words decaysOf(const Panel &panel, int64_t block, int64_t slice);
  void storeEnd();

  DecayBetweenOp op;
  Value hasKeys;
};

} // namespace

DecayBetween::Panel DecayBetween::panelOf(Value number) {
  Value rows = rowOfBlocks();
  Value input =
      select(hasKeys, addressOf(op.getKey()), addressOf(op.getQuery()));
  return {add(add(add(input, blockBytes), rows), mul(number, i32(panelBytes))),
          add(add(addressOf(op.getFirstKeys()), rowOfBlocks(/*isRight=*/true)),
              mul(number, i32(blockBytes))),
          add(add(addressOf(op.getDecays()), left(column, 2)), left(number, 8)),
          add(add(addressOf(op.getLogDecay()), rows),
              mul(number, i32(2 * panelBytes)))};
}

DecayBetween::Slice DecayBetween::loadSlice(const Panel &panel, int64_t slice) {
  const int64_t at = slice * sliceBytes;
  return {loadBlocks(flip(panel.input, at)),
          loadBlocks(flip(panel.firstKeys, at))};
}

/// Of a block, on words of a slice of rows.
DecayBetween::Words DecayBetween::decaysOf(const Panel &panel, int64_t block,
                                           int64_t slice) {
  Words words;
  for (int64_t half = 0; half < 2; ++half) {
    Numbers pair = loadNumbers(
        panel.decays, (block * channels + slice * 16 + half * 8) * 4, 2);
    words.append(2, roundPair(pair[0], pair[1]));
  }
  return words;
}

/// Decays of the chunk.
void DecayBetween::storeEnd() {
  Value at = left(lane, 4);
  Value from = add(addressOf(op.getDecays()), at);
  Numbers end = loadNumbers(from, 0, 4),
          second = loadNumbers(from, channels * 4, 4);
  for (int64_t i = 0; i < 4; ++i)
    end[i] = times(end[i], second[i]);
  Value to = add(addressOf(op.getEnd()), at);
  store(vectorOf(end), to, 0);
}

void DecayBetween::emit() {
  // Even and odd slices.
  std::array<std::array<Numbers, 2>, 2> sums;
  for (auto &ofSlices : sums)
    ofSlices.fill(zeros());
  for (bool isOwn : {true, false}) {
    const Panel panel = panelOf(isOwn ? warp : flip(warp, 1));
    Slice next = loadSlice(panel, 0);
    for (int64_t slice = 0; slice < slices; ++slice) {
      const Slice now = next;
      Words decay = decaysOf(panel, 0, slice);
      // Beside this one, which stores where no other slice is.
      if (slice + 1 < slices)
        next = loadSlice(panel, slice + 1);
      for (int64_t half = 0; half < 2; ++half) {
        Numbers &sum = sums[slice % 2][half];
        sum = addProduct(now.left, ArrayRef(now.right).slice(2 * half, 2), sum);
      }
      syncWarp(); // all have loaded what is written below
      auto storeDecayed = [&](Value to, ValueRange words) {
        Words decayed = timesWords(words, decay);
        storeBlocks(flip(to, slice * sliceBytes), decayed);
      };
      storeDecayed(panel.input, now.left);
      if (!isOwn)
        continue;
      // The first keys, as rows.
      decay = decaysOf(panel, 1, slice);
      storeDecayed(panel.toEnd,
                   {now.right[0], now.right[2], now.right[1], now.right[3]});
    }
  }
  onlyIf(hasKeys, [&] { storeEnd(); });
  Value scale = select(hasKeys, f32(1), values.lookup(op.getScale()));
  Words scores;
  for (int64_t half = 0; half < 2; ++half)
    for (int64_t i = 0; i < 4; i += 2) {
      auto sum = [&](int64_t e) {
        return times(plus(sums[0][half][e], sums[1][half][e]), scale);
      };
      scores.push_back(roundPair(sum(i), sum(i + 1)));
    }
  Value ofQueries = add(
      add(addressOf(op.getProducts()), flip(rowOfBlocks(), 64)), blockBytes);
  Value ofKeys = add(addressOf(op.getLogDecay()), rowOfKeyScores());
  storeBlocks(select(hasKeys, ofKeys, ofQueries), scores);
  syncWarp();
}

void gdn::emitChunkOp(OpBuilder &b, const BlockThreads &threads,
                      DecayBetweenOp op, const IRMapping &values) {
  DecayBetween(b, threads, op, values).emit();
}
