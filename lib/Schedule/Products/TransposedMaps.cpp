// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// f32 has no instruction that transposes it, so the work is transposed instead.
// Rows become columns, a sum over a row becomes one over a column, and what
// comes out, in 16 bits, is transposed on its way to memory.
#include "Products/TransposedMaps.h"

#include "Kernel/OperandRoles.h"
#include "Products/ProductForm.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace gdn;

/// The f32 tile that `input` is the transpose of, if it is one.
static Value getTransposedSource(Value input) {
  auto transpose = input.getDefiningOp<tile::TransposeOp>();
  return transpose && vectorType(input).getElementType().isF32() &&
                 !isMadeTransposed(transpose.getTile())
             ? transpose.getTile()
             : Value();
}

bool gdn::isTransposedMap(tile::MapRowsOp map) {
  bool hasSource = llvm::any_of(map.getInputs(), [](Value input) {
    return bool(getTransposedSource(input));
  });
  auto isNarrowMatrix = [](Value tile) {
    return vectorType(tile).getRank() == 2 &&
           vectorType(tile).getElementTypeBitWidth() == 16;
  };
  Block &body = map.getBody().front();
  return hasSource && body.getArgument(0).use_empty() &&
         llvm::all_of(map.getInputs(),
                      [&](Value input) {
                        return vectorType(input).getRank() == 1 ||
                               getTransposedSource(input) ||
                               isNarrowMatrix(input);
                      }) &&
         llvm::all_of(map.getResults(), isNarrowMatrix) &&
         llvm::all_of(body.without_terminator(), [](Operation &op) {
           if (auto sum = dyn_cast<vector::ReductionOp>(op))
             return sum.getKind() == vector::CombiningKind::ADD &&
                    !sum.getAcc();
           return isa<vector::BroadcastOp>(op) ||
                  op.hasTrait<OpTrait::ConstantLike>() ||
                  (isa<arith::ArithDialect, math::MathDialect>(
                       op.getDialect()) &&
                   op.getNumResults() == 1);
         });
}

bool gdn::isReadTransposed(tile::LoadOp load) {
  return !load->use_empty() &&
         llvm::all_of(load->getUsers(), [](Operation *op) {
           auto map = dyn_cast<tile::MapRowsOp>(op);
           return map && isTransposedMap(map);
         });
}

namespace {

/// The body of a map on columns: each value of it as one row over all columns
/// of the transposed tiles.
struct TransposedBody {
  OpBuilder &b;
  Location loc;
  int64_t columns;
  const IRMapping &scalars;
  DenseMap<Value, Value> rows{}; // what values are in the body that is written

  Value transpose(Value value);
  VectorType rowOf(Type type) {
    return VectorType::get({columns}, getElementTypeOrSelf(type));
  }
};

} // namespace

Value TransposedBody::transpose(Value value) {
  if (Value known = rows.lookup(value)) {
    if (isa<VectorType>(known.getType()))
      return known;
    return rows[value] = vector::BroadcastOp::create(
               b, loc, rowOf(known.getType()), known);
  }
  Operation *op = value.getDefiningOp();
  if (op && op->hasTrait<OpTrait::ConstantLike>()) {
    Attribute element = cast<arith::ConstantOp>(op).getValue();
    if (auto dense = dyn_cast<DenseElementsAttr>(element))
      element = dense.getSplatValue<Attribute>();
    return rows[value] = arith::ConstantOp::create(
               b, loc, DenseElementsAttr::get(rowOf(value.getType()), element));
  }
  if (Value outside = scalars.lookupOrNull(value))
    return rows[value] = vector::BroadcastOp::create(
               b, loc, rowOf(value.getType()), outside);
  if (auto broadcast = dyn_cast<vector::BroadcastOp>(op))
    return rows[value] = transpose(broadcast.getSource());
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(transpose(operand));
  Operation *clone =
      b.create(op->getLoc(), op->getName().getIdentifier(), operands,
               TypeRange{rowOf(value.getType())}, op->getAttrs());
  return rows[value] = clone->getResult(0);
}

