// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of the ops of GPUMatrixOps.td; (Cn) are the constraints listed
// there.
#include "gdn/Dialect/GPU/IR/GPU.h"
#include "gdn/Dialect/LoopContracts.h"
#include "gdn/Dialect/TileChecks.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace gdn::gpu;

/// (C1) and the elements of (C2) of copies.
template <typename OpTy>
static LogicalResult verifyCopied(OpTy op, SharedType buffer) {
  auto view = cast<MemRefType>(op.getView().getType());
  if (failed(gdn::verifyViewDims(op, view, op.getIndices().size(), op.getDims(),
                                 buffer.getRank(), "'buffer'")))
    return failure();
  return gdn::verifyViewElement(op, view, buffer.getElementType(), "'buffer'");
}

/// The columns of a warp are whole pieces.
static LogicalResult verifyWarpgroupColumns(Operation *op, SharedType buffer) {
  std::optional<int64_t> warps = countWarps(op);
  if (!warps)
    return op->emitOpError(
        "expects a function with 'threads' of 'gdn_gpu.kernel' around it");
  if (buffer.getRank() == 2 && buffer.getSwizzled() &&
      buffer.getRowBytes() % (*warps * 16) == 0)
    return success();
  return op->emitOpError("expects a swizzled tile with as many pieces of 16 "
                         "bytes in its rows for each of ")
         << *warps << " warps, but got " << buffer;
}

/// A tile as a box lies in shared memory, of pieces of 16 bits.
static bool isTensorMapTile(SharedType buffer) {
  const unsigned bits = buffer.getElementType().getIntOrFloatBitWidth();
  return buffer.getRank() == 2 && buffer.getSwizzled() &&
         (bits == 16 || buffer.getElementType().isF32()) &&
         buffer.getShape()[0] <= 256 && buffer.getRowBytes() <= 512 &&
         buffer.getPanelRowBytes() == 128;
}

static bool isArgument(Value view) {
  auto argument = dyn_cast<BlockArgument>(view);
  return argument &&
         isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
}

/// Whole rows, or a part of them that is one panel.
static bool hasWholeRows(BeginCopyOp copy) {
  auto view = cast<MemRefType>(copy.getView().getType());
  const int64_t last = view.getRank() - 1;
  SharedType buffer = copy.getBuffer().getType();
  const int64_t columns = buffer.getShape()[1], size = view.getDimSize(last);
  if (view.getRank() > 4 || copy.getDims()[1] != last)
    return false;
  return size == columns
             ? matchPattern(copy.getIndices()[last], m_Zero())
             : buffer.getRowBytes() == 128 && size != ShapedType::kDynamic &&
                   size % columns == 0 && size / columns * 128 <= 512;
}

bool gdn::gpu::canUseTensorMap(BeginCopyOp copy) {
  return !copy.getPerWarpgroup() && !copy.getScattered() &&
         copy.getBuffer().getDefiningOp<AcquireOp>() &&
         isTensorMapTile(copy.getBuffer().getType()) &&
         isArgument(copy.getView()) && hasWholeRows(copy);
}

bool gdn::gpu::canUseTensorMap(CopyOutOp copy) {
  auto view = cast<MemRefType>(copy.getView().getType());
  const int64_t last = view.getRank() - 1;
  SharedType buffer = copy.getBuffer().getType();
  std::optional<int64_t> warps = countWarps(copy);
  return isTensorMapTile(buffer) &&
         buffer.getElementType().getIntOrFloatBitWidth() == 16 &&
         isArgument(copy.getView()) && view.getRank() <= 4 &&
         copy.getDims().back() == last && !view.isDynamicDim(last) &&
         view.getDimSize(last) % 64 == 0 && view.getDimSize(last) <= 256 &&
         warps && buffer.getShape()[1] <= view.getDimSize(last) &&
         buffer.getShape()[1] * groupWarps == 64 * *warps;
}

