// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every op of every dialect, as the dialects have registered them, where it
// does not belong and as it may not be: an answer, and no crash. The programs
// of test/Dialect give what is almost right. Draws have fixed seeds.
#include "OpExamples.h"

#include "gdn/Dialect/GPU/IR/KernelFields.h"
#include "gdn/Dialect/Tile/IR/StageFields.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/PrettyStackTrace.h"

using namespace mlir;
using namespace gdn;

namespace {
class OpSweep : public OpExamplesTest {
protected:
  /// An op of that name in `block`, of draws alone: some operands, results,
  /// attributes and regions.
  void addDrawn(Block *block, RegisteredOperationName name, Draws &draws);
  /// Changes one thing about an op of the dialects in `module`.
  void change(ModuleOp module, Draws &draws);
};

/// What an op may be put into.
enum Place {
  inModule,
  inFunction,
  inKernel, // a function with attributes of programs
  inCode,
  inBranch,
  inUnknown,
  inOwn, // another op of the dialects, as wrong as this one
  numPlaces
};

/// The block of a new place in `module`; `around` is the op that it is in where
/// the place is one of the dialects.
Block *makePlace(ModuleOp module, Place place, RegisteredOperationName around,
                 llvm::function_ref<Value(OpBuilder &, Type)> makeValue) {
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  Location loc = b.getUnknownLoc();
  auto makeRegion = [&](OperationName name) {
    OperationState state(loc, name);
    state.addRegion()->emplaceBlock();
    return &b.create(state)->getRegion(0).front();
  };
  switch (place) {
  case inFunction:
  case inKernel: {
    auto function =
        func::FuncOp::create(b, loc, "f", b.getFunctionType({}, {}));
    if (place == inKernel) {
      gdn::gpu::KernelFields kernel(function);
      kernel.setThreads(128);
      kernel.setBlocksPerSm(2);
      kernel.setCluster(2);
      gdn::tile::StageFields stage(function);
      stage.setGrid({"2"});
      stage.setGroups({"2"});
    }
    b.setInsertionPointToEnd(function.addEntryBlock());
    func::ReturnOp::create(b, loc);
    return &function.getBody().front();
  }
  case inCode: {
    auto function = LLVM::LLVMFuncOp::create(
        b, loc, "f",
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                    {}));
    function.setUnnamedAddr(LLVM::UnnamedAddr::None); // as it is read
    b.setInsertionPointToEnd(function.addEntryBlock(b));
    LLVM::ReturnOp::create(b, loc, ValueRange());
    return &function.getBody().front();
  }
  case inBranch: {
    Value condition = makeValue(b, b.getI1Type());
    return scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false)
        .thenBlock();
  }
  case inUnknown:
    return makeRegion(OperationName("other.region", b.getContext()));
  case inOwn:
    return makeRegion(around);
  default:
    return module.getBody();
  }
}

/// Sets, or takes away where `value` is null, an attribute of `op`. As readers
/// do, gives what has a default its default where it is away.
void setOwnAttr(Operation *op, StringAttr name, Attribute value) {
  if (value)
    op->setAttr(name, value);
  else
    op->removeAttr(name);
  op->getName().populateDefaultProperties(op->getPropertiesStorage());
}

void OpSweep::addDrawn(Block *block, RegisteredOperationName name,
                       Draws &draws) {
  OpBuilder b = OpBuilder::atBlockBegin(block);
  OperationState state(b.getUnknownLoc(), name);
  if (!draws.oneIn(4))
    for (unsigned i = draws.below(6); i != 0; --i)
      state.addOperands(makeValue(b, draws.pick(types)));
  if (!draws.oneIn(4))
    for (unsigned i = draws.below(3); i != 0; --i)
      state.addTypes(draws.pick(types));
  for (unsigned i = draws.below(3); i != 0; --i) {
    Region *region = state.addRegion();
    for (unsigned j = draws.below(3); j != 0; --j) {
      Block &body = region->emplaceBlock();
      for (unsigned k = draws.below(3); k != 0; --k)
        body.addArgument(draws.pick(types), state.location);
    }
  }
  Operation *op = b.create(state);
  for (StringAttr attribute : name.getAttributeNames())
    if (!draws.oneIn(3))
      setOwnAttr(op, attribute, draws.pick(attributes));
}

