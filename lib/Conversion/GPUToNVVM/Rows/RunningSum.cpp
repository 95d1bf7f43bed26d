// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.running_sum: a lane of a warp holds elements l, 32 + l, 64 + l, .. of
// the tile. Sums run over the lanes of a group of 32 in five steps of doubling
// distance, and from group to group one after the other.
#include "Rows/RowWork.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace gdn;

Value gdn::emitRunningSum(OpBuilder &b, const BlockThreads &threads,
                          gdn::gpu::RunningSumOp sum, Value local) {
  Location loc = sum.getLoc();
  Arithmetic a{b, loc};
  auto type = cast<VectorType>(local.getType());
  int64_t count = type.getNumElements();
  bool suffix = sum.getSuffix();
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0));
  auto shift = [&](Value value, int64_t distance) -> Value {
    return NVVM::ShflOp::create(
        b, loc, b.getF32Type(), a.i32(-1), value, a.i32(distance),
        a.i32(suffix ? 31 : 0),
        suffix ? NVVM::ShflKind::down : NVVM::ShflKind::up, UnitAttr());
  };
  // A lane has `distance` lanes on the side that is summed.
  auto hasOther = [&](int64_t distance) -> Value {
    if (suffix)
      return a.isLess(threads.lane, a.i32(32 - distance));
    return a.isLess(a.i32(distance - 1), threads.lane);
  };
  SmallVector<Value> results(count);
  Value before = zero; // of the groups that are done
  for (int64_t step = 0; step < count; ++step) {
    int64_t group = suffix ? count - 1 - step : step;
    Value value = vector::ExtractOp::create(b, loc, local, group);
    for (int64_t distance = 1; distance < 32; distance *= 2) {
      Value other = arith::SelectOp::create(b, loc, hasOther(distance),
                                            shift(value, distance), zero);
      value = arith::AddFOp::create(b, loc, value, other);
    }
    Value total = NVVM::ShflOp::create(b, loc, b.getF32Type(), a.i32(-1), value,
                                       a.i32(suffix ? 0 : 31), a.i32(31),
                                       NVVM::ShflKind::idx, UnitAttr());
    // A suffix leaves out the element itself: it is the next one's sum.
    if (suffix)
      value =
          arith::SelectOp::create(b, loc, hasOther(1), shift(value, 1), zero);
    results[group] = arith::AddFOp::create(b, loc, value, before);
    before = arith::AddFOp::create(b, loc, before, total);
  }
  return vector::FromElementsOp::create(b, loc, type, results);
}
