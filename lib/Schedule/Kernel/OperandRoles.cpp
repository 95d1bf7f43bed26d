// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roles by slices: what an operand of the scan is computed from belongs to the
// operand's role; a store belongs to the role that computes with what it
// stores.
#include "Kernel/OperandRoles.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace gdn;

bool gdn::makesTile(Operation *op) {
  return isa<tile::LoadOp, tile::FillOp, tile::MapRowsOp, tile::Conv1dOp>(op);
}

DenseSet<Operation *> gdn::getFollowers(ValueRange values, Block *block,
                                        function_ref<bool(Operation *)> isOne) {
  DenseSet<Operation *> followers;
  SmallVector<Value> work(values);
  while (!work.empty())
    for (Operation *user : work.pop_back_val().getUsers()) {
      Operation *op = block->findAncestorOpInBlock(*user);
      if (op && (!isOne || isOne(op)) && followers.insert(op).second)
        llvm::append_range(work, op->getResults());
    }
  return followers;
}

SetVector<Value> gdn::getUsedTiles(Operation *op) {
  SetVector<Value> used;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (Operation *from = operand.getDefiningOp();
          from && isa<tile::TileDialect>(from->getDialect()) &&
          isa<VectorType>(operand.getType()) && !op->isAncestor(from))
        used.insert(operand);
  });
  return used;
}

/// The ops that `value` is computed from, `value`'s own included, up to the
/// scan; notes in `reached` which results of the scan they use.
static void collectSlice(Value value, tile::RuleOpInterface scan,
                         SetVector<Operation *> &slice,
                         SetVector<Value> &reached) {
  Operation *op = value.getDefiningOp();
  if (op == scan) {
    reached.insert(value);
    return;
  }
  if (!op || !slice.insert(op))
    return;
  for (Value used : getUsedTiles(op))
    collectSlice(used, scan, slice, reached);
}

SmallVector<Operation *> gdn::getTilesBefore(Operation *loop, Value value) {
  SetVector<Operation *> slice;
  SmallVector<Value> next = {value};
  while (!next.empty()) {
    Operation *op = next.pop_back_val().getDefiningOp();
    if (op && op->getBlock() == loop->getBlock() && makesTile(op) &&
        slice.insert(op))
      llvm::append_range(next, getUsedTiles(op));
  }
  SmallVector<Operation *> ops = slice.takeVector();
  llvm::sort(ops, inProgramOrder);
  return ops;
}

/// What the loop begins with where `value` is one of its carried tiles.
static Value getInitial(scf::ForOp loop, Value value) {
  auto arg = dyn_cast<BlockArgument>(value);
  if (!loop || !arg || arg.getOwner() != loop.getBody() ||
      arg == loop.getInductionVar())
    return nullptr;
  return loop.getTiedLoopInit(arg)->get();
}

Operation *gdn::getPendingOp(Operation *loop, tile::RuleOpInterface scan) {
  Value value = getInitial(dyn_cast<scf::ForOp>(loop), scan.getState());
  while (value) {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<tile::DeltaFoldOp, tile::DeltaCatchUpOp>(op))
      return op;
    auto map = dyn_cast_or_null<tile::MapRowsOp>(op);
    value = map ? map.getInputs().front() : Value();
  }
  return nullptr;
}

FailureOr<ScanRoles> ScanRoles::analyse(tile::RuleOpInterface scan) {
  if (auto rule = dyn_cast<tile::DeltaScanOp>(*scan); rule && rule.getErase())
    return rule.emitOpError("expects no 'erase': GPUs have no form for it");
  std::array<SetVector<Operation *>, 6> slices;
  SetVector<Value> none;
  auto make = [&](ScanRole role, Value operand) {
    collectSlice(operand, scan, slices[unsigned(role)], none);
  };
  make(ScanRole::query, scan.getQuery());
  make(ScanRole::key, scan.getKey());
  make(ScanRole::value, scan.getValue());
  for (Value gate : scan.getGates())
    make(ScanRole::gates, gate);
  make(ScanRole::state, scan.getState());
  if (auto replay = dyn_cast<tile::DeltaReplayOp>(*scan))
    if (Value seen = replay.getSeen())
      make(ScanRole::state, seen);

  ScanRoles roles;
  for (Operation &op : *scan->getBlock()) {
    bool stores = isa<tile::StoreOp>(op);
    op.walk([&](tile::StoreOp) { stores = true; });
    if (!stores)
      continue;
    SetVector<Operation *> slice;
    SetVector<Value> reached;
    for (Value tile : getUsedTiles(&op))
      collectSlice(tile, scan, slice, reached);
    std::optional<ScanRole> role;
    if (reached.contains(scan.getNewState()))
      role = ScanRole::state;
    else if (reached.contains(scan.getOutput()))
      role = ScanRole::output;
    else if (scan.getDeltas() && reached.contains(scan.getDeltas()))
      // A replay has its deltas where it has its output.
      role =
          isa<tile::DeltaReplayOp>(*scan) ? ScanRole::output : ScanRole::value;
    // By what it computes with, or else by what it loads.
    for (bool isLoad : {false, true})
      for (unsigned i = 0; !role && i < slices.size(); ++i)
        if (llvm::any_of(slice, [&](Operation *inner) {
              return isa<tile::LoadOp>(inner) == isLoad &&
                     slices[i].contains(inner);
            }))
          role = ScanRole(i);
    if (!role || reached.size() > 1)
      return op.emitOpError("expects to store the state, what follows from the "
                            "output, or what an operand of the scan is made "
                            "from");
    if (role == ScanRole::state)
      for (Value tile : getUsedTiles(&op)) {
        SetVector<Operation *> own;
        SetVector<Value> from;
        collectSlice(tile, scan, own, from);
        if (!from.contains(scan.getNewState()))
          return op.emitOpError("expects to store the state alone, but also "
                                "stores another tile");
      }
    slices[unsigned(*role)].insert_range(slice);
    roles.work[unsigned(*role)].stores.push_back(&op);
  }
  auto loop = dyn_cast<scf::ForOp>(scan->getParentOp());
  for (auto [slice, work] : llvm::zip(slices, roles.work)) {
    SetVector<Operation *> before;
    auto addBefore = [&](Value value) {
      before.insert_range(getTilesBefore(loop, value));
    };
    for (Operation *op : slice) {
      bool isBefore = loop && op->getBlock() == loop->getBlock();
      if (!makesTile(op) || !(isBefore || op->getBlock() == scan->getBlock()))
        return op->emitOpError("expects to make a tile beside the scan");
      if (isBefore)
        before.insert(op);
      else
        work.tiles.push_back(op);
      for (Value operand : op->getOperands())
        if (Value initial = getInitial(loop, operand))
          addBefore(initial);
    }
    work.before = before.takeVector();
    llvm::sort(work.before, inProgramOrder);
    llvm::sort(work.tiles, inProgramOrder);
  }
  if (Value initial = getInitial(loop, scan.getState())) {
    SmallVector<Operation *> before = getTilesBefore(loop, initial);
    // Pending tokens come between the state in memory and the scan.
    if (Operation *pending = getPendingOp(loop, scan)) {
      auto fold = dyn_cast<tile::DeltaFoldOp>(pending);
      llvm::append_range(
          before,
          getTilesBefore(
              loop, fold ? fold.getState()
                         : cast<tile::DeltaCatchUpOp>(pending).getState()));
    }
    llvm::sort(before, inProgramOrder);
    roles.work[unsigned(ScanRole::state)].before = before;
  }
  return roles;
}
