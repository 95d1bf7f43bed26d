// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Verifiers of the ops of GPUByteOps.td; (Cn) are the constraints listed there.
#include "gdn/Dialect/GPU/IR/GPU.h"

#include "mlir/IR/OpImplementation.h"
#include "llvm/Support/InterleavedRange.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn::gpu;

/// Rows of bytes or 16 bits, or of what they become, as mma takes them: some at
/// once, of which four lanes have as many neighbouring columns each as a load
/// takes, one of `vectors`.
static LogicalResult verifyPartRows(Operation *op, StringRef name,
                                    FragmentType type,
                                    ArrayRef<int64_t> vectors,
                                    int64_t rowsAtOnce) {
  RowsAttr rows = type.getRows();
  if (rows.getLanes() != 4 || !llvm::is_contained(vectors, rows.getVector()) ||
      rows.getTall() || rows.getCrossed())
    return op->emitOpError("expects '")
           << name << "' in a layout with lanes = 4 and a vector of "
           << llvm::interleaved(vectors, " or ") << ", not tall, but got "
           << type;
  int64_t multiple = rowsAtOnce * rows.getWarps();
  int64_t columns = rows.getLanes() * rows.getVector();
  if (type.getShape()[0] % multiple == 0 && type.getShape()[1] % columns == 0)
    return success();
  return op->emitOpError("expects a multiple of ")
         << multiple << " rows and of " << columns << " columns, but got "
         << type;
}

/// `%upper, .. low(%low, ..) scales(%scales, ..), %first scaled(%scale)
/// to(%at),
/// ..`: fragments of bytes have one type, those of scales another.
ParseResult ShareByteProductsOp::parse(OpAsmParser &parser,
                                       OperationState &result) {
  using Operand = OpAsmParser::UnresolvedOperand;
  SmallVector<Operand> upper, low, scales;
  Operand to, rows[2], scale[2], place[2];
  Type fragment, scalesType, rowType, toType;
  if (parser.parseOperandList(upper) || parser.parseKeyword("low") ||
      parser.parseOperandList(low, OpAsmParser::Delimiter::Paren) ||
      parser.parseKeyword("scales") ||
      parser.parseOperandList(scales, OpAsmParser::Delimiter::Paren))
    return failure();
  for (int i : {0, 1})
    if (parser.parseComma() || parser.parseOperand(rows[i]) ||
        parser.parseKeyword("scaled") || parser.parseLParen() ||
        parser.parseOperand(scale[i]) || parser.parseRParen() ||
        parser.parseKeyword("to") || parser.parseLParen() ||
        parser.parseOperand(place[i]) || parser.parseRParen())
      return failure();
  if (parser.parseComma() || parser.parseOperand(to) ||
      parser.parseOptionalAttrDict(result.attributes) || parser.parseColon() ||
      parser.parseType(fragment) || parser.parseComma() ||
      parser.parseType(scalesType) || parser.parseComma() ||
      parser.parseType(rowType) || parser.parseComma() ||
      parser.parseType(toType))
    return failure();
  Type index = parser.getBuilder().getIndexType();
  Type f32 = parser.getBuilder().getF32Type();
  SmallVectorImpl<Value> &operands = result.operands;
  if (parser.resolveOperands(upper, fragment, operands) ||
      parser.resolveOperands(low, fragment, operands) ||
      parser.resolveOperands(scales, scalesType, operands))
    return failure();
  for (int i : {0, 1})
    if (parser.resolveOperand(rows[i], rowType, operands) ||
        parser.resolveOperand(scale[i], f32, operands) ||
        parser.resolveOperand(place[i], index, operands))
      return failure();
  if (parser.resolveOperand(to, toType, operands))
    return failure();
  auto &sizes = result.getOrAddProperties<Properties>().operandSegmentSizes;
  llvm::copy(ArrayRef<int32_t>({int32_t(upper.size()), int32_t(low.size()),
                                int32_t(scales.size()), 1, 1, 1, 1, 1, 1, 1}),
             sizes.begin());
  return success();
}

void ShareByteProductsOp::print(OpAsmPrinter &printer) {
  printer << " " << getUpper() << " low(" << getLow() << ") scales("
          << getScales() << ")";
  auto row = [&](Value tile, Value scale, Value place) {
    printer << ", " << tile << " scaled(" << scale << ") to(" << place << ")";
  };
  row(getFirst(), getFirstScale(), getFirstAt());
  row(getSecond(), getSecondScale(), getSecondAt());
  printer << ", " << getTo();
  printer.printOptionalAttrDict((*this)->getAttrs(), {"operandSegmentSizes"});
  printer << " : " << getBytesType() << ", " << getScales().front().getType()
          << ", " << getFirst().getType() << ", " << getTo().getType();
}

