// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which ops of a loop over chunks are the work of which role: what needs the
// state that the loop carries is the recurrence; of the rest, work on vectors
// is gates, rows of copied matrices times elements of vectors are for the role
// that scales, all else for the producer.
#include "Products/RolePlan.h"

#include "Kernel/OperandRoles.h"
#include "Products/GateVectors.h"
#include "Products/LoadsAndStores.h"

#include "gdn/Dialect/Tile/IR/StageFields.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <functional>

using namespace mlir;
using namespace gdn;

static bool isMatrix(Value value) {
  auto type = dyn_cast<VectorType>(value.getType());
  return type && type.getRank() == 2;
}

/// Whether rows of `op` are made of the same rows of matrices of `known` and of
/// elements of vectors, whichever row it is.
static bool isRowWork(Operation *op, function_ref<bool(Value)> isKnown) {
  auto map = dyn_cast<tile::MapRowsOp>(op);
  if (!map || !map.getBody().getArgument(0).use_empty() ||
      !llvm::all_of(map.getResults(), isMatrix))
    return false;
  bool hasMore = false; // tiles from outside
  map.getBody().walk([&](Operation *inner) {
    if (isa<vector::ExtractOp>(inner))
      return;
    for (Value operand : inner->getOperands())
      hasMore |= isa<VectorType>(operand.getType()) &&
                 !map.getBody().isAncestor(operand.getParentRegion()) &&
                 !operand.getDefiningOp<arith::ConstantOp>();
  });
  return !hasMore && llvm::all_of(map.getInputs(), [&](Value input) {
    return !isMatrix(input) || isKnown(input);
  });
}

/// Finds the work on rows of what the recurrence gives, transposed, that is
/// stored and nothing else. A role has no other way to a whole row.
static void findRowsOfOutputs(const DenseSet<Operation *> &recurrence,
                              Block &body, RolePlan &plan) {
  auto isBehind = [&](Operation *op) { return plan.behind.contains(op); };
  for (Operation &op : llvm::reverse(body)) {
    auto map = dyn_cast<tile::MapRowsOp>(op);
    // A gate needs no output, but nothing else needs it.
    bool isWork =
        map ? map.getBody().getArgument(0).use_empty() && !map->use_empty()
            : recurrence.contains(&op) &&
                  isa<tile::StoreOp, tile::SumOfPairOp>(op);
    if (isWork && llvm::all_of(op.getUsers(), isBehind))
      plan.behind.insert(&op);
  }
  for (Operation *op : plan.behind)
    if (auto map = dyn_cast<tile::MapRowsOp>(op))
      for (Value input : map.getInputs())
        if (isMatrix(input) && isNarrow(vectorType(input)) &&
            input.getDefiningOp<tile::TransposeOp>() &&
            recurrence.contains(input.getDefiningOp()) &&
            !llvm::is_contained(plan.outputs, input))
          plan.outputs.push_back(input);
  if (plan.outputs.empty()) { // outputs are stored as they are
    plan.behind.clear();
    return;
  }
  for (auto load : body.getOps<tile::LoadOp>())
    if (!load->use_empty() && llvm::all_of(load->getUsers(), isBehind))
      plan.fetched.push_back(load.getTile());
}

/// True if all that uses `tile` also uses what follows from a product.
static bool isForLater(Value tile,
                       const DenseSet<Operation *> &behindProducts) {
  return llvm::all_of(tile.getUsers(), [&](Operation *user) {
    if (auto transpose = dyn_cast<tile::TransposeOp>(user))
      return isForLater(transpose.getResult(), behindProducts);
    return behindProducts.contains(user);
  });
}

