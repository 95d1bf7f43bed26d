// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the convolution in a loop, and emits its loads and its window.
#include "Products/ConvolvedValues.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace gdn;

/// Whether `map` does the same with every element of its only input.
static bool goesByElement(tile::MapRowsOp map) {
  if (!map || map.getInputs().size() != 1 || map.getNumResults() != 1 ||
      !map.getBody().getArgument(0).use_empty())
    return false;
  return llvm::all_of(map.getBody().front(), [&](Operation &op) {
    return op.hasTrait<OpTrait::ConstantLike>() || isa<tile::YieldOp>(op) ||
           (isa<arith::ArithDialect, math::MathDialect>(op.getDialect()) &&
            llvm::all_of(op.getOperands(), [&](Value operand) {
              DenseElementsAttr elements;
              return map.getBody().isAncestor(operand.getParentRegion()) ||
                     (matchPattern(operand, m_Constant(&elements)) &&
                      elements.isSplat());
            }));
  });
}

/// The map that makes `tile` of another by widening it; null if none does.
static tile::MapRowsOp getWidening(Value tile) {
  auto map = tile.getDefiningOp<tile::MapRowsOp>();
  if (!goesByElement(map))
    return {};
  Block &body = map.getBody().front();
  return isa<arith::ExtFOp>(body.front()) &&
                 body.front().getNextNode() == body.getTerminator()
             ? map
             : tile::MapRowsOp();
}

/// The load of what `tile` is, or was before it was widened.
static tile::LoadOp getLoaded(Value tile) {
  if (tile::MapRowsOp map = getWidening(tile))
    tile = map.getInputs().front();
  return tile.getDefiningOp<tile::LoadOp>();
}

/// Of rows of a load that are all or none, by a condition: the select.
static arith::SelectOp getAllOrNone(tile::LoadOp load) {
  auto rows = load.getRows().getDefiningOp<arith::SelectOp>();
  const int64_t all = vectorType(load.getTile()).getDimSize(0);
  return rows && matchPattern(rows.getFalseValue(), m_Zero()) &&
                 getConstantIntValue(rows.getTrueValue()) == all
             ? rows
             : arith::SelectOp();
}

std::optional<ConvolvedValues> ConvolvedValues::find(tile::Conv1dOp conv) {
  auto loop = dyn_cast<scf::ForOp>(conv->getParentOp());
  auto window = dyn_cast<BlockArgument>(conv.getWindow());
  if (!loop || !window || window.getOwner() != loop.getBody() ||
      window == loop.getInductionVar() || !window.hasOneUse() ||
      conv.getBias() || !conv.getNewWindow().hasOneUse() ||
      loop.getTiedLoopYieldedValue(window)->get() != conv.getNewWindow() ||
      !loop.getTiedLoopResult(window).use_empty())
    return std::nullopt;
  ConvolvedValues values;
  values.conv = conv;
  values.firstWindow = loop.getTiedLoopInit(window)->get();
  values.loadedWindow = getLoaded(values.firstWindow);
  values.loadedWeight = getLoaded(conv.getWeight());
  values.widened = getWidening(conv.getInput());
  if (!values.widened || !values.loadedWindow || !values.loadedWeight ||
      values.loadedWeight.getRows() ||
      (values.loadedWindow.getRows() && !getAllOrNone(values.loadedWindow)))
    return std::nullopt;
  values.inputs = getLoaded(conv.getInput());
  const int64_t tokens = conv.getInput().getType().getDimSize(0);
  if (!values.inputs || values.inputs->getBlock() != conv->getBlock() ||
      !values.inputs->hasOneUse() || !values.widened->hasOneUse() ||
      !isNarrow(vectorType(values.inputs.getTile())) ||
      vectorType(values.loadedWindow.getTile()).getElementType() !=
          vectorType(values.inputs.getTile()).getElementType() ||
      getConstantIntValue(conv.getValid()) != tokens ||
      !conv.getResult().hasOneUse())
    return std::nullopt;
  values.rounded = dyn_cast<tile::MapRowsOp>(*conv.getResult().user_begin());
  if (!goesByElement(values.rounded) ||
      !isNarrow(vectorType(values.rounded.getResult(0))) ||
      !llvm::all_of(values.rounded->getUsers(),
                    llvm::IsaPred<tile::TransposeOp>))
    return std::nullopt;
  return values;
}

