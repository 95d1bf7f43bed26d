// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a schedule of products does with tiles that are there: products, decay
// matrices, inverses, and in which order.
#include "Products/ProductEmitter.h"

#include "Kernel/FragmentEmitter.h"
#include "Kernel/OperandRoles.h"
#include "Products/LoadsAndStores.h"
#include "Products/ProductForm.h"
#include "Products/RowMaps.h"
#include "Products/TransposedMaps.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace gdn;

static void emitMatmul(SharedTiles &tiles, tile::MatmulOp matmul) {
  OpBuilder &b = tiles.b;
  Location loc = matmul.getLoc();
  Value lhs = matmul.getLhs(), rhs = matmul.getRhs();
  bool transposed = false;
  if (auto transpose = rhs.getDefiningOp<tile::TransposeOp>();
      transpose && !tiles.findBuffer(rhs)) {
    rhs = transpose.getTile();
    transposed = true;
  }
  // Both sides are shared before either is loaded: behind one barrier.
  Value left = matmul.getTransposeLhs() ? tiles.bufferOf(lhs) : Value();
  Value right = tiles.bufferOf(rhs);
  if (left) {
    VectorType type = vectorType(lhs);
    auto shape = VectorType::get({type.getDimSize(1), type.getDimSize(0)},
                                 type.getElementType());
    lhs = gpu::LoadSharedOp::create(b, loc, tiles.typeOf(shape), left, Value(),
                                    /*transpose=*/true);
  } else {
    lhs = tiles.fragmentOf(lhs);
  }
  Value acc = matmul.getAcc() ? tiles.fragmentOf(matmul.getAcc()) : Value();
  IntegerAttr from; // of some columns of what is shared
  if (cast<gpu::SharedType>(right.getType()).getShape() !=
      vectorType(rhs).getShape())
    from = b.getI64IntegerAttr(tiles.getFirstColumn(rhs));
  tiles.setFragment(
      matmul.getResult(),
      gpu::MatmulOp::create(b, loc,
                            tiles.typeOf(vectorType(matmul.getResult())), lhs,
                            right, acc, transposed, /*warpgroup=*/false, from));
}

/// `fragment` is `tile`, or its transpose if it was made transposed.
static void setMade(SharedTiles &tiles, Value tile, Value fragment) {
  if (!isMadeTransposed(tile))
    tiles.setFragment(tile, fragment);
  else
    for (Operation *user : tile.getUsers())
      tiles.setFragment(user->getResult(0), fragment);
}

/// How much farther down the bound of an exponent is with each column past the
/// diagonal: a power of two half as far below is zero.
static constexpr int32_t steepness = 1024;

