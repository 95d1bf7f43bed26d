// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile program as the schedule of products wants it: tiles are narrow when
// they are transposed, loads are where they are needed and not more often.
#include "Products/ProductForm.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace gdn;

static bool isNarrow(Value tile) {
  return cast<VectorType>(tile.getType()).getElementTypeBitWidth() == 16;
}

bool gdn::isMadeTransposed(Value tile) {
  return isa_and_nonnull<tile::DecayMatrixOp, tile::TriInverseOp>(
             tile.getDefiningOp()) &&
         !tile.use_empty() &&
         llvm::all_of(tile.getUsers(), llvm::IsaPred<tile::TransposeOp>);
}

/// True if `map` does the same with every element of its only input.
static bool isElementwise(tile::MapRowsOp map) {
  if (map.getInputs().size() != 1 || map.getNumResults() != 1)
    return false;
  Block &body = map.getBody().front();
  return body.getArgument(0).use_empty() &&
         llvm::all_of(body, [&](Operation &op) {
           return (isa<arith::ArithDialect>(op.getDialect()) ||
                   isa<tile::YieldOp>(op)) &&
                  llvm::all_of(op.getOperands(), [&](Value operand) {
                    return map.getBody().isAncestor(operand.getParentRegion());
                  });
         });
}

/// What is rounded to 16 bits is transposed behind that: half as much to
/// move, by instructions that f32 does not have.
static void roundBeforeTransposing(func::FuncOp func) {
  SmallVector<tile::MapRowsOp> maps;
  func.walk([&](tile::MapRowsOp map) {
    if (isElementwise(map) && isNarrow(map.getResult(0)) &&
        !isNarrow(map.getInputs()[0]) &&
        map.getInputs()[0].getDefiningOp<tile::TransposeOp>() &&
        !isMadeTransposed(
            map.getInputs()[0].getDefiningOp<tile::TransposeOp>().getTile()))
      maps.push_back(map);
  });
  for (tile::MapRowsOp map : maps) {
    auto transpose = map.getInputs()[0].getDefiningOp<tile::TransposeOp>();
    Value source = transpose.getTile();
    auto shape = cast<VectorType>(source.getType()).getShape();
    OpBuilder b(map);
    Type element =
        cast<VectorType>(map.getResult(0).getType()).getElementType();
    auto narrow = tile::MapRowsOp::create(
        b, map.getLoc(), TypeRange{VectorType::get(shape, element)}, source);
    Block &from = map.getBody().front();
    auto row = [&](Type type) {
      return VectorType::get({shape[1]},
                             cast<VectorType>(type).getElementType());
    };
    Block *body = b.createBlock(&narrow.getBody(), {},
                                {b.getIndexType(), row(source.getType())},
                                {map.getLoc(), map.getLoc()});
    IRMapping mapping;
    mapping.map(from.getArguments(), body->getArguments());
    for (Operation &op : from) {
      Operation *clone = b.clone(op, mapping);
      for (OpResult result : clone->getResults())
        result.setType(row(result.getType()));
    }
    b.setInsertionPoint(map);
    Value transposed = tile::TransposeOp::create(
        b, map.getLoc(), map.getResult(0).getType(), narrow.getResult(0));
    map.getResult(0).replaceAllUsesWith(transposed);
    map.erase();
    if (transpose->use_empty())
      transpose.erase();
  }
}

