// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layouts and types of gdn_gpu: their syntax, what is checked of them, and how
// many elements a thread holds.
#include "gdn/Dialect/GPU/IR/GPU.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace gdn::gpu;

#define GET_ATTRDEF_CLASSES
#include "gdn/Dialect/GPU/IR/GPUAttributes.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "gdn/Dialect/GPU/IR/GPUTypes.cpp.inc"

void GPUDialect::registerLayoutsAndTypes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "gdn/Dialect/GPU/IR/GPUAttributes.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "gdn/Dialect/GPU/IR/GPUTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

LogicalResult RowsAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               int64_t warps, int64_t lanes, int64_t vector,
                               bool cyclic, bool tall, bool crossed) {
  if (warps < 1)
    return emitError() << "expects 'warps' to be at least 1, but got " << warps;
  if (!llvm::is_contained({1, 2, 4, 8, 16, 32}, lanes))
    return emitError() << "expects 'lanes' to be a power of two up to "
                       << warpThreads << ", but got " << lanes;
  if (!llvm::is_contained({1, 2, 4, 8, 16, 32, 64}, vector))
    return emitError() << "expects 'vector' to be a power of two up to 64, "
                          "but got "
                       << vector;
  if (cyclic + tall + crossed > 1)
    return emitError() << "expects one of 'cyclic', 'tall' and 'crossed'";
  return success();
}

int64_t RowsAttr::getLocalRows(int64_t rows) const {
  return llvm::divideCeil(rows, getWarps() * getGroups());
}

int64_t RowsAttr::getPieces(int64_t columns) const {
  return llvm::divideCeil(columns, getLanes() * getVector());
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Checks what fragments and shared tiles have in common.
static LogicalResult verifyTile(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<int64_t> shape, Type elementType) {
  if (shape.empty() || shape.size() > 2)
    return emitError() << "expects a tile of rank 1 or 2, but got rank "
                       << shape.size();
  for (int64_t size : shape)
    if (size < 1)
      return emitError() << "expects static sizes of at least 1, but got "
                         << (ShapedType::isDynamic(size)
                                 ? std::string("?")
                                 : std::to_string(size));
  const bool isNumber = elementType.isInteger(shape.size() == 1 ? 32 : 8);
  if (!elementType.isF32() && !elementType.isBF16() && !elementType.isF16() &&
      !isNumber)
    return emitError() << "expects elements of f32, bf16 or f16, of i32 in "
                          "rank 1, or of i8 in rank 2, but got "
                       << elementType;
  return success();
}

LogicalResult FragmentType::verify(function_ref<InFlightDiagnostic()> emitError,
                                   ArrayRef<int64_t> shape, Type elementType,
                                   Attribute layout) {
  if (failed(verifyTile(emitError, shape, elementType)))
    return failure();
  if (shape.size() == 2 && !isa<RowsAttr>(layout))
    return emitError() << "expects a tile of rank 2 to have the layout 'rows', "
                          "but got "
                       << layout;
  if (shape.size() == 1 && !isa<PerRowAttr, PerColumnAttr>(layout))
    return emitError() << "expects a tile of rank 1 to have the layout "
                          "'per_row' or 'per_column', but got "
                       << layout;
  return success();
}

LogicalResult SharedType::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> shape, Type elementType,
                                 bool swizzled, int64_t apart) {
  if (failed(verifyTile(emitError, shape, elementType)))
    return failure();
  int64_t rowBytes = shape.back() * elementType.getIntOrFloatBitWidth() / 8;
  if (swizzled && (shape.size() != 2 || rowBytes % 16 != 0))
    return emitError()
           << "expects a swizzled tile to have rank 2 and rows of a "
              "multiple of 16 bytes, but got rank "
           << shape.size() << " and " << rowBytes << " bytes";
  if (apart < 1 || (apart > 1 && (!swizzled || rowBytes % 128 != 0)))
    return emitError() << "expects 'apart' to be 1, or more in a swizzled tile "
                          "with rows of "
                          "a multiple of 128 bytes, but got "
                       << apart << " and " << rowBytes << " bytes";
  return success();
}

int64_t SharedType::getRowBytes() const {
  return getShape().back() * getElementType().getIntOrFloatBitWidth() / 8;
}

int64_t SharedType::getBytes() const {
  return getApart() *
         (getRank() == 2 ? getShape()[0] * getRowBytes() : getRowBytes());
}

int64_t SharedType::getPanelRowBytes() const {
  int64_t rowBytes = getRowBytes();
  return getSwizzled() && rowBytes % 128 == 0 ? 128 : rowBytes;
}

int64_t SharedType::getPanelBytes() const {
  int64_t panelRow = getPanelRowBytes();
  return panelRow == getRowBytes() ? 0 : getApart() * getShape()[0] * panelRow;
}

