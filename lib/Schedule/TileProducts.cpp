// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-schedule-tile-products: products of tiles on the tensor cores of a block.
// See Passes.td. The control flow of a program stays as it is; a loop over
// chunks reads ahead:
//
//     copy what the first turn needs first                       K, Q
//     loop:
//       await; barrier
//       copy what this turn needs late                           V, Y, Z
//       work that does not need it                               K S, Q S
//       await; barrier
//       copy what the next turn needs first
//       the rest of the work
#include "FragmentEmitter.h"
#include "ProductEmitter.h"
#include "ProductForm.h"
#include "ProductLimits.h"
#include "ScanRoles.h"

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

using Ops = SmallVector<Operation *>;

class ProductKernel {
public:
  ProductKernel(func::FuncOp source, int64_t numWarps)
      : source(source), numWarps(numWarps), b(source.getContext()) {}
  /// The kernel, ahead of the program.
  FailureOr<func::FuncOp> emit(int64_t minBlocks);

private:
  LogicalResult emitBlock(Block &block);
  LogicalResult emitSegment(ArrayRef<Operation *> ops);
  void emitLowTiles(ArrayRef<Operation *> ops);
  LogicalResult emitRegions(Operation *op);
  LogicalResult emitLoop(scf::ForOp loop);
  LogicalResult emitReadingAhead(scf::ForOp loop, scf::ForOp copy);
  LogicalResult emitTurns(scf::ForOp loop, scf::ForOp copy);
  LogicalResult emitEach(tile::EachOp each);
  void emitScalars(ArrayRef<Operation *> ops, IRMapping &mapping);
  void emitAhead(scf::ForOp loop, ArrayRef<tile::LoadOp> loads, Value at,
                 Value end);
  void yield(scf::ForOp loop);
  void meet(Location loc) {
    gpu::AwaitCopiesOp::create(b, loc);
    gpu::BarrierOp::create(b, loc);
  }

  func::FuncOp source;
  int64_t numWarps;
  OpBuilder b;
  IRMapping scalars;
  std::optional<ProductEmitter> tiles;
};

struct ScheduleTileProducts final
    : gdn::impl::ScheduleTileProductsBase<ScheduleTileProducts> {
  using ScheduleTileProductsBase::ScheduleTileProductsBase;

  void runOnOperation() override;
};

} // namespace

/// ptxas takes all registers that there are to ask early for operands. Wanted
/// are no matrix elements then, but what a loop over chunks does not change.
constexpr StringLiteral allowedSpills =
    "spills up to 96 bytes: addresses and scalars that the loop over chunks "
    "does "
    "not change; none is stored in it, and of its 1,000 instructions at most 9 "
    "load one";

/// True if a loop of `func` carries a matrix: its rows take registers of their
/// own beside those of the products.
static bool carriesMatrix(func::FuncOp func) {
  bool carries = false;
  func.walk([&](scf::ForOp loop) {
    carries |= llvm::any_of(loop.getResultTypes(), [](Type type) {
      auto tile = dyn_cast<VectorType>(type);
      return tile && tile.getRank() == 2;
    });
  });
  return carries;
}

