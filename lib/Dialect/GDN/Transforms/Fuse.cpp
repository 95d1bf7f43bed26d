// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-fuse: which ops share one kernel. See Passes.td for the rules; OpGroups
// sees to it that what is put together can stand in one place.
#include "OpGroups.h"

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GDN/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

namespace gdn {
#define GEN_PASS_DEF_GDNFUSE
#include "gdn/Dialect/GDN/Transforms/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

static bool isTokenWise(Operation *op) {
  return isa<GatesOp, L2NormOp, GatedRMSNormOp, CastOp>(op);
}
static bool isSequenceWise(Operation *op) {
  return isa<SequenceOpInterface>(op);
}
static bool isCommit(Operation *op) {
  return isa<CommitConv1dOp, CommitDeltaRuleOp>(op);
}
/// Ops whose kernel is theirs alone.
static bool isAlone(Operation *op) {
  return isa<PoolReadOp, PoolWriteOp, PlanBatchOp, CombineMapsOp, ApplyMapsOp>(
      op);
}
/// Ops that move whole slots and compute nothing.
static bool isSlotMove(Operation *op) {
  return isa<PoolCopyOp, PoolZeroOp>(op);
}

namespace {
/// What two sequence-wise ops must have in common to share a kernel.
struct Sequences {
  Value slots, bounds;
  bool operator==(const Sequences &other) const {
    return slots == other.slots && bounds == other.bounds;
  }
};
} // namespace

static Sequences getSequences(SequenceOpInterface op) {
  return {op.getSlots(), op.getCuSeqlens()};
}

/// True if a sequence of `op` may write another slot than the one it reads.
static bool writesElsewhere(Operation *op) {
  auto states = dyn_cast<StateOpInterface>(op);
  return states && (states.getWriteSlots() || states.getCheckpointSlots() ||
                    states.getTokenSlots());
}

/// The operands of `op` that ask for states inside sequences; empty without.
static SmallVector<Value> getInnerStates(Operation *op) {
  auto states = dyn_cast<StateOpInterface>(op);
  SmallVector<Value> operands;
  if (!states)
    return operands;
  if (states.getCuCheckpoints())
    operands = {states.getCuCheckpoints(), states.getCheckpointTokens(),
                states.getCheckpointSlots()};
  if (states.getTokenSlots())
    operands = {states.getTokenSlots()};
  if (states.getParents())
    operands.push_back(states.getParents());
  if (states.getNumAccepted())
    operands = {states.getNumAccepted()};
  return operands;
}

/// The operands of `op` that have one entry per token.
static SmallVector<Value> getTokenOperands(Operation *op) {
  return llvm::TypeSwitch<Operation *, SmallVector<Value>>(op)
      .Case([](GatesOp gates) {
        return SmallVector<Value>{gates.getA(), gates.getB()};
      })
      .Case([](GatedRMSNormOp norm) {
        return SmallVector<Value>{norm.getInput(), norm.getGate()};
      })
      .Case([](SequenceOpInterface op) { return op.getTokenOperands(); })
      .Case<L2NormOp, CastOp>(
          [](auto unary) { return SmallVector<Value>{unary.getInput()}; });
}

/// True if one op uses a result of the other, or both read the same tokens.
static bool areConnected(Operation *a, Operation *b) {
  auto getSources = [](Operation *op) {
    SmallVector<Value> sources;
    for (Value value : getTokenOperands(op)) {
      if (auto unpack = value.getDefiningOp<UnpackOp>())
        value = unpack.getPacked();
      sources.push_back(value);
    }
    return sources;
  };
  auto uses = [](Operation *user, Operation *def) {
    return llvm::any_of(user->getOperands(), [&](Value value) {
      return value.getDefiningOp() == def;
    });
  };
  if (uses(a, b) || uses(b, a))
    return true;
  SmallVector<Value> sources = getSources(a);
  return llvm::any_of(getSources(b), [&](Value source) {
    return llvm::is_contained(sources, source);
  });
}

/// The operands of a move that say which slots it touches.
static SmallVector<Value> getMovedSlots(Operation *op) {
  if (auto copy = dyn_cast<PoolCopyOp>(op))
    return {copy.getSlots(), copy.getWriteSlots()};
  return {cast<PoolZeroOp>(op).getSlots()};
}

/// True if these moves can be one kernel: the same slots, and none touches what
/// another one writes.
static bool mayMoveTogether(ArrayRef<Operation *> ops) {
  for (auto [index, a] : llvm::enumerate(ops)) {
    if (!isSlotMove(a) || getMovedSlots(a) != getMovedSlots(ops.front()))
      return false;
    for (Operation *b : ops.drop_front(index + 1))
      if (haveMemoryConflict(a, b))
        return false;
  }
  return true;
}

/// True if these ops can be one kernel.
static bool mayShareKernel(ArrayRef<Operation *> ops) {
  std::optional<Sequences> sequences;
  SmallVector<Value> inner; // of those that have some: the same
  bool anyInOrder = false, anyTree = false;
  for (Operation *op : ops) {
    if (!isSequenceWise(op) && !isTokenWise(op))
      return false;
    if (auto sequenceWise = dyn_cast<SequenceOpInterface>(op)) {
      Sequences own = getSequences(sequenceWise);
      if (!(sequences.value_or(own) == own))
        return false;
      sequences = own;
    }
    SmallVector<Value> own = getInnerStates(op);
    if (!own.empty() && !inner.empty() && own != inner)
      return false;
    if (!own.empty())
      inner = own;
    if (auto states = dyn_cast<StateOpInterface>(op)) {
      anyTree |= states.getParents() != nullptr;
      anyInOrder |= states.getParents() == nullptr;
    }
  }
  // One recurrence over a sequence's tokens cannot follow a tree and their
  // order.
  if (anyTree && anyInOrder)
    return false;
  // Sequences run in any order: none may read a slot that another one writes.
  for (auto [index, a] : llvm::enumerate(ops))
    for (Operation *b : ops.drop_front(index + 1))
      if ((writesElsewhere(a) || writesElsewhere(b)) &&
          haveMemoryConflict(a, b))
        return false;
  return true;
}

/// True if these ops put the same tokens of the same sequences into their
/// states.
static bool mayCommitTogether(ArrayRef<Operation *> ops) {
  auto operandsOf = [](Operation *op) {
    return std::pair(op->getOperand(1), op->getOperand(2)); // slots, counts
  };
  bool ok = llvm::all_of(ops, [&](Operation *op) {
    return isCommit(op) && operandsOf(op) == operandsOf(ops.front());
  });
  for (auto [index, a] : llvm::enumerate(ops))
    for (Operation *b : ops.drop_front(index + 1))
      ok &= a->getName() != b->getName() && !haveMemoryConflict(a, b);
  return ok;
}

/// Puts together what shares a kernel.
static void mergeGroups(Block &block, OpGroups &groups) {
  SmallVector<Operation *> sequenceWise, fusible, commits, moves;
  for (Operation &op : block) {
    if (isCommit(&op))
      commits.push_back(&op);
    if (isSlotMove(&op))
      moves.push_back(&op);
    if (isSequenceWise(&op))
      sequenceWise.push_back(&op);
    if (isSequenceWise(&op) || isTokenWise(&op))
      fusible.push_back(&op);
  }
  for (auto [index, op] : llvm::enumerate(sequenceWise))
    for (Operation *earlier : ArrayRef(sequenceWise).take_front(index))
      groups.merge(earlier, op, mayShareKernel);
  for (auto [index, op] : llvm::enumerate(commits))
    for (Operation *earlier : ArrayRef(commits).take_front(index))
      groups.merge(earlier, op, mayCommitTogether);
  for (auto [index, op] : llvm::enumerate(moves))
    for (Operation *earlier : ArrayRef(moves).take_front(index))
      groups.merge(earlier, op, mayMoveTogether);
  for (bool changed = true; std::exchange(changed, false);)
    for (auto [index, op] : llvm::enumerate(fusible))
      for (Operation *earlier : ArrayRef(fusible).take_front(index))
        if (areConnected(earlier, op))
          changed |= groups.merge(earlier, op, mayShareKernel);
}

/// Moves `ops` to the end of the block, before its terminator, in a kernel.
static KernelOp makeKernel(Block &block, ArrayRef<Operation *> ops,
                           StringRef name) {
  llvm::SmallPtrSet<Operation *, 16> members(ops.begin(), ops.end());
  SmallVector<Value> results;
  for (Operation *op : ops)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !members.contains(block.findAncestorOpInBlock(*user));
          }))
        results.push_back(result);

  OpBuilder builder(block.getTerminator());
  Location loc = builder.getFusedLoc(
      llvm::map_to_vector(ops, [](Operation *op) { return op->getLoc(); }));
  auto kernel =
      KernelOp::create(builder, loc, TypeRange(ValueRange(results)), name);
  for (auto [value, result] : llvm::zip(results, kernel.getResults()))
    value.replaceUsesWithIf(result, [&](OpOperand &use) {
      return !members.contains(block.findAncestorOpInBlock(*use.getOwner()));
    });
  Block &body = kernel.getBody().emplaceBlock();
  for (Operation *op : ops)
    op->moveBefore(&body, body.end());
  builder.setInsertionPointToEnd(&body);
  YieldOp::create(builder, loc, results);
  return kernel;
}