/// The tile is a box of an argument, as a tensor map has it.
static LogicalResult verifyTensorMap(BeginCopyOp copy) {
  if (copy.getPerWarpgroup() || copy.getScattered())
    return copy.emitOpError(
        "expects neither 'per_warpgroup' nor 'scattered' with "
        "'tensor_map'");
  if (!copy.getBuffer().getDefiningOp<AcquireOp>())
    return copy.emitOpError("expects 'buffer' to be acquired for 'tensor_map'");
  if (!isTensorMapTile(copy.getBuffer().getType()))
    return copy.emitOpError(
               "expects a swizzled tile of up to 256 rows of 128 to "
               "512 bytes, a multiple of 128, of 16 bits or f32 for "
               "'tensor_map', but got ")
           << copy.getBuffer().getType();
  if (!isArgument(copy.getView()))
    return copy.emitOpError(
        "expects 'view' to be an argument of the function for 'tensor_map'");
  if (!hasWholeRows(copy))
    return copy.emitOpError(
               "expects whole rows of a view of up to 4 dimensions "
               "for 'tensor_map', but got ")
           << copy.getView().getType();
  return success();
}

LogicalResult BeginCopyOp::verify() {
  // begin_copy_c1, begin_copy_c2
  SharedType buffer = getBuffer().getType();
  if (failed(verifyCopied(*this, buffer)))
    return failure();
  if (buffer.getRowBytes() % 16 != 0)
    return emitOpError("expects rows of a multiple of 16 bytes, but got ")
           << buffer;
  // begin_copy_c6
  if (getScattered() && (buffer.getRank() != 1 ||
                         buffer.getElementType().getIntOrFloatBitWidth() != 32))
    return emitOpError("expects a tile of rank 1 with elements of 32 bits for "
                       "'scattered', but got ")
           << buffer;
  // begin_copy_c10
  if (getAnyAlignment() &&
      (getPerWarpgroup() || getTensorMap() || getScattered() ||
       buffer.getRank() != 2 || buffer.getSwizzled()))
    return emitOpError("expects a tile of rank 2 that is not swizzled, and no "
                       "other way to copy, for 'any_alignment', but got ")
           << buffer;
  // begin_copy_c7
  if (getPerWarpgroup() && failed(verifyWarpgroupColumns(*this, buffer)))
    return failure();
  // begin_copy_c8
  if (getTensorMap() && failed(verifyTensorMap(*this)))
    return failure();
  // begin_copy_c4
  if (getPerWarpgroup() || getTensorMap() || !isInSomeWarps(*this))
    return verifyOutsideWarps(*this);
  return success();
}

LogicalResult CopyOutOp::verify() {
  // copy_out_c1, copy_out_c2
  SharedType buffer = getBuffer().getType();
  if (failed(verifyCopied(*this, buffer)))
    return failure();
  if (failed(verifyWarpgroupColumns(*this, buffer)))
    return failure();
  // copy_out_c5
  if (getTensorMap() && !canUseTensorMap(*this))
    return emitOpError(
               "expects a swizzled tile of up to 256 rows and 64 columns for "
               "each group, of 16 bits, of an argument of the function of up "
               "to 4 dimensions whose last is a multiple of 64 up to 256, for "
               "'tensor_map', but got ")
           << buffer << " and " << getView().getType();
  // copy_out_c7
  if (getFullUntilLast() &&
      failed(gdn::verifyFullUntilLast(*this, getRows(), buffer.getShape()[0])))
    return failure();
  return verifyOutsideWarps(*this);
}

LogicalResult AwaitCopiesOp::verify() { return verifyOutsideWarps(*this); }