/// True if several chunks are worked on at once: addresses in many tiles then
/// take the registers that products need, if they are kept from turn to turn.
static bool hasEach(func::FuncOp func) {
  return func.walk([](tile::EachOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

static bool isTile(Value value) { return isa<VectorType>(value.getType()); }

/// An op on tiles of rank 1 alone.
static bool isVectorWork(Operation *op) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return cast<VectorType>(load.getTile().getType()).getRank() == 1 &&
           !ProductEmitter::isCopied(load);
  auto isVector = [](Value value) {
    auto type = dyn_cast<VectorType>(value.getType());
    return !type || type.getRank() == 1;
  };
  return isa<tile::TileDialect>(op->getDialect()) &&
         llvm::all_of(op->getOperands(), isVector) &&
         llvm::all_of(op->getResults(), isVector) && !isa<tile::BlockIdOp>(op);
}

/// Copies ops that are no tiles and have no regions.
void ProductKernel::emitScalars(ArrayRef<Operation *> ops, IRMapping &mapping) {
  for (Operation *op : ops) {
    if (auto id = dyn_cast<tile::BlockIdOp>(op))
      mapping.map(id.getResult(),
                  gpu::BlockIdOp::create(b, op->getLoc(), b.getIndexType(),
                                         id.getAxis()));
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
    if (load && ProductEmitter::isCopied(load))
      tiles->emitCopy(load, scalars, Value(), /*isPinned=*/false);
    else
      (isVectorWork(op) ? vectors : matrices).push_back(op);
  }
  // The running sums of a decay matrix are work on rank 1 as well.
  for (Operation *op : matrices)
    if (isa<tile::DecayMatrixOp>(op))
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
    else if (failed(tiles->emit(op)))
      return failure();
  }
  matrices = others;
  if (failed(tiles->emitVectors(vectors)))
    return failure();
  // The decay matrix takes many registers, so it is made where it is needed.
  for (Operation *op : matrices) {
    if (isa<tile::DecayMatrixOp>(op) &&
        llvm::is_contained(matrices, getFirstUser(op)))
      continue;
    for (Operation *other : matrices)
      if (isa<tile::DecayMatrixOp>(other) && getFirstUser(other) == op &&
          failed(tiles->emit(other)))
        return failure();
    if (failed(tiles->emit(op)))
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
      gpu::WarpsOp::create(b, ops.front()->getLoc(), TypeRange(), 0, 1);
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
  if (auto each = dyn_cast<tile::EachOp>(op))
    return emitEach(each);
  if (llvm::any_of(op->getResults(), isTile))
    return op->emitOpError("has no place in a schedule of products: it gives "
                           "tiles");
  Operation *clone = op->cloneWithoutRegions(scalars);
  b.insert(clone);
  OpBuilder::InsertionGuard guard(b);
  for (auto [from, to] : llvm::zip(op->getRegions(), clone->getRegions())) {
    if (from.empty())
      continue;
    Block &body = from.front();
    Block *copy = b.createBlock(
        &to, {}, body.getArgumentTypes(),
        SmallVector<Location>(body.getNumArguments(), op->getLoc()));
    scalars.map(body.getArguments(), copy->getArguments());
    if (failed(emitBlock(body)))
      return failure();
    b.clone(*body.getTerminator(), scalars);
  }
  for (auto [from, to] : llvm::zip(op->getResults(), clone->getResults()))
    scalars.map(from, to);
  return success();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Ops of `block` that use a result of one of `from`, directly or not.
static DenseSet<Operation *> getFollowers(Block &block,
                                          const DenseSet<Operation *> &from) {
  DenseSet<Operation *> followers;
  for (Operation &op : block)
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *source = operand.getDefiningOp();
            source && (from.contains(source) || followers.contains(source)))
          followers.insert(&op);
    });
  return followers;
}

/// True if all that uses `tile` also uses what follows from a product.
static bool isLate(Value tile, const DenseSet<Operation *> &behindProducts) {
  return llvm::all_of(tile.getUsers(), [&](Operation *user) {
    Operation *op = user;
    while (op->getBlock() != tile.getParentBlock())
      op = op->getParentOp();
    if (auto transpose = dyn_cast<tile::TransposeOp>(op))
      return isLate(transpose.getResult(), behindProducts);
    return behindProducts.contains(op);
  });
}

/// Copies of `loads` in the turn `at`; if there is none, zeros, and nothing is
/// read.
void ProductKernel::emitAhead(scf::ForOp loop, ArrayRef<tile::LoadOp> loads,
                              Value at, Value end) {
  Location loc = loop.getLoc();
  Value isThere =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, at, end);
  IRMapping there = scalars;
  there.map(loop.getInductionVar(), at);
  Ops ops;
  for (Operation &op : loop.getBody()->without_terminator())
    ops.push_back(&op);
  emitScalars(ops, there);
  Value none = arith::ConstantIndexOp::create(b, loc, 0);
  for (tile::LoadOp load : loads) {
    int64_t size = cast<VectorType>(load.getTile().getType()).getDimSize(0);
    Value rows = load.getRows() ? there.lookupOrDefault(load.getRows())
                                : arith::ConstantIndexOp::create(b, loc, size);
    rows = arith::SelectOp::create(b, loc, isThere, rows, none);
    tiles->emitCopy(load, there, rows, /*isPinned=*/true);
  }
}

