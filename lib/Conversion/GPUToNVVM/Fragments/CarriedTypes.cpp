// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a thread holds of a fragment, and how it crosses the border of a block.
#include "Fragments/TileAccess.h"
#include "Kernel/Assembly.h"

using namespace mlir;
using namespace gdn;

VectorType gdn::getLocalType(gpu::FragmentType fragment) {
  return VectorType::get({fragment.getLocalSize()}, fragment.getElementType());
}

Type gdn::getCarriedType(Type local) {
  auto type = dyn_cast<VectorType>(local);
  if (!type || type.getElementTypeBitWidth() != 16 ||
      type.getNumElements() % 2 != 0)
    return local;
  return VectorType::get({type.getNumElements() / 2},
                         IntegerType::get(local.getContext(), 32));
}

/// `local` as words of which LLVM does not see where they come from; with
/// `isPinned`, nor may it compute them elsewhere.
static Value hideWords(OpBuilder &b, Location loc, Value local, bool isPinned) {
  Type type = getCarriedType(local.getType());
  if (type == local.getType())
    return local;
  auto vector = cast<VectorType>(type);
  Value words = vector::BitCastOp::create(b, loc, vector, local);
  SmallVector<Value> hidden;
  for (int64_t i = 0; i < vector.getNumElements(); ++i) {
    Value word = vector::ExtractOp::create(b, loc, words, i);
    hidden.push_back(
        emitAssembly(b, loc, word.getType(), word, "", "=r,0", isPinned));
  }
  return vector::FromElementsOp::create(b, loc, vector, hidden);
}

// LLVM would carry the elements if it saw where the words come from.
Value gdn::toCarried(OpBuilder &b, Location loc, Value local) {
  return hideWords(b, loc, local, /*isPinned=*/false);
}

Value gdn::pinHere(OpBuilder &b, Location loc, Value local) {
  return fromCarried(b, loc, hideWords(b, loc, local, /*isPinned=*/true),
                     local.getType());
}

Value gdn::fromCarried(OpBuilder &b, Location loc, Value carried, Type local) {
  if (carried.getType() == local)
    return carried;
  return vector::BitCastOp::create(b, loc, cast<VectorType>(local), carried);
}