/// 2^(G_i - G_j) on and below the diagonal, of sums over bounded decays, and
/// zero above it. The sums of columns have a bound that depends on the distance
/// to the diagonal, above it far past all sums and below it never met: a
/// minimum for each element, where a mask would be a comparison and a choice.
/// It is as good as the rounding to 16 bits behind it asks.
static void emitDecayMatrix(SharedTiles &tiles, tile::DecayMatrixOp decay) {
  OpBuilder &b = tiles.b;
  Location loc = decay.getLoc();
  const bool transposed = isMadeTransposed(decay.getResult());
  VectorType type = vectorType(decay.getResult());
  gpu::RowsAttr rows = tiles.rowsOf(type);
  // The sums are in the buffer of the result, by GateVectors.
  auto load = [&](Attribute layout) -> Value {
    return gpu::LoadSharedOp::create(
        b, loc, gpu::FragmentType::get(vectorType(decay.getLogDecay()), layout),
        tiles.findBuffer(decay.getResult()), Value());
  };
  Value perRow = load(gpu::PerRowAttr::get(b.getContext(), rows));
  Value perColumn = load(gpu::PerColumnAttr::get(b.getContext(), rows));
  auto row = VectorType::get({type.getDimSize(1)}, b.getF32Type());
  auto map = gpu::MapRowsOp::create(b, loc, TypeRange{tiles.typeOf(type)},
                                    ValueRange{perRow, perColumn});
  OpBuilder::InsertionGuard guard(b);
  Block *body = map.openBody(b);
  Value own = body->getArgument(1), others = body->getArgument(2);
  auto splat = [&](Type type, Value scalar) -> Value {
    return vector::BroadcastOp::create(b, loc, type, scalar);
  };
  auto numbers = VectorType::get(row.getShape(), b.getI32Type());
  auto indices = VectorType::get(row.getShape(), b.getIndexType());
  Value distance = arith::IndexCastOp::create(
      b, loc, numbers,
      arith::SubIOp::create(b, loc, vector::StepOp::create(b, loc, indices),
                            splat(indices, body->getArgument(0))));
  Value steep = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(numbers, b.getI32IntegerAttr(steepness)));
  const float slack = transposed ? steepness / 2 : -steepness / 2;
  Value start = arith::AddFOp::create(
      b, loc, own, arith::ConstantOp::create(b, loc, b.getF32FloatAttr(slack)));
  Value bound = arith::AddFOp::create(
      b, loc,
      arith::SIToFPOp::create(b, loc, row,
                              arith::MulIOp::create(b, loc, distance, steep)),
      splat(row, start));
  Value exponent;
  if (transposed) {
    Value until = arith::MinimumFOp::create(b, loc, others, bound);
    exponent = arith::SubFOp::create(b, loc, until, splat(row, own));
  } else {
    Value from = arith::MaximumFOp::create(b, loc, others, bound);
    exponent = arith::SubFOp::create(b, loc, splat(row, own), from);
  }
  Value factor =
      math::Exp2Op::create(b, loc, exponent, arith::FastMathFlags::afn);
  gpu::YieldOp::create(b, loc, factor);
  tiles.dropBuffer(decay.getResult());
  setMade(tiles, decay.getResult(), map.getResult(0));
}

/// The first panel of what held queries or keys with their decay, if `type` has
/// the form of a panel and nobody needs them any more; else null.
static Value findPanel(SharedTiles &tiles, Block *block, gpu::SharedType type) {
  for (auto operands : block->getOps<tile::DecayOperandsOp>())
    for (Value tile : {operands.getFromQuery(), operands.getFromKey()}) {
      Value buffer = tiles.findBuffer(tile);
      if (!buffer || !tiles.isDead(tile))
        continue;
      auto whole = cast<gpu::SharedType>(buffer.getType());
      if (whole.getElementType() == type.getElementType() &&
          whole.getShape()[0] == type.getShape()[0] &&
          whole.getPanelBytes() != 0 && type.getPanelBytes() == 0 &&
          whole.getPanelRowBytes() == type.getPanelRowBytes())
        return gpu::ReshapeOp::create(tiles.b, operands.getLoc(), type, buffer);
    }
  return {};
}

void gdn::emitInverse(tile::TriInverseOp inverse,
                      ArrayRef<SharedTiles *> chunks) {
  SharedTiles &first = *chunks.front();
  SmallVector<Value> matrices;
  for (SharedTiles *each : chunks)
    matrices.push_back(each->fragmentOf(inverse.getMatrix()));
  auto type = cast<gpu::FragmentType>(matrices.front().getType());
  gpu::SharedType wanted =
      gpu::TriInverseOp::getScratchType(type, chunks.size());
  Value scratch = findPanel(first, inverse->getBlock(), wanted);
  const bool isPanel = bool(scratch);
  if (!scratch)
    scratch = first.allocate(wanted, inverse->getBlock());
  const bool transposed = isMadeTransposed(inverse.getResult());
  auto made = gpu::TriInverseOp::create(first.b, inverse.getLoc(),
                                        SmallVector<Type>(chunks.size(), type),
                                        matrices, scratch, transposed);
  for (auto [each, result] : llvm::zip(chunks, made.getInverses())) {
    setMade(*each, inverse.getResult(), result);
    each->setEmitted(inverse);
  }
  // Products take the inverse from there. Elsewhere it is free again: nobody
  // uses the matrix from there.
  const bool staysThere = isPanel && chunks.size() == 1 && !transposed;
  first.setBuffer(staysThere ? inverse.getResult() : inverse.getMatrix(),
                  scratch);
}

