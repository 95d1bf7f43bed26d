// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a schedule of products does with tiles that are there: work on rows,
// products, decay matrices, inverses.
#include "Products/SharedTiles.h"

#include "Kernel/OperandRoles.h"
#include "Products/ProductForm.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace gdn;

void ProductEmitter::cloneBody(Block &from, Block *to, IRMapping &mapping) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(to);
  for (Operation &op : from.without_terminator()) {
    if (mapping.contains(op.getResult(0)))
      continue; // taken out of the body
    for (Value operand : op.getOperands())
      if (Operation *constant = operand.getDefiningOp();
          constant && constant->hasTrait<OpTrait::ConstantLike>() &&
          !mapping.contains(operand))
        b.clone(*constant, mapping);
    b.clone(op, mapping);
  }
  SmallVector<Value> yielded;
  for (Value value : from.getTerminator()->getOperands()) {
    if (Operation *constant = value.getDefiningOp();
        constant && constant->hasTrait<OpTrait::ConstantLike>() &&
        !mapping.contains(value))
      b.clone(*constant, mapping);
    yielded.push_back(mapping.lookupOrDefault(value));
  }
  gpu::YieldOp::create(b, from.getTerminator()->getLoc(), yielded);
}

void ProductEmitter::emitMap(tile::MapRowsOp map) {
  Location loc = map.getLoc();
  gpu::RowsAttr rows;
  for (Value tile : llvm::concat<Value>(map.getInputs(), map.getResults()))
    if (!isVector(tile))
      rows = rowsOf(shown(tile));
  auto perRow = gpu::PerRowAttr::get(b.getContext(), rows);
  auto perColumn = gpu::PerColumnAttr::get(b.getContext(), rows);
  Block &from = map.getBody().front();
  IRMapping mapping = scalars;
  SmallVector<Value> inputs;
  for (Value input : map.getInputs())
    inputs.push_back(isVector(input) ? fetchVector(input, perRow)
                                     : fragmentOf(input, rows));
  // Tiles of rank 1 from outside: single elements, and rows as they are.
  SetVector<Value> captured;
  map.getBody().walk([&](Operation *op) {
    if (auto extract = dyn_cast<vector::ExtractOp>(op))
      if (buffers.contains(extract.getSource()) &&
          extract.getStaticPosition().size() == 1) {
        Value at = arith::ConstantIndexOp::create(
            b, loc, extract.getStaticPosition().front());
        mapping.map(extract.getResult(),
                    gpu::LoadSharedElementOp::create(
                        b, loc, extract.getType(),
                        buffers.lookup(extract.getSource()), at)
                        .getResult());
        return;
      }
    for (Value operand : op->getOperands())
      if (isVector(operand) && buffers.contains(operand) &&
          !map.getBody().isAncestor(operand.getParentRegion()))
        captured.insert(operand);
  });
  for (Value tile : captured)
    inputs.push_back(fetchVector(tile, perColumn));

  SmallVector<Type> types;
  for (Value result : map.getResults())
    types.push_back(gpu::FragmentType::get(
        shown(result), isVector(result) ? Attribute(perRow) : rows));
  auto result = gpu::MapRowsOp::create(b, loc, types, inputs);
  OpBuilder::InsertionGuard guard(b);
  Block *body = result.openBody(b);
  for (auto [i, arg] : llvm::enumerate(from.getArguments()))
    mapping.map(arg, body->getArgument(i));
  for (auto [tile, arg] : llvm::zip(
           captured, body->getArguments().drop_front(from.getNumArguments())))
    mapping.map(tile, arg);
  cloneBody(from, body, mapping);
  for (auto [tile, fragment] : llvm::zip(map.getResults(), result.getResults()))
    fragments[tile] = fragment;
}

void ProductEmitter::emitMatmul(tile::MatmulOp matmul) {
  Location loc = matmul.getLoc();
  Value rhs = matmul.getRhs();
  bool transposed = false;
  if (auto transpose = rhs.getDefiningOp<tile::TransposeOp>();
      transpose && !buffers.contains(rhs)) {
    rhs = transpose.getTile();
    transposed = true;
  }
  // Both sides are shared before either is loaded: behind one barrier.
  if (matmul.getTransposeLhs())
    bufferOf(matmul.getLhs());
  Value right = bufferOf(rhs);
  Value lhs;
  if (matmul.getTransposeLhs()) {
    VectorType type = vectorType(matmul.getLhs());
    auto transposed = VectorType::get({type.getDimSize(1), type.getDimSize(0)},
                                      type.getElementType());
    lhs = gpu::LoadSharedOp::create(b, loc, typeOf(transposed),
                                    bufferOf(matmul.getLhs()), Value(),
                                    /*transpose=*/true);
  } else {
    lhs = fragmentOf(matmul.getLhs());
  }
  Value acc = matmul.getAcc() ? fragmentOf(matmul.getAcc()) : Value();
  fragments[matmul.getResult()] =
      gpu::MatmulOp::create(b, loc, typeOf(vectorType(matmul.getResult())), lhs,
                            right, acc, transposed);
}

