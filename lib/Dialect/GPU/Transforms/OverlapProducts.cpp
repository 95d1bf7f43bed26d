// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-overlap-products: where a program waits for products of warpgroups.
// See Passes.td.
#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/GPU/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

namespace gdn {
#define GEN_PASS_DEF_OVERLAPPRODUCTS
#include "gdn/Dialect/GPU/Transforms/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

/// Registers of a thread with which products and other work have room beside
/// each other.
static constexpr int64_t roomyRegisters = 216;

/// Whether a product that reads `tile` has to be over before `op`. It `adds`
/// to another matrix, or does not.
static bool hasToWait(Operation *op, Value tile, bool adds) {
  // Behind a wait for another role, what products hold is needed for new work.
  if (isa<gdn::gpu::ReceiveOp>(op)) {
    gdn::gpu::WarpsOp role = gdn::gpu::getRole(op);
    return !role || role.getRegisters().value_or(0) < roomyRegisters;
  }
  // What another role filled stays until it is released; a sum is large, and
  // the meeting is for what is done beside it.
  if (isa<gdn::gpu::BarrierOp>(op))
    return !adds || !tile.getDefiningOp<gdn::gpu::ReceiveOp>();
  if (isa<gdn::gpu::ReleaseOp>(op) || op->hasTrait<OpTrait::IsTerminator>())
    return true;
  if (isa<gdn::gpu::CommitOp>(op))
    return !tile.getDefiningOp<gdn::gpu::ReceiveOp>();
  if (auto warps = dyn_cast<gdn::gpu::WarpsOp>(op))
    return warps.getBody()
        .walk([&](Operation *inner) {
          return hasToWait(inner, tile, adds) && !isa<gdn::gpu::YieldOp>(inner)
                     ? WalkResult::interrupt()
                     : WalkResult::advance();
        })
        .wasInterrupted();
  if (op->getNumRegions() > 0 && !gdn::gpu::hasArithmetic(op))
    return true;
  if (auto store = dyn_cast<gdn::gpu::StoreSharedOp>(op))
    return store.getBuffer() == tile;
  if (auto copy = dyn_cast<gdn::gpu::BeginCopyOp>(op))
    return copy.getBuffer() == tile;
  if (auto conv = dyn_cast<gdn::gpu::ConvColumnsOp>(op))
    return conv.getValues() == tile;
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

/// True if `op` may write the tile at `buffer`.
static bool mayWrite(Operation *op, Value buffer) {
  if (auto store = dyn_cast<gdn::gpu::StoreSharedOp>(op))
    return store.getBuffer() == buffer;
  if (auto copy = dyn_cast<gdn::gpu::BeginCopyOp>(op))
    return copy.getBuffer() == buffer;
  if (auto conv = dyn_cast<gdn::gpu::ConvColumnsOp>(op))
    return conv.getValues() == buffer;
  return !isa<gdn::gpu::LoadSharedOp, gdn::gpu::LoadSharedElementOp,
              gdn::gpu::MapRowsOp, gdn::gpu::StartMatmulOp,
              gdn::gpu::AwaitMatmulOp, gdn::gpu::MatmulOp, gdn::gpu::BarrierOp,
              gdn::gpu::AcquireOp>(op) &&
         !isPure(op);
}

/// The load of `matmul`'s left side, if tensor cores can read it for
/// themselves: nothing may write the tile in between.
static gdn::gpu::LoadSharedOp getSharedLhs(gdn::gpu::MatmulOp matmul) {
  auto load = matmul.getLhs().getDefiningOp<gdn::gpu::LoadSharedOp>();
  gdn::gpu::FragmentType type = matmul.getLhs().getType();
  if (!load || matmul.getFrom() || load.getRow() ||
      load->getBlock() != matmul->getBlock() ||
      type.getRows().getWarps() != 4 || type.getDimSize(0) != 64)
    return {};
  gdn::gpu::SharedType buffer = load.getBuffer().getType();
  if (!buffer.getSwizzled() || buffer.getPanelRowBytes() != 128)
    return {};
  for (Operation *op = load->getNextNode(); op != matmul;
       op = op->getNextNode())
    if (mayWrite(op, load.getBuffer()))
      return {};
  return load;
}

static void overlap(gdn::gpu::MatmulOp matmul) {
  OpBuilder b(matmul);
  gdn::gpu::LoadSharedOp load = getSharedLhs(matmul);
  Value lhs = load ? Value(load.getBuffer()) : Value(matmul.getLhs());
  auto start = gdn::gpu::StartMatmulOp::create(
      b, matmul.getLoc(),
      gdn::gpu::AsyncTokenType::get(matmul.getResult().getType()), lhs,
      matmul.getRhs(), matmul.getAcc(), matmul.getTransposeRhs(),
      /*transposed=*/load && load.getTranspose(), matmul.getFromAttr());
  Operation *next = matmul->getNextNode();
  auto buffers = start.getBuffers();
  while (!uses(next, matmul.getResult()) &&
         llvm::none_of(buffers, [&](Value buffer) {
           return hasToWait(next, buffer, bool(matmul.getAcc()));
         }))
    next = next->getNextNode();
  b.setInsertionPoint(next);
  Value result = gdn::gpu::AwaitMatmulOp::create(
      b, matmul.getLoc(), matmul.getResult().getType(), start.getResult());
  matmul.getResult().replaceAllUsesWith(result);
  matmul.erase();
  if (load && load->use_empty())
    load.erase();
}

/// Elementwise work, and what it has one number of for each row.
static bool isHoisted(Operation *op) {
  auto load = dyn_cast<gdn::gpu::LoadSharedOp>(op);
  return isa<gdn::gpu::MapRowsOp, gdn::gpu::LoadSharedElementOp>(op) ||
         (load && load.getTile().getType().isPerRow() &&
          load.getBuffer().getDefiningOp<gdn::gpu::ReceiveOp>());
}

/// What `op` uses, inside of its regions too.
static SetVector<Value> getInputs(Operation *op) {
  SetVector<Value> inputs(op->operand_begin(), op->operand_end());
  for (Region &region : op->getRegions())
    getUsedValuesDefinedAbove(region, inputs);
  return inputs;
}

/// A row of shared memory for elementwise work on a matrix that needs nothing
/// else that `isKnown` does not say is there.
static bool isRowOfHoisted(Operation *op, function_ref<bool(Value)> isKnown) {
  auto load = dyn_cast<gdn::gpu::LoadSharedOp>(op);
  if (!load || load.getTile().getType().getRank() != 1 || !load->hasOneUse())
    return false;
  auto map = dyn_cast<gdn::gpu::MapRowsOp>(*load->user_begin());
  auto isMatrix = [](Value value) {
    auto type = dyn_cast<gdn::gpu::FragmentType>(value.getType());
    return type && type.getRank() == 2;
  };
  return map && map->getBlock() == op->getBlock() &&
         llvm::any_of(map->getOperands(), isMatrix) &&
         llvm::all_of(getInputs(map), [&](Value value) {
           return value == load.getTile() || isKnown(value);
         });
}

/// Elementwise work that needs no product under way comes before the first of
/// them: the assembler waits for all products where registers that one has
/// written before are written again.
static void hoistWork(Block &block) {
  Operation *first = nullptr; // of the products under way
  bool hasMet = false;        // others since that product, or memory
  SmallVector<Operation *> ops =
      llvm::map_to_vector(block, [](Operation &op) { return &op; });
  SmallPtrSet<Operation *, 4> underWay;
  auto isKnown = [&](Value value) {
    Operation *source = value.getDefiningOp();
    return !source || source->getBlock() != &block ||
           source->isBeforeInBlock(first);
  };
  for (Operation *op : ops) {
    if (isa<gdn::gpu::StartMatmulOp>(op)) {
      hasMet &= first != nullptr;
      first = first ? first : op;
      underWay.insert(op);
    } else if (auto await = dyn_cast<gdn::gpu::AwaitMatmulOp>(op)) {
      underWay.erase(await.getProduct().getDefiningOp());
      if (underWay.empty())
        first = nullptr;
    } else if (first &&
               (isHoisted(op) || (!hasMet && isRowOfHoisted(op, isKnown)))) {
      if (llvm::all_of(getInputs(op), isKnown))
        op->moveBefore(first);
    } else if (!isPure(op) && !isa<gdn::gpu::LoadSharedOp>(op)) {
      hasMet = true;
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