/// A chunk is a block for each head, and blocks with the same tokens are
/// neighbours. Those that begin next are of tokens further on.
static void prefetchTokens(SharedTiles &tiles, tile::DecayOperandsOp operands,
                           int64_t blocksAhead) {
  SmallVector<tile::LoadOp> loads;
  for (auto load : operands->getBlock()->getOps<tile::LoadOp>())
    if (!isVector(load.getTile()) && load.getDims().front() == 0)
      loads.push_back(load);
  if (loads.empty())
    return;
  ImplicitLocOpBuilder ib(operands.getLoc(), tiles.b);
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(ib, ib.getI64IntegerAttr(value));
  };
  const int64_t chunk = vectorType(loads.front().getTile()).getDimSize(0);
  Value view = tiles.scalars.lookupOrDefault(loads.front().getView());
  Value end = tiles.scalars.lookupOrDefault(loads.front().getIndices()[0]);
  // Heads as a power of two, for a division costs as much as all the rest.
  Value heads = arith::IndexCastOp::create(ib, ib.getI64Type(),
                                           memref::DimOp::create(ib, view, 1));
  heads = arith::SubIOp::create(ib, heads, number(1));
  Value bits = math::CountLeadingZerosOp::create(ib, heads);
  bits = arith::SubIOp::create(ib, number(64), bits);
  bits = arith::MinUIOp::create(ib, bits, number(63));
  Value ahead = arith::ShRUIOp::create(ib, number(blocksAhead * chunk), bits);
  ahead = arith::MaxUIOp::create(ib, ahead, number(chunk));
  ahead = arith::IndexCastOp::create(ib, ib.getIndexType(), ahead);
  end = arith::AddIOp::create(ib, end, ahead);
  end =
      arith::AddIOp::create(ib, end, arith::ConstantIndexOp::create(ib, chunk));
  Value isThere = arith::CmpIOp::create(ib, arith::CmpIPredicate::ule, end,
                                        memref::DimOp::create(ib, view, 0));
  auto branch = scf::IfOp::create(ib, isThere, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(tiles.b);
  tiles.b.setInsertionPointToStart(branch.thenBlock());
  for (tile::LoadOp load : loads)
    prefetchRows(tiles, load, ahead);
}

/// What holds queries and keys holds them with their decay from there on.
static void emitDecayOperands(SharedTiles &tiles,
                              tile::DecayOperandsOp operands,
                              int64_t blocksAhead) {
  OpBuilder &b = tiles.b;
  Location loc = operands.getLoc();
  prefetchTokens(tiles, operands, blocksAhead);
  Value logs = operands.getLogDecay();
  auto decay = cast<TypedValue<gpu::FragmentType>>(
      tiles.fragmentOf(logs, tiles.rowsOf(logs)));
  gpu::FragmentType type = decay.getType();
  auto allocate = [&](gpu::SharedType shared) {
    return tiles.allocate(shared, operands->getBlock());
  };
  gpu::SharedType tile = gpu::DecayOperandsOp::getTileType(type);
  // A buffer of its own for what others use as it is.
  auto take = [&](Value from, Value to) {
    Value buffer;
    if (from.hasOneUse()) {
      buffer = tiles.bufferOf(from);
    } else {
      buffer = allocate(gpu::SharedType::get(vectorType(from), true));
      gpu::StoreSharedOp::create(b, loc, tiles.fragmentOf(from), buffer,
                                 Value(), /*transpose=*/false);
    }
    tiles.pinBuffer(from, buffer);
    tiles.pinBuffer(to, buffer.getType() == tile
                            ? buffer
                            : gpu::ReshapeOp::create(b, loc, tile, buffer));
    return buffer;
  };
  Value query = take(operands.getQuery(), operands.getFromQuery());
  Value key = take(operands.getKey(), operands.getFromKey());
  Value toEnd = allocate(tile);
  tiles.setBuffer(operands.getToEnd(), toEnd);
  Value end = allocate(
      gpu::SharedType::get(vectorType(operands.getEnd()), /*swizzled=*/false));
  tiles.setBuffer(operands.getEnd(), end);
  Value sums = allocate(gpu::DecayOperandsOp::getSumsType(type));
  gpu::FragmentType scores = gpu::DecayOperandsOp::getScoresType(type);
  auto made = gpu::DecayOperandsOp::create(b, loc, scores, scores, decay, query,
                                           key, toEnd, sums, end);
  tiles.setFragment(operands.getQueryScores(), made.getQueryScores());
  tiles.setFragment(operands.getKeyScores(), made.getKeyScores());
}