LogicalResult ShareByteProductsOp::verify() {
  // share_byte_products_c1
  if (getUpper().empty() || getUpper().size() > 2 ||
      (!getLow().empty() && getLow().size() != getUpper().size()) ||
      getScales().size() != getUpper().size())
    return emitOpError("expects one or two fragments of 'upper', of 'low' none "
                       "or as many, and of 'scales' as many, but got ")
           << getUpper().size() << ", " << getLow().size() << " and "
           << getScales().size();
  FragmentType upper = getBytesType();
  if (upper.getRank() != 2 || !upper.getElementType().isInteger(8))
    return emitOpError("expects 'upper' to be a tile of rank 2 of i8, but got ")
           << upper;
  if (failed(verifyPartRows(*this, "upper", upper, 16, 8)))
    return failure();
  int64_t numRows = upper.getShape()[0], columns = upper.getShape()[1];
  for (Value fragment : llvm::concat<Value>(getUpper(), getLow()))
    if (fragment.getType() != upper)
      return emitOpError("expects fragments of one type, ")
             << upper << ", but got " << fragment.getType();
  // share_byte_products_c2
  SharedType first = getFirst().getType();
  if (first.getRank() != 2 || !first.getElementType().isInteger(8) ||
      first.getSwizzled() || first.getShape()[0] != 3 ||
      first.getShape()[1] != columns)
    return emitOpError("expects 'first' and 'second' to be of 3 rows of ")
           << columns << " i8, but got " << first;
  auto perRow = FragmentType::get(
      VectorType::get({numRows}, Float32Type::get(getContext())),
      PerRowAttr::get(getContext(), upper.getRows()));
  for (Value fragment : getScales())
    if (fragment.getType() != perRow)
      return emitOpError("expects 'scales' to be ")
             << perRow << ", but got " << fragment.getType();
  SharedType to = getTo().getType();
  if (to.getRank() == 2 && to.getElementType().isF32() && !to.getSwizzled() &&
      to.getShape()[1] == numRows)
    return success();
  return emitOpError("expects 'to' to have rows of ")
         << numRows << " f32, but got " << to;
}

static bool isTile(SharedType buffer, ArrayRef<int64_t> shape, Type element) {
  return buffer.getShape() == shape && buffer.getElementType() == element &&
         !buffer.getSwizzled();
}

LogicalResult SharePartProductsOp::verify() {
  // share_part_products_c1
  FragmentType lhs = getLhs().getType();
  Type element = lhs.getElementType();
  if (lhs.getRank() != 2 || !(element.isBF16() || element.isF16()))
    return emitOpError("expects 'lhs' to be a tile of rank 2 of bf16 or f16, "
                       "but got ")
           << lhs;
  if (failed(verifyPartRows(*this, "lhs", lhs, 8, 16)))
    return failure();
  // share_part_products_c2
  SharedType first = getFirst().getType(), to = getTo().getType();
  if (!isTile(first, {3, lhs.getShape()[1]}, element))
    return emitOpError("expects 'first' and 'second' to be 3 x ")
           << lhs.getShape()[1] << " of " << element << ", but got " << first;
  if (!isTile(to, {2, lhs.getShape()[0]}, Float32Type::get(getContext())))
    return emitOpError("expects 'to' to be 2 x ")
           << lhs.getShape()[0] << " of f32, but got " << to;
  return success();
}

/// Numbers of bf16 that two parts of each of `count` rows take.
static int64_t countParts(int64_t count) {
  return 2 * llvm::alignTo<16>(count);
}

/// Whether keys and deltas of pending tokens may have it.
static bool isPendingElement(Type element) {
  return element.isF32() || element.isF16();
}

LogicalResult ShareColumnPartsOp::verify() {
  // share_column_parts_c1
  SharedType from = getFrom().getType(), to = getTo().getType();
  Builder b(getContext());
  if (from.getRank() != 2 || !isPendingElement(from.getElementType()) ||
      from.getSwizzled())
    return emitOpError("expects 'from' to be a tile of rank 2 of f32 or f16, "
                       "but got ")
           << from;
  SmallVector<int64_t> shape = {from.getShape()[1],
                                countParts(from.getShape()[0])};
  if (isTile(to, shape, b.getBF16Type()))
    return success();
  return emitOpError("expects 'to' to be ")
         << shape[0] << " x " << shape[1] << " of bf16, but got " << to;
}

LogicalResult AddPartProductsOp::verify() {
  // add_part_products_c1
  FragmentType sum = getSum().getType();
  Builder b(getContext());
  if (sum.getRank() != 2 || !sum.getElementType().isF32())
    return emitOpError("expects 'sum' to be a tile of rank 2 of f32, but got ")
           << sum;
  if (failed(verifyPartRows(*this, "sum", sum, {8, 16}, 8)))
    return failure();
  // add_part_products_c2
  SharedType weights = getWeights().getType(), deltas = getDeltas().getType(),
             parts = getParts().getType();
  int64_t count = weights.getShape().back();
  if (!isTile(weights, {count}, b.getF32Type()) || count % 4 != 0)
    return emitOpError("expects 'weights' to be a multiple of 4 of f32, but "
                       "got ")
           << weights;
  if (deltas.getRank() != 2 || deltas.getShape()[0] % count != 0 ||
      !isPendingElement(deltas.getElementType()) ||
      !isTile(deltas, {deltas.getShape()[0], sum.getShape()[0]},
              deltas.getElementType()))
    return emitOpError("expects 'deltas' to be a multiple of ")
           << count << " rows of " << sum.getShape()[0]
           << " f32 or f16, but got " << deltas;
  SmallVector<int64_t> shape = {sum.getShape()[1], countParts(count)};
  if (!isTile(parts, shape, b.getBF16Type()))
    return emitOpError("expects 'parts' to be ")
           << shape[0] << " x " << shape[1] << " of bf16, but got " << parts;
  return success();
}