LogicalResult ProductKernel::emitReadingAhead(scf::ForOp loop,
                                              scf::ForOp copy) {
  Block &body = *loop.getBody();
  Location loc = loop.getLoc();
  DenseSet<Operation *> products, lateLoads;
  SmallVector<tile::LoadOp> early, late;
  for (Operation &op : body)
    if (isa<tile::MatmulOp>(op))
      products.insert(&op);
  DenseSet<Operation *> behindProducts = getFollowers(body, products);
  for (auto load : body.getOps<tile::LoadOp>()) {
    if (!ProductEmitter::isCopied(load))
      continue;
    bool isLateLoad = isLate(load.getTile(), behindProducts);
    (isLateLoad ? late : early).push_back(load);
    if (isLateLoad)
      lateLoads.insert(load);
  }
  emitAhead(loop, early, copy.getLowerBound(), copy.getUpperBound());
  copy->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());

  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  DenseSet<Operation *> behindLate = getFollowers(body, lateLoads);
  Ops first, rest, all;
  for (Operation &op : body.without_terminator()) {
    all.push_back(&op);
    auto load = dyn_cast<tile::LoadOp>(op);
    if (!isa<tile::TileDialect>(op.getDialect()) ||
        (load && ProductEmitter::isCopied(load)))
      continue;
    (behindLate.contains(&op) ? rest : first).push_back(&op);
  }
  emitScalars(all, scalars);
  meet(loc);
  // What turned work alone reads makes room for its result.
  for (tile::LoadOp load : late)
    tiles->emitCopy(load, scalars, Value(),
                    /*isPinned=*/!ProductEmitter::isReadTurned(load));
  if (failed(emitSegment(first)))
    return failure();
  meet(loc);
  Value next =
      arith::AddIOp::create(b, loc, copy.getInductionVar(), copy.getStep());
  emitAhead(loop, early, next, copy.getUpperBound());
  if (failed(emitSegment(rest)))
    return failure();
  yield(loop);
  return success();
}

/// The body as the work of a group of warps for each time; what it gives stays
/// in shared memory.
LogicalResult ProductKernel::emitEach(tile::EachOp each) {
  Location loc = each.getLoc();
  const int64_t count = each.getCount();
  SmallVector<Value> tilePlaces = llvm::map_to_vector(
      each.getTiles(), [&](Value tile) { return tiles->placeOf(tile); });
  auto groups = gpu::GroupsOp::create(b, loc, count);
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&groups.getBody(), {}, {b.getIndexType()}, {loc});
  Block &source = each.getBody().front();
  scalars.map(source.getArgument(0), body->getArgument(0));
  tiles->enterGroups(count, body->getArgument(0));
  for (auto [i, tile] : llvm::enumerate(source.getArguments().drop_front()))
    tiles->pick(tile, ArrayRef(tilePlaces).slice(i * count, count));
  if (failed(emitBlock(source)))
    return failure();
  for (auto [i, tile] : llvm::enumerate(source.getTerminator()->getOperands()))
    for (auto [time, place] : llvm::enumerate(tiles->placesOf(tile)))
      tiles->setPlace(each.getResult(i * count + time), place);
  tiles->leaveGroups();
  return success();
}

/// The last op of the block of `tile` that reads it, turned or as it is.
static Operation *getLastUser(Value tile) {
  Operation *last = nullptr;
  for (Operation *user : tile.getUsers()) {
    auto transpose = dyn_cast<tile::TransposeOp>(user);
    Operation *op = transpose ? getLastUser(transpose.getResult()) : user;
    if (!last || (op && last->isBeforeInBlock(op)))
      last = op;
  }
  return last;
}