/// Gives what uses a value from inside `op`, and is not inside it, another one.
void replaceOutside(Operation *op, ModuleOp module,
                    llvm::function_ref<Value(OpBuilder &, Type)> makeValue) {
  auto replace = [&](Value value) {
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    if (!value.use_empty())
      value.replaceAllUsesWith(makeValue(b, value.getType()));
  };
  op->walk([&](Operation *inner) {
    for (Value result : inner->getResults())
      replace(result);
    for (Region &region : inner->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          replace(argument);
  });
}

/// Makes `op` again, with one result more or less.
void changeResults(Operation *op, bool isMore, Type added,
                   llvm::function_ref<Value(OpBuilder &, Type)> makeValue) {
  OpBuilder b(op);
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(op->getOperands());
  state.addAttributes(llvm::to_vector(op->getAttrs()));
  SmallVector<Type> types(op->getResultTypes());
  if (isMore)
    types.push_back(added);
  else if (!types.empty())
    types.pop_back();
  state.addTypes(types);
  for (Region &region : op->getRegions())
    state.addRegion()->takeBody(region);
  Operation *made = b.create(state);
  for (OpResult result : op->getResults())
    if (result.getResultNumber() < made->getNumResults())
      result.replaceAllUsesWith(made->getResult(result.getResultNumber()));
    else if (!result.use_empty())
      result.replaceAllUsesWith(makeValue(b, result.getType()));
  op->erase();
}

void OpSweep::change(ModuleOp module, Draws &draws) {
  SmallVector<Operation *> own;
  SmallVector<Block *> blocks, ownBlocks;
  SmallVector<Value> values;
  module.walk([&](Operation *op) {
    if (isOwn(op))
      own.push_back(op);
    llvm::append_range(values, op->getResults());
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        blocks.push_back(&block);
        if (isOwn(op))
          ownBlocks.push_back(&block);
        llvm::append_range(values, block.getArguments());
      }
  });
  if (own.empty())
    return;
  Operation *op = draws.pick(own);
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  auto drawValue = [&] {
    return values.empty() || draws.oneIn(4) ? makeValue(b, draws.pick(types))
                                            : draws.pick(values);
  };
  auto drawBlock = [&]() -> Block * {
    Block *block = draws.pick(blocks);
    return op->isAncestor(block->getParentOp()) ? module.getBody() : block;
  };
  switch (draws.below(13)) {
  case 0:
    if (op->getNumOperands() != 0)
      op->setOperand(draws.below(op->getNumOperands()), drawValue());
    break;
  case 1:
    if (op->getNumOperands() != 0)
      op->eraseOperand(draws.below(op->getNumOperands()));
    break;
  case 2:
    op->insertOperands(draws.below(op->getNumOperands() + 1), drawValue());
    break;
  case 3:
    if (op->getNumResults() != 0)
      op->getResult(draws.below(op->getNumResults()))
          .setType(draws.pick(types));
    break;
  case 4:
  case 5: {
    ArrayRef<StringAttr> names = op->getRegisteredInfo()->getAttributeNames();
    if (names.empty())
      break;
    setOwnAttr(op, draws.pick(names),
               draws.oneIn(2) ? Attribute() : draws.pick(attributes));
    break;
  }
  case 6: // regions lose their blocks
    for (Region &region : op->getRegions())
      for (Block &block : llvm::make_early_inc_range(region)) {
        for (Operation &inner : block)
          replaceOutside(&inner, module, [&](OpBuilder &b, Type type) {
            return makeValue(b, type);
          });
        for (BlockArgument argument : block.getArguments())
          argument.replaceAllUsesWith(makeValue(b, argument.getType()));
        block.dropAllReferences();
        block.erase();
      }
    break;
  case 7:
    if (!ownBlocks.empty())
      draws.pick(ownBlocks)->addArgument(draws.pick(types), op->getLoc());
    break;
  case 8:
    if (!ownBlocks.empty())
      if (Block *block = draws.pick(ownBlocks); block->getNumArguments() != 0) {
        BlockArgument argument =
            block->getArgument(draws.below(block->getNumArguments()));
        if (draws.oneIn(2)) {
          argument.setType(draws.pick(types));
        } else {
          argument.replaceAllUsesWith(makeValue(b, argument.getType()));
          block->eraseArgument(argument.getArgNumber());
        }
      }
    break;
  case 9: // also where it is a terminator
    replaceOutside(op, module,
                   [&](OpBuilder &b, Type type) { return makeValue(b, type); });
    op->erase();
    break;
  case 10: {
    Block *block = drawBlock();
    op->moveBefore(block, draws.oneIn(2) ? block->begin() : block->end());
    break;
  }
  case 11: {
    Block *block = drawBlock();
    OpBuilder::atBlockBegin(block).clone(*op);
    break;
  }
  default:
    changeResults(op, draws.oneIn(2), draws.pick(types),
                  [&](OpBuilder &b, Type type) { return makeValue(b, type); });
    break;
  }
}

