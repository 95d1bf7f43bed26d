// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A word is a 64-bit number. A memref is made of words that say where it lies,
// as its type has it.
#include "gdn/Conversion/CallWords.h"
#include "gdn/Conversion/FormCode.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace gdn;

LogicalResult gdn::checkReadsWords(func::FuncOp function, StringRef what) {
  if (function.getNumResults() != 0)
    return function.emitOpError("expects ")
           << what << " to have no results, but got "
           << function.getNumResults();
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("expects ")
           << what << " to have one block, but got "
           << function.getBody().getBlocks().size();
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto view = dyn_cast<MemRefType>(type);
    if (!type.isIndex() && !(view && view.isStrided()))
      return function.emitOpError("expects argument ")
             << i << " to be a strided memref or an index, but got " << type;
  }
  return success();
}

int64_t WordReader::count(Type type) {
  auto view = dyn_cast<MemRefType>(type);
  return view ? 1 + 2 * view.getRank() : 1;
}

Value WordReader::word() {
  Value at = LLVM::GEPOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext()), b.getI64Type(), words,
      ArrayRef<LLVM::GEPArg>{int32_t(next++)});
  return LLVM::LoadOp::create(b, loc, b.getI64Type(), at);
}

Value WordReader::index() {
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), word());
}

void WordReader::assumeMultiple(Value value, int64_t of) {
  if (of <= 1)
    return;
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  };
  Value rest = arith::AndIOp::create(b, loc, value, number(of - 1));
  Value isMultiple =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, rest, number(0));
  LLVM::AssumeOp::create(b, loc, isMultiple);
}

/// The memref of `type` that begins at `pointer`, with neither sizes nor
/// strides so far.
static MemRefDescriptor beginAt(OpBuilder &b, Location loc,
                                const LLVMTypeConverter &types, MemRefType type,
                                Value pointer) {
  auto view = MemRefDescriptor::poison(b, loc, types.convertType(type));
  view.setAllocatedPtr(b, loc, pointer);
  view.setAlignedPtr(b, loc, pointer);
  view.setConstantOffset(b, loc, 0);
  return view;
}

static Value toPointer(OpBuilder &b, Location loc, Value address) {
  return LLVM::IntToPtrOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext()), address);
}

static Value toMemRef(OpBuilder &b, Location loc, Value view, MemRefType type) {
  return UnrealizedConversionCastOp::create(b, loc, type, view).getResult(0);
}

Value WordReader::view(MemRefType type, int64_t alignment) {
  Value address = word();
  assumeMultiple(address, alignment);
  MemRefDescriptor view =
      beginAt(b, loc, types, type, toPointer(b, loc, address));
  for (unsigned i = 0; i < type.getRank(); ++i)
    view.setSize(b, loc, i, word());
  int64_t bytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  SmallVector<int64_t> known = type.getStridesAndOffset().first;
  for (unsigned i = 0; i < type.getRank(); ++i) {
    Value stride = word();
    if (ShapedType::isDynamic(known[i]))
      assumeMultiple(stride, alignment / bytes);
    view.setStride(b, loc, i, stride);
  }
  return toMemRef(b, loc, view, type);
}

Value WordReader::region(MemRefType type, ArrayAttr sizes, ArrayAttr symbols,
                         ArrayRef<Value> values) {
  SmallVector<Value> shape;
  for (auto form : sizes.getAsRange<StringAttr>())
    shape.push_back(emitForm(b, loc, form.getValue(), symbols, values));
  MemRefDescriptor view =
      beginAt(b, loc, types, type, toPointer(b, loc, word()));
  Value stride = arith::ConstantIndexOp::create(b, loc, 1);
  auto asWord = [&](Value value) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
  };
  for (int64_t i = type.getRank() - 1; i >= 0; --i) {
    view.setSize(b, loc, i, asWord(shape[i]));
    view.setStride(b, loc, i, asWord(stride));
    stride = b.createOrFold<arith::MulIOp>(loc, stride, shape[i]);
  }
  return toMemRef(b, loc, view, type);
}

SmallVector<Value> WordReader::arguments(
    ArrayRef<BlockArgument> all, ArrayAttr symbols, ArrayAttr workspace,
    function_ref<int64_t(BlockArgument)> alignmentOf, IRMapping &mapping) {
  const size_t numSymbols = symbols.size(),
               numRegions = workspace ? workspace.size() : 0;
  for (BlockArgument arg : all.drop_front(numSymbols).drop_back(numRegions)) {
    auto type = dyn_cast<MemRefType>(arg.getType());
    mapping.map(arg, type ? view(type, alignmentOf(arg)) : index());
  }
  SmallVector<Value> values;
  for (BlockArgument arg : all.take_front(numSymbols)) {
    values.push_back(index());
    mapping.map(arg, values.back());
  }
  for (auto [i, arg] : llvm::enumerate(all.take_back(numRegions)))
    mapping.map(arg, region(cast<MemRefType>(arg.getType()),
                            cast<ArrayAttr>(workspace[i]), symbols, values));
  return values;
}

Value WordReader::scratch(Value pointer, MemRefType type) {
  MemRefDescriptor view = beginAt(b, loc, types, type, pointer);
  view.setConstantSize(b, loc, 0, type.getDimSize(0));
  view.setConstantStride(b, loc, 0, 1);
  return toMemRef(b, loc, view, type);
}
