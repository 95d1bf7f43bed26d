// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.map_rows op by op: each op of the body once for every row that the
// thread holds, so that the rows' chains of dependent instructions lie side by
// side. What no row's values go into is computed once for all rows.
//
// Two things happen to the arithmetic on the way, the same for every row:
// a product whose only use is a sum or difference is added with one rounding,
// and a sum over a row goes
//
//   1. over the thread's positions, even and odd ones in a chain each,
//   2. over the two chains,
//   3. over the lanes of the row, in a butterfly, the rows of a thread
//   together.
#include "Rows/RowEmitter.h"

#include "Kernel/Assembly.h"
#include "Kernel/OptimizationBarrier.h"

#include "Fragments/TileAccess.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

#include <limits>

using namespace mlir;
using namespace gdn;

void RowEmitter::mapArguments() {
  auto first = cast<gdn::gpu::FragmentType>(map.getResult(0).getType());
  layout = first.getRows();
  numRows = first.getDimSize(0);
  localRows = layout.getLocalRows(numRows);
  for (Value tile : llvm::concat<Value>(map.getInputs(), map.getResults()))
    if (auto type = cast<gdn::gpu::FragmentType>(tile.getType());
        !type.isPerRow())
      numColumns = type.getShape().back();
  localColumns = layout.getLocalColumns(numColumns);

  rows.resize(localRows);
  for (int64_t i = 0; i < localRows; ++i) {
    if (!body.getArgument(0).use_empty()) {
      Value row = threads.row(a, layout, numRows, i);
      // What is compared with it is not kept for another map.
      if (threads.isRole)
        row = optimizationBarrier(b, loc, row);
      rows[i].map(body.getArgument(0), a.toIndex(row));
    }
    for (auto [arg, input] :
         llvm::zip(body.getArguments().drop_front(), map.getInputs())) {
      auto type = cast<gdn::gpu::FragmentType>(input.getType());
      Value local = values.lookup(input);
      if (type.isPerColumn()) {
        rows[i].map(arg, local);
        invariant.insert(arg);
      } else if (type.isPerRow()) {
        rows[i].map(arg,
                    vector::ExtractOp::create(b, loc, local, i).getResult());
      } else {
        Value row = vector::ExtractStridedSliceOp::create(
            b, loc, local, ArrayRef<int64_t>{i * localColumns},
            ArrayRef<int64_t>{localColumns}, ArrayRef<int64_t>{1});
        rows[i].map(arg, row);
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Products that are added
//===----------------------------------------------------------------------===//

/// The product that `operand` is, if nothing else uses it.
arith::MulFOp RowEmitter::getFusedProduct(Value operand) {
  auto product = operand.getDefiningOp<arith::MulFOp>();
  if (product && product->getBlock() == &body && product->hasOneUse() &&
      getElementTypeOrSelf(product.getType()).isF32())
    return product;
  return nullptr;
}

void RowEmitter::findFusedProducts() {
  for (Operation &op : body) {
    if (auto sum = dyn_cast<vector::ReductionOp>(op)) {
      if (arith::MulFOp product = getFusedProduct(sum.getVector());
          product && isSum(op))
        fused.insert(product);
    } else if (isa<arith::AddFOp, arith::SubFOp>(op)) {
      for (Value operand : op.getOperands())
        if (arith::MulFOp product = getFusedProduct(operand)) {
          fused.insert(product);
          break; // one product at most is exact in the sum
        }
    }
  }
}

Value RowEmitter::emitFused(Operation &op, IRMapping &row) {
  bool isDifference = isa<arith::SubFOp>(op);
  for (unsigned side : {0, 1}) {
    auto product = op.getOperand(side).getDefiningOp<arith::MulFOp>();
    if (!product || !fused.contains(product))
      continue;
    Value lhs = lookup(product.getLhs(), row);
    Value rhs = lookup(product.getRhs(), row);
    Value addend = lookup(op.getOperand(1 - side), row);
    if (isDifference && side == 0)
      addend = arith::NegFOp::create(b, loc, addend);
    if (isDifference && side == 1)
      lhs = arith::NegFOp::create(b, loc, lhs);
    return math::FmaOp::create(b, loc, lhs, rhs, addend);
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Sums along a row
//===----------------------------------------------------------------------===//

/// What the largest of the thread's elements is.
Value RowEmitter::emitLargest(vector::ReductionOp largest, IRMapping &row) {
  Value all = lookup(largest.getVector(), row), most;
  const int64_t lanes = layout.getLanes(), vector = layout.getVector();
  Value least = arith::ConstantOp::create(
      b, loc, b.getF32FloatAttr(-std::numeric_limits<float>::infinity()));
  for (int64_t position = 0; position < localColumns; ++position) {
    Value element = vector::ExtractOp::create(b, loc, all, position);
    int64_t first = position / vector * lanes * vector + position % vector;
    if (first + (lanes - 1) * vector >= numColumns)
      element = arith::SelectOp::create(
          b, loc,
          a.isLess(threads.column(a, layout), a.i32(numColumns - first)),
          element, least);
    most = most ? arith::MaximumFOp::create(b, loc, most, element).getResult()
                : element;
  }
  return emitLargestOfLanes(b, loc, layout, most);
}

/// What the thread has of the sum.
Value RowEmitter::emitPart(vector::ReductionOp sum, IRMapping &row) {
  auto product = sum.getVector().getDefiningOp<arith::MulFOp>();
  bool isFused = product && fused.contains(product);
  SmallVector<Value> factors;
  if (isFused)
    factors = {lookup(product.getLhs(), row), lookup(product.getRhs(), row)};
  else
    factors = {lookup(sum.getVector(), row)};
  int64_t lanes = layout.getLanes(), vector = layout.getVector();

  Value chains[2];
  for (int64_t position = 0; position < localColumns; ++position) {
    SmallVector<Value, 2> elements;
    for (Value factor : factors)
      elements.push_back(vector::ExtractOp::create(b, loc, factor, position));
    Value &chain = chains[position % 2];
    // A position past the tile does not count, whatever the body made of it.
    int64_t first = position / vector * lanes * vector + position % vector;
    bool mayBePast = first + (lanes - 1) * vector >= numColumns;
    if (isFused && (!chain || mayBePast))
      elements = {arith::MulFOp::create(b, loc, elements[0], elements[1])};
    if (mayBePast) {
      Value isInside =
          a.isLess(threads.column(a, layout), a.i32(numColumns - first));
      Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0));
      elements = {arith::SelectOp::create(b, loc, isInside, elements[0], zero)};
    }
    if (!chain)
      chain = elements[0];
    else if (elements.size() == 2)
      chain = math::FmaOp::create(b, loc, elements[0], elements[1], chain);
    else
      chain = arith::AddFOp::create(b, loc, chain, elements[0]);
  }
  return chains[1]
             ? arith::AddFOp::create(b, loc, chains[0], chains[1]).getResult()
             : chains[0];
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

Value RowEmitter::lookup(Value value, IRMapping &row) {
  if (Value found = row.lookupOrNull(value))
    return found;
  DenseElementsAttr constant;
  if (auto type = dyn_cast<VectorType>(value.getType());
      type && matchPattern(value, m_Constant(&constant))) {
    auto local = cast<VectorType>(localType(type));
    Value copy = arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(local, constant.getSplatValue<Attribute>()));
    row.map(value, copy);
    return copy;
  }
  return values.lookupOrDefault(value);
}

/// How far the columns of the thread's positions are behind its first one.
SmallVector<int64_t> RowEmitter::columnsFromFirst() const {
  int64_t lanes = layout.getLanes(), vector = layout.getVector();
  SmallVector<int64_t> columns;
  for (int64_t position = 0; position < localColumns; ++position)
    columns.push_back(position / vector * lanes * vector + position % vector);
  return columns;
}

/// The columns of the thread's positions.
Value RowEmitter::emitColumnNumbers(vector::StepOp step) {
  Value first = threads.column(a, layout);
  SmallVector<Value> columns;
  for (int64_t column : columnsFromFirst())
    columns.push_back(a.toIndex(a.add(first, a.i32(column))));
  return vector::FromElementsOp::create(
      b, loc, cast<VectorType>(localType(step.getType())), columns);
}

/// True of the number of the row, and of those of columns.
bool RowEmitter::isNumber(Value value) {
  if (auto splat = value.getDefiningOp<vector::BroadcastOp>())
    value = splat.getSource();
  return value == body.getArgument(0) || value.getDefiningOp<vector::StepOp>();
}

/// Of numbers of rows and columns, in 32 bits: with 64 it takes twice as many
/// instructions.
Value RowEmitter::emitCompare(arith::CmpIOp compare, IRMapping &row) {
  auto narrow = [&](Value value) -> Value {
    Value wide = lookup(value, row);
    Type type = b.getI32Type();
    if (auto vector = dyn_cast<VectorType>(wide.getType()))
      type = vector.clone(type);
    return arith::IndexCastOp::create(b, loc, type, wide);
  };
  return arith::CmpIOp::create(b, loc, compare.getPredicate(),
                               narrow(compare.getLhs()),
                               narrow(compare.getRhs()));
}

/// A number of the row and a multiple of the distance from the row to each
/// column: one conversion, and an exact sum for each column. Null for what is
/// not that.
Value RowEmitter::emitDistance(arith::AddFOp op, IRMapping &row) {
  auto convert = op.getLhs().getDefiningOp<arith::SIToFPOp>();
  auto start = op.getRhs().getDefiningOp<vector::BroadcastOp>();
  auto product = convert ? convert.getIn().getDefiningOp<arith::MulIOp>()
                         : arith::MulIOp();
  auto narrow = product ? product.getLhs().getDefiningOp<arith::IndexCastOp>()
                        : arith::IndexCastOp();
  auto distance =
      narrow ? narrow.getIn().getDefiningOp<arith::SubIOp>() : arith::SubIOp();
  DenseIntElementsAttr factors;
  if (!start || !distance || !isNumber(distance.getRhs()) ||
      !distance.getLhs().getDefiningOp<vector::StepOp>() ||
      !matchPattern(product.getRhs(), m_Constant(&factors)) ||
      !factors.isSplat())
    return {};
  const int64_t factor = factors.getSplatValue<APInt>().getSExtValue();
  Value own = arith::IndexCastOp::create(b, loc, b.getI32Type(),
                                         row.lookup(body.getArgument(0)));
  own = arith::SubIOp::create(b, loc, threads.column(a, layout), own);
  Value first = arith::SIToFPOp::create(b, loc, b.getF32Type(),
                                        a.mul(own, a.i32(factor)));
  first = arith::AddFOp::create(b, loc, first, lookup(start.getSource(), row));
  SmallVector<Value> elements;
  for (int64_t column : columnsFromFirst())
    elements.push_back(arith::AddFOp::create(
        b, loc, first,
        arith::ConstantOp::create(b, loc, b.getF32FloatAttr(factor * column))));
  return vector::FromElementsOp::create(
      b, loc, cast<VectorType>(localType(op.getType())), elements);
}

Value RowEmitter::emitInRow(Operation &op, IRMapping &row) {
  if (auto sum = dyn_cast<vector::ReductionOp>(op)) {
    if (!isSum(op))
      return emitLargest(sum, row);
    Value total = emitPart(sum, row);
    addLanes(total);
    return total;
  }
  if (isa<arith::AddFOp, arith::SubFOp>(op))
    if (Value value = emitFused(op, row))
      return value;
  if (auto step = dyn_cast<vector::StepOp>(op))
    return emitColumnNumbers(step);
  if (auto sum = dyn_cast<arith::AddFOp>(op))
    if (Value value = emitDistance(sum, row))
      return value;
  if (auto compare = dyn_cast<arith::CmpIOp>(op);
      compare && isNumber(compare.getLhs()) && isNumber(compare.getRhs()))
    return emitCompare(compare, row);
  if (op.hasTrait<OpTrait::ConstantLike>())
    return lookup(op.getResult(0), row) != op.getResult(0)
               ? row.lookup(op.getResult(0))
               : b.clone(op)->getResult(0);
  IRMapping operands;
  for (Value operand : op.getOperands())
    operands.map(operand, lookup(operand, row));
  Operation *copy = b.clone(op, operands);
  for (OpResult result : copy->getResults())
    result.setType(localType(result.getType()));
  return copy->getResult(0);
}

/// Whether no row's values go into `op`.
bool RowEmitter::isSameForRows(Operation &op) {
  return llvm::all_of(op.getOperands(), [&](Value operand) {
    auto product = operand.getDefiningOp<arith::MulFOp>();
    if (product && fused.contains(product))
      return isRowInvariant(product.getLhs()) &&
             isRowInvariant(product.getRhs());
    return isRowInvariant(operand);
  });
}

/// Rows `first` to `last - 1` of an op; those before come first.
void RowEmitter::emitOp(Operation &op, int64_t first, int64_t last) {
  if (fused.contains(&op))
    return;
  bool isShared = isSameForRows(op);
  if (isShared)
    invariant.insert(op.getResult(0));
  auto sum = dyn_cast<vector::ReductionOp>(op);
  if (sum && isSum(op) && !isShared && map.getShareSums()) {
    SmallVector<Value> parts;
    for (int64_t i = first; i < last; ++i)
      parts.push_back(emitPart(sum, rows[i]));
    addLanes(parts);
    for (int64_t i = first; i < last; ++i)
      rows[i].map(sum.getResult(), parts[i - first]);
    return;
  }
  for (int64_t i = first; i < last; ++i) {
    Value value = isShared && i > 0 ? rows[0].lookup(op.getResult(0))
                                    : emitInRow(op, rows[i]);
    rows[i].map(op.getResult(0), value);
  }
}

/// The thread's elements of result `index`.
Value RowEmitter::collect(unsigned index) {
  auto type = cast<gdn::gpu::FragmentType>(map.getResult(index).getType());
  Value yielded = body.getTerminator()->getOperand(index);
  SmallVector<Value> parts;
  for (IRMapping &row : rows)
    parts.push_back(lookup(yielded, row));
  VectorType local = getLocalType(type);
  if (type.isPerRow())
    return vector::FromElementsOp::create(b, loc, local, parts);
  if (parts.size() == 1)
    return parts[0];
  Value all = arith::ConstantOp::create(b, loc, local, b.getZeroAttr(local));
  for (auto [i, part] : llvm::enumerate(parts))
    all = vector::InsertStridedSliceOp::create(
        b, loc, part, all, ArrayRef<int64_t>{int64_t(i) * localColumns},
        ArrayRef<int64_t>{1});
  return all;
}

SmallVector<Value> RowEmitter::emit() {
  mapArguments();
  findFusedProducts();
  // Behind the last sum rows have nothing to wait for, and one at a time takes
  // registers for one.
  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator())
    ops.push_back(&op);
  size_t split = ops.size();
  if (isApart) {
    emitApart(ops);
    split = 0;
    ops.clear();
  }
  while (rowByRow && split > 0 && !isa<vector::ReductionOp>(ops[split - 1]))
    --split;
  for (Operation *op : ArrayRef(ops).take_front(split))
    emitOp(*op, 0, localRows);
  for (int64_t i = 0; i < localRows && split < ops.size(); ++i) {
    if (i > 0)
      separate(i, ArrayRef(ops).drop_front(split));
    for (Operation *op : ArrayRef(ops).drop_front(split))
      emitOp(*op, i, i + 1);
  }
  SmallVector<Value> results;
  for (unsigned i = 0; i < map.getNumResults(); ++i)
    results.push_back(collect(i));
  return results;
}

SmallVector<Value> gdn::emitMapRows(OpBuilder &b, const BlockThreads &threads,
                                    gdn::gpu::MapRowsOp map,
                                    const IRMapping &values, bool rowByRow,
                                    bool isApart) {
  return RowEmitter(b, threads, map, values, rowByRow, isApart).emit();
}
