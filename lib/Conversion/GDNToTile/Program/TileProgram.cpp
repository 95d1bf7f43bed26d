// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers of heads and sequences, slots, regions of the workspace, and what a
// program says of its loops.
#include "Program/TileProgram.h"
#include "Program/Slots.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

Value TileProgram::headCount(Value value) {
  if (Value view = views.tensors.lookup(value))
    return b.createOrFold<memref::DimOp>(loc, view, 1);
  Operation *op = value.getDefiningOp();
  if (auto unpack = dyn_cast<UnpackOp>(op)) {
    char part = unpack.getParts()[cast<OpResult>(value).getResultNumber()];
    bool key = part == 'q' || part == 'k';
    return views.index(b, key ? unpack.getKeyHeads() : unpack.getValueHeads());
  }
  if (auto conv = dyn_cast<Conv1dOp>(op))
    return headCount(conv.getInputs()[cast<OpResult>(value).getResultNumber()]);
  if (auto rule = dyn_cast<RuleOpInterface>(op))
    return headCount(rule.getValue());
  return headCount(op->getOperand(0));
}

Value TileProgram::elementAt(Value tensor, ValueRange at) {
  return emitElement(b, loc, views, tensor, at);
}

Value TileProgram::sequenceCount() {
  return emitSequenceCount(b, loc, views, parts.slots);
}

Value TileProgram::slotOf(Value sequence) {
  return emitSlot(b, loc, views, parts.slots, sequence);
}

int64_t TileProgram::countShared() {
  int64_t numWindows = llvm::count_if(
      parts.carries, [](const Carry &carry) { return carry.perKeyHead; });
  return std::max<int64_t>(numWindows, parts.isDeferred());
}

Value TileProgram::isLastOfGroup(int64_t place) {
  Value keyHead = add(mul(n, heads), h);
  Value group = add(mul(keyHead, index(countShared())), index(place));
  return tile::LastInGroupOp::create(b, loc, b.getI1Type(), group, ratio);
}

Value TileProgram::addRegion(ArrayRef<std::string> sizes,
                             ArrayRef<int64_t> shape, Type element,
                             SmallVectorImpl<Attribute> &regions) {
  SmallVector<StringRef> forms(sizes.begin(), sizes.end());
  std::string bytes = std::to_string(element.getIntOrFloatBitWidth() / 8);
  forms.push_back(bytes);
  regions.push_back(b.getStrArrayAttr(forms));
  func::FuncOp function = views.function;
  unsigned at = function.getNumArguments();
  (void)function.insertArgument(at, MemRefType::get(shape, element), {}, loc);
  return function.getArgument(at);
}

Value TileProgram::lastEnd() {
  if (parts.maxTokens == 0)
    return end;
  return arith::MinSIOp::create(b, loc, end,
                                add(begin, index(parts.maxTokens)));
}

/// Where something behind the last token takes what a loop carries, its tokens
/// cannot be taken several at once.
void TileProgram::markTokenLoops() {
  for (auto [loop, most] : tokenLoops)
    if (loop->use_empty())
      tile::setTokenLoop(loop, most);
}

/// The slot contract: not negative, not the null slot, below P.
Value TileProgram::isLive(Value id, Value pool) {
  // The symbol is one word for all pools, where each word that a short sequence
  // asks for counts.
  Value size = parts.maxTokens ? views.size(b, loc, pool, 0) : Value();
  return emitIsLive(b, loc, views, id, pool, size);
}
