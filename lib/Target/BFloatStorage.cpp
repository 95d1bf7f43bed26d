// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bf16 values as integers; see BFloatStorage.h.
#include "BFloatStorage.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace {
/// Rewrites one function.
class Rewriter {
public:
  explicit Rewriter(Function &function) : function(function) {}
  void run();

private:
  /// The integer type of the same shape; null if `type` is not of bf16.
  static Type *integerType(Type *type);
  Value *asInteger(Value *value);
  Value *rewrite(Instruction &instruction);
  void rewriteUser(Instruction &instruction);

  Function &function;
  DenseMap<Value *, Value *> integers; // what stands for a bf16 value
};
} // namespace

Type *Rewriter::integerType(Type *type) {
  if (!type->getScalarType()->isBFloatTy())
    return nullptr;
  Type *i16 = Type::getInt16Ty(type->getContext());
  if (auto *vector = dyn_cast<VectorType>(type))
    return VectorType::get(i16, vector->getElementCount());
  return i16;
}

Value *Rewriter::asInteger(Value *value) {
  Type *type = integerType(value->getType());
  if (auto *constant = dyn_cast<Constant>(value))
    return ConstantExpr::getBitCast(constant, type);
  Value *&known = integers[value];
  if (known)
    return known;
  // A value that is computed as bf16: its bits, taken where it is defined.
  BasicBlock::iterator at = function.getEntryBlock().getFirstInsertionPt();
  if (auto *instruction = dyn_cast<Instruction>(value))
    at = *instruction->getInsertionPointAfterDef();
  IRBuilder<> builder(at->getParent(), at);
  return known = builder.CreateBitCast(value, type);
}

/// The integer that stands for a bf16 result; null if the instruction has to
/// stay as it is.
Value *Rewriter::rewrite(Instruction &instruction) {
  Type *type = integerType(instruction.getType());
  IRBuilder<> builder(&instruction);
  if (auto *load = dyn_cast<LoadInst>(&instruction)) {
    if (load->isAtomic())
      return nullptr;
    auto *copy = builder.CreateAlignedLoad(
        type, load->getPointerOperand(), load->getAlign(), load->isVolatile());
    copy->copyMetadata(*load,
                       {LLVMContext::MD_alias_scope, LLVMContext::MD_noalias,
                        LLVMContext::MD_nontemporal});
    return copy;
  }
  if (auto *phi = dyn_cast<PHINode>(&instruction))
    return builder.CreatePHI(type, phi->getNumIncomingValues());
  if (auto *select = dyn_cast<SelectInst>(&instruction))
    return builder.CreateSelect(select->getCondition(),
                                asInteger(select->getTrueValue()),
                                asInteger(select->getFalseValue()));
  if (auto *freeze = dyn_cast<FreezeInst>(&instruction))
    return builder.CreateFreeze(asInteger(freeze->getOperand(0)));
  if (auto *extract = dyn_cast<ExtractElementInst>(&instruction))
    return builder.CreateExtractElement(asInteger(extract->getVectorOperand()),
                                        extract->getIndexOperand());
  if (auto *insert = dyn_cast<InsertElementInst>(&instruction))
    return builder.CreateInsertElement(asInteger(insert->getOperand(0)),
                                       asInteger(insert->getOperand(1)),
                                       insert->getOperand(2));
  if (auto *shuffle = dyn_cast<ShuffleVectorInst>(&instruction))
    return builder.CreateShuffleVector(asInteger(shuffle->getOperand(0)),
                                       asInteger(shuffle->getOperand(1)),
                                       shuffle->getShuffleMask());
  if (auto *cast = dyn_cast<BitCastInst>(&instruction))
    return builder.CreateBitCast(cast->getOperand(0), type);
  return nullptr;
}

/// Rewrites an instruction that takes a bf16 and gives something else.
void Rewriter::rewriteUser(Instruction &instruction) {
  IRBuilder<> builder(&instruction);
  if (auto *store = dyn_cast<StoreInst>(&instruction)) {
    if (store->isAtomic() || !integerType(store->getValueOperand()->getType()))
      return;
    store->setOperand(0, asInteger(store->getValueOperand()));
  } else if (auto *cast = dyn_cast<BitCastInst>(&instruction)) {
    if (integerType(cast->getSrcTy()))
      cast->setOperand(0, asInteger(cast->getOperand(0)));
  }
}

void Rewriter::run() {
  SmallVector<Instruction *> all, replaced;
  for (BasicBlock *block : ReversePostOrderTraversal<Function *>(&function))
    for (Instruction &instruction : *block)
      all.push_back(&instruction);
  // Definitions come before their uses in this order, but for phis.
  for (Instruction *instruction : all)
    if (integerType(instruction->getType()))
      if (Value *integer = rewrite(*instruction)) {
        integers[instruction] = integer;
        replaced.push_back(instruction);
      }
  for (Instruction *instruction : replaced)
    if (auto *phi = dyn_cast<PHINode>(instruction))
      for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i)
        cast<PHINode>(integers[phi])
            ->addIncoming(asInteger(phi->getIncomingValue(i)),
                          phi->getIncomingBlock(i));
  for (Instruction *instruction : all)
    if (!integerType(instruction->getType()))
      rewriteUser(*instruction);

  // What still wants a bf16 gets one made of the integer.
  SmallPtrSet<User *, 16> gone(replaced.begin(), replaced.end());
  for (Instruction *instruction : replaced) {
    auto stays = [&](Use &use) { return !gone.contains(use.getUser()); };
    if (llvm::none_of(instruction->uses(), stays))
      continue;
    IRBuilder<> builder(instruction->getParent(),
                        *instruction->getInsertionPointAfterDef());
    instruction->replaceUsesWithIf(
        builder.CreateBitCast(integers[instruction], instruction->getType()),
        stays);
  }
  for (Instruction *instruction : llvm::reverse(replaced)) {
    instruction->replaceAllUsesWith(PoisonValue::get(instruction->getType()));
    instruction->eraseFromParent();
  }
}

void gdn::storeBFloatAsInteger(Module &module) {
  for (Function &function : module)
    if (!function.isDeclaration())
      Rewriter(function).run();
}