/// A loop with work on several tiles at once: its copies begin behind what
/// reads them last in the turn before, where outputs are on their way to
/// memory; copies for the work behind it begin ahead of it.
LogicalResult ProductKernel::emitTurns(scf::ForOp loop, scf::ForOp copy) {
  Block &body = *loop.getBody();
  Location loc = loop.getLoc();
  SmallVector<tile::LoadOp> early, late;
  for (auto load : body.getOps<tile::LoadOp>())
    if (ProductEmitter::isCopied(load))
      (llvm::any_of(load->getUsers(), llvm::IsaPred<tile::EachOp>) ? early
                                                                   : late)
          .push_back(load);
  emitAhead(loop, early, copy.getLowerBound(), copy.getUpperBound());
  copy->moveBefore(b.getInsertionBlock(), b.getInsertionPoint());

  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(copy.getBody());
  Ops all, segment;
  for (Operation &op : body.without_terminator())
    all.push_back(&op);
  emitScalars(all, scalars);
  Value next =
      arith::AddIOp::create(b, loc, copy.getInductionVar(), copy.getStep());
  meet(loc);
  for (tile::LoadOp load : late)
    tiles->emitCopy(load, scalars, Value(),
                    /*isPinned=*/!ProductEmitter::isReadTurned(load));
  auto flush = [&]() -> LogicalResult {
    LogicalResult result = emitSegment(segment);
    segment.clear();
    return result;
  };
  for (Operation *op : all) {
    if (auto each = dyn_cast<tile::EachOp>(op)) {
      if (failed(flush()) || failed(emitEach(each)))
        return failure();
      meet(loc);
      continue;
    }
    auto load = dyn_cast<tile::LoadOp>(op);
    if (!isa<tile::TileDialect>(op->getDialect()) ||
        (load && ProductEmitter::isCopied(load)))
      continue;
    if (isa<tile::StoreOp>(op)) {
      if (failed(flush()))
        return failure();
      SmallVector<tile::LoadOp> done;
      for (tile::LoadOp other : early)
        if (getLastUser(other.getTile())->isBeforeInBlock(op))
          done.push_back(other);
      emitAhead(loop, done, next, copy.getUpperBound());
      llvm::erase_if(early, [&](tile::LoadOp other) {
        return llvm::is_contained(done, other);
      });
    }
    segment.push_back(op);
  }
  if (failed(flush()))
    return failure();
  emitAhead(loop, early, next, copy.getUpperBound());
  yield(loop);
  return success();
}

void ProductKernel::yield(scf::ForOp loop) {
  SmallVector<Value> yielded;
  for (Value value : loop.getBody()->getTerminator()->getOperands())
    yielded.push_back(isTile(value) ? tiles->fragmentOf(value)
                                    : scalars.lookupOrDefault(value));
  if (!yielded.empty())
    scf::YieldOp::create(b, loop.getLoc(), yielded);
}

