// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Merging groups of ops without making a cycle. A block of an entry has some
// tens of ops, so reachability is searched anew for each question.
#include "OpGroups.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace gdn;

bool gdn::haveMemoryConflict(Operation *a, Operation *b) {
  if (isMemoryEffectFree(a) || isMemoryEffectFree(b))
    return false;
  auto effectsOfA = getEffectsRecursively(a);
  auto effectsOfB = getEffectsRecursively(b);
  if (!effectsOfA || !effectsOfB)
    return true; // unknown effects
  for (const MemoryEffects::EffectInstance &x : *effectsOfA)
    for (const MemoryEffects::EffectInstance &y : *effectsOfB) {
      bool bothRead = isa<MemoryEffects::Read>(x.getEffect()) &&
                      isa<MemoryEffects::Read>(y.getEffect());
      bool differ =
          x.getValue() && y.getValue() && x.getValue() != y.getValue();
      if (!bothRead && !differ)
        return true;
    }
  return false;
}

OpGroups::OpGroups(Block &block) {
  for (Operation &op : block) {
    position[&op] = groupOf[&op] = ops.size();
    ops.push_back(&op);
    groups.push_back({&op});
  }
  before.resize(ops.size());
  after.resize(ops.size());
  auto addEdge = [&](unsigned from, unsigned to) {
    after[from].push_back(to);
    before[to].push_back(from);
  };
  for (auto [to, op] : llvm::enumerate(ops)) {
    op->walk([&, to = to](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (Operation *def = operand.getDefiningOp())
          if (auto it = position.find(def); it != position.end())
            if (it->second != to)
              addEdge(it->second, to);
    });
    bool isLast = to + 1 == ops.size();
    for (unsigned from = 0; from < to; ++from)
      // Everything comes before the terminator, used there or not.
      if (isLast || haveMemoryConflict(ops[from], op))
        addEdge(from, to);
  }
}

llvm::BitVector OpGroups::getReachable(unsigned start, bool isAfter) const {
  llvm::BitVector reached(groups.size());
  SmallVector<unsigned> todo = {start};
  while (!todo.empty())
    for (Operation *op : groups[todo.pop_back_val()])
      for (unsigned next : (isAfter ? after : before)[position.lookup(op)]) {
        unsigned group = groupOf.lookup(ops[next]);
        if (group == start || reached.test(group))
          continue;
        reached.set(group);
        todo.push_back(group);
      }
  return reached;
}

bool OpGroups::merge(Operation *a, Operation *b,
                     function_ref<bool(ArrayRef<Operation *>)> mayMerge) {
  unsigned groupA = groupOf.lookup(a), groupB = groupOf.lookup(b);
  if (groupA == groupB)
    return false;
  llvm::BitVector joined = getReachable(groupA, /*isAfter=*/true);
  joined &= getReachable(groupB, /*isAfter=*/false);
  llvm::BitVector reverse = getReachable(groupB, /*isAfter=*/true);
  reverse &= getReachable(groupA, /*isAfter=*/false);
  joined |= reverse;
  joined.set(groupA);
  joined.set(groupB);

  SmallVector<Operation *> members;
  for (unsigned group : joined.set_bits())
    llvm::append_range(members, groups[group]);
  llvm::sort(members, [&](Operation *x, Operation *y) {
    return position.lookup(x) < position.lookup(y);
  });
  if (!mayMerge(members))
    return false;
  for (unsigned group : joined.set_bits())
    groups[group].clear();
  for (Operation *op : members)
    groupOf[op] = groupA;
  groups[groupA] = std::move(members);
  return true;
}

SmallVector<SmallVector<Operation *>> OpGroups::getOrdered() const {
  SmallVector<SmallVector<Operation *>> ordered;
  llvm::BitVector done(groups.size());
  auto isReady = [&](ArrayRef<Operation *> group) {
    return llvm::all_of(group, [&](Operation *op) {
      return llvm::all_of(before[position.lookup(op)], [&](unsigned from) {
        unsigned other = groupOf.lookup(ops[from]);
        return other == groupOf.lookup(op) || done.test(other);
      });
    });
  };
  // The first group in the program's order that is ready. Without cycles there
  // is one in every round.
  for (bool found = true; std::exchange(found, false);)
    for (Operation *op : ops) {
      unsigned group = groupOf.lookup(op);
      if (done.test(group) || !isReady(groups[group]))
        continue;
      ordered.push_back(groups[group]);
      done.set(group);
      found = true;
      break;
    }
  return ordered;
}