/// Of chunks whose operands all lie in memory: all else is the recurrence.
bool RolePlan::findPrepared(const DenseSet<Operation *> &recurrence) {
  Block *body = loop.getBody();
  SmallVector<Value> multiplied;
  for (auto matmul : body->getOps<tile::MatmulOp>())
    multiplied.push_back(matmul.getResult());
  const DenseSet<Operation *> behindProducts = getFollowers(multiplied, body);
  for (Operation &op : *body) {
    if (!isa<tile::TileDialect>(op.getDialect()) || recurrence.contains(&op) ||
        isa<tile::TransposeOp, tile::SignalOp>(op))
      continue;
    auto load = dyn_cast<tile::LoadOp>(op);
    if (load && llvm::is_contained(perWarpgroup, load))
      continue;
    // Whole regions of the workspace, as boxes are.
    if (!load || !isCopied(load) || load.getRows() ||
        !isa<BlockArgument>(load.getView()))
      return false;
    Value tile = load.getTile();
    (!isMatrix(tile)                    ? vectors
     : isForLater(tile, behindProducts) ? products
                                        : copied)
        .push_back(tile);
  }
  for (auto store : body->getOps<tile::StoreOp>())
    stored.push_back(store.getTile());
  // A group of warps for the state, and one that copies and stores.
  auto state = vectorType(*llvm::find_if(loop.getRegionIterArgs(), isMatrix));
  isPrepared = behind.empty() && perWarpgroup.size() == 1 && !convolved &&
               !copied.empty() && !products.empty() && stored.size() == 1 &&
               stored.front().getDefiningOp<tile::TransposeOp>() &&
               state.getDimSize(0) == 16 * gpu::groupWarps &&
               state.getDimSize(1) <= 128;
  if (isPrepared)
    values = {std::exchange(perWarpgroup, {}).front().getTile()};
  return isPrepared;
}

bool RolePlan::beginsEarly() const {
  if (isPrepared || chunk)
    return false;
  tile::StageFields stage(loop->getParentOfType<func::FuncOp>());
  const bool overlapsNext = stage.overlapsWith(tile::Neighbour::next);
  if (convolved || !behind.empty())
    return !overlapsNext;
  auto isWhole = [](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return vector && vector.getDimSize(0) > 16 * gpu::groupWarps;
  };
  auto isGiven = [](Operation *op) { // and not made of projections
    auto load = dyn_cast<tile::LoadOp>(op);
    return !load || vectorType(load.getTile()).getElementType().isF32();
  };
  return llvm::none_of(loop->getResultTypes(), isWhole) || overlapsNext ||
         llvm::all_of(gates, isGiven);
}

/// Of chunks with a decay per channel.
bool RolePlan::findChannels(const DenseSet<Operation *> &recurrence) {
  Block *body = loop.getBody();
  chunk = ChannelChunk::find(*body);
  if (!chunk || perWarpgroup.size() != 1 || convolved || !behind.empty())
    return false;
  for (Operation &op : *body)
    if (isa<tile::TileDialect>(op.getDialect()) && !recurrence.contains(&op) &&
        !isa<tile::TransposeOp>(op) &&
        !llvm::is_contained(perWarpgroup, dyn_cast<tile::LoadOp>(op))) {
      if (!chunk->contains(&op)) {
        op.emitRemark("a chunk with a decay per channel has no roles: expects "
                      "no other work that needs no state");
        return false;
      }
      produced.insert(&op);
    }
  tile::DecayOperandsOp operands = chunk->operands;
  copied = {operands.getFromQuery(), operands.getFromKey(),
            operands.getToEnd(),     chunk->solve,
            chunk->scores,           operands.getEnd()};
  chunk->value = perWarpgroup.front();
  vectors = {chunk->value.getTile()};
  perWarpgroup.clear();
  return true;
}