LogicalResult ShareProductsOp::verify() {
  // share_products_c1
  FragmentType lhs = getLhs().getType();
  if (lhs.getRank() != 2 || !lhs.getElementType().isF32())
    return emitOpError("expects 'lhs' to be a tile of rank 2 of f32, but got ")
           << lhs;
  RowsAttr rows = lhs.getRows();
  int64_t vector = rows.getVector();
  if (rows.getLanes() != 4 || (vector != 4 && vector != 8) || rows.getCrossed())
    return emitOpError("expects 'lhs' in a layout with lanes = 4 and a vector "
                       "of 4 or 8, but got ")
           << lhs;
  int64_t numRows = lhs.getShape()[0], columns = lhs.getShape()[1];
  if (numRows % (16 * rows.getWarps()) != 0 || columns % (4 * vector) != 0)
    return emitOpError("expects a multiple of ")
           << 16 * rows.getWarps() << " rows and of " << 4 * vector
           << " columns, but got " << lhs;
  // share_products_c2
  auto isBuffer = [](SharedType buffer, int64_t size) {
    return buffer.getRank() == 2 && buffer.getElementType().isF32() &&
           !buffer.getSwizzled() && buffer.getShape()[1] == size;
  };
  SharedType first = getFirst().getType(), to = getFirstTo().getType();
  if (!isBuffer(first, columns) || first.getShape()[0] % 4 != 0)
    return emitOpError("expects 'first' and 'second' to have a multiple of 4 "
                       "rows of ")
           << columns << " f32, but got " << first;
  if (!isBuffer(to, numRows) || to.getShape()[0] != first.getShape()[0])
    return emitOpError("expects 'first_to' and 'second_to' to have ")
           << first.getShape()[0] << " rows of " << numRows << " f32, but got "
           << to;
  // share_products_c4
  return verifyOutsideWarps(*this);
}

/// matmul_c1 to matmul_c4, matmul_c7 and, for products of warpgroups,
/// matmul_c6.
static LogicalResult verifyProduct(Operation *op, FragmentType lhs,
                                   SharedType rhs, bool transposeRhs, Value acc,
                                   FragmentType result, bool warpgroup,
                                   std::optional<int64_t> from) {
  // matmul_c3
  RowsAttr rows = lhs.getRows();
  if (lhs.getRank() != 2 || !rows.isMatrix())
    return op->emitOpError(
               "expects 'lhs' in a layout of matrix instructions, with "
               "lanes = 4 and vector = 2, but got ")
           << lhs;
  // matmul_c1
  if (rhs.getRank() != 2)
    return op->emitOpError("expects 'rhs' to have rank 2, but got ") << rhs;
  int64_t inner = rhs.getShape()[transposeRhs ? 1 : 0];
  int64_t columns = rhs.getShape()[transposeRhs ? 0 : 1];
  // matmul_c7
  if (from) {
    if (!transposeRhs || *from % 16 != 0 || *from < 0 ||
        lhs.getDimSize(1) > inner - *from ||
        !isa<FragmentType>(op->getOperand(0).getType()))
      return op->emitOpError("expects 'from' to be a multiple of 16, with ")
             << lhs.getDimSize(1)
             << " columns of a transposed 'rhs' from there on and a fragment "
                "as "
                "'lhs', but got "
             << *from << " and " << rhs;
    inner = lhs.getDimSize(1);
  }
  if (inner != lhs.getDimSize(1))
    return op->emitOpError("expects 'rhs' to have an inner size of ")
           << lhs.getDimSize(1) << ", set by 'lhs', but got " << inner;
  auto want = FragmentType::get(op->getContext(), {lhs.getDimSize(0), columns},
                                Float32Type::get(op->getContext()), rows);
  if (result != want || (acc && acc.getType() != want))
    return op->emitOpError("expects 'acc' and the result to be ")
           << want << ", but got "
           << (result != want
                   ? result
                   : FragmentType(cast<FragmentType>(acc.getType())));
  if (lhs.getDimSize(0) % (16 * rows.getWarps()) != 0 || inner % 16 != 0 ||
      columns % 16 != 0)
    return op->emitOpError("expects sizes in multiples of ")
           << 16 * rows.getWarps() << " rows, 16 inner and 16 columns, but got "
           << lhs.getDimSize(0) << " x " << inner << " x " << columns;
  // matmul_c2
  Type element = lhs.getElementType();
  if (element != rhs.getElementType() || element.isF32())
    return op->emitOpError(
               "expects 'lhs' and 'rhs' to be both bf16 or both f16, but "
               "got ")
           << element << " and " << rhs.getElementType();
  // matmul_c4
  if (!rhs.getSwizzled())
    return op->emitOpError("expects 'rhs' to be swizzled, but got ") << rhs;
  // matmul_c7
  if (!warpgroup)
    return success();
  if (!MatmulOp::fitsWarpgroups(rows, rhs, columns))
    return op->emitOpError(
               "expects a product of warpgroups with warps in multiples of 4, "
               "rows "
               "of 'rhs' of a multiple of 128 bytes and at most 256 "
               "columns, but got ")
           << rows.getWarps() << " warps, " << rhs << " and " << columns
           << " columns";
  auto func = op->getParentOfType<func::FuncOp>();
  if (func && !KernelFields(func).getWarpgroups())
    return op->emitOpError("expects a product of warpgroups in a function with "
                           "'warpgroups' of 'gdn_gpu.kernel', but '")
           << func.getName() << "' has none";
  return success();
}

