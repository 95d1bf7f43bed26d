// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots for the results of roles; see RoleRegisters.h.
#include "RoleRegisters.h"

#include "TileAccess.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace gdn;

static int64_t countWords(Type local) {
  auto type = dyn_cast<VectorType>(getCarriedType(local));
  return type ? type.getNumElements() : 1;
}

bool RoleRegisters::canHold(Type local) {
  Type carried = getCarriedType(local);
  return getElementTypeOrSelf(carried).isF32() ||
         getElementTypeOrSelf(carried).isInteger(32);
}

SmallVector<Value> RoleRegisters::toWords(OpBuilder &b, Location loc,
                                          Value local) {
  Value carried = toCarried(b, loc, local);
  auto type = dyn_cast<VectorType>(carried.getType());
  Type i32 = b.getI32Type();
  if (!type)
    return {carried.getType() == i32
                ? carried
                : arith::BitcastOp::create(b, loc, i32, carried).getResult()};
  if (type.getElementType() != i32)
    carried = vector::BitCastOp::create(b, loc, type.clone(i32), carried);
  SmallVector<Value> words;
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    words.push_back(vector::ExtractOp::create(b, loc, carried, i));
  return words;
}

/// True if some warp runs both roles.
static bool haveCommonWarp(gpu::WarpsOp a, gpu::WarpsOp b) {
  return a.getFirst() < b.getFirst() + b.getCount() &&
         b.getFirst() < a.getFirst() + a.getCount();
}

SmallVector<Value> RoleRegisters::reserve(OpBuilder &b, Location loc,
                                          gpu::WarpsOp role,
                                          ArrayRef<Type> locals) {
  int64_t wanted = 0;
  for (Type local : locals)
    wanted += countWords(local);
  auto &here = slots[role->getBlock()];
  reserved.clear();
  for (unsigned i = 0; i < here.size() && int64_t(reserved.size()) < wanted;
       ++i)
    if (llvm::none_of(here[i].holders, [&](gpu::WarpsOp other) {
          return haveCommonWarp(role, other);
        }))
      reserved.push_back(i);
  while (int64_t(reserved.size()) < wanted) {
    Value nothing = LLVM::PoisonOp::create(b, loc, b.getI32Type());
    reserved.push_back(here.size());
    here.push_back({nothing, {}});
  }
  return llvm::map_to_vector(reserved,
                             [&](unsigned slot) { return here[slot].word; });
}

void RoleRegisters::fill(gpu::WarpsOp role, ValueRange words,
                         ArrayRef<std::pair<Value, Type>> results) {
  auto &here = slots[role->getBlock()];
  for (auto [slot, word] : llvm::zip_equal(reserved, words)) {
    here[slot].word = word;
    here[slot].holders.push_back(role);
  }
  unsigned next = 0;
  for (auto [result, local] : results) {
    Held &value = held[result];
    value.block = role->getBlock();
    value.local = local;
    for (int64_t i = 0; i < countWords(local); ++i)
      value.slots.push_back(reserved[next++]);
  }
}

Value RoleRegisters::get(OpBuilder &b, Location loc, Value result) {
  auto found = held.find(result);
  if (found == held.end())
    return nullptr;
  auto &here = slots[found->second.block];
  Type local = found->second.local, carried = getCarriedType(local);
  SmallVector<Value> words = llvm::map_to_vector(
      found->second.slots, [&](unsigned slot) { return here[slot].word; });
  auto type = dyn_cast<VectorType>(carried);
  if (!type)
    return carried == words[0].getType()
               ? words[0]
               : arith::BitcastOp::create(b, loc, carried, words[0])
                     .getResult();
  Value all =
      vector::FromElementsOp::create(b, loc, type.clone(b.getI32Type()), words);
  if (all.getType() != carried)
    all = vector::BitCastOp::create(b, loc, type, all);
  return fromCarried(b, loc, all, local);
}