LogicalResult ProductKernel::emitLoop(scf::ForOp loop) {
  SmallVector<Value> inits;
  for (Value value : loop.getInitArgs())
    inits.push_back(isTile(value) ? tiles->fragmentOf(value)
                                  : scalars.lookupOrDefault(value));
  auto copy = scf::ForOp::create(
      b, loop.getLoc(), scalars.lookupOrDefault(loop.getLowerBound()),
      scalars.lookupOrDefault(loop.getUpperBound()),
      scalars.lookupOrDefault(loop.getStep()), inits);
  scalars.map(loop.getInductionVar(), copy.getInductionVar());
  auto take = [&](ValueRange from, ValueRange to) {
    for (auto [value, other] : llvm::zip(from, to)) {
      if (isTile(value))
        tiles->setFragment(value, other);
      else
        scalars.map(value, other);
    }
  };
  take(loop.getRegionIterArgs(), copy.getRegionIterArgs());
  bool readsAhead =
      llvm::all_of(*loop.getBody(),
                   [](Operation &op) {
                     return op.getNumRegions() == 0 ||
                            isa<tile::MapRowsOp, tile::EachOp>(op);
                   }) &&
      llvm::any_of(*loop.getBody(), llvm::IsaPred<tile::MatmulOp>);
  if (readsAhead) {
    bool hasEach = llvm::any_of(*loop.getBody(), llvm::IsaPred<tile::EachOp>);
    if (failed(hasEach ? emitTurns(loop, copy) : emitReadingAhead(loop, copy)))
      return failure();
    b.setInsertionPointAfter(copy);
  } else {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(copy.getBody());
    if (failed(emitBlock(*loop.getBody())))
      return failure();
    yield(loop);
  }
  take(loop.getResults(), copy.getResults());
  return success();
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

FailureOr<func::FuncOp> ProductKernel::emit(int64_t minBlocks) {
  b.setInsertionPoint(source);
  auto kernel = cast<func::FuncOp>(source->cloneWithoutRegions());
  b.insert(kernel);
  kernel->setAttr("gdn_gpu.threads",
                  b.getI64IntegerAttr(numWarps * gpu::warpThreads));
  kernel->setAttr("gdn_gpu.min_blocks", b.getI64IntegerAttr(minBlocks));
  if (carriesMatrix(source))
    kernel->setAttr("gdn_gpu.allow", b.getStringAttr(allowedSpills));
  if (hasEach(source))
    kernel->setAttr("gdn_gpu.keep_loops", b.getUnitAttr());
  Block *entry = kernel.addEntryBlock();
  b.setInsertionPointToStart(entry);
  Block &body = source.getBody().front();
  scalars.map(body.getArguments(), entry->getArguments());
  tiles.emplace(b, scalars, entry, numWarps);
  if (failed(emitBlock(body)))
    return failure();
  func::ReturnOp::create(b, source.getLoc());
  return kernel;
}

/// True if the schedule has a place for ops like `op`.
static bool isKnown(Operation *op) {
  return !isa<tile::TileDialect>(op->getDialect()) ||
         isa<tile::BlockIdOp, tile::LoadOp, tile::StoreOp, tile::FillOp,
             tile::MapRowsOp, tile::YieldOp, tile::EachOp, tile::MatmulOp,
             tile::TransposeOp, tile::TriInverseOp, tile::DecayMatrixOp,
             tile::PrefixSumOp, tile::SuffixSumOp>(op);
}

/// Warps for the products of `func`: 16 rows of each for a warp. None if there
/// is a product that tensor cores do not take, or an op without a place.
static std::optional<int64_t> countWarps(func::FuncOp func) {
  int64_t rows = 0;
  bool isPossible = func->hasAttr("gdn_tile.grid");
  func.walk([&](Operation *op) { isPossible &= isKnown(op); });
  func.walk([&](tile::MatmulOp matmul) {
    auto lhs = cast<VectorType>(matmul.getLhs().getType());
    auto result = cast<VectorType>(matmul.getResult().getType());
    int64_t inner = lhs.getDimSize(matmul.getTransposeLhs() ? 0 : 1);
    isPossible &= lhs.getElementTypeBitWidth() == 16 && inner % 16 == 0 &&
                  result.getDimSize(1) % 16 == 0;
    // As many groups of warps have each of these products.
    auto each = matmul->getParentOfType<tile::EachOp>();
    rows = std::gcd(rows, result.getDimSize(0) * (each ? each.getCount() : 1));
  });
  if (!isPossible || rows == 0 || rows % 16 != 0)
    return std::nullopt;
  return std::min<int64_t>(rows / 16, 32);
}

/// Warps per multiprocessor at most, where each thread has all the registers
/// that it can have.
static constexpr int64_t fewestWarps = 8;

void ScheduleTileProducts::runOnOperation() {
  SmallVector<std::pair<func::FuncOp, int64_t>> programs;
  for (auto func : getOperation().getOps<func::FuncOp>())
    if (std::optional<int64_t> warps = countWarps(func))
      programs.push_back({func, *warps});
  for (auto [func, numWarps] : programs) {
    bringIntoForm(func);
    int64_t residentWarps =
        carriesMatrix(func) ? std::min<int64_t>(warps, fewestWarps) : warps;
    int64_t needed = countRegisters(func, numWarps);
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
    if (int64_t bytes = countSharedBytes(*kernel); bytes > sharedBytes) {
      func.emitRemark() << "'" << func.getName() << "' would take " << bytes
                        << " bytes of shared memory, of which a block has "
                        << sharedBytes.getValue();
      kernel->erase();
      continue;
    }
    func.erase();
    ++numKernels;
  }
}