LogicalResult MatmulOp::verify() {
  return verifyProduct(*this, getLhs().getType(), getRhs().getType(),
                       getTransposeRhs(), getAcc(), getResult().getType(),
                       getWarpgroup(), getFrom());
}

SmallVector<Value, 2> StartMatmulOp::getBuffers() {
  SmallVector<Value, 2> buffers = {getRhs()};
  if (isa<SharedType>(getLhs().getType()))
    buffers.push_back(getLhs());
  return buffers;
}

LogicalResult StartMatmulOp::verify() {
  // start_matmul_c4
  FragmentType result = getResult().getType().getFragment();
  auto lhs = dyn_cast<FragmentType>(getLhs().getType());
  if (lhs && getTransposed())
    return emitOpError("expects a shared 'lhs' where it is 'transposed'");
  if (auto buffer = dyn_cast<SharedType>(getLhs().getType())) {
    SmallVector<int64_t> shape(buffer.getShape());
    if (getTransposed())
      std::reverse(shape.begin(), shape.end());
    if (buffer.getRank() != 2 || shape[0] != 64 ||
        result.getRows().getWarps() != 4 || !buffer.getSwizzled() ||
        buffer.getPanelRowBytes() != 128)
      return emitOpError("expects a shared 'lhs' of 64 rows for four warps, "
                         "swizzled, with rows of a multiple of 128 bytes, but "
                         "got ")
             << buffer << " for " << result;
    lhs = FragmentType::get(VectorType::get(shape, buffer.getElementType()),
                            result.getRows());
  }
  // start_matmul_c1
  if (failed(verifyProduct(*this, lhs, getRhs().getType(), getTransposeRhs(),
                           getAcc(), result, /*warpgroup=*/true, getFrom())))
    return failure();
  // start_matmul_c2
  auto await = getResult().hasOneUse()
                   ? dyn_cast<AwaitMatmulOp>(*getResult().user_begin())
                   : AwaitMatmulOp();
  if (!await || await->getBlock() != (*this)->getBlock() ||
      await->isBeforeInBlock(*this))
    return emitOpError("expects one gdn_gpu.await_matmul of its result, in the "
                       "same block");
  for (Operation *op = (*this)->getNextNode(); op != await;
       op = op->getNextNode())
    if (op->getNumRegions() > 0 && !hasArithmetic(op) && !isa<WarpsOp>(op))
      return emitOpError("expects its gdn_gpu.await_matmul before ")
             << op->getName();
  return success();
}

bool MatmulOp::fitsWarpgroups(RowsAttr rows, SharedType rhs, int64_t columns) {
  return rows.getWarps() % 4 == 0 && rhs.getPanelRowBytes() == 128 &&
         columns <= 256;
}

