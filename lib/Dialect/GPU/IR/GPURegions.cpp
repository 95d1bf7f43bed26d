// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of gdn_gpu.warps and gdn_gpu.map_rows; (Cn) are the constraints
// that GPUOps.td lists.
#include "gdn/Dialect/GPU/IR/GPU.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace gdn::gpu;

/// Checks that `yield` gives one value of each type of `want`; `what` says what
/// the operands are.
static LogicalResult verifyYield(YieldOp yield, ArrayRef<Type> want,
                                 StringRef what) {
  if (yield.getNumOperands() != want.size())
    return yield.emitOpError("expects ")
           << want.size() << " operands, one per result, but got "
           << yield.getNumOperands();
  for (auto [index, operand, type] : llvm::enumerate(yield.getResults(), want))
    if (operand.getType() != type)
      return yield.emitOpError("expects operand ")
             << index << " to be " << type << ", " << what << ", but got "
             << operand.getType();
  return success();
}

//===----------------------------------------------------------------------===//
// warps, each_warp
//===----------------------------------------------------------------------===//

/// True if `user` runs on the warps of `warps` alone, in an op of its kind.
template <typename OpTy>
static bool runsOnSameWarps(Operation *user, OpTy warps) {
  auto around = user->getParentOfType<OpTy>();
  return around && around.getFirstAttr() == warps.getFirstAttr() &&
         around.getCountAttr() == warps.getCountAttr();
}

/// (C1) to (C4) of both; `layoutWarps` is the number of warps of the layouts
/// inside.
template <typename OpTy>
static LogicalResult verifyWarps(OpTy op, int64_t layoutWarps) {
  // warps_c1, each_warp_c1
  for (Operation *around = op->getParentOp(); around;
       around = around->getParentOp())
    if (isa<WarpsOp, EachWarpOp>(around) &&
        !isa_and_nonnull<RolesOp>(around->getParentOp()))
      return op.emitOpError("expects to be outside other ")
             << around->getName();
  auto function = op->template getParentOfType<FunctionOpInterface>();
  std::optional<int64_t> warps = countWarps(op);
  if (KernelFields(function).getThreads() == 0 || !warps)
    return op.emitOpError(
        "expects a function with 'threads' of 'gdn_gpu.kernel' around it");
  const uint64_t last = op.getFirst() + op.getCount(); // both are below 2^63
  WarpsOp role = getRole(op);
  if (last > uint64_t(*warps))
    return op.emitOpError("expects warps below ")
           << *warps << ", "
           << (role ? "those of its role"
                    : "set by 'threads' of 'gdn_gpu.kernel' of the function")
           << ", but got warps up to " << last - 1;
  // warps_c2, each_warp_c2
  auto yield = cast<YieldOp>(op.getBody().front().getTerminator());
  if (failed(verifyYield(yield, llvm::to_vector(op.getResultTypes()),
                         "the type of its result")))
    return failure();
  // warps_c3, each_warp_c3
  for (OpResult result : op->getResults())
    for (Operation *user : result.getUsers())
      if (!runsOnSameWarps(user, op)) {
        InFlightDiagnostic diag = op.emitOpError("expects result ")
                                  << result.getResultNumber()
                                  << " to be used on the same warps only";
        diag.attachNote(user->getLoc()) << "other use";
        return diag;
      }
  // warps_c4, each_warp_c4
  WalkResult walk =
      op.getBody().template walk<WalkOrder::PreOrder>([&](Operation *inner) {
        if (isa<WarpsOp, EachWarpOp>(inner))
          return WalkResult::skip(); // sees to itself
        for (Value value :
             llvm::concat<Value>(inner->getOperands(), inner->getResults()))
          if (auto type = dyn_cast<FragmentType>(value.getType()))
            if (type.getRows().getWarps() != layoutWarps) {
              inner->emitOpError("expects fragments laid out over ")
                  << layoutWarps << " warps, set by the " << op->getName()
                  << " around it, but got " << type;
              return WalkResult::interrupt();
            }
        return WalkResult::advance();
      });
  return failure(walk.wasInterrupted());
}

LogicalResult WarpsOp::verifyRegions() {
  // warps_c6
  if (getAlternate()) {
    auto function = (*this)->getParentOfType<FunctionOpInterface>();
    if (!isa_and_nonnull<RolesOp>((*this)->getParentOp()) ||
        KernelFields(function).getCluster() != 2)
      return emitOpError(
          "expects to be a role of a function with "
          "'cluster' of 'gdn_gpu.kernel' = 2 where it is alternate");
  }
  // warps_c5
  if (getRegisters()) {
    int64_t registers = *getRegisters();
    bool isWhole = getFirst() % groupWarps == 0 && getCount() % groupWarps == 0;
    bool isPart = getFirst() % groupWarps + getCount() <= groupWarps;
    if (!isa_and_nonnull<RolesOp>((*this)->getParentOp()) ||
        !(isWhole || isPart))
      return emitOpError("expects 'registers' in a role of whole groups of "
                         "four warps, or of a part of one");
    if (registers < 24 || registers > 256 || registers % 8 != 0)
      return emitOpError("expects 'registers' to be a multiple of 8 from 24 "
                         "to 256, but got ")
             << registers;
  }
  return verifyWarps(*this, getCount());
}