std::optional<RolePlan> RolePlan::find(func::FuncOp program) {
  SmallVector<scf::ForOp> loops;
  program.walk([&](scf::ForOp loop) {
    if (llvm::any_of(loop.getRegionIterArgs(), isMatrix))
      loops.push_back(loop);
  });
  if (loops.size() != 1)
    return std::nullopt;
  RolePlan plan;
  plan.loop = loops.front();
  Block *body = plan.loop.getBody();
  // Values, which only elementwise work reads, transposed.
  for (auto load : body->getOps<tile::LoadOp>())
    if (isCopied(load) && isMatrix(load.getTile()) &&
        llvm::all_of(load->getUsers(), [](Operation *user) {
          return isa<tile::TransposeOp>(user) &&
                 llvm::all_of(user->getUsers(), llvm::IsaPred<tile::MapRowsOp>);
        }))
      plan.perWarpgroup.push_back(load);
  plan.convolved = ConvolvedValues::find(plan.loop);
  if (plan.convolved)
    plan.perWarpgroup.push_back(plan.convolved->inputs);
  SmallVector<Value> carried(plan.loop.getRegionIterArgs());
  for (tile::LoadOp load : plan.perWarpgroup)
    carried.push_back(load.getTile());
  const DenseSet<Operation *> recurrence = getFollowers(carried, body);
  findRowsOfOutputs(recurrence, *body, plan);
  SmallVector<Value> products;
  for (auto matmul : body->getOps<tile::MatmulOp>())
    if (!recurrence.contains(matmul))
      products.push_back(matmul.getResult());
  for (auto inverse : body->getOps<tile::TriInverseOp>())
    if (!recurrence.contains(inverse))
      plan.inverse = inverse;
  if (!plan.inverse) {
    const bool copies = tile::StageFields(program).getCopiesAhead();
    return copies && plan.findPrepared(recurrence) ? std::optional(plan)
                                                   : std::nullopt;
  }
  if (llvm::any_of(*body, llvm::IsaPred<tile::DecayOperandsOp>))
    return plan.findChannels(recurrence) ? std::optional(plan) : std::nullopt;
  // A decay matrix is made where it is multiplied, of sums that are loaded.
  for (auto decay : body->getOps<tile::DecayMatrixOp>())
    products.push_back(decay.getResult());
  for (Operation &op : *body) {
    // Tiles are transposed where they are read.
    if (!isa<tile::TileDialect>(op.getDialect()) || recurrence.contains(&op) ||
        isa<tile::TransposeOp>(op))
      continue;
    auto load = dyn_cast<tile::LoadOp>(op);
    if (plan.behind.contains(&op) ||
        (load && (llvm::is_contained(plan.perWarpgroup, load) ||
                  llvm::is_contained(plan.fetched, load.getTile()))))
      continue;
    if (load && isMatrix(load.getTile()))
      plan.copied.push_back(load.getTile());
    else if (isVectorWork(&op))
      plan.gates.insert(&op);
    else if (isRowWork(&op,
                       [&](Value input) {
                         return llvm::is_contained(plan.copied, input) ||
                                plan.scales.contains(input.getDefiningOp());
                       }) &&
             llvm::all_of(op.getUsers(), [&](Operation *user) {
               return !isa<tile::MatmulOp>(user) || recurrence.contains(user);
             }))
      plan.scales.insert(&op);
    else
      plan.produced.insert(&op);
  }
  // Who uses `value`: transposed tiles are used where those are.
  std::function<bool(Value, llvm::function_ref<bool(Operation *)>)> hasUser =
      [&](Value value, llvm::function_ref<bool(Operation *)> isOne) {
        return llvm::any_of(value.getUsers(), [&](Operation *user) {
          Operation *op = body->findAncestorOpInBlock(*user);
          if (auto transpose = dyn_cast_or_null<tile::TransposeOp>(op))
            return isOne(op) || hasUser(transpose.getResult(), isOne);
          return op && isOne(op);
        });
      };
  auto isInRecurrence = [&](Operation *op) { return recurrence.contains(op); };
  auto takesGates = [&](Operation *op) {
    return isInRecurrence(op) || plan.scales.contains(op) ||
           (plan.produced.contains(op) && !isa<tile::DecayMatrixOp>(op));
  };
  for (Operation *op : plan.gates)
    for (Value tile : op->getResults())
      if (hasUser(tile, takesGates))
        plan.vectors.push_back(tile);
  for (Operation *op : plan.produced) {
    if (auto decay = dyn_cast<tile::DecayMatrixOp>(op)) {
      plan.sums.push_back(op);
      plan.vectors.push_back(decay.getResult());
      continue;
    }
    for (Value tile : op->getResults())
      if (hasUser(tile, isInRecurrence))
        plan.products.push_back(tile);
  }
  for (Operation *op : plan.scales)
    for (Value tile : op->getResults())
      if (hasUser(tile, isInRecurrence))
        plan.scaled.push_back(tile);
  // What they need from ahead of the loop.
  auto addSources = [&](llvm::SetVector<Operation *> &ops) {
    SmallVector<Operation *> work(ops.begin(), ops.end());
    while (!work.empty())
      work.pop_back_val()->walk([&](Operation *inner) {
        for (Value operand : inner->getOperands()) {
          Operation *source = operand.getDefiningOp();
          if (source && isa<tile::TileDialect>(source->getDialect()) &&
              isa<VectorType>(operand.getType()) &&
              !body->getParent()->isAncestor(source->getParentRegion()) &&
              ops.insert(source))
            work.push_back(source);
        }
      });
  };
  addSources(plan.gates);
  addSources(plan.produced);
  return plan;
}
