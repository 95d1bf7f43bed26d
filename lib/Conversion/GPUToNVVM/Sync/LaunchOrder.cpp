// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counters and launch dependences. The order that a last reader needs is: all
// readers have their values before the last one overwrites them. A load is over
// when an instruction that uses its register runs. So the counter's limit is
// made to depend on the registers, by arithmetic that always gives zero but
// that no compiler knows to: x * 0 is a zero or a NaN, and both are 0 as an
// integer. Then a relaxed atomic is enough. A fence would wait for every load
// that the thread has under way, the state's among them.
#include "Sync/LaunchOrder.h"

#include "Kernel/Assembly.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace gdn;

/// All bits of the thread's elements, folded into an i32.
static Value foldBits(OpBuilder &b, Location loc, Value local, Value bits) {
  auto type = cast<VectorType>(local.getType());
  auto integers = VectorType::get(
      type.getShape(), b.getIntegerType(type.getElementTypeBitWidth()));
  Value all = arith::BitcastOp::create(b, loc, integers, local);
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    Value element = vector::ExtractOp::create(b, loc, all, i);
    if (!element.getType().isInteger(32))
      element = arith::ExtUIOp::create(b, loc, b.getI32Type(), element);
    bits = bits ? arith::XOrIOp::create(b, loc, bits, element).getResult()
                : element;
  }
  return bits;
}

Value gdn::emitTicket(OpBuilder &b, Location loc, const BlockThreads &threads,
                      Value workspace, Value counter, Value count,
                      ArrayRef<Value> after) {
  Arithmetic a{b, loc};
  Type i32 = b.getI32Type();
  Value limit = arith::IndexCastOp::create(b, loc, i32, count);
  limit = arith::SubIOp::create(b, loc, limit, a.i32(1));
  Value bound = limit, bits;
  for (Value local : after)
    bits = foldBits(b, loc, local, bits);
  if (bits) {
    Value zero = emitAssembly(b, loc, i32, bits,
                              "{ .reg .f32 x; mov.b32 x, $1; mul.rn.f32 x, x, "
                              "0f00000000; cvt.rzi.u32.f32 $0, x; }",
                              "=r,r", /*hasSideEffects=*/false);
    // Of all lanes: the one that counts stands for them.
    Value isZero =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, zero, a.i32(0));
    Value any = NVVM::VoteSyncOp::create(b, loc, b.getI1Type(), a.i32(-1),
                                         isZero, NVVM::VoteSyncKind::any);
    Value added = arith::ExtUIOp::create(b, loc, i32, any);
    // LLVM knows that an odd constant has that bit already, and would fold it.
    bound =
        matchPattern(limit, m_Constant()) || matchPattern(count, m_Constant())
            ? arith::AddIOp::create(b, loc, limit, added).getResult()
            : arith::OrIOp::create(b, loc, limit, added).getResult();
  }
  Value address = a.add(workspace, a.mul(a.toI64(counter), a.i64(4)));
  // Without a branch: where two ways met, a move would wait for the answer.
  return emitAssembly(b, loc, i32, {threads.lane, address, bound},
                      "{ .reg .pred first; setp.eq.s32 first, $1, 0; "
                      "mov.u32 $0, 0; "
                      "@first atom.relaxed.gpu.global.inc.u32 $0, [$2], $3; }",
                      "=&r,r,l,r,~{memory}", /*hasSideEffects=*/true);
}

/// The blocks that have their first one are as many as come once too often: so
/// there are as many tickets as units.
Value gdn::emitTakeUnit(OpBuilder &b, Location loc, const BlockThreads &threads,
                        Value workspace, Value units) {
  Arithmetic a{b, loc};
  Value ticket = emitTicket(b, loc, threads, workspace,
                            arith::ConstantIndexOp::create(b, loc, 0),
                            a.toIndex(units), /*after=*/{});
  Value blocks = NVVM::GridDimXOp::create(b, loc, b.getI32Type());
  return a.toIndex(emitOfFirstLane(b, loc, a.add(ticket, blocks)));
}

Value gdn::emitOfFirstLane(OpBuilder &b, Location loc, Value number) {
  Arithmetic a{b, loc};
  return NVVM::ShflOp::create(b, loc, b.getI32Type(), a.i32(-1), number,
                              a.i32(0), a.i32(31), NVVM::ShflKind::idx,
                              UnitAttr());
}

Value gdn::emitIsLast(OpBuilder &b, Location loc, Value ticket, Value count) {
  Arithmetic a{b, loc};
  Type i32 = b.getI32Type();
  ticket = emitOfFirstLane(b, loc, ticket);
  Value limit = arith::IndexCastOp::create(b, loc, i32, count);
  limit = arith::SubIOp::create(b, loc, limit, a.i32(1));
  return a.isEqual(ticket, limit);
}

/// Without a branch, beside which products would not go on.
void gdn::emitSignal(OpBuilder &b, Location loc, const BlockThreads &threads,
                     Value address, int64_t amount, Value count) {
  Arithmetic a{b, loc};
  NVVM::SyncWarpOp::create(b, loc, a.i32(-1));
  Value lanes = count
                    ? arith::IndexCastOp::create(b, loc, b.getI32Type(), count)
                          .getResult()
                    : a.i32(1);
  emitAssembly(b, loc, Type(), {threads.lane, lanes, address, a.i32(amount)},
               "{ .reg .pred some; setp.lt.s32 some, $0, $1; "
               "@some red.release.gpu.global.add.u32 [$2], $3; }",
               "r,r,l,r,~{memory}", /*hasSideEffects=*/true);
}

/// Who waits asks again every 200 ns or so: many may do so at the same time.
void gdn::emitAwaitSignals(OpBuilder &b, Location loc, Value address,
                           int64_t total) {
  Arithmetic a{b, loc};
  emitAssembly(b, loc, Type(), {address, a.i32(total)},
               "{\n.reg .pred done;\n.reg .b32 seen;\nWAIT:\n"
               "ld.acquire.gpu.global.u32 seen, [$0];\n"
               "setp.eq.s32 done, seen, $1;\n"
               "@done bra DONE;\n"
               "nanosleep.u32 200;\n"
               "bra WAIT;\n"
               "DONE:\n}",
               "l,r,~{memory}", /*hasSideEffects=*/true);
}

void gdn::emitAwaitLaunch(OpBuilder &b, Location loc) {
  emitAssembly(b, loc, Type(), {}, "griddepcontrol.wait;", "~{memory}",
               /*hasSideEffects=*/true);
}

void gdn::emitReleaseLaunch(OpBuilder &b, Location loc) {
  emitAssembly(b, loc, Type(), {}, "griddepcontrol.launch_dependents;",
               "~{memory}",
               /*hasSideEffects=*/true);
}
