// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.map_rows as loops over vectors. A body works on whole rows; here a
// row is passed over one vector at a time, so that the code stays as short as
// the body. A sum over the row ends such a pass, because what follows needs it:
//
//   for each row:
//     for each vector of the row:  x = f(row);  sum += x * x;  keep x
//     s = g(sum)
//     for each vector of the row:  row = x * s
//
// The passes are the stages: stage n uses the sums of the stages before it.
// What two stages need is computed in both, unless it is dear and a result's
// row is free to keep it.
#include "ExpandTileOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace gdn;

static bool isVector(Value value) { return isa<VectorType>(value.getType()); }

/// The value of a constant with one value everywhere, or null.
static Attribute splatOf(Value value) {
  DenseElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<Attribute>();
  return {};
}

namespace {

using Buffers = DenseMap<Value, Value>;

class RowPass {
public:
  RowPass(OpBuilder &b, tile::MapRowsOp map, ArrayRef<Value> inputs,
          ArrayRef<Value> results, const Buffers &captured, int64_t lanes)
      : b(b), loc(map.getLoc()), map(map), body(map.getBody().front()),
        results(results), captured(captured), lanes(lanes) {
    for (auto [arg, buffer] :
         llvm::zip(body.getArguments().drop_front(), inputs))
      inputBuffers[arg] = buffer;
  }

  /// Emits the loop over the rows; false, and nothing, if the body does not go
  /// by vectors.
  bool emit();

private:
  using Set = llvm::SetVector<Operation *>;

  /// Finds the length of a row. Fails with rows of several lengths and ops that
  /// mix elements.
  bool canSplit();
  void assignStages();
  void chooseKept();
  void reach(Value value, Set &ops, DenseSet<Value> &inputs);
  void reachStage(unsigned stage, Set &ops, DenseSet<Value> &inputs);
  bool isCheap(Operation *op);

  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  VectorType vectorOf(Type type) {
    return VectorType::get({lanes}, getElementTypeOrSelf(type));
  }
  void emitRow(Value row);
  void emitStage(Value row, IRMapping &scalars);
  Value part(Value value, Value row, Value column, IRMapping &known);
  Value load(Value value, Value buffer, ValueRange at) {
    return vector::LoadOp::create(b, loc, vectorOf(value.getType()), buffer,
                                  at);
  }

  OpBuilder &b;
  Location loc;
  tile::MapRowsOp map;
  Block &body;
  ArrayRef<Value> results;
  const Buffers &captured;
  int64_t lanes, width = 1;
  llvm::MapVector<Value, Value> inputBuffers;
  DenseMap<Value, unsigned> stages; // of results in the body
  unsigned stage = 0, lastStage = 0;

  /// A value that a result's row keeps for the stages after `stage`.
  struct Kept {
    Value buffer;
    unsigned stage;
  };
  llvm::MapVector<Value, Kept> kept;
};

} // namespace

bool RowPass::canSplit() {
  SmallVector<Value> values(body.getArguments());
  for (Operation &op : body.without_terminator())
    if (op.getNumResults() != 1)
      return false;
  for (Operation &op : body) {
    llvm::append_range(values, op.getOperands());
    llvm::append_range(values, op.getResults());
    if (auto sum = dyn_cast<vector::ReductionOp>(op)) {
      if (sum.getKind() != vector::CombiningKind::ADD || sum.getAcc())
        return false;
    } else if (!OpTrait::hasElementwiseMappableTraits(&op) &&
               !isa<tile::YieldOp>(op) &&
               (llvm::any_of(op.getResults(), isVector) ||
                llvm::any_of(op.getOperands(), isVector)) &&
               !(isa<vector::BroadcastOp>(op) && !isVector(op.getOperand(0))) &&
               !isa<vector::StepOp>(op) &&
               !(isa<arith::ConstantOp>(op) && splatOf(op.getResult(0)))) {
      return false;
    }
  }
  for (Value value : values) {
    auto type = dyn_cast<VectorType>(value.getType());
    if (!type)
      continue;
    if (width == 1)
      width = type.getNumElements();
    bool isOutside = value.getParentBlock() != &body;
    if (type.getRank() != 1 || type.getNumElements() != width ||
        (isOutside && !captured.contains(value) && !splatOf(value)))
      return false;
  }
  while (lanes > 1 && width % lanes != 0)
    lanes /= 2;
  return true;
}

