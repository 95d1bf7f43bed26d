// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A block has some rows of a matrix of a value head, which go their own way
// through all maps, in f32 from product to product:
//
//   combine   rows of the first segment's map, or of [0; 1] if there is none;
//             for each other segment of the sequence: A <- A P + H
//   apply     rows of the state; for each rank: S <- S P + H, and from the
//             state ahead of this rank, for each segment: store S, S <- S P + H
//
// The rows of one block are rows of H or of P, never of both: H is added to
// those of a block of H, and to the others no rows of it.
//
// For tensor cores operands have two parts of bf16, 16 bits together, and the
// columns of a matrix are carried in blocks: so many of its elements and of a
// map's have a place in registers at once. bf16 has the range of f32, so states
// need no scale.
#include "Maps/MapProducts.h"
#include "Chunks/ChunkForm.h"
#include "Program/Slots.h"
#include "Program/TokenOps.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <numeric>

using namespace mlir;
using namespace gdn;

using P = arith::CmpIPredicate;

/// Rows of a block, and columns of what it carries for tensor cores, at most.
static constexpr int64_t mostRows = 64, mostColumns = 64;

namespace {

class MapProducts {
public:
  MapProducts(EntryViews &views, KernelOp kernel, Operation *op, Value result,
              bool inParts)
      : views(views), loc(kernel.getLoc()), b(op->getContext()), result(result),
        inParts(inParts) {}

  void emit(CombineMapsOp combine);
  void emit(ApplyMapsOp apply);

private:
  /// The columns of the block's rows.
  using Rows = SmallVector<Value>;
  /// A map in memory: rows of H and of P, from the indices in front of row and
  /// column on.
  struct Map {
    Value constant, linear;
    SmallVector<Value> constantAt, linearAt;
    int64_t firstLinear; // the row of `linear` that P begins in
  };

