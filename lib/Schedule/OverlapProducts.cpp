// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-overlap-products: where a program waits for products of warpgroups.
// See Passes.td.
#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Schedule/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

namespace gdn {
#define GEN_PASS_DEF_OVERLAPPRODUCTS
#include "gdn/Schedule/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

/// Registers of a thread with which products and other work have room beside
/// each other.
static constexpr int64_t roomyRegisters = 216;

/// Whether a product that reads `tile` has to be over before `op`.
static bool hasToWait(Operation *op, Value tile) {
  // Behind a wait for another role, what products hold is needed for new work.
  if (isa<gdn::gpu::ReceiveOp>(op)) {
    gdn::gpu::WarpsOp role = gdn::gpu::getRole(op);
    return !role || role.getRegisters().value_or(0) < roomyRegisters;
  }
  if (isa<gdn::gpu::BarrierOp, gdn::gpu::ReleaseOp>(op) ||
      op->hasTrait<OpTrait::IsTerminator>())
    return true;
  if (isa<gdn::gpu::CommitOp>(op))
    return !tile.getDefiningOp<gdn::gpu::ReceiveOp>();
  if (auto warps = dyn_cast<gdn::gpu::WarpsOp>(op))
    return warps.getBody()
        .walk([&](Operation *inner) {
          return hasToWait(inner, tile) && !isa<gdn::gpu::YieldOp>(inner)
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  if (op->getNumRegions() > 0 && !isa<gdn::gpu::MapRowsOp>(op))
    return true;
  if (auto share = dyn_cast<gdn::gpu::ShareOp>(op))
    return share.getPlace() == tile;
  if (auto copy = dyn_cast<gdn::gpu::BeginCopyOp>(op))
    return copy.getPlace() == tile;
  return false;
}

static bool uses(Operation *op, Value value) {
  return op
      ->walk([&](Operation *inner) {
        return llvm::is_contained(inner->getOperands(), value)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// True if `op` may write the tile at `place`.
static bool mayWrite(Operation *op, Value place) {
  if (auto share = dyn_cast<gdn::gpu::ShareOp>(op))
    return share.getPlace() == place;
  if (auto copy = dyn_cast<gdn::gpu::BeginCopyOp>(op))
    return copy.getPlace() == place;
  return !isa<gdn::gpu::FetchOp, gdn::gpu::FetchElementOp, gdn::gpu::MapRowsOp,
              gdn::gpu::StartMatmulOp, gdn::gpu::AwaitMatmulOp,
              gdn::gpu::MatmulOp, gdn::gpu::BarrierOp, gdn::gpu::AcquireOp>(
             op) &&
         !isPure(op);
}

/// The fetch of `matmul`'s left side, if tensor cores can read it for
/// themselves: nothing may write the tile in between.
static gdn::gpu::FetchOp getSharedLhs(gdn::gpu::MatmulOp matmul) {
  auto fetch = matmul.getLhs().getDefiningOp<gdn::gpu::FetchOp>();
  gdn::gpu::FragmentType type = matmul.getLhs().getType();
  if (!fetch || fetch.getRow() || fetch->getBlock() != matmul->getBlock() ||
      type.getRows().getWarps() != 4 || type.getDimSize(0) != 64)
    return {};
  gdn::gpu::SharedType place = fetch.getPlace().getType();
  if (!place.getSwizzled() || place.getPanelRowBytes() != 128)
    return {};
  for (Operation *op = fetch->getNextNode(); op != matmul;
       op = op->getNextNode())
    if (mayWrite(op, fetch.getPlace()))
      return {};
  return fetch;
}

static void overlap(gdn::gpu::MatmulOp matmul) {
  OpBuilder b(matmul);
  gdn::gpu::FetchOp fetch = getSharedLhs(matmul);
  Value lhs = fetch ? Value(fetch.getPlace()) : Value(matmul.getLhs());
  auto start = gdn::gpu::StartMatmulOp::create(
      b, matmul.getLoc(),
      gdn::gpu::PendingType::get(matmul.getResult().getType()), lhs,
      matmul.getRhs(), matmul.getAcc(), matmul.getTransposeRhs(),
      /*turned=*/fetch && fetch.getTranspose());
  Operation *next = matmul->getNextNode();
  auto places = start.getPlaces();
  while (!uses(next, matmul.getResult()) &&
         llvm::none_of(places,
                       [&](Value place) { return hasToWait(next, place); }))
    next = next->getNextNode();
  b.setInsertionPoint(next);
  Value result = gdn::gpu::AwaitMatmulOp::create(
      b, matmul.getLoc(), matmul.getResult().getType(), start.getResult());
  matmul.getResult().replaceAllUsesWith(result);
  matmul.erase();
  if (fetch && fetch->use_empty())
    fetch.erase();
}

/// Elementwise work, and what it has one number of for each row.
static bool isHoisted(Operation *op) {
  auto fetch = dyn_cast<gdn::gpu::FetchOp>(op);
  return isa<gdn::gpu::MapRowsOp, gdn::gpu::FetchElementOp>(op) ||
         (fetch && fetch.getTile().getType().isPerRow() &&
          fetch.getPlace().getDefiningOp<gdn::gpu::ReceiveOp>());
}

/// Elementwise work that needs no product under way comes before the first of
/// them: the assembler waits for all products where registers that one has
/// written before are written again.
static void hoistWork(Block &block) {
  Operation *first = nullptr; // of the products under way
  SmallVector<Operation *> ops =
      llvm::map_to_vector(block, [](Operation &op) { return &op; });
  SmallPtrSet<Operation *, 4> underWay;
  for (Operation *op : ops) {
    if (isa<gdn::gpu::StartMatmulOp>(op)) {
      first = first ? first : op;
      underWay.insert(op);
    } else if (auto await = dyn_cast<gdn::gpu::AwaitMatmulOp>(op)) {
      underWay.erase(await.getProduct().getDefiningOp());
      if (underWay.empty())
        first = nullptr;
    } else if (first && isHoisted(op)) {
      SetVector<Value> inputs(op->operand_begin(), op->operand_end());
      for (Region &region : op->getRegions())
        getUsedValuesDefinedAbove(region, inputs);
      if (llvm::all_of(inputs, [&](Value value) {
            Operation *source = value.getDefiningOp();
            return !source || source->getBlock() != &block ||
                   source->isBeforeInBlock(first);
          }))
        op->moveBefore(first);
    }
  }
}

namespace {
struct OverlapProducts final : gdn::impl::OverlapProductsBase<OverlapProducts> {
  void runOnOperation() override {
    SmallVector<gdn::gpu::MatmulOp> products;
    getOperation().walk([&](gdn::gpu::MatmulOp matmul) {
      if (matmul.getWarpgroup())
        products.push_back(matmul);
    });
    for (gdn::gpu::MatmulOp matmul : products) {
      overlap(matmul);
      ++numProducts;
    }
    getOperation().walk([](Block *block) { hoistWork(*block); });
  }
};
} // namespace
