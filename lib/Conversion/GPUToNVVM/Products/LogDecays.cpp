// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A lane has the same channels of all its tokens.
#include "Products/LogDecays.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace gdn;

/// Of base 2; all decays below it are zero.
static constexpr float lowestLog = -32768;

SmallVector<Value> gdn::toPowersOfTwo(OpBuilder &b, Location loc, Value local) {
  Value log2e = arith::ConstantOp::create(
      b, loc, b.getF32FloatAttr(llvm::numbers::log2ef));
  SmallVector<Value> logs;
  for (int64_t i = 0; i < cast<VectorType>(local.getType()).getNumElements();
       ++i)
    logs.push_back(arith::MulFOp::create(
        b, loc, vector::ExtractOp::create(b, loc, local, i), log2e));
  return logs;
}

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

void gdn::storeLogs(OpBuilder &b, Location loc, const BlockThreads &threads,
                    gpu::FragmentType type, ArrayRef<Value> logs,
                    const SharedMatrix &to) {
  Arithmetic a{b, loc};
  gpu::RowsAttr rows = type.getRows();
  const int64_t vector = rows.getVector(),
                pieces = rows.getPieces(type.getDimSize(1));
  SmallVector<Value> words;
  for (size_t i = 0; i < logs.size(); i += 2)
    words.push_back(roundLogs(b, loc, logs[i], logs[i + 1]));
  const int64_t count = vector / 2; // of a piece
  auto both = VectorType::get({count}, b.getI32Type());
  for (int64_t i = 0; i < int64_t(words.size()) / count; ++i) {
    Value column = a.add(threads.column(a, rows),
                         a.i32(i % pieces * rows.getLanes() * vector));
    Value address =
        to.getAddress(threads.row(a, rows, type.getDimSize(0), i / pieces),
                      a.mul(column, a.i32(2)));
    LLVM::StoreOp::create(
        b, loc,
        vector::FromElementsOp::create(b, loc, both,
                                       ArrayRef(words).slice(i * count, count)),
        address, /*alignment=*/vector * 2);
  }
}
