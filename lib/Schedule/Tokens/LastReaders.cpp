// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stores and loads of numbers and flags in shared memory, and what is asked
// once.
#include "Tokens/LastReaders.h"

using namespace mlir;
using namespace gdn;

void LastReaders::store(Value number, Value flag) {
  auto one = gpu::RowsAttr::get(b.getContext(), /*warps=*/1, /*lanes=*/1,
                                /*vector=*/1);
  auto type = gpu::FragmentType::get(VectorType::get({1}, b.getF32Type()),
                                     gpu::PerRowAttr::get(b.getContext(), one));
  Value answer = gpu::FillOp::create(b, loc, type, number);
  gpu::StoreSharedOp::create(b, loc, answer, flag, Value());
}

Value LastReaders::load(Value flag) {
  Value answer = p.loadNumber(flag, p.index(0));
  Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ONE, answer, zero);
}

void LastReaders::place(ArrayRef<Operation *> stores, int64_t warp) {
  for (Operation *op : stores)
    for (Operation *last : findLastInGroup(op))
      if (!flags.contains(last)) {
        flags[last] = p.allocate(VectorType::get({1}, b.getF32Type()));
        gpu::WarpsOp warps = p.enterWarp(warp);
        store(arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f)),
              flags[last]);
        p.leave(warps);
      }
}

void LastReaders::emitTickets(Value first) {
  Type i32 = b.getI32Type();
  for (auto [op, flag] : flags) {
    auto last = cast<tile::LastInGroupOp>(op);
    gpu::WarpsOp warps = p.enterWarp(0, i32);
    FragmentEmitter warp(b, p.scalars);
    auto ask = [&]() -> Value {
      return gpu::TakeTicketOp::create(
          b, loc, i32, warp.scalar(last.getGroup()),
          warp.scalar(last.getCount()), ValueRange());
    };
    auto none = [&]() -> Value {
      return arith::ConstantIntOp::create(b, loc, i32, int64_t(0));
    };
    p.leave(warps, p.emitIf(p.isEqual(first, p.begin), i32, ask, none));
    tickets[op] = warps.getResult(0);
  }
}

void LastReaders::emitAnswers(Value first) {
  if (flags.empty())
    return;
  gpu::WarpsOp warps = p.enterWarp(0);
  p.emitIf(p.isEqual(first, p.begin), [&] {
    FragmentEmitter warp(b, p.scalars);
    for (auto [op, flag] : flags) {
      auto last = cast<tile::LastInGroupOp>(op);
      Value count = warp.scalar(last.getCount());
      Value isLast;
      if (Value ticket = tickets.lookup(op))
        isLast = gpu::IsLastOp::create(b, loc, b.getI1Type(), ticket, count);
      else
        isLast = gpu::LastReaderOp::create(b, loc, b.getI1Type(),
                                           warp.scalar(last.getGroup()), count,
                                           ValueRange());
      store(arith::UIToFPOp::create(b, loc, b.getF32Type(), isLast), flag);
    }
  });
  p.leave(warps);
}

Value LastReaders::emitAnswer(tile::LastInGroupOp last, Value window,
                              Value first) {
  auto ask = [&]() -> Value {
    FragmentEmitter warp(b, p.scalars);
    p.loadTile(warp, window, p.index(0));
    Value isLast = gpu::LastReaderOp::create(
        b, loc, b.getI1Type(), warp.scalar(last.getGroup()),
        warp.scalar(last.getCount()), ValueRange{warp[window]});
    store(arith::UIToFPOp::create(b, loc, b.getF32Type(), isLast), flags[last]);
    return isLast;
  };
  return p.emitIf(p.isEqual(first, p.begin), b.getI1Type(), ask,
                  [&] { return load(flags[last]); });
}

IRMapping LastReaders::withAnswers() {
  IRMapping values = p.scalars;
  for (auto [op, flag] : flags)
    values.map(op->getResult(0), load(flag));
  return values;
}