Type FragmentType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type elementType;
  Attribute layout;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/true) ||
      parser.parseType(elementType) || parser.parseComma() ||
      parser.parseAttribute(layout) || parser.parseGreater())
    return {};
  return parser.getChecked<FragmentType>(loc, parser.getContext(), shape,
                                         elementType, layout);
}

void FragmentType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList(getShape());
  printer << "x" << getElementType() << ", " << getLayout() << ">";
}

Type AsyncTokenType::parse(AsmParser &parser) {
  Type fragment = FragmentType::parse(parser);
  return fragment ? AsyncTokenType::get(cast<FragmentType>(fragment)) : Type();
}

void AsyncTokenType::print(AsmPrinter &printer) const {
  getFragment().print(printer);
}

Type SharedType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type elementType;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/true) ||
      parser.parseType(elementType))
    return {};
  int64_t apart = 1;
  bool swizzled = succeeded(parser.parseOptionalComma());
  if (swizzled && parser.parseKeyword("swizzled"))
    return {};
  if (swizzled && succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("apart") || parser.parseEqual() ||
       parser.parseInteger(apart)))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<SharedType>(loc, parser.getContext(), shape,
                                       elementType, swizzled, apart);
}

void SharedType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList(getShape());
  printer << "x" << getElementType() << (getSwizzled() ? ", swizzled" : "");
  if (getApart() > 1)
    printer << ", apart = " << getApart();
  printer << ">";
}

LogicalResult ChannelType::verify(function_ref<InFlightDiagnostic()> emitError,
                                  ArrayRef<int64_t> shape, Type elementType,
                                  int64_t depth, int64_t parts, bool swizzled,
                                  int64_t apart) {
  if (failed(
          SharedType::verify(emitError, shape, elementType, swizzled, apart)))
    return failure();
  if (swizzled && parts != 1)
    return emitError() << "expects one part of a swizzled tile, but got "
                       << parts;
  if (depth < 1)
    return emitError() << "expects 'depth' to be at least 1, but got " << depth;
  if (parts < 1 || parts > warpThreads || shape[0] % parts != 0)
    return emitError() << "expects 'parts' from 1 to " << warpThreads
                       << " that divide the rows, which are " << shape[0]
                       << ", but got " << parts;
  return success();
}

Type ChannelType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type elementType;
  int64_t depth = 0, parts = 1, apart = 1;
  bool swizzled = false;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/true) ||
      parser.parseType(elementType) || parser.parseComma() ||
      parser.parseKeyword("depth") || parser.parseEqual() ||
      parser.parseInteger(depth))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    swizzled = succeeded(parser.parseOptionalKeyword("swizzled"));
    if (!swizzled && (parser.parseKeyword("parts") || parser.parseEqual() ||
                      parser.parseInteger(parts)))
      return {};
  }
  if (swizzled && succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("apart") || parser.parseEqual() ||
       parser.parseInteger(apart)))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ChannelType>(loc, parser.getContext(), shape,
                                        elementType, depth, parts, swizzled,
                                        apart);
}

void ChannelType::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printDimensionList(getShape());
  printer << "x" << getElementType() << ", depth = " << getDepth();
  if (getParts() > 1)
    printer << ", parts = " << getParts();
  if (getSwizzled())
    printer << ", swizzled";
  if (getApart() > 1)
    printer << ", apart = " << getApart();
  printer << ">";
}

SharedType ChannelType::getTile() const {
  return SharedType::get(getContext(), getShape(), getElementType(),
                         getSwizzled(), getApart());
}

int64_t ChannelType::getTileBytes() const {
  return getApart() * ShapedType::getNumElements(getShape()) *
         getElementType().getIntOrFloatBitWidth() / 8;
}

VectorType FragmentType::getTile() const {
  return VectorType::get(getShape(), getElementType());
}

RowsAttr FragmentType::getRows() const {
  return llvm::TypeSwitch<Attribute, RowsAttr>(getLayout())
      .Case([](RowsAttr rows) { return rows; })
      .Case([](PerRowAttr layout) { return layout.getRows(); })
      .Case([](PerColumnAttr layout) { return layout.getRows(); });
}

int64_t FragmentType::getLocalSize() const {
  RowsAttr rows = getRows();
  if (isPerRow())
    return rows.getLocalRows(getDimSize(0));
  if (isPerColumn())
    return rows.getLocalColumns(getDimSize(0));
  return rows.getLocalRows(getDimSize(0)) * rows.getLocalColumns(getDimSize(1));
}

Type gdn::gpu::getRowType(FragmentType fragment) {
  if (fragment.isPerRow())
    return fragment.getElementType();
  return VectorType::get(fragment.getShape().take_back(),
                         fragment.getElementType());
}