/// `fragment` is `tile`, or its transpose if it was made transposed.
void ProductEmitter::setMade(Value tile, Value fragment) {
  if (!isMadeTransposed(tile))
    fragments[tile] = fragment;
  else
    for (Operation *user : tile.getUsers())
      fragments[user->getResult(0)] = fragment;
}

/// How much farther down the bound of an exponent is with each column past the
/// diagonal: a power of two half as far below is zero.
static constexpr int32_t steepness = 1024;

/// 2^(G_i - G_j) on and below the diagonal, of sums over bounded decays, and
/// zero above it. The sums of columns have a bound that depends on the distance
/// to the diagonal, above it far past all sums and below it never met: a
/// minimum for each element, where a mask would be a comparison and a choice.
/// It is as good as the rounding to 16 bits behind it asks.
void ProductEmitter::emitDecayMatrix(tile::DecayMatrixOp decay) {
  Location loc = decay.getLoc();
  const bool transposed = isMadeTransposed(decay.getResult());
  VectorType type = vectorType(decay.getResult());
  gpu::RowsAttr rows = rowsOf(type);
  Value sums = decay.getLogDecay(); // in their buffer, by emitVectors
  Value perRow = gpu::LoadSharedOp::create(
      b, loc,
      gpu::FragmentType::get(vectorType(sums),
                             gpu::PerRowAttr::get(b.getContext(), rows)),
      buffers.lookup(decay.getResult()), Value());
  Value perColumn = gpu::LoadSharedOp::create(
      b, loc,
      gpu::FragmentType::get(vectorType(sums),
                             gpu::PerColumnAttr::get(b.getContext(), rows)),
      buffers.lookup(decay.getResult()), Value());
  auto row = VectorType::get({type.getDimSize(1)}, b.getF32Type());
  auto map = gpu::MapRowsOp::create(b, loc, TypeRange{typeOf(type)},
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
  buffers.erase(decay.getResult());
  setMade(decay.getResult(), map.getResult(0));
}

void ProductEmitter::emitInverse(tile::TriInverseOp inverse,
                                 ArrayRef<ProductEmitter *> emitters) {
  ProductEmitter &first = *emitters.front();
  SmallVector<Value> matrices;
  for (ProductEmitter *each : emitters)
    matrices.push_back(each->fragmentOf(inverse.getMatrix()));
  auto type = cast<gpu::FragmentType>(matrices.front().getType());
  Value scratch =
      first.allocate(gpu::TriInverseOp::getScratchType(type, emitters.size()),
                     inverse->getBlock());
  auto made = gpu::TriInverseOp::create(
      first.b, inverse.getLoc(), SmallVector<Type>(emitters.size(), type),
      matrices, scratch, isMadeTransposed(inverse.getResult()));
  for (auto [each, result] : llvm::zip(emitters, made.getInverses())) {
    each->setMade(inverse.getResult(), result);
    each->emitted.insert(inverse);
  }
  // Free again: nobody uses the matrix from there.
  first.buffers[inverse.getMatrix()] = scratch;
}

LogicalResult ProductEmitter::emit(Operation *op) {
  Location loc = op->getLoc();
  LogicalResult result = success();
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](tile::LoadOp load) {
        if (isCopied(load))
          return (void)emitCopy(load, scalars, Value(), /*isPinned=*/false);
        Value rows =
            load.getRows() ? scalars.lookupOrDefault(load.getRows()) : Value();
        fragments[load.getTile()] =
            gpu::LoadOp::create(b, loc, typeOf(vectorType(load.getTile())),
                                scalars.lookupOrDefault(load.getView()),
                                mapped(load.getIndices()), load.getDims(), rows,
                                getAlignment(load.getView(), load.getIndices(),
                                             vectorType(load.getTile())));
      })
      .Case([](tile::FillOp) {}) // made where it is used
      .Case([&](tile::StoreOp store) { emitStore(store); })
      .Case([&](tile::MapRowsOp map) {
        isTransposed(map) ? emitTransposedMap(map) : emitMap(map);
      })
      .Case([&](tile::MatmulOp matmul) { emitMatmul(matmul); })
      .Case([](tile::TransposeOp) {}) // read that way where it is used
      .Case([&](tile::DecayMatrixOp decay) { emitDecayMatrix(decay); })
      .Case([&](tile::TriInverseOp inverse) { emitInverse(inverse, {this}); })
      .Default([&](Operation *) {
        result = op->emitOpError("is not for a schedule of products");
      });
  emitted.insert(op);
  // What has to go somewhere goes at once.
  for (Value tile : op->getResults())
    if (destinations.contains(tile))
      bufferOf(tile);
  return result;
}
