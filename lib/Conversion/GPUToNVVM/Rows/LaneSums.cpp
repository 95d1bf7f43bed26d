// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sums over the lanes of rows, each in a butterfly of its own or those of a
// thread's rows shared out among the lanes: the same additions.
#include "Rows/RowWork.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace gdn;

/// `value` of another lane, `by` away or the `by`th among `segment` neighbours.
static Value shuffle(const Arithmetic &a, NVVM::ShflKind kind, Value value,
                     int64_t by, int64_t segment = gdn::gpu::warpThreads) {
  const int64_t fixed = gdn::gpu::warpThreads - segment; // bits of the lane
  return NVVM::ShflOp::create(a.b, a.loc, a.b.getF32Type(), a.i32(-1), value,
                              a.i32(by), a.i32(fixed << 8 | 31), kind,
                              UnitAttr());
}

/// Of two lanes at `distance` one goes on with the sums of even rows and gives
/// its parts of odd ones away.
static SmallVector<Value> shareOut(const Arithmetic &a, Value lane,
                                   ArrayRef<Value> held, int64_t distance) {
  Value bit = arith::AndIOp::create(a.b, a.loc, lane, a.i32(distance));
  Value isOdd = arith::CmpIOp::create(a.b, a.loc, arith::CmpIPredicate::ne, bit,
                                      a.i32(0));
  SmallVector<Value> sums;
  for (size_t i = 0; i < held.size(); i += 2) {
    Value kept =
        arith::SelectOp::create(a.b, a.loc, isOdd, held[i + 1], held[i]);
    Value given =
        arith::SelectOp::create(a.b, a.loc, isOdd, held[i], held[i + 1]);
    Value other = shuffle(a, NVVM::ShflKind::bfly, given, distance);
    sums.push_back(arith::AddFOp::create(a.b, a.loc, kept, other));
  }
  return sums;
}

Value gdn::emitLargestOfLanes(OpBuilder &b, Location loc,
                              gdn::gpu::RowsAttr layout, Value value) {
  Arithmetic a{b, loc};
  for (int64_t distance = 1; distance < layout.getLanes(); distance *= 2)
    value = arith::MaximumFOp::create(b, loc, value,
                                      shuffle(a, NVVM::ShflKind::bfly, value,
                                              distance * layout.getLaneStep()));
  return value;
}

void gdn::emitLaneSums(OpBuilder &b, Location loc, const BlockThreads &threads,
                       gdn::gpu::RowsAttr layout, MutableArrayRef<Value> parts,
                       bool store) {
  Arithmetic a{b, loc};
  const int64_t lanes = layout.getLanes();
  SmallVector<Value> held(parts.begin(), parts.end());
  int64_t distance = 1;
  store &= !layout.getCrossed();
  for (; store && held.size() > 1 && held.size() % 2 == 0 && distance < lanes;
       distance *= 2)
    held = shareOut(a, threads.lane, held, distance);
  const int64_t dealt = distance; // lanes among which the rows are dealt
  for (; distance < lanes; distance *= 2)
    for (Value &sum : held)
      sum = arith::AddFOp::create(b, loc, sum,
                                  shuffle(a, NVVM::ShflKind::bfly, sum,
                                          distance * layout.getLaneStep()));
  for (auto [i, part] : llvm::enumerate(parts))
    part = dealt == 1 ? held[i]
                      : shuffle(a, NVVM::ShflKind::idx, held[i / dealt],
                                i % dealt, lanes);
}