std::optional<ConvolvedValues> ConvolvedValues::find(scf::ForOp loop) {
  auto convolutions = loop.getBody()->getOps<tile::Conv1dOp>();
  return convolutions.empty() ? std::nullopt : find(*convolutions.begin());
}

bool ConvolvedValues::contains(Operation *op) const {
  if (op == inputs || op == widened || op == conv || op == rounded)
    return true;
  tile::LoadOp loads[] = {loadedWindow, loadedWeight};
  Value sources[] = {firstWindow, tile::Conv1dOp(conv).getWeight()};
  return llvm::is_contained(loads, op) ||
         llvm::any_of(sources, [&](Value source) {
           return source.getDefiningOp() == op;
         });
}

bool ConvolvedValues::isWindow(Value tile) const {
  tile::Conv1dOp op = conv;
  return tile == firstWindow || tile == op.getWindow() ||
         tile == op.getNewWindow();
}

/// A tile transposed: its columns are rows of fragments. Of the rows of the
/// load, which are all or none, columns are that.
Value ConvolutionEmitter::load(tile::LoadOp load) {
  OpBuilder &b = tiles.b;
  Location loc = load.getLoc();
  VectorType type = vectorType(load.getTile());
  auto transposed = VectorType::get({type.getDimSize(1), type.getDimSize(0)},
                                    type.getElementType());
  Value rows;
  if (load.getRows()) {
    auto index = [&](int64_t value) {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    Value given = tiles.scalars.lookupOrDefault(load.getRows());
    Value isNone = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                                         given, index(0));
    rows = arith::SelectOp::create(b, loc, isNone, index(0),
                                   index(type.getDimSize(1)));
  }
  SmallVector<int64_t> dims(llvm::reverse(load.getDims()));
  return gpu::LoadOp::create(
      b, loc, gpu::FragmentType::get(transposed, tiles.matrixRows),
      tiles.scalars.lookupOrDefault(load.getView()),
      lookupAll(tiles.scalars, load.getIndices()), dims, rows, /*aligned=*/0);
}

Value ConvolutionEmitter::begin() {
  weight = load(values.loadedWeight);
  Value window = load(values.loadedWindow);
  // Whoever is done with the sequence may write the window behind it.
  gpu::BarrierOp::create(tiles.b, window.getLoc());
  return window;
}

Value ConvolutionEmitter::emit(Value window) {
  OpBuilder &b = tiles.b;
  tile::MapRowsOp rounded = values.rounded;
  tile::LoadOp inputs = values.inputs;
  Location loc = rounded.getLoc();
  Value result = rounded.getResult(0);
  const int64_t tokens = vectorType(result).getDimSize(0);
  Value from = tiles.findBuffer(inputs.getTile());
  if (!tiles.findBuffer(result))
    tiles.pinBuffer(
        result, gpu::ReshapeOp::create(b, loc,
                                       gpu::SharedType::get(vectorType(result),
                                                            /*swizzled=*/true),
                                       from));
  auto conv = gpu::ConvColumnsOp::create(b, loc, window.getType(), from, window,
                                         weight, tiles.findBuffer(result));
  {
    OpBuilder::InsertionGuard guard(b);
    Block *body = conv.openBody(b);
    auto rowOf = [&](Type type) {
      return VectorType::get({tokens}, cast<VectorType>(type).getElementType());
    };
    Block &work = rounded.getBody().front();
    IRMapping mapping;
    mapping.map(work.getArgument(1), body->getArgument(0));
    auto find = [&](Value value) {
      DenseElementsAttr elements;
      if (!mapping.contains(value) &&
          matchPattern(value, m_Constant(&elements)))
        mapping.map(value, arith::ConstantOp::create(
                               b, loc,
                               DenseElementsAttr::get(
                                   rowOf(value.getType()),
                                   elements.getSplatValue<Attribute>()))
                               .getResult());
      return mapping.lookup(value);
    };
    for (Operation &op : work.without_terminator()) {
      if (op.hasTrait<OpTrait::ConstantLike>())
        continue;
      llvm::for_each(op.getOperands(), find);
      Operation *copy = b.clone(op, mapping);
      for (OpResult result : copy->getResults())
        result.setType(rowOf(result.getType()));
    }
    gpu::YieldOp::create(b, loc, find(work.getTerminator()->getOperand(0)));
  }
  return conv.getNewWindow();
}