/// What keys of `count` tokens in `columns` columns become.
static bool areKeyColumns(SharedType keys, int64_t count, int64_t columns) {
  constexpr int64_t rowElements = 264;
  const int64_t rows = llvm::divideCeil(count, 16) * columns / 16;
  return isTile(keys, {rows, rowElements}, Float16Type::get(keys.getContext()));
}

LogicalResult ShareKeyColumnsOp::verify() {
  // share_key_columns_c1
  SharedType from = getFrom().getType();
  if (from.getRank() != 2 || !from.getElementType().isF16() ||
      from.getSwizzled() || from.getShape()[0] % 4 != 0 ||
      from.getShape()[1] % 128 != 0)
    return emitOpError("expects 'from' to be a multiple of 4 rows of a "
                       "multiple of 128 f16, but got ")
           << from;
  if (areKeyColumns(getTo().getType(), from.getShape()[0], from.getShape()[1]))
    return success();
  return emitOpError("expects 'to' to be ")
         << llvm::divideCeil(from.getShape()[0], 16) * from.getShape()[1] / 16
         << " x 264 of f16, but got " << getTo().getType();
}

static LogicalResult verifyWeights(Operation *op, SharedType weights) {
  if (isTile(weights, {weights.getShape().back()},
             Float32Type::get(op->getContext())) &&
      weights.getShape().back() % 4 == 0)
    return success();
  return op->emitOpError("expects 'weights' to be a multiple of 4 of f32, but "
                         "got ")
         << weights;
}

LogicalResult TokenUnitOp::verify() { // token_unit_c1
  return verifyWeights(*this, getWeights().getType());
}

LogicalResult FoldPlanesOp::inferReturnTypes(MLIRContext *,
                                             std::optional<Location>,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  types.assign({adaptor.getUpper().getType(), adaptor.getScales().getType()});
  if (Value low = adaptor.getLow())
    types.push_back(low.getType());
  return success();
}

LogicalResult FoldPlanesOp::verify() {
  // fold_planes_c1
  FragmentType upper = getUpper().getType();
  if (upper.getRank() != 2 || !upper.getElementType().isInteger(8))
    return emitOpError("expects 'upper' to be a tile of rank 2 of i8, but got ")
           << upper;
  RowsAttr rows = upper.getRows();
  const bool isCrossed = rows.getCrossed();
  if (rows.getLanes() != (isCrossed ? 8 : 4) || rows.getVector() != 16 ||
      rows.getTall() || rows.getCyclic())
    return emitOpError(
               "expects 'upper' in a layout with a vector of 16, crossed "
               "with lanes = 8 or with lanes = 4, but got ")
           << upper;
  const int64_t numRows = upper.getShape()[0], columns = upper.getShape()[1];
  const int64_t multiple = (isCrossed ? 8 : 16) * rows.getWarps();
  if (numRows % multiple != 0 || columns % 128 != 0)
    return emitOpError("expects a multiple of ")
           << multiple << " rows and of 128 columns, but got " << upper;
  if (getLow() && getLow().getType() != upper)
    return emitOpError("expects 'low' to be ")
           << upper << ", but got " << getLow().getType();
  auto perRow = FragmentType::get(
      VectorType::get({numRows}, Float32Type::get(getContext())),
      PerRowAttr::get(getContext(), rows));
  if (getScales().getType() != perRow)
    return emitOpError("expects 'scales' to be ")
           << perRow << ", but got " << getScales().getType();
  // fold_planes_c2
  SharedType weights = getWeights().getType(), deltas = getDeltas().getType();
  if (failed(verifyWeights(*this, weights)))
    return failure();
  const int64_t count = weights.getShape().back();
  if (deltas.getRank() != 2 || deltas.getShape()[0] % count != 0 ||
      !isTile(deltas, {deltas.getShape()[0], numRows},
              Float16Type::get(getContext())))
    return emitOpError("expects 'deltas' to be a multiple of ")
           << count << " rows of " << numRows << " f16, but got " << deltas;
  if (areKeyColumns(getKeys().getType(), count, columns))
    return success();
  return emitOpError("expects 'keys' to be ")
         << llvm::divideCeil(count, 16) * columns / 16
         << " x 264 of f16, but got " << getKeys().getType();
}