SharedType TriInverseOp::getScratchType(FragmentType matrix, int64_t count) {
  VectorType tile = matrix.getTile();
  SmallVector<int64_t> shape(tile.getShape());
  shape[0] += (count - 1) * block;
  return SharedType::get(VectorType::get(shape, tile.getElementType()),
                         /*swizzled=*/true);
}

LogicalResult TriInverseOp::verify() {
  // tri_inverse_c1
  if (getMatrices().empty() || getMatrices().size() > 2)
    return emitOpError("expects one matrix or two, but got ")
           << getMatrices().size();
  auto matrix = cast<FragmentType>(getMatrices().front().getType());
  RowsAttr rows = matrix.getRows();
  if (matrix.getRank() != 2 || matrix.getDimSize(0) != matrix.getDimSize(1) ||
      !matrix.getElementType().isF16() || !rows.isMatrix() ||
      matrix.getDimSize(0) != block * rows.getWarps())
    return emitOpError("expects a square 'matrix' of f16 with 16 rows per warp "
                       "in a layout of matrix instructions, but got ")
           << matrix;
  if (getInverses().size() != getMatrices().size())
    return emitOpError("expects as many results as matrices, ")
           << getMatrices().size() << ", but got " << getInverses().size();
  for (Value value : llvm::concat<Value>(getMatrices(), getInverses()))
    if (value.getType() != matrix)
      return emitOpError("expects matrices and results of one type, ")
             << matrix << ", but got " << value.getType();
  if (getMatrices().size() > 1 && (rows.getWarps() != 4 || !getTransposed()))
    return emitOpError(
        "expects two matrices to have four warps and 'transposed'");
  // tri_inverse_c2
  SharedType want = getScratchType(matrix, getMatrices().size());
  if (getScratch().getType() != want)
    return emitOpError("expects 'scratch' to be ")
           << want << ", but got " << getScratch().getType();
  // tri_inverse_c3
  return verifyOutsideWarps(*this);
}

LogicalResult RunningSumOp::verify() {
  // running_sum_c1
  FragmentType values = getValues().getType();
  RowsAttr rows = values.getRows();
  if (!values.isPerRow() || rows.getWarps() != 1 || rows.getLanes() != 1 ||
      !values.getElementType().isF32())
    return emitOpError("expects f32 'per_row' with one warp and one lane to a "
                       "row, but got ")
           << values;
  return success();
}

LogicalResult ColumnSumOp::verify() {
  // column_sum_c1
  FragmentType tile = getTile().getType();
  RowsAttr rows = tile.getRows();
  if (tile.getRank() != 2 || !tile.getElementType().isF32() ||
      tile.getDimSize(0) % (rows.getWarps() * rows.getGroups()) != 0 ||
      tile.getDimSize(1) % (rows.getLanes() * rows.getVector()) != 0)
    return emitOpError("expects 'tile' to have rank 2, elements of f32, a "
                       "multiple of ")
           << rows.getWarps() * rows.getGroups() << " rows and a multiple of "
           << rows.getLanes() * rows.getVector() << " columns, but got "
           << tile;
  auto want = FragmentType::get(getContext(), {tile.getDimSize(1)},
                                tile.getElementType(),
                                PerColumnAttr::get(getContext(), rows));
  if (getResult().getType() != want)
    return emitOpError("expects the result to be ")
           << want << ", but got " << getResult().getType();
  // column_sum_c2
  auto scratch =
      SharedType::get(VectorType::get({rows.getWarps(), tile.getDimSize(1)},
                                      tile.getElementType()),
                      /*swizzled=*/false);
  if (getScratch().getType() != scratch)
    return emitOpError("expects 'scratch' to be ")
           << scratch << ", but got " << getScratch().getType();
  // column_sum_c3
  return verifyOutsideWarps(*this);
}