/// Does the same where a map rounds what it takes of a row before all else.
static void roundInputsBeforeTransposing(func::FuncOp func) {
  auto roundsTo = [](BlockArgument arg) -> Type {
    Type type;
    for (Operation *user : arg.getUsers()) {
      if (!isa<arith::TruncFOp>(user) ||
          (type && type != user->getResult(0).getType()))
        return {};
      type = user->getResult(0).getType();
    }
    return type && getElementTypeOrSelf(type).getIntOrFloatBitWidth() == 16
               ? type
               : Type();
  };
  func.walk([&](tile::MapRowsOp map) {
    for (OpOperand &input : map->getOpOperands()) {
      auto transpose = input.get().getDefiningOp<tile::TransposeOp>();
      BlockArgument arg =
          map.getBody().getArgument(input.getOperandNumber() + 1);
      Type row = roundsTo(arg);
      if (!transpose || !row || isMadeTransposed(transpose.getTile()))
        continue;
      OpBuilder b(map);
      Value source = transpose.getTile();
      auto from = cast<VectorType>(source.getType());
      Type element = getElementTypeOrSelf(row);
      auto narrow = tile::MapRowsOp::create(
          b, map.getLoc(), TypeRange{VectorType::get(from.getShape(), element)},
          source);
      auto ofRow = [&](Type type) {
        return VectorType::get({from.getDimSize(1)}, type);
      };
      Block *body =
          b.createBlock(&narrow.getBody(), {},
                        {b.getIndexType(), ofRow(from.getElementType())},
                        {map.getLoc(), map.getLoc()});
      tile::YieldOp::create(b, map.getLoc(),
                            arith::TruncFOp::create(b, map.getLoc(),
                                                    ofRow(element),
                                                    body->getArgument(1))
                                .getResult());
      b.setInsertionPoint(map);
      auto shape = cast<VectorType>(input.get().getType()).getShape();
      input.set(tile::TransposeOp::create(b, map.getLoc(),
                                          VectorType::get(shape, element),
                                          narrow.getResult(0)));
      for (Operation *user : llvm::make_early_inc_range(arg.getUsers())) {
        user->getResult(0).replaceAllUsesWith(arg);
        user->erase();
      }
      arg.setType(row);
      if (transpose->use_empty())
        transpose.erase();
    }
  });
}

//===----------------------------------------------------------------------===//
// Buffers of loads
//===----------------------------------------------------------------------===//

/// Loads, out of a loop, of what is the same in each turn: of arguments that
/// the program does not write. Elementwise work on them too.
static void hoistLoads(func::FuncOp func) {
  DenseSet<Value> written;
  func.walk([&](tile::StoreOp store) { written.insert(store.getView()); });
  func.walk([&](scf::ForOp loop) {
    for (Operation &op : llvm::make_early_inc_range(*loop.getBody())) {
      auto load = dyn_cast<tile::LoadOp>(op);
      bool isFixed = load && isa<BlockArgument>(load.getView()) &&
                     !written.contains(load.getView());
      if (!isFixed && !isa<tile::MapRowsOp>(op) &&
          !op.hasTrait<OpTrait::ConstantLike>())
        continue;
      bool isInvariant = true;
      op.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          isInvariant &= loop.isDefinedOutsideOfLoop(operand) ||
                         op.isAncestor(operand.getParentBlock()->getParentOp());
      });
      if (isInvariant)
        op.moveBefore(loop);
    }
  });
}

bool gdn::isLowWork(Operation *op) {
  if (!isa<tile::LoadOp, tile::StoreOp, tile::MapRowsOp, tile::FillOp>(op))
    return false;
  bool isLow = true, hasTile = false;
  for (Value value : llvm::concat<Value>(op->getOperands(), op->getResults()))
    if (auto type = dyn_cast<VectorType>(value.getType())) {
      hasTile = true;
      isLow &= type.getRank() == 2 && type.getDimSize(0) < 16;
    }
  return hasTile && isLow;
}

/// Tiles of few rows to the branch that alone uses them: a role makes and
/// stores them in one go.
static void sinkLowTiles(func::FuncOp func) {
  SmallVector<Operation *> ops;
  func.walk([&](Operation *op) {
    if (isLowWork(op) && !isa<tile::StoreOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : llvm::reverse(ops)) {
    Block *block = nullptr;
    bool sinks = !op->use_empty();
    for (Operation *user : op->getUsers()) {
      sinks &= !block || block == user->getBlock();
      block = user->getBlock();
    }
    auto branch =
        sinks ? dyn_cast<scf::IfOp>(block->getParentOp()) : scf::IfOp();
    if (!branch || branch->getBlock() != op->getBlock())
      continue;
    // Nothing is written on the way.
    for (Operation *next = op->getNextNode(); next != branch;
         next = next->getNextNode())
      next->walk([&](tile::StoreOp) { sinks = false; });
    if (sinks)
      op->moveBefore(&block->front());
  }
}

void gdn::bringIntoForm(func::FuncOp func) {
  roundBeforeTransposing(func);
  roundInputsBeforeTransposing(func);
  hoistLoads(func);
  sinkLowTiles(func);
}
