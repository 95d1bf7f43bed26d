// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A lane has some channels of its tokens: it adds these up, then lanes with the
// same channels do, and decays are exponentials of sums of these sums.
#include "Products/BlockDecays.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

/// Of base 2; all decays below it are zero.
static constexpr float lowestLog = -32768;

/// What is below any decay stays finite, for zeros that it is multiplied with.
static Value roundLogs(OpBuilder &b, Location loc, Value x, Value y) {
  auto pair = VectorType::get({2}, b.getF16Type());
  Value least = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(pair, b.getF16FloatAttr(lowestLog)));
  Value rounded = vector::FromElementsOp::create(
      b, loc, VectorType::get({2}, b.getF32Type()), ValueRange{x, y});
  rounded = arith::TruncFOp::create(b, loc, pair, rounded);
  rounded = arith::MaximumFOp::create(b, loc, rounded, least);
  return getWords(b, loc, rounded).front();
}

Value BlockDecays::add(Value x, Value y) {
  return arith::AddFOp::create(b, loc, x, y);
}

Value BlockDecays::exp2(Value x) {
  return math::Exp2Op::create(b, loc, x, arith::FastMathFlags::afn);
}

Value BlockDecays::ofOther(Value value, int64_t lanes) {
  return NVVM::ShflOp::create(b, loc, b.getF32Type(), a.i32(-1), value,
                              a.i32(lanes), a.i32(31), NVVM::ShflKind::bfly,
                              UnitAttr());
}

/// Behind rows for all pairs of blocks before: (0, 1), (0, 2), .., (1, 2), ..
Value BlockDecays::between(int64_t j) {
  int64_t row = 2 * warps;
  for (int64_t i = 0; i < j; ++i)
    row += warps - 1 - i;
  return a.add(threads.warp, a.i32(row - j - 1));
}

Value BlockDecays::sumAt(Value row, int64_t column, Value columnValue,
                         int64_t bytes) {
  Value at = a.mul(row, a.i32(channels * bytes));
  at = a.add(at, a.mul(columnValue, a.i32(bytes)));
  Value address = LLVM::GEPOp::create(b, loc, sums.getType(), b.getI8Type(),
                                      sums, ArrayRef<LLVM::GEPArg>{at});
  // Rows of 16 bits lie behind those of sums.
  const int64_t first = bytes == 4 ? 0 : warps * channels * 4;
  return LLVM::GEPOp::create(
      b, loc, sums.getType(), b.getI8Type(), address,
      ArrayRef<LLVM::GEPArg>{int32_t(first + column * bytes)});
}

std::array<Value, 2> BlockDecays::load(Value row, Value number) {
  std::array<Value, 2> decay;
  Value column = a.add(a.mul(number, a.i32(sliceChannels)), ownColumn);
  for (int64_t half = 0; half < 2; ++half)
    decay[half] = LLVM::LoadOp::create(b, loc, b.getI32Type(),
                                       sumAt(row, 8 * half, column, 2),
                                       /*alignment=*/4);
  return decay;
}

/// Lanes with other rows of the same channels add up what each has of them.
void BlockDecays::shareSums(ArrayRef<Value> logs, gpu::RowsAttr rows) {
  const int64_t vector = rows.getVector(), pieces = rows.getPieces(channels);
  Numbers totals(logs.take_front(pieces * vector));
  for (auto [i, log] : llvm::enumerate(logs.drop_front(totals.size())))
    totals[i % totals.size()] = add(totals[i % totals.size()], log);
  OpBuilder::InsertionGuard guard(b);
  if (rows.getGroups() > 1) {
    for (int64_t lanes = rows.getLanes(); lanes < gdn::gpu::warpThreads;
         lanes *= 2)
      for (Value &total : totals)
        total = add(total, ofOther(total, lanes));
    auto writer = scf::IfOp::create(
        b, loc, a.isLess(threads.lane, a.i32(rows.getLanes())),
        /*withElse=*/false);
    b.setInsertionPointToStart(writer.thenBlock());
  }
  Value first = threads.column(a, rows);
  auto type = VectorType::get({vector}, b.getF32Type());
  for (int64_t piece = 0; piece < pieces; ++piece)
    LLVM::StoreOp::create(
        b, loc,
        vector::FromElementsOp::create(
            b, loc, type, ArrayRef(totals).slice(piece * vector, vector)),
        sumAt(threads.warp, piece * rows.getLanes() * vector, first, 4),
        /*alignment=*/vector * 4);
}

void BlockDecays::storeLogs(ArrayRef<Value> logs, gdn::gpu::RowsAttr rows,
                            const SharedMatrix &to) {
  const int64_t vector = rows.getVector(), pieces = rows.getPieces(channels);
  SmallVector<Value> words;
  for (size_t i = 0; i < logs.size(); i += 2)
    words.push_back(roundLogs(b, loc, logs[i], logs[i + 1]));
  const int64_t count = vector / 2; // of a piece
  auto both = VectorType::get({count}, b.getI32Type());
  for (int64_t i = 0; i < int64_t(words.size()) / count; ++i) {
    Value column = a.add(threads.column(a, rows),
                         a.i32(i % pieces * rows.getLanes() * vector));
    Value address = to.getAddress(
        threads.row(a, rows, warps * gdn::gpu::DecayOperandsOp::block,
                    i / pieces),
        a.mul(column, a.i32(2)));
    LLVM::StoreOp::create(
        b, loc,
        vector::FromElementsOp::create(b, loc, both,
                                       ArrayRef(words).slice(i * count, count)),
        address, /*alignment=*/vector * 2);
  }
}

void BlockDecays::shareDecays() {
  const int64_t count = warps * gdn::gpu::warpThreads;
  Value thread =
      a.add(a.mul(threads.warp, a.i32(gdn::gpu::warpThreads)), threads.lane);
  for (int64_t first = 0; first < channels; first += count) {
    OpBuilder::InsertionGuard guard(b);
    if (first + count > channels) {
      auto isOne = scf::IfOp::create(
          b, loc, a.isLess(thread, a.i32(channels - first)), false);
      b.setInsertionPointToStart(isOne.thenBlock());
    }
    auto at = [&](int64_t row, int64_t bytes) {
      return sumAt(a.i32(row), first, thread, bytes);
    };
    auto write = [&](Value sum, int64_t row) {
      Value narrow = arith::TruncFOp::create(b, loc, b.getF16Type(), exp2(sum));
      LLVM::StoreOp::create(b, loc, narrow, at(row, 2), /*alignment=*/2);
    };
    Numbers logs;
    for (int64_t w = 0; w < warps; ++w)
      logs.push_back(LLVM::LoadOp::create(b, loc, b.getF32Type(), at(w, 4),
                                          /*alignment=*/4));
    Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
    Value before = zero;
    for (int64_t w = 0; w < warps; ++w) {
      write(before, w);
      before = add(before, logs[w]);
    }
    Value address = LLVM::GEPOp::create(
        b, loc, end.getType(), b.getF32Type(), end,
        ArrayRef<LLVM::GEPArg>{a.add(thread, a.i32(first))});
    LLVM::StoreOp::create(b, loc, exp2(before), address, /*alignment=*/4);
    Value behind = zero;
    for (int64_t w = warps - 1; w >= 0; --w) {
      write(behind, warps + w);
      behind = add(behind, logs[w]);
    }
    int64_t row = 2 * warps;
    for (int64_t j = 0; j + 1 < warps; ++j) {
      Value between = zero;
      for (int64_t i = j + 1; i < warps; ++i) {
        write(between, row++);
        between = add(between, logs[i]);
      }
    }
  }
}