LogicalResult EachWarpOp::verifyRegions() {
  // each_warp_c5
  Block &body = getBody().front();
  if (body.getNumArguments() != 1 || !body.getArgument(0).getType().isIndex())
    return emitOpError("expects the body to have one argument, the number of "
                       "the warp, an index");
  return verifyWarps(*this, 1);
}

//===----------------------------------------------------------------------===//
// map_rows
//===----------------------------------------------------------------------===//

/// (C1): one layout, and one shape of the tiles in it.
static LogicalResult verifyShapes(MapRowsOp map) {
  if (map.getNumResults() == 0)
    return map.emitOpError("expects at least one result");
  RowsAttr rows = cast<FragmentType>(map.getResult(0).getType()).getRows();
  int64_t numRows =
      cast<FragmentType>(map.getResult(0).getType()).getDimSize(0);
  std::optional<int64_t> numColumns;
  for (Value value : llvm::concat<Value>(map.getResults(), map.getInputs())) {
    auto type = cast<FragmentType>(value.getType());
    if (type.getRows() != rows)
      return map.emitOpError("expects every layout to belong to ")
             << rows << ", the layout of the first result, but got "
             << type.getLayout();
    if (type.isPerColumn() && isa<OpResult>(value) &&
        value.getDefiningOp() == map)
      return map.emitOpError("expects no result to be 'per_column', which is "
                             "the same for every row, but got ")
             << type;
    if (!type.isPerColumn() && type.getDimSize(0) != numRows)
      return map.emitOpError("expects every input and result to have ")
             << numRows << " rows, set by the first result, but got "
             << type.getDimSize(0);
    if (type.isPerRow())
      continue;
    int64_t got = type.getShape().back();
    if (!numColumns)
      numColumns = got;
    if (got != *numColumns)
      return map.emitOpError("expects every input and result to have ")
             << *numColumns << " columns, but got " << got;
  }
  return success();
}

/// (C4): what `op`, in the body of `map`, may be.
static LogicalResult verifyRowOp(Operation &op, MapRowsOp map) {
  bool isArithmetic =
      isa<arith::ArithDialect, math::MathDialect>(op.getDialect());
  DenseElementsAttr elements;
  if (matchPattern(&op, m_Constant(&elements)) && !elements.isSplat())
    return op.emitOpError("expects one value in all elements of a vector of a "
                          "gdn_gpu.map_rows");
  if (auto broadcast = dyn_cast<vector::BroadcastOp>(op)) {
    if (isa<VectorType>(broadcast.getSourceType()))
      return op.emitOpError("expects to broadcast a scalar in a "
                            "gdn_gpu.map_rows, but got ")
             << broadcast.getSourceType();
  } else if (auto sum = dyn_cast<vector::ReductionOp>(op)) {
    if (sum.getKind() != vector::CombiningKind::ADD || sum.getAcc() ||
        !sum.getType().isF32())
      return op.emitOpError("expects a sum of f32 without 'acc' in a "
                            "gdn_gpu.map_rows");
  } else if (!isArithmetic && !isa<YieldOp, vector::StepOp>(op)) {
    return op.emitOpError("expects to be outside gdn_gpu.map_rows, whose body "
                          "has arith, math, vector.broadcast, vector.step and "
                          "vector.reduction only");
  }
  for (Value operand : op.getOperands()) {
    DenseElementsAttr constant;
    bool isSplat =
        matchPattern(operand, m_Constant(&constant)) && constant.isSplat();
    if (isa<VectorType>(operand.getType()) && !isSplat &&
        !map.getBody().isAncestor(operand.getParentRegion()))
      return op.emitOpError("expects vectors of the gdn_gpu.map_rows around it "
                            "or constants of one value, but got one from "
                            "outside");
  }
  return success();
}

LogicalResult MapRowsOp::verifyRegions() {
  // map_rows_c1
  if (failed(verifyShapes(*this)))
    return failure();
  // map_rows_c2
  Block &body = getBody().front();
  if (body.getNumArguments() != getInputs().size() + 1)
    return emitOpError("expects the body to have ")
           << getInputs().size() + 1
           << " arguments, the row number and one per input, but got "
           << body.getNumArguments();
  if (!body.getArgument(0).getType().isIndex())
    return emitOpError("expects the first argument of the body to be the row "
                       "number, an index, but got ")
           << body.getArgument(0).getType();
  for (auto [arg, input] :
       llvm::zip(body.getArguments().drop_front(), getInputs())) {
    Type want = getRowType(cast<FragmentType>(input.getType()));
    if (arg.getType() != want)
      return emitOpError("expects argument ")
             << arg.getArgNumber() << " of the body to be " << want
             << ", what a row has of its input, but got " << arg.getType();
  }
  // map_rows_c3
  SmallVector<Type> want;
  for (Type type : getResultTypes())
    want.push_back(getRowType(cast<FragmentType>(type)));
  if (failed(verifyYield(cast<YieldOp>(body.getTerminator()), want,
                         "what a row has of its result")))
    return failure();
  // map_rows_c4
  for (Operation &op : body)
    if (failed(verifyRowOp(op, *this)))
      return failure();
  return success();
}