  void takeSizes(Value constant, Value linear);
  void emitGrid(Value sequences, Value heads, int64_t rows);
  Rows load(Value view, ArrayRef<Value> at, Value row, Value count = {});
  void store(const Rows &rows, Value view, ArrayRef<Value> at, Value row);
  Rows emitStart(const Map &map, Value ofState, Value ofMap);
  Rows advance(const Rows &before, const Map &map, Value row, Value added);
  /// What the builder makes of `start`, for each number from `from` to `to`.
  Rows loop(Value from, Value to, const Rows &start,
            llvm::function_ref<Rows(Value, const Rows &)> body);
  Map segmentMap(Value m) { return {constant, linear, {m, h}, {m, h}, 0}; }

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value add(Value x, Value y) {
    return b.createOrFold<arith::AddIOp>(loc, x, y);
  }
  Value mul(Value x, Value y) {
    return b.createOrFold<arith::MulIOp>(loc, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  Value compare(P how, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, how, x, y);
  }
  Value blockId(int64_t axis) {
    return tile::BlockIdOp::create(b, loc, b.getIndexType(), axis);
  }
  Value view(Value tensor) { return views.tensors.lookup(tensor); }
  Value element(Value tensor, Value at) {
    return emitElement(b, loc, views, tensor, at);
  }
  VectorType tileType(int64_t rows, int64_t columns) {
    return VectorType::get({rows, columns}, b.getF32Type());
  }

  EntryViews &views;
  Location loc;
  OpBuilder b;
  Value result; // the view of the op's
  bool inParts;
  Value constant, linear; // of segments
  int64_t dv = 0, dk = 0, rows = 0, columns = 0;
  Value n, h;     // of the block: sequence, value head
  Value firstRow; // of the block's, in the matrix
};

} // namespace

void MapProducts::takeSizes(Value constantTensor, Value linearTensor) {
  constant = view(constantTensor);
  linear = view(linearTensor);
  auto shape = cast<RankedTensorType>(constantTensor.getType()).getShape();
  dv = shape[2];
  dk = shape[3];
  rows = std::min(std::gcd(dv, dk), mostRows);
  while (std::gcd(dv, dk) % rows != 0)
    --rows;
  columns = inParts && dk % mostColumns == 0 ? mostColumns : dk;
}

/// A block for each sequence, value head and `rows` of the `all` rows.
void MapProducts::emitGrid(Value sequences, Value heads, int64_t all) {
  b.setInsertionPointToStart(&views.function.getBody().front());
  const std::string forms[] = {getDimForm(sequences, 0), getDimForm(heads, 1),
                               std::to_string(all / rows)};
  SmallVector<StringRef> grid(std::begin(forms), std::end(forms));
  views.stage().setGrid(grid);
  n = blockId(0);
  h = blockId(1);
  firstRow = mul(blockId(2), index(rows));
}

MapProducts::Rows MapProducts::load(Value view, ArrayRef<Value> at, Value row,
                                    Value count) {
  const int64_t rank = cast<MemRefType>(view.getType()).getRank();
  Type element = cast<MemRefType>(view.getType()).getElementType();
  Rows loaded;
  for (int64_t column = 0; column < dk; column += columns) {
    SmallVector<Value> indices(at);
    indices.append({row, index(column)});
    Value tile = tile::LoadOp::create(
        b, loc, VectorType::get({rows, columns}, element), view, indices,
        ArrayRef<int64_t>{rank - 2, rank - 1}, count);
    loaded.push_back(castTile(b, loc, tile, b.getF32Type()));
  }
  return loaded;
}

void MapProducts::store(const Rows &tiles, Value view, ArrayRef<Value> at,
                        Value row) {
  const int64_t rank = cast<MemRefType>(view.getType()).getRank();
  Type element = cast<MemRefType>(view.getType()).getElementType();
  for (auto [i, tile] : llvm::enumerate(tiles)) {
    SmallVector<Value> indices(at);
    indices.append({row, index(int64_t(i) * columns)});
    tile::StoreOp::create(b, loc, castTile(b, loc, tile, element), view,
                          indices, ArrayRef<int64_t>{rank - 2, rank - 1},
                          Value());
  }
}

/// The block's rows of the map of the first segment: `ofState` rows of H and
/// `ofMap` rows of P, none of one of the two. Where there are none of both,
/// those of zeros above the identity.
MapProducts::Rows MapProducts::emitStart(const Map &map, Value ofState,
                                         Value ofMap) {
  Rows constantRows = load(
      map.constant, map.constantAt,
      select(compare(P::ne, ofState, index(0)), firstRow, index(0)), ofState);
  Value isMap = compare(P::ne, ofMap, index(0));
  Value row = arith::SubIOp::create(b, loc, firstRow, index(dv));
  Rows linearRows =
      load(map.linear, map.linearAt, select(isMap, row, index(0)), ofMap);
  // No row is as far as the diagonal of a map that is there.
  Value none = arith::AndIOp::create(b, loc, compare(P::eq, ofState, index(0)),
                                     compare(P::eq, ofMap, index(0)));
  Value diagonal = select(none, index(dv), index(2 * (dv + dk)));
  auto type = VectorType::get({columns}, b.getF32Type());
  auto numbers = VectorType::get({columns}, b.getIndexType());
  Value one =
      arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, 1.0f));
  Rows start;
  for (auto [i, constantTile, linearTile] :
       llvm::enumerate(constantRows, linearRows)) {
    auto map =
        tile::MapRowsOp::create(b, loc, TypeRange{tileType(rows, columns)},
                                ValueRange{constantTile, linearTile});
    OpBuilder::InsertionGuard guard(b);
    Block *body = b.createBlock(
        &map.getBody(), {}, {b.getIndexType(), type, type}, {loc, loc, loc});
    auto splat = [&](Value value) -> Value {
      return vector::BroadcastOp::create(b, loc, numbers, value);
    };
    // The row that has a one in column j is `diagonal` + j.
    Value own = splat(add(body->getArgument(0), firstRow));
    Value at = arith::AddIOp::create(
        b, loc, vector::StepOp::create(b, loc, numbers),
        splat(add(diagonal, index(int64_t(i) * columns))));
    Value sum = arith::AddFOp::create(b, loc, body->getArgument(1),
                                      body->getArgument(2));
    tile::YieldOp::create(b, loc, select(compare(P::eq, at, own), one, sum));
    start.push_back(map.getResult(0));
  }
  return start;
}

/// `before` behind `map`; `added` rows of its H, from row `row` on, all of them
/// where it is null.
MapProducts::Rows MapProducts::advance(const Rows &before, const Map &map,
                                       Value row, Value added) {
  const int64_t rank = cast<MemRefType>(map.linear.getType()).getRank();
  auto split = [&](Value tile) {
    return inParts ? toParts(b, loc, tile, b.getBF16Type()) : Operand{tile};
  };
  Rows after = load(map.constant, map.constantAt, row, added);
  SmallVector<Operand> left = llvm::map_to_vector(before, split);
  // All of the map before the first product, which has to wait for memory.
  SmallVector<SmallVector<Operand>> right(left.size());
  for (auto [inner, operands] : llvm::enumerate(right))
    for (size_t outer = 0; outer < after.size(); ++outer) {
      SmallVector<Value> indices(map.linearAt);
      indices.append({index(map.firstLinear + int64_t(inner) * columns),
                      index(int64_t(outer) * columns)});
      operands.push_back(split(tile::LoadOp::create(
          b, loc, tileType(columns, columns), map.linear, indices,
          ArrayRef<int64_t>{rank - 2, rank - 1}, Value())));
    }
  // Neighbours add to different sums, so that none waits for the one before.
  using Part = Value Operand::*;
  for (auto [operand, operands] : llvm::zip(left, right))
    for (auto [own, other] :
         {std::pair<Part, Part>(&Operand::low, &Operand::high),
          {&Operand::high, &Operand::high},
          {&Operand::high, &Operand::low}})
      for (auto [sum, part] : llvm::zip(after, operands))
        if (operand.*own && part.*other)
          sum = tile::MatmulOp::create(b, loc, sum.getType(), operand.*own,
                                       part.*other, sum,
                                       /*transpose_lhs=*/false);
  return after;
}

