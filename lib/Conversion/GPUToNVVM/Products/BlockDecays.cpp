// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A lane has some channels of its tokens: it adds these up, then lanes with the
// same channels do, and decays are exponentials of sums of these sums.
#include "Products/BlockDecays.h"

using namespace mlir;
using namespace gdn;

/// Of base 2; all decays below it are zero.
static constexpr float lowestLog = -32768;

/// Behind rows for all pairs of blocks before: (0, 1), (0, 2), .., (1, 2), ..
Value BlockDecays::between(int64_t j) {
  int64_t row = 2 * warps;
  for (int64_t i = 0; i < j; ++i)
    row += warps - 1 - i;
  return add(threads.warp, i32(row - j - 1));
}

Value BlockDecays::sumAt(Value row, int64_t column, Value columnValue,
                         int64_t bytes) {
  Value at = mul(row, i32(channels * bytes));
  at = add(at, mul(columnValue, i32(bytes)));
  // Rows of 16 bits lie behind those of sums.
  const int64_t first = bytes == 4 ? 0 : warps * channels * 4;
  return advance(advance(sums, at), first + column * bytes);
}

std::array<Value, 2> BlockDecays::load(Value row, Value number) {
  std::array<Value, 2> decay;
  Value column = add(mul(number, i32(sliceChannels)), ownColumn);
  for (int64_t half = 0; half < 2; ++half)
    decay[half] = ThreadMaths::load(
        b.getI32Type(), sumAt(row, 8 * half, column, 2), /*alignment=*/4);
  return decay;
}

/// Lanes with other rows of the same channels add up what each has of them.
void BlockDecays::shareSums(ArrayRef<Value> logs, gpu::RowsAttr rows) {
  const int64_t vector = rows.getVector(), pieces = rows.getPieces(channels);
  Numbers totals(logs.take_front(pieces * vector));
  for (auto [i, log] : llvm::enumerate(logs.drop_front(totals.size())))
    totals[i % totals.size()] = plus(totals[i % totals.size()], log);
  auto storeTotals = [&] {
    Value first = threads.column(*this, rows);
    for (int64_t piece = 0; piece < pieces; ++piece)
      LLVM::StoreOp::create(
          b, loc, vectorOf(ArrayRef(totals).slice(piece * vector, vector)),
          sumAt(threads.warp, piece * rows.getLanes() * vector, first, 4),
          /*alignment=*/vector * 4);
  };
  if (rows.getGroups() == 1)
    return storeTotals();
  for (int64_t lanes = rows.getLanes(); lanes < gdn::gpu::warpThreads;
       lanes *= 2)
    for (Value &total : totals)
      total = plus(total, shuffle(NVVM::ShflKind::bfly, total, i32(lanes)));
  onlyIf(isLess(threads.lane, i32(rows.getLanes())), storeTotals);
}

void BlockDecays::storeLogs(ArrayRef<Value> logs, gdn::gpu::RowsAttr rows,
                            const SharedMatrix &to) {
  const int64_t vector = rows.getVector(), pieces = rows.getPieces(channels);
  SmallVector<Value> words;
  // What is below any decay stays finite, for zeros that it is multiplied with.
  for (size_t i = 0; i < logs.size(); i += 2)
    words.push_back(atLeast(roundedPair(logs[i], logs[i + 1]),
                            b.getF16FloatAttr(lowestLog)));
  const int64_t count = vector / 2; // of a piece
  for (int64_t i = 0; i < int64_t(words.size()) / count; ++i) {
    Value column = add(threads.column(*this, rows),
                       i32(i % pieces * rows.getLanes() * vector));
    Value address = to.getAddress(
        threads.row(*this, rows, warps * gdn::gpu::DecayOperandsOp::block,
                    i / pieces),
        mul(column, i32(2)));
    LLVM::StoreOp::create(b, loc,
                          vectorOf(ArrayRef(words).slice(i * count, count)),
                          address, /*alignment=*/vector * 2);
  }
}

void BlockDecays::shareDecays() {
  const int64_t count = warps * gdn::gpu::warpThreads;
  Value thread =
      add(mul(threads.warp, i32(gdn::gpu::warpThreads)), threads.lane);
  for (int64_t first = 0; first < channels; first += count) {
    auto share = [&] { shareDecays(first, thread); };
    if (first + count > channels)
      onlyIf(isLess(thread, i32(channels - first)), share);
    else
      share();
  }
}

/// Of the channel `thread` from `first` on.
void BlockDecays::shareDecays(int64_t first, Value thread) {
  auto at = [&](int64_t row, int64_t bytes) {
    return sumAt(i32(row), first, thread, bytes);
  };
  auto write = [&](Value sum, int64_t row) {
    Value narrow = arith::TruncFOp::create(b, loc, b.getF16Type(), exp2(sum));
    LLVM::StoreOp::create(b, loc, narrow, at(row, 2), /*alignment=*/2);
  };
  Numbers logs;
  for (int64_t w = 0; w < warps; ++w)
    logs.push_back(
        ThreadMaths::load(b.getF32Type(), at(w, 4), /*alignment=*/4));
  // To rows from `row` on, of each warp the decay of those ahead of it.
  auto writeAll = [&](int64_t from, int64_t to, int64_t row) {
    const int64_t step = from < to ? 1 : -1;
    Value sum = f32(0);
    for (int64_t w = from; w != to; w += step, row += step) {
      write(sum, row);
      sum = plus(sum, logs[w]);
    }
    return sum;
  };
  Value all = writeAll(0, warps, 0);
  Value address =
      LLVM::GEPOp::create(b, loc, end.getType(), b.getF32Type(), end,
                          ArrayRef<LLVM::GEPArg>{add(thread, i32(first))});
  LLVM::StoreOp::create(b, loc, exp2(all), address, /*alignment=*/4);
  writeAll(warps - 1, -1, 2 * warps - 1);
  for (int64_t j = 1, row = 2 * warps; j < warps; row += warps - j++)
    writeAll(j, warps, row);
}
