// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums over the tokens of a block by shuffles, then exponentials of sums of
// these.
#include "Products/BlockDecays.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

Value BlockDecays::add(Value x, Value y) {
  return arith::AddFOp::create(b, loc, x, y);
}

Value BlockDecays::select(Value condition, Value x, Value y) {
  return arith::SelectOp::create(b, loc, condition, x, y);
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

/// The eight lanes of a channel add up what each has of it. While there
/// are enough channels, a lane hands half of them on and gets the other half.
void BlockDecays::shareSums(ArrayRef<Value> logs) {
  const int64_t positions = channels / 4;
  Numbers totals;
  for (int64_t position = 0; position < positions; ++position)
    totals.push_back(add(logs[position], logs[positions + position]));
  Value first = ownColumn, isWriter;
  for (int64_t lanes = gdn::gpu::warpThreads / 2; lanes >= 4; lanes /= 2) {
    Value set = arith::AndIOp::create(b, loc, threads.lane, a.i32(lanes));
    Value isUpper =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, set, a.i32(0));
    const size_t half = totals.size() / 2;
    if (half % 2 != 0) { // channels go by pairs
      for (Value &total : totals)
        total = add(total, ofOther(total, lanes));
      Value isLower = arith::CmpIOp::create(
          b, loc, arith::CmpIPredicate::eq,
          arith::AndIOp::create(b, loc, threads.lane, a.i32(lanes)), a.i32(0));
      isWriter = a.both(isLower, isWriter);
      continue;
    }
    Numbers kept;
    for (size_t i = 0; i < half; ++i) {
      Value own = select(isUpper, totals[half + i], totals[i]);
      Value other = select(isUpper, totals[i], totals[half + i]);
      kept.push_back(add(own, ofOther(other, lanes)));
    }
    totals = kept;
    first = a.add(first, select(isUpper, a.i32(4 * half), a.i32(0)));
  }
  OpBuilder::InsertionGuard guard(b);
  if (isWriter) {
    auto writer = scf::IfOp::create(b, loc, isWriter, /*withElse=*/false);
    b.setInsertionPointToStart(writer.thenBlock());
  }
  auto pair = VectorType::get({2}, b.getF32Type());
  for (size_t piece = 0; piece < totals.size() / 2; ++piece) {
    Value both = vector::FromElementsOp::create(
        b, loc, pair, ValueRange{totals[2 * piece], totals[2 * piece + 1]});
    LLVM::StoreOp::create(b, loc, both,
                          sumAt(threads.warp, 8 * piece, first, 4),
                          /*alignment=*/8);
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
