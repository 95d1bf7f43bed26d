// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gates are on one warp; others find them in shared memory.
#include "Products/GateVectors.h"

#include "Products/LoadsAndStores.h"
#include "Products/RowMaps.h"

#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn;

/// Below this, a decay is zero in the 16 bits that it is rounded to. A bound
/// keeps running sums exact enough for their differences.
static constexpr double leastLogDecay = -18;

bool gdn::isVectorWork(Operation *op) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return isVector(load.getTile()) && !isCopied(load);
  auto isVectorOrScalar = [](Value value) {
    return isVector(value) || !isa<VectorType>(value.getType());
  };
  return isa<tile::TileDialect>(op->getDialect()) &&
         llvm::all_of(op->getOperands(), isVectorOrScalar) &&
         llvm::all_of(op->getResults(), isVectorOrScalar) &&
         !isa<tile::BlockIdOp, tile::SumOfPairOp>(op);
}

gpu::FragmentType GateVectors::typeOf(Value tile) const {
  MLIRContext *context = tile.getContext();
  return gpu::FragmentType::get(
      vectorType(tile),
      gpu::PerRowAttr::get(context, gpu::RowsAttr::get(context, 1, 1, 1)));
}

void GateVectors::emitOp(Operation *op) {
  OpBuilder &b = tiles.b;
  const IRMapping &scalars = tiles.scalars;
  Location loc = op->getLoc();
  auto emitSum = [&](Value sums, Value values, bool suffix) {
    vectors[sums] = gpu::RunningSumOp::create(b, loc, typeOf(sums),
                                              vectors.lookup(values), suffix);
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](tile::LoadOp load) {
        vectors[load.getTile()] = gpu::LoadOp::create(
            b, loc, typeOf(load.getTile()),
            scalars.lookupOrDefault(load.getView()),
            lookupAll(scalars, load.getIndices()), load.getDims(),
            scalars.lookupOrDefault(load.getRows()), /*aligned=*/int64_t(0));
      })
      .Case([&](tile::StoreOp store) {
        gpu::StoreOp::create(b, loc, vectors.lookup(store.getTile()),
                             scalars.lookupOrDefault(store.getView()),
                             lookupAll(scalars, store.getIndices()),
                             store.getDims(),
                             scalars.lookupOrDefault(store.getRows()),
                             /*aligned=*/int64_t(0));
      })
      .Case([&](tile::FillOp fill) {
        vectors[fill.getTile()] =
            gpu::FillOp::create(b, loc, typeOf(fill.getTile()),
                                scalars.lookupOrDefault(fill.getValue()));
      })
      .Case([&](tile::PrefixSumOp sum) {
        emitSum(sum.getResult(), sum.getValues(), /*suffix=*/false);
      })
      .Case([&](tile::SuffixSumOp sum) {
        emitSum(sum.getResult(), sum.getValues(), /*suffix=*/true);
      })
      .Case([&](tile::DecayMatrixOp decay) {
        // The running sums of bounded decays stand for the matrix, in powers of
        // two: so nothing is left to multiply for each element.
        Value decays = vectors.lookup(decay.getLogDecay());
        auto map = [&](Value vector, auto &&work) -> Value {
          auto result = gpu::MapRowsOp::create(
              b, loc, TypeRange{decays.getType()}, ValueRange{vector});
          OpBuilder::InsertionGuard guard(b);
          Block *body = result.openBody(b);
          gpu::YieldOp::create(b, loc, work(body->getArgument(1)));
          return result.getResult(0);
        };
        auto number = [&](float value) -> Value {
          return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
        };
        Value bounded = map(decays, [&](Value x) -> Value {
          return arith::MaximumFOp::create(b, loc, x, number(leastLogDecay));
        });
        Value sums = gpu::RunningSumOp::create(b, loc, decays.getType(),
                                               bounded, /*suffix=*/false);
        vectors[decay.getResult()] = map(sums, [&](Value x) -> Value {
          return arith::MulFOp::create(b, loc, x,
                                       number(llvm::numbers::log2ef));
        });
      })
      .Case([&](tile::MapRowsOp map) {
        SmallVector<Value> inputs;
        SmallVector<Type> types;
        for (Value input : map.getInputs())
          inputs.push_back(vectors.lookup(input));
        for (Value result : map.getResults())
          types.push_back(typeOf(result));
        IRMapping mapping = scalars;
        // Elements of other tiles, from the lane that has them.
        map.getBody().walk([&](vector::ExtractOp extract) {
          if (Value source = vectors.lookup(extract.getSource()))
            mapping.map(
                extract.getResult(),
                gpu::ExtractOp::create(b, loc, extract.getType(), source,
                                       extract.getStaticPosition().front())
                    .getResult());
        });
        auto result = gpu::MapRowsOp::create(b, loc, types, inputs);
        OpBuilder::InsertionGuard guard(b);
        Block *body = result.openBody(b);
        mapping.map(map.getBody().front().getArguments(), body->getArguments());
        cloneBody(b, map.getBody().front(), body, mapping);
        for (auto [tile, fragment] :
             llvm::zip(map.getResults(), result.getResults()))
          vectors[tile] = fragment;
      });
}