/// A value's stage is the number of passes that must be over before it is
/// known.
void RowPass::assignStages() {
  for (Operation &op : body.without_terminator()) {
    unsigned stage = 0;
    for (Value operand : op.getOperands())
      stage = std::max(stage, stages.lookup(operand));
    if (isa<vector::ReductionOp>(op))
      ++stage;
    lastStage = std::max(lastStage, stage);
    for (Value result : op.getResults())
      stages[result] = stage;
  }
}

/// Vector ops and inputs that `value` is computed from, as far as it is not
/// kept.
void RowPass::reach(Value value, Set &ops, DenseSet<Value> &inputs) {
  if (!isVector(value) || kept.contains(value))
    return;
  if (inputBuffers.contains(value))
    inputs.insert(value);
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &body || !ops.insert(op))
    return;
  for (Value operand : op->getOperands())
    reach(operand, ops, inputs);
}

void RowPass::reachStage(unsigned stage, Set &ops, DenseSet<Value> &inputs) {
  if (stage == lastStage)
    for (Value result : body.getTerminator()->getOperands())
      reach(result, ops, inputs);
  for (auto sum : body.getOps<vector::ReductionOp>())
    if (stages.lookup(sum.getResult()) == stage + 1)
      reach(sum.getVector(), ops, inputs);
}

/// True for what is no dearer to compute than to keep.
bool RowPass::isCheap(Operation *op) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return !operand.getDefiningOp() || operand.getParentBlock() != &body ||
           !isVector(operand);
  });
}

void RowPass::chooseKept() {
  for (stage = 0; stage < lastStage; ++stage) {
    Set first;
    DenseSet<Value> unused;
    reachStage(stage, first, unused);
    for (Operation *op : first) {
      // Wanted later by an op that this stage does not compute?
      Value value = op->getResult(0);
      bool isWanted = llvm::any_of(op->getUsers(), [&](Operation *user) {
        return !first.contains(user) && !isa<vector::ReductionOp>(user);
      });
      if (!isWanted || isCheap(op))
        continue;
      for (Value buffer : results) {
        auto type = cast<MemRefType>(buffer.getType());
        bool isTaken = llvm::any_of(
            kept, [&](auto &other) { return other.second.buffer == buffer; });
        if (isTaken || type.getRank() != 2 ||
            type.getElementType() != getElementTypeOrSelf(value.getType()))
          continue;
        kept[value] = {buffer, stage};
        // An input that lives in the same row must not be read after that.
        DenseSet<Value> later;
        for (unsigned next = stage + 1; next <= lastStage; ++next) {
          Set ops;
          reachStage(next, ops, later);
        }
        if (llvm::none_of(later, [&](Value input) {
              return inputBuffers.lookup(input) == buffer;
            }))
          break;
        kept.erase(value);
      }
    }
  }
}

/// The vector of `value` that begins at `column`.
Value RowPass::part(Value value, Value row, Value column, IRMapping &known) {
  if (Value done = known.lookupOrNull(value))
    return done;
  Value result;
  Operation *op = value.getDefiningOp();
  if (auto found = kept.find(value);
      found != kept.end() && found->second.stage < stage) {
    result = load(value, found->second.buffer, {row, column});
  } else if (Value buffer = inputBuffers.lookup(value)) {
    result = load(value, buffer, {row, column});
  } else if (Value buffer = captured.lookup(value)) {
    result = load(value, buffer, column);
  } else if (Attribute splat = splatOf(value)) {
    VectorType type = vectorOf(value.getType());
    result =
        arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, splat));
  } else if (!isVector(value)) {
    return value; // a scalar from outside the body
  } else if (isa<vector::StepOp>(op)) {
    VectorType type = vectorOf(value.getType());
    Value first = vector::BroadcastOp::create(b, loc, type, column);
    result = arith::AddIOp::create(
        b, loc, first, vector::StepOp::create(b, loc, type).getResult());
  } else {
    for (Value operand : op->getOperands())
      part(operand, row, column, known);
    Operation *copy = b.clone(*op, known);
    for (Value copied : copy->getResults())
      copied.setType(vectorOf(copied.getType()));
    result = copy->getResult(0);
  }
  known.map(value, result);
  return result;
}