static bool isInLoop(Operation *op) {
  return bool(op->getParentOfType<scf::ForOp>());
}

/// Whether `tile` of 16 bits is a right side of products, and work on the way
/// to another one.
static bool isOnlyRightSide(Value tile) {
  bool isRight = false;
  return isNarrow(vectorType(tile)) &&
         llvm::all_of(tile.getUsers(),
                      [&](Operation *user) {
                        auto matmul = dyn_cast<tile::MatmulOp>(user);
                        isRight |= matmul && matmul.getRhs() == tile;
                        return matmul ? matmul.getLhs() != tile
                                      : isa<tile::MapRowsOp>(user);
                      }) &&
         isRight;
}

LogicalResult ProductEmitter::emit(Operation *op) {
  LogicalResult result = success();
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](tile::LoadOp load) {
        if (isCopied(load))
          beginCopy(tiles, load, tiles.scalars, Value(), /*isPinned=*/false);
        else
          emitLoad(tiles, load, splitsLoaded && isInLoop(load));
      })
      .Case([](tile::FillOp) {}) // made where it is used
      .Case([&](tile::StoreOp store) {
        emitStore(tiles, store, storesPerWarpgroup);
      })
      .Case([&](tile::MapRowsOp map) {
        isTransposedMap(map) ? emitTransposedMap(tiles, map)
                             : emitMap(tiles, map);
      })
      .Case([&](tile::MatmulOp matmul) { emitMatmul(tiles, matmul); })
      .Case([](tile::TransposeOp) {}) // read that way where it is used
      .Case([&](tile::DecayMatrixOp decay) { emitDecayMatrix(tiles, decay); })
      .Case([&](tile::TriInverseOp inverse) { emitInverse(inverse, {&tiles}); })
      .Case([&](tile::DecayOperandsOp operands) {
        emitDecayOperands(tiles, operands, blocksAhead);
      })
      .Default([&](Operation *) {
        result = op->emitOpError("is not for a schedule of products");
      });
  tiles.setEmitted(op);
  if (splitsLoaded && isa<tile::MapRowsOp>(op))
    for (Value tile : op->getResults())
      if (isOnlyRightSide(tile))
        tiles.bufferOf(tile);
  // What has to go somewhere goes at once.
  for (Value tile : op->getResults())
    if (tiles.hasDestination(tile))
      tiles.bufferOf(tile);
  return result;
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