MapProducts::Rows
MapProducts::loop(Value from, Value to, const Rows &start,
                  llvm::function_ref<Rows(Value, const Rows &)> body) {
  auto loop = scf::ForOp::create(b, loc, from, to, index(1), start);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Rows carried(loop.getRegionIterArgs());
  scf::YieldOp::create(b, loc, body(loop.getInductionVar(), carried));
  return Rows(loop.getResults());
}

void MapProducts::emit(CombineMapsOp combine) {
  takeSizes(combine.getConstant(), combine.getLinear());
  emitGrid(combine.getFirstSegments(), combine.getConstant(), dv + dk);
  // Rows of P have nothing added.
  Value all = index(rows), none = index(0);
  Value isState = compare(P::ult, firstRow, index(dv));
  Value added = select(isState, all, none);
  Value row = select(isState, firstRow, none);
  Value first = element(combine.getFirstSegments(), n);
  Value count = element(combine.getNumSegments(), n);
  Value isSome = compare(P::sgt, count, none);
  Rows start = emitStart(segmentMap(first), select(isSome, added, none),
                         select(isSome, select(isState, none, all), none));
  Rows last = loop(add(first, index(1)), add(first, count), start,
                   [&](Value m, const Rows &before) -> Rows {
                     return advance(before, segmentMap(m), row, added);
                   });
  store(last, result, {n, h}, firstRow);
  func::ReturnOp::create(b, loc);
}

void MapProducts::emit(ApplyMapsOp apply) {
  takeSizes(apply.getConstant(), apply.getLinear());
  emitGrid(apply.getSlots(), apply.getConstant(), dv);
  Value pool = apply.getPool(), memory = views.pools.lookup(pool).memory;
  Value slot = emitSlot(b, loc, views, apply.getSlots(), n);
  Value target = emitSlot(b, loc, views, apply.getWriteSlots(), n);
  Value live = emitIsLive(b, loc, views, slot, pool);
  Value none = index(0);
  Rows start = load(memory, {select(live, slot, none), h}, firstRow,
                    select(live, index(rows), none));
  Value maps = view(apply.getMaps());
  Value own = element(apply.getRank(), none);
  Value ranks = memref::DimOp::create(b, loc, maps, 0);
  auto behindRank = [&](Value r, const Rows &before) -> Rows {
    return advance(before, {maps, maps, {r, n, h}, {r, n, h}, dv}, firstRow,
                   Value());
  };
  Rows ahead = loop(none, own, start, behindRank);
  Rows last = loop(own, ranks, ahead, behindRank);
  {
    Value isWritten = emitIsLive(b, loc, views, target, pool);
    auto branch = scf::IfOp::create(b, loc, isWritten, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    store(last, memory, {target, h}, firstRow);
  }
  // What is behind the last segment is of no use.
  Value first = element(apply.getFirstSegments(), n);
  Value count = element(apply.getNumSegments(), n);
  Value end = arith::SubIOp::create(b, loc, add(first, count), index(1));
  Rows before = loop(first, end, ahead, [&](Value m, const Rows &rows) -> Rows {
    store(rows, result, {m, h}, firstRow);
    return advance(rows, segmentMap(m), firstRow, Value());
  });
  Value isSome = compare(P::sgt, count, none);
  auto branch = scf::IfOp::create(b, loc, isSome, /*withElse=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    store(before, result, {end, h}, firstRow);
  }
  func::ReturnOp::create(b, loc);
}

bool gdn::multipliesMaps(KernelOp kernel) {
  return isa<CombineMapsOp, ApplyMapsOp>(kernel.getBody().front().front());
}

LogicalResult gdn::emitMapProducts(EntryViews &views, KernelOp kernel,
                                   bool inParts) {
  Block &body = kernel.getBody().front();
  Operation *op = &body.front();
  if (op->getNextNode() != body.getTerminator())
    return op->emitOpError("expects to be the only op of its kernel");
  for (OpOperand &use : op->getOpOperands())
    if (isa<RankedTensorType>(use.get().getType()) &&
        !views.tensors.contains(use.get()))
      return op->emitOpError("expects operand ")
             << use.getOperandNumber()
             << " to be an argument of the entry on the way to tiles";
  SmallVector<Value> results = getResultViews(views, kernel, op->getResult(0));
  if (results.size() != 1)
    return op->emitOpError("expects its result to be one result of the entry, "
                           "but got ")
           << results.size();
  MapProducts products(views, kernel, op, results.front(), inParts);
  if (auto combine = dyn_cast<CombineMapsOp>(op))
    products.emit(combine);
  else
    products.emit(cast<ApplyMapsOp>(op));
  return success();
}
