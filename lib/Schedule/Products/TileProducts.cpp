// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-schedule-tile-products: products of tiles on the tensor cores of a block.
// See Passes.td. The control flow of a program stays as it is; loops over
// chunks read ahead (ReadAhead.cpp).
#include "Kernel/FragmentEmitter.h"
#include "Kernel/OperandRoles.h"
#include "Products/LoadsAndStores.h"
#include "Products/ProductForm.h"
#include "Products/ProductKernel.h"
#include "Products/RegisterModel.h"

#include "gdn/Schedule/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"

#include <numeric>

namespace gdn {
#define GEN_PASS_DEF_SCHEDULETILEPRODUCTS
#include "gdn/Schedule/Passes.h.inc"
} // namespace gdn

using namespace mlir;
using namespace gdn;

namespace {

struct ScheduleTileProducts final
    : gdn::impl::ScheduleTileProductsBase<ScheduleTileProducts> {
  using ScheduleTileProductsBase::ScheduleTileProductsBase;

  void runOnOperation() override;
  LogicalResult inRoles(func::FuncOp func, RolePlan plan);
  void keepIfSmall(func::FuncOp func, func::FuncOp kernel);
};

} // namespace

/// ptxas takes all registers that there are to ask early for operands. Wanted
/// are no matrix elements then, but scalars of entries that ask for states
/// inside sequences: one word with 64 x 64 heads, 144 bytes of loads with 96 x
/// 192 (16/64 heads, 4 x 8,192 tokens from packed projections: 2,877 us, where
/// parts of the values, which spill nothing, take 3,363).
constexpr StringLiteral allowedProductSpills =
    "spills up to 256 bytes: scalars of recurrences with states inside "
    "sequences; "
    "one "
    "with 144 bytes of loads took 2,877 us where parts without took 3,363";

/// Elements of the largest matrix that a loop of `func` carries, whose rows
/// take registers of their own beside those of the products; 0 if none does.
static int64_t countCarried(func::FuncOp func) {
  int64_t elements = 0;
  func.walk([&](scf::ForOp loop) {
    for (Type type : loop.getResultTypes())
      if (auto tile = dyn_cast<VectorType>(type); tile && tile.getRank() == 2)
        elements = std::max(elements, tile.getNumElements());
  });
  return elements;
}

/// Copies ops that are no tiles and have no regions.
void ProductKernel::emitScalars(ArrayRef<Operation *> ops, IRMapping &mapping) {
  for (Operation *op : ops) {
    if (auto id = dyn_cast<tile::BlockIdOp>(op))
      copyBlockId(b, id, mapping);
    else if (!isa<tile::TileDialect>(op->getDialect()))
      b.clone(*op, mapping);
  }
}

/// The first op that uses a tile of `op`, in its block; null if there is none.
static Operation *getFirstUser(Operation *op) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers())
    if (user->getBlock() == op->getBlock() &&
        (!first || user->isBeforeInBlock(first)))
      first = user;
  return first;
}