LogicalResult ProductEmitter::emitInOrder(ArrayRef<Operation *> ops) {
  for (Operation *op : ops)
    copyScalar(tiles.b, op, tiles.scalars);
  SmallVector<Operation *> vectorWork, matrices, low;
  for (Operation *op : ops) {
    auto load = dyn_cast<tile::LoadOp>(op);
    if (isLowWork(op))
      low.push_back(op);
    else if (load && isCopied(load))
      beginCopy(tiles, load, tiles.scalars, Value(), /*isPinned=*/false);
    else if (isa<tile::TileDialect>(op->getDialect()) &&
             !isa<tile::BlockIdOp>(op))
      (isVectorWork(op) ? vectorWork : matrices).push_back(op);
  }
  // What works on vectors that come out of matrices comes last.
  SmallVector<Operation *> lastVectorWork;
  llvm::SmallPtrSet<Operation *, 4> late;
  for (Operation *op : matrices)
    if (isa<tile::DecayOperandsOp>(op))
      late.insert(op);
  llvm::erase_if(vectorWork, [&](Operation *op) {
    if (llvm::none_of(op->getOperands(), [&](Value operand) {
          return late.contains(operand.getDefiningOp());
        }))
      return false;
    late.insert(op);
    lastVectorWork.push_back(op);
    return true;
  });
  // The running sums of a decay matrix are work on rank 1 as well.
  for (Operation *op : matrices)
    if (isa<tile::DecayMatrixOp>(op) && !llvm::is_contained(receivedSums, op))
      vectorWork.push_back(op);
  llvm::sort(vectorWork, inProgramOrder);
  // Products that wait for none of it are made beside it.
  SmallVector<Operation *> others;
  for (Operation *op : matrices) {
    bool isAhead = isa<tile::MatmulOp, tile::TransposeOp>(op) &&
                   llvm::all_of(others, llvm::IsaPred<tile::DecayMatrixOp>);
    if (!isAhead)
      others.push_back(op);
    else if (failed(emit(op)))
      return failure();
  }
  vectors.emit(vectorWork);
  // The decay matrix takes many registers, so it is made where it is needed.
  for (Operation *op : others) {
    if (isa<tile::DecayMatrixOp>(op) &&
        llvm::is_contained(others, getFirstUser(op)))
      continue;
    for (Operation *other : others)
      if (isa<tile::DecayMatrixOp>(other) && getFirstUser(other) == op &&
          failed(emit(other)))
        return failure();
    if (failed(emit(op)))
      return failure();
  }
  vectors.emit(lastVectorWork);
  emitLowTiles(low);
  return success();
}

/// `ops` of tiles of few rows by the rows of memory that they end in, such as
/// those of a window; all together where one of them is for several.
static SmallVector<SmallVector<Operation *>>
splitByPlace(ArrayRef<Operation *> ops) {
  DenseMap<Operation *, std::pair<Value, Value>> placeOf;
  for (Operation *op : llvm::reverse(ops)) {
    SmallVector<std::pair<Value, Value>> found;
    if (auto store = dyn_cast<tile::StoreOp>(op))
      found.emplace_back(store.getView(),
                         store.getIndices()[store.getDims().back()]);
    for (Operation *user : op->getUsers())
      if (auto known = placeOf.find(user); known != placeOf.end())
        found.push_back(known->second);
    if (found.empty() || !llvm::all_equal(found))
      return {llvm::to_vector(ops)};
    placeOf[op] = found.front();
  }
  llvm::MapVector<std::pair<Value, Value>, SmallVector<Operation *>> split;
  for (Operation *op : ops)
    split[placeOf[op]].push_back(op);
  return llvm::map_to_vector(split, [](auto &each) { return each.second; });
}

/// Tiles of few rows are the work of a warp, in program order.
void ProductEmitter::emitLowTiles(ArrayRef<Operation *> ops) {
  if (ops.empty())
    return;
  if (!spreadsLowTiles)
    return emitLowTiles(ops, /*number=*/0);
  for (ArrayRef<Operation *> some : splitByPlace(ops))
    emitLowTiles(some, lowWarp++ % tiles.numWarps);
}

void ProductEmitter::emitLowTiles(ArrayRef<Operation *> ops, int64_t number) {
  OpBuilder &b = tiles.b;
  Location loc = ops.front()->getLoc();
  auto warps = gpu::WarpsOp::create(b, loc, TypeRange(), number, 1, {});
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&warps.getBody());
  FragmentEmitter warp(b, tiles.scalars);
  // Views that lanes without columns of their own have loaded, too.
  SmallPtrSet<Value, 4> loaded;
  for (Operation *op : ops) {
    auto store = dyn_cast<tile::StoreOp>(op);
    if (!store) {
      warp.emit(op);
      if (auto load = dyn_cast<tile::LoadOp>(op);
          load && hasIdleLanes(warp[load.getTile()]))
        loaded.insert(load.getView());
      continue;
    }
    if (loaded.contains(store.getView())) {
      gpu::WarpBarrierOp::create(b, op->getLoc());
      loaded.clear();
    }
    warp.emitStores(op, {});
  }
  gpu::YieldOp::create(b, loc);
}
