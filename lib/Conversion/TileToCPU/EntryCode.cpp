// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Words to views. The words of a bound call are, for each argument of the
// tile function in order, the pointer, sizes and strides of a memref or the
// value of a null slot; then the symbols, and last the addresses of the regions
// of the workspace (page on entries and images).
#include "EntryCode.h"

#include "gdn/Conversion/FormCode.h"
#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace gdn;

namespace {
/// Reads words one after another.
class WordReader {
public:
  WordReader(OpBuilder &b, Location loc, Value words,
             const LLVMTypeConverter &types)
      : b(b), loc(loc), words(words), types(types) {}

  Value word() {
    Value at = LLVM::GEPOp::create(
        b, loc, LLVM::LLVMPointerType::get(b.getContext()), b.getI64Type(),
        words, ArrayRef<LLVM::GEPArg>{int32_t(next++)});
    return LLVM::LoadOp::create(b, loc, b.getI64Type(), at);
  }
  Value index() {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), word());
  }
  Value view(MemRefType type) {
    Value pointer = LLVM::IntToPtrOp::create(
        b, loc, LLVM::LLVMPointerType::get(b.getContext()), word());
    auto view = MemRefDescriptor::poison(b, loc, types.convertType(type));
    view.setAllocatedPtr(b, loc, pointer);
    view.setAlignedPtr(b, loc, pointer);
    view.setConstantOffset(b, loc, 0);
    for (unsigned i = 0; i < type.getRank(); ++i)
      view.setSize(b, loc, i, word());
    for (unsigned i = 0; i < type.getRank(); ++i)
      view.setStride(b, loc, i, word());
    return toMemRef(view, type);
  }
  /// A region of the workspace, row-major, from its address and its sizes.
  Value region(MemRefType type, ArrayRef<Value> sizes) {
    Value pointer = LLVM::IntToPtrOp::create(
        b, loc, LLVM::LLVMPointerType::get(b.getContext()), word());
    auto view = MemRefDescriptor::poison(b, loc, types.convertType(type));
    view.setAllocatedPtr(b, loc, pointer);
    view.setAlignedPtr(b, loc, pointer);
    view.setConstantOffset(b, loc, 0);
    Value stride = arith::ConstantIndexOp::create(b, loc, 1);
    for (int64_t i = type.getRank() - 1; i >= 0; --i) {
      auto asWord = [&](Value value) -> Value {
        return arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
      };
      view.setSize(b, loc, i, asWord(sizes[i]));
      view.setStride(b, loc, i, asWord(stride));
      stride = b.createOrFold<arith::MulIOp>(loc, stride, sizes[i]);
    }
    return toMemRef(view, type);
  }
  Value scratch(Value pointer, MemRefType type) {
    auto view = MemRefDescriptor::poison(b, loc, types.convertType(type));
    view.setAllocatedPtr(b, loc, pointer);
    view.setAlignedPtr(b, loc, pointer);
    view.setConstantOffset(b, loc, 0);
    view.setConstantSize(b, loc, 0, type.getDimSize(0));
    view.setConstantStride(b, loc, 0, 1);
    return toMemRef(view, type);
  }

private:
  Value toMemRef(Value view, MemRefType type) {
    return UnrealizedConversionCastOp::create(b, loc, type, view).getResult(0);
  }

  OpBuilder &b;
  Location loc;
  Value words;
  const LLVMTypeConverter &types;
  unsigned next = 0;
};
} // namespace

void gdn::emitEntryCode(func::FuncOp source) {
  Location loc = source.getLoc();
  OpBuilder b(source);
  LLVMTypeConverter types(source.getContext());
  auto pointer = LLVM::LLVMPointerType::get(source.getContext());
  Type i64 = b.getI64Type();
  tile::StageFields stage(source);
  ArrayAttr grid = stage.getGrid(), symbols = stage.getSymbols();
  auto code =
      func::FuncOp::create(b, loc, source.getName(),
                           b.getFunctionType({pointer, i64, i64, pointer}, {}));
  code->setAttr(stage.name, source->getAttr(stage.name));
  tile::StageFields(code).leaveCode();
  ArrayAttr workspace = stage.getWorkspace();
  unsigned numRegions = stage.countRegions();
  // Nothing else sees the scratch, and the words stay as they are.
  code.setArgAttr(3, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
  code.setArgAttr(3, LLVM::LLVMDialect::getAlignAttrName(),
                  b.getI64IntegerAttr(64));
  Block *entry = code.addEntryBlock();
  b.setInsertionPointToStart(entry);

  Block &body = source.getBody().front();
  unsigned numSymbols = symbols.size();
  WordReader reader(b, loc, entry->getArgument(0), types);
  IRMapping mapping;
  auto arguments = body.getArguments();
  for (BlockArgument arg :
       arguments.drop_front(numSymbols).drop_back(numRegions + 1)) {
    if (auto type = dyn_cast<MemRefType>(arg.getType()))
      mapping.map(arg, reader.view(type));
    else
      mapping.map(arg, reader.index());
  }
  SmallVector<Value> values;
  for (BlockArgument arg : arguments.take_front(numSymbols)) {
    values.push_back(reader.index());
    mapping.map(arg, values.back());
  }
  for (unsigned i = 0; i < numRegions; ++i) {
    BlockArgument arg = arguments[arguments.size() - 1 - numRegions + i];
    SmallVector<Value> sizes;
    for (auto form : cast<ArrayAttr>(workspace[i]).getAsRange<StringAttr>())
      sizes.push_back(emitForm(b, loc, form.getValue(), symbols, values));
    mapping.map(arg, reader.region(cast<MemRefType>(arg.getType()), sizes));
  }
  mapping.map(arguments.back(),
              reader.scratch(entry->getArgument(3),
                             cast<MemRefType>(arguments.back().getType())));

  auto asIndex = [&](Value value) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
  };
  auto loop = scf::ForOp::create(b, loc, asIndex(entry->getArgument(1)),
                                 asIndex(entry->getArgument(2)),
                                 arith::ConstantIndexOp::create(b, loc, 1));
  func::ReturnOp::create(b, loc);
  b.setInsertionPointToStart(loop.getBody());

  // Block coordinates: the last axis runs fastest.
  SmallVector<Value> ids(grid.size());
  Value rest = loop.getInductionVar();
  for (int64_t axis = grid.size() - 1; axis >= 0; --axis) {
    if (axis == 0) {
      ids[0] = rest;
      break;
    }
    Value size = emitForm(b, loc, cast<StringAttr>(grid[axis]).getValue(),
                          symbols, values);
    ids[axis] = arith::RemUIOp::create(b, loc, rest, size);
    rest = arith::DivUIOp::create(b, loc, rest, size);
  }
  for (Operation &op : body.without_terminator())
    b.clone(op, mapping);
  SmallVector<tile::BlockIdOp> blockIds;
  code.walk([&](tile::BlockIdOp op) { blockIds.push_back(op); });
  for (tile::BlockIdOp op : blockIds) {
    op.replaceAllUsesWith(ids[op.getAxis()]);
    op.erase();
  }
  source.erase();
}