TEST_F(OpSweep, EachOpHasAnExample) {
  llvm::StringSet<> seen;
  for (auto &example : examples)
    example->walk(
        [&](Operation *op) { seen.insert(op->getName().getStringRef()); });
  EXPECT_GT(ops.size(), 60u);
  for (RegisteredOperationName name : ops)
    EXPECT_TRUE(seen.contains(name.getStringRef()))
        << name.getStringRef().str() << " is in no file of test/Dialect";
}

TEST_F(OpSweep, ExamplesVerifyPrintAndFold) {
  for (auto &example : examples)
    EXPECT_TRUE(check(*example));
}

TEST_F(OpSweep, DrawnOpsInEveryPlace) {
  auto value = [&](OpBuilder &b, Type type) { return makeValue(b, type); };
  unsigned seed = 0;
  for (RegisteredOperationName name : ops)
    for (unsigned place = 0; place < numPlaces; ++place)
      for (unsigned i = 0; i < 40; ++i) {
        llvm::PrettyStackTraceFormat trace("%s in place %u, seed %u",
                                           name.getStringRef().str().c_str(),
                                           place, ++seed);
        Draws draws(seed);
        OwningOpRef<ModuleOp> module =
            ModuleOp::create(UnknownLoc::get(&context));
        Block *block = makePlace(*module, Place(place), draws.pick(ops), value);
        addDrawn(block, name, draws);
        check(*module);
      }
  EXPECT_GT(numErrors, 1000u);
}

TEST_F(OpSweep, ExamplesThatAreChanged) {
  auto value = [&](OpBuilder &b, Type type) { return makeValue(b, type); };
  unsigned seed = 0, numRight = 0;
  for (auto &example : examples)
    for (unsigned i = 0; i < 300; ++i) {
      llvm::PrettyStackTraceFormat trace("changed example, seed %u", ++seed);
      Draws draws(seed);
      OwningOpRef<ModuleOp> module = example->clone();
      if (draws.oneIn(3)) // ops may go there
        makePlace(*module, Place(draws.below(inOwn)), draws.pick(ops), value);
      for (unsigned j = 1 + draws.below(3); j != 0; --j)
        change(*module, draws);
      numRight += check(*module);
    }
  EXPECT_GT(numErrors, 1000u);
  EXPECT_GT(numRight, 1000u);
}
} // namespace