void GateVectors::emitLoads(ArrayRef<Operation *> ops) {
  SmallVector<tile::LoadOp> loads;
  SmallVector<Type> types;
  for (Operation *op : ops)
    if (auto load = dyn_cast<tile::LoadOp>(op)) {
      loads.push_back(load);
      types.push_back(typeOf(load.getTile()));
    }
  if (loads.empty())
    return;
  OpBuilder &b = tiles.b;
  auto warps = gpu::WarpsOp::create(b, loads.front().getLoc(), types, 0, 1, {});
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&warps.getBody());
  SmallVector<Value> loaded;
  for (tile::LoadOp load : loads) {
    emitOp(load);
    loaded.push_back(vectors.lookup(load.getTile()));
  }
  gpu::YieldOp::create(b, warps.getLoc(), loaded);
  for (auto [load, result] : llvm::zip(loads, warps.getResults())) {
    vectors[load.getTile()] = result;
    ahead.insert(load);
  }
}

SmallVector<Value> GateVectors::load(ArrayRef<tile::LoadOp> loads) {
  SmallVector<Value> loaded;
  for (tile::LoadOp load : loads) {
    emitOp(load);
    loaded.push_back(vectors.lookup(load.getTile()));
  }
  return loaded;
}

void GateVectors::take(ArrayRef<tile::LoadOp> loads, ValueRange loaded) {
  for (auto [load, value] : llvm::zip_equal(loads, loaded)) {
    tile::LoadOp op = load;
    vectors[op.getTile()] = value;
    ahead.insert(op);
  }
}

/// Results that others use need a buffer.
static SetVector<Value> findShared(ArrayRef<Operation *> ops) {
  SetVector<Value> shared;
  for (Operation *op : ops)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](Operation *user) {
                         while (user && user->getBlock() != op->getBlock())
                           user = user->getParentOp();
                         return !llvm::is_contained(ops, user);
                       }) ||
          isa<tile::DecayMatrixOp>(op))
        shared.insert(result);
  return shared;
}

void GateVectors::giveBuffers(ArrayRef<Value> shared, Block *block) {
  for (Value tile : shared) {
    auto type = VectorType::get({vectorType(tile).getDimSize(0)},
                                vectorType(tile).getElementType());
    tiles.setBuffer(tile,
                    tiles.bufferFor(tile, type, /*swizzled=*/false, block));
  }
}

void GateVectors::emitAll(ArrayRef<Operation *> ops) {
  OpBuilder &b = tiles.b;
  Location loc = ops.front()->getLoc();
  // What lies in shared memory already.
  SetVector<Value> loaded;
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (isVector(operand) && tiles.findBuffer(operand) &&
          !vectors.contains(operand) &&
          !llvm::is_contained(ops, operand.getDefiningOp()))
        loaded.insert(operand);
  for (Value tile : loaded)
    vectors[tile] = gpu::LoadSharedOp::create(b, loc, typeOf(tile),
                                              tiles.findBuffer(tile), Value());
  for (Operation *op : ops)
    if (!ahead.contains(op))
      emitOp(op);
  for (Value tile : loaded)
    vectors.erase(tile);
}

void GateVectors::share(ArrayRef<Value> shared, ValueRange fragments) {
  for (auto [tile, fragment] : llvm::zip_equal(shared, fragments))
    gpu::StoreSharedOp::create(tiles.b, tile.getLoc(), fragment,
                               tiles.findBuffer(tile), Value());
}

static void setAllEmitted(SharedTiles &tiles, ArrayRef<Operation *> ops) {
  for (Operation *op : ops)
    if (!isa<tile::DecayMatrixOp>(op))
      tiles.setEmitted(op);
}

void GateVectors::emit(ArrayRef<Operation *> ops) {
  if (ops.empty())
    return;
  OpBuilder &b = tiles.b;
  Location loc = ops.front()->getLoc();
  const SmallVector<Value> shared = findShared(ops).takeVector();
  giveBuffers(shared, ops.front()->getBlock());
  auto warps = gpu::WarpsOp::create(b, loc, TypeRange(), 0, 1, {});
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&warps.getBody());
  emitAll(ops);
  share(shared, llvm::map_to_vector(
                    shared, [&](Value tile) { return vectors.lookup(tile); }));
  gpu::YieldOp::create(b, loc);
  setAllEmitted(tiles, ops);
}

void GateVectors::emitIf(ArrayRef<Operation *> ops, Value isWanted,
                         function_ref<void()> behind) {
  OpBuilder &b = tiles.b;
  Location loc = ops.front()->getLoc();
  const SmallVector<Value> shared = findShared(ops).takeVector();
  emitAll(ops);
  auto fragments = llvm::map_to_vector(
      shared, [&](Value tile) { return vectors.lookup(tile); });
  auto branch = scf::IfOp::create(b, loc, isWanted, /*withElse=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  giveBuffers(shared, ops.front()->getBlock());
  share(shared, fragments);
  behind();
  setAllEmitted(tiles, ops);
}