/// True if outputs of the rule in `kernel` can go to the norm behind it with
/// what they are rounded to on the way through memory, the norm's own type.
static bool takesNormWithRule(KernelOp kernel) {
  GatedRMSNormOp norm = KernelOp::findNormOfRule(kernel.getBody().front());
  return norm &&
         getElementTypeOrSelf(norm.getResult()).getIntOrFloatBitWidth() == 16;
}

namespace {
struct GDNFuse final : gdn::impl::GDNFuseBase<GDNFuse> {
  using GDNFuseBase::GDNFuseBase;

  void runOnOperation() override {
    llvm::StringSet<> used;
    getOperation().walk(
        [&](KernelOp kernel) { used.insert(kernel.getName()); });
    for (auto func : getOperation().getOps<func::FuncOp>())
      used.insert(func.getName());
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (func->hasAttr("gdn.entry"))
        if (failed(verifyBody(func)) || failed(fuse(func, used)))
          return signalPassFailure();
  }

  LogicalResult verifyBody(func::FuncOp func) {
    if (!func.getBody().hasOneBlock())
      return func.emitOpError("expects an entry to have one block, but got ")
             << func.getBody().getBlocks().size();
    WalkResult result = func.walk([&](Operation *op) {
      Operation *parent = op->getParentOp();
      if (!isa<GDNDialect>(op->getDialect()) || parent == func ||
          isa<KernelOp>(parent))
        return WalkResult::advance();
      op->emitOpError("expects to stand directly in its entry '")
          << func.getName() << "', but is inside '" << parent->getName() << "'";
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult fuse(func::FuncOp func, llvm::StringSet<> &used) {
    Block &block = func.getBody().front();
    OpGroups groups(block);
    mergeGroups(block, groups);
    SmallVector<SmallVector<Operation *>> ordered = groups.getOrdered();
    auto isKernel = [](ArrayRef<Operation *> ops) {
      return isSequenceWise(ops.front()) || isTokenWise(ops.front()) ||
             isCommit(ops.front()) || isSlotMove(ops.front()) ||
             isAlone(ops.front());
    };
    bool onlyOne = llvm::count_if(ordered, isKernel) == 1 &&
                   block.getOps<KernelOp>().empty();
    unsigned number = 0;
    for (ArrayRef<Operation *> ops : ordered) {
      if (!isKernel(ops)) {
        if (!ops.front()->hasTrait<OpTrait::IsTerminator>())
          ops.front()->moveBefore(block.getTerminator());
        continue;
      }
      std::string name = func.getName().str();
      if (!onlyOne) {
        // A number that no kernel or function of the module has.
        do
          name = (func.getName() + "_" + Twine(number++)).str();
        while (!used.insert(name).second);
      }
      KernelOp kernel = makeKernel(block, ops, name);
      kernel.setNormWithRule(normWithRule && takesNormWithRule(kernel));
      kernel.setConvWithRule(
          convWithRule && KernelOp::findConvOfValues(kernel.getBody().front()));
      ++numKernels;
      if (ops.size() > 1)
        numFusedOps += ops.size();
    }
    return success();
  }
};
} // namespace