/// Scalars of the stage, then one pass over the row.
void RowPass::emitStage(Value row, IRMapping &scalars) {
  for (Operation &op : body.without_terminator())
    if (!isa<vector::ReductionOp>(op) &&
        llvm::none_of(op.getResults(), isVector) &&
        stages.lookup(op.getResult(0)) == stage)
      b.clone(op, scalars);

  SmallVector<vector::ReductionOp> sums;
  for (auto sum : body.getOps<vector::ReductionOp>())
    if (stages.lookup(sum.getResult()) == stage + 1)
      sums.push_back(sum);
  bool hasRows = stage == lastStage &&
                 llvm::any_of(body.getTerminator()->getOperands(), isVector);
  if (sums.empty() && !hasRows)
    return;
  SmallVector<Value> zeros;
  for (vector::ReductionOp sum : sums) {
    VectorType type = vectorOf(sum.getVector().getType());
    zeros.push_back(
        arith::ConstantOp::create(b, loc, type, b.getZeroAttr(type)));
  }
  auto pass =
      scf::ForOp::create(b, loc, index(0), index(width), index(lanes), zeros);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(pass.getBody());
  Value column = pass.getInductionVar();
  IRMapping known = scalars;
  SmallVector<Value> partial;
  for (auto [sum, acc] : llvm::zip(sums, pass.getRegionIterArgs())) {
    Value x = part(sum.getVector(), row, column, known);
    partial.push_back(arith::AddFOp::create(b, loc, acc, x));
  }
  SmallVector<std::pair<Value, Value>> stores;
  if (stage == lastStage)
    for (auto [value, buffer] :
         llvm::zip(body.getTerminator()->getOperands(), results))
      if (isVector(value))
        stores.push_back({part(value, row, column, known), buffer});
  for (auto &[value, home] : kept)
    if (home.stage == stage)
      stores.push_back({part(value, row, column, known), home.buffer});
  for (auto [value, buffer] : stores)
    vector::StoreOp::create(b, loc, value, buffer, ValueRange{row, column});
  if (!sums.empty())
    scf::YieldOp::create(b, loc, partial);

  b.setInsertionPointAfter(pass);
  for (auto [sum, total] : llvm::zip(sums, pass.getResults())) {
    Value scalar =
        vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD, total,
                                    arith::FastMathFlags::reassoc);
    scalars.map(sum.getResult(), scalar);
  }
}

void RowPass::emitRow(Value row) {
  IRMapping scalars;
  scalars.map(body.getArgument(0), row);
  for (auto [arg, buffer] : inputBuffers)
    if (!isVector(arg))
      scalars.map(arg, memref::LoadOp::create(b, loc, buffer, row).getResult());
  for (stage = 0; stage <= lastStage; ++stage)
    emitStage(row, scalars);
  for (auto [value, buffer] :
       llvm::zip(body.getTerminator()->getOperands(), results))
    if (!isVector(value))
      memref::StoreOp::create(b, loc, scalars.lookupOrDefault(value), buffer,
                              row);
}

bool RowPass::emit() {
  if (!canSplit())
    return false;
  assignStages();
  chooseKept();
  int64_t rows = cast<VectorType>(map.getResult(0).getType()).getDimSize(0);
  auto each = scf::ForOp::create(b, loc, index(0), index(rows), index(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(each.getBody());
  emitRow(each.getInductionVar());
  return true;
}

void gdn::expandMapRows(OpBuilder &b, tile::MapRowsOp map,
                        ArrayRef<Value> inputs, ArrayRef<Value> results,
                        const DenseMap<Value, Value> &captured, int64_t lanes) {
  if (!RowPass(b, map, inputs, results, captured, lanes).emit())
    expandWholeRows(b, map, inputs, results, captured);
}