/// Ops without regions, in program order: first what others wait for.
LogicalResult ProductKernel::emitSegment(ArrayRef<Operation *> ops) {
  emitScalars(ops, scalars);
  Ops vectors, matrices, low;
  for (Operation *op : ops) {
    if (isLowWork(op)) {
      low.push_back(op);
      continue;
    }
    if (!isa<tile::TileDialect>(op->getDialect()) || isa<tile::BlockIdOp>(op))
      continue;
    auto load = dyn_cast<tile::LoadOp>(op);
    if (load && isCopied(load))
      beginCopy(emitter->tiles, load, scalars, Value(), /*isPinned=*/false);
    else
      (isVectorWork(op) ? vectors : matrices).push_back(op);
  }
  // The running sums of a decay matrix are work on rank 1 as well.
  for (Operation *op : matrices)
    if (isa<tile::DecayMatrixOp>(op) &&
        !(plan && llvm::is_contained(plan->sums, op)))
      vectors.push_back(op);
  llvm::sort(vectors,
             [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
  // Products that wait for none of it are made beside it.
  Ops others;
  for (Operation *op : matrices) {
    bool isAhead = isa<tile::MatmulOp, tile::TransposeOp>(op) &&
                   llvm::all_of(others, llvm::IsaPred<tile::DecayMatrixOp>);
    if (!isAhead)
      others.push_back(op);
    else if (failed(emitter->emit(op)))
      return failure();
  }
  matrices = others;
  emitter->vectors.emit(vectors);
  // The decay matrix takes many registers, so it is made where it is needed.
  for (Operation *op : matrices) {
    if (isa<tile::DecayMatrixOp>(op) &&
        llvm::is_contained(matrices, getFirstUser(op)))
      continue;
    for (Operation *other : matrices)
      if (isa<tile::DecayMatrixOp>(other) && getFirstUser(other) == op &&
          failed(emitter->emit(other)))
        return failure();
    if (failed(emitter->emit(op)))
      return failure();
  }
  emitLowTiles(low);
  return success();
}

/// Tiles of few rows are the work of the first warp, in program order.
void ProductKernel::emitLowTiles(ArrayRef<Operation *> ops) {
  if (ops.empty())
    return;
  auto warps =
      gpu::WarpsOp::create(b, ops.front()->getLoc(), TypeRange(), 0, 1, {});
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&warps.getBody());
  FragmentEmitter warp(b, scalars);
  for (Operation *op : ops) {
    if (isa<tile::StoreOp>(op))
      warp.emitStores(op, {});
    else
      warp.emit(op);
  }
  gpu::YieldOp::create(b, ops.front()->getLoc());
}

LogicalResult ProductKernel::emitBlock(Block &block) {
  Ops segment;
  auto flush = [&]() -> LogicalResult {
    LogicalResult result = emitSegment(segment);
    segment.clear();
    return result;
  };
  for (Operation &op : block.without_terminator()) {
    if (!isOfRole(&op) || aheadOfRoles.contains(&op))
      continue;
    if (op.getNumRegions() == 0 || isa<tile::MapRowsOp>(op)) {
      segment.push_back(&op);
      continue;
    }
    if (failed(flush()) || failed(emitRegions(&op)))
      return failure();
  }
  return flush();
}

/// The same op with regions of its own.
LogicalResult ProductKernel::emitRegions(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return emitLoop(loop);
  if (llvm::any_of(op->getResultTypes(), llvm::IsaPred<VectorType>))
    return op->emitOpError("is not for a schedule of products: it gives "
                           "tiles");
  LogicalResult result = success();
  copyWithRegions(b, op, scalars, [&](Block &from, Block &) {
    if (succeeded(result))
      result = emitBlock(from);
  });
  return result;
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

FailureOr<func::FuncOp> ProductKernel::emit(int64_t minBlocks) {
  func::FuncOp kernel = createKernel(b, source, scalars);
  gpu::KernelFields fields(kernel);
  fields.setThreads(numWarps * gpu::warpThreads);
  fields.setMinBlocks(minBlocks);
  emitter =
      std::make_unique<ProductEmitter>(b, scalars, &kernel.front(), numWarps);
  if (failed(emitBlock(source.front())))
    return failure();
  func::ReturnOp::create(b, source.getLoc());
  return kernel;
}

/// True if the schedule takes ops like `op`.
static bool isKnown(Operation *op) {
  return !isa<tile::TileDialect>(op->getDialect()) ||
         isa<tile::BlockIdOp, tile::LoadOp, tile::StoreOp, tile::FillOp,
             tile::MapRowsOp, tile::YieldOp, tile::MatmulOp, tile::TransposeOp,
             tile::TriInverseOp, tile::DecayMatrixOp, tile::PrefixSumOp,
             tile::SuffixSumOp>(op);
}

/// Warps for the products of `func`: 16 rows of each for a warp. None if there
/// is a product that tensor cores do not take, or an op that it does not take.
static std::optional<int64_t> countWarps(func::FuncOp func) {
  int64_t rows = 0;
  bool isPossible = bool(tile::StageFields(func).getGrid());
  func.walk([&](Operation *op) { isPossible &= isKnown(op); });
  func.walk([&](tile::MatmulOp matmul) {
    auto lhs = cast<VectorType>(matmul.getLhs().getType());
    auto result = cast<VectorType>(matmul.getResult().getType());
    int64_t inner = lhs.getDimSize(matmul.getTransposeLhs() ? 0 : 1);
    isPossible &= lhs.getElementTypeBitWidth() == 16 && inner % 16 == 0 &&
                  result.getDimSize(1) % 16 == 0;
    rows = std::gcd(rows, result.getDimSize(0));
  });
  if (!isPossible || rows == 0 || rows % 16 != 0)
    return std::nullopt;
  return std::min<int64_t>(rows / 16, 32);
}

/// Warps per multiprocessor at most, where each thread has all the registers
/// that it can have.
static constexpr int64_t fewestWarps = 8;

/// Registers of a state beside which a thread has room for all else.
static constexpr int64_t mostOfState = 64;

/// Whether products are added to matrices from memory, of which the next is on
/// its way then.
static bool addsToLoaded(func::FuncOp func) {
  bool found = false;
  func.walk([&](tile::MatmulOp matmul) {
    found |= matmul.getAcc() && matmul.getAcc().getDefiningOp<tile::LoadOp>();
  });
  return found;
}

/// Registers that a state takes of a thread.
static int64_t countStateRegisters(func::FuncOp func, int64_t numWarps) {
  return countCarried(func) / (numWarps * gpu::warpThreads);
}

/// Whether products are to be done where a barrier follows: few warps copy so
/// much each that ptxas spills where it moves products behind one and keeps
/// what they multiply. Beside a larger state it has less ahead by itself.
static bool finishesProducts(func::FuncOp func, int64_t numWarps) {
  int64_t state = countStateRegisters(func, numWarps);
  return numWarps < fewestWarps && state != 0 && state <= mostOfState;
}

/// Replaces the program by its kernel, or says what it would take.
void ScheduleTileProducts::keepIfSmall(func::FuncOp func, func::FuncOp kernel) {
  if (int64_t bytes = countSharedBytes(kernel); bytes > sharedBytes) {
    func.emitRemark() << "'" << func.getName() << "' would take " << bytes
                      << " bytes of shared memory, of which a block has "
                      << sharedBytes.getValue();
    return kernel.erase();
  }
  func.erase();
  ++numKernels;
}

LogicalResult ScheduleTileProducts::inRoles(func::FuncOp func, RolePlan plan) {
  auto state = llvm::find_if(plan.loop.getRegionIterArgs(), [](Value value) {
    return isa<VectorType>(value.getType());
  });
  int64_t warps = cast<VectorType>((*state).getType()).getDimSize(0) / 16;
  FailureOr<func::FuncOp> kernel =
      ProductKernel(func, warps).emitRoles(std::move(plan));
  if (failed(kernel))
    return failure();
  keepIfSmall(func, *kernel);
  return success();
}

void ScheduleTileProducts::runOnOperation() {
  SmallVector<std::pair<func::FuncOp, int64_t>> programs;
  for (auto func : getOperation().getOps<func::FuncOp>())
    if (std::optional<int64_t> warps = countWarps(func))
      programs.push_back({func, *warps});
  for (auto [func, numWarps] : programs) {
    bringIntoForm(func);
    if (std::optional<RolePlan> plan = RolePlan::find(func)) {
      if (failed(inRoles(func, std::move(*plan))))
        return signalPassFailure();
      continue;
    }
    // Warps that have too few registers for a product together make their own.
    bool together =
        warpgroups && countRegisters(func, numWarps, /*together=*/true) <=
                          getMostRegisters(numWarps, /*numBlocks=*/1);
    int64_t residentWarps = countCarried(func) != 0 || addsToLoaded(func)
                                ? std::min<int64_t>(warps, fewestWarps)
                                : warps;
    int64_t needed = countRegisters(func, numWarps, together);
    int64_t blocks = std::max<int64_t>(1, residentWarps / numWarps);
    while (blocks > 1 && getMostRegisters(numWarps, blocks) < needed)
      --blocks;
    if (int64_t most = getMostRegisters(numWarps, blocks); most < needed) {
      func.emitRemark() << "'" << func.getName() << "' would take about "
                        << needed << " registers, of which a thread of "
                        << numWarps << " warps has " << most;
      continue;
    }
    FailureOr<func::FuncOp> kernel = ProductKernel(func, numWarps).emit(blocks);
    if (failed(kernel))
      return signalPassFailure();
    if (warpgroups && !together)
      gpu::KernelFields(*kernel).setSingleWarps();
    if (warpgroups && countCarried(func) != 0)
      (*kernel)->setAttr("gdn_gpu.allow",
                         StringAttr::get(&getContext(), allowedProductSpills));
    if ((!warpgroups || numWarps < gpu::groupWarps) &&
        finishesProducts(func, numWarps))
      gpu::KernelFields(*kernel).setFinishProducts();
    keepIfSmall(func, *kernel);
  }
}