void gdn::emitTransposedMap(SharedTiles &tiles, tile::MapRowsOp map) {
  OpBuilder &b = tiles.b;
  Location loc = map.getLoc();
  Block &body = map.getBody().front();
  VectorType shape = vectorType(map.getResult(0));
  const int64_t numRows = shape.getDimSize(1), numColumns = shape.getDimSize(0);
  const gpu::RowsAttr matrixRows = tiles.matrixRows;
  auto perRow = gpu::PerRowAttr::get(b.getContext(), matrixRows);
  auto perColumn = gpu::PerColumnAttr::get(b.getContext(), matrixRows);

  // What each row or column has of the tiles: values of the body, or tiles that
  // it uses whole.
  SmallVector<Value> sources, inputs;
  for (auto [input, arg] :
       llvm::zip(map.getInputs(), body.getArguments().drop_front())) {
    sources.push_back(arg);
    VectorType type = vectorType(input);
    if (type.getRank() == 1) {
      inputs.push_back(tiles.vectorOf(input, perColumn));
    } else if (Value source = getTransposedSource(input)) {
      inputs.push_back(tiles.fragmentOf(source, matrixRows));
    } else {
      auto transposed =
          VectorType::get({numRows, numColumns}, type.getElementType());
      inputs.push_back(gpu::LoadSharedOp::create(
          b, loc, gpu::FragmentType::get(transposed, matrixRows),
          tiles.bufferOf(input), Value(), /*transpose=*/true));
    }
  }
  for (Value tile : getUsedTiles(map))
    if (!llvm::is_contained(map.getInputs(), tile)) {
      sources.push_back(tile);
      inputs.push_back(tiles.vectorOf(tile, perRow));
    }

  auto emitStage = [&](ValueRange wanted, TypeRange types) {
    auto stage = gpu::MapRowsOp::create(b, loc, types, inputs);
    OpBuilder::InsertionGuard guard(b);
    Block *block = stage.openBody(b);
    TransposedBody transposed{b, loc, numColumns, tiles.scalars};
    for (auto [source, arg] :
         llvm::zip(sources, block->getArguments().drop_front()))
      transposed.rows[source] = arg;
    SmallVector<Value> yielded;
    for (Value value : wanted)
      yielded.push_back(transposed.transpose(value));
    gpu::YieldOp::create(b, loc, yielded);
    return stage;
  };
  for (auto sum : body.getOps<vector::ReductionOp>()) {
    auto wide = VectorType::get({numRows, numColumns}, b.getF32Type());
    auto addends =
        emitStage(sum.getVector(), {gpu::FragmentType::get(wide, matrixRows)});
    auto sums = VectorType::get({numColumns}, b.getF32Type());
    Value scratch = tiles.allocate(
        gpu::SharedType::get(
            VectorType::get({tiles.numWarps, numColumns}, b.getF32Type()),
            false),
        map->getBlock());
    inputs.push_back(gpu::ColumnSumOp::create(
        b, loc, gpu::FragmentType::get(sums, perColumn), addends.getResult(0),
        scratch));
    sources.push_back(sum.getResult());
  }
  SmallVector<Type> types;
  for (Value result : map.getResults())
    types.push_back(gpu::FragmentType::get(
        VectorType::get({numRows, numColumns},
                        vectorType(result).getElementType()),
        matrixRows));
  auto last = emitStage(body.getTerminator()->getOperands(), types);
  // What the inputs took in shared memory is free for the results.
  tiles.setEmitted(map);
  for (auto [tile, fragment] : llvm::zip(map.getResults(), last.getResults())) {
    Value buffer = tiles.allocate(
        gpu::SharedType::get(vectorType(tile), /*swizzled=*/true),
        map->getBlock());
    gpu::StoreSharedOp::create(b, loc, fragment, buffer, Value(),
                               /*transpose=*/true);
    tiles.setBuffer(tile, buffer);
  }
}
