// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Words to views. The words of a bound call are, for each argument of the
// tile function in order, the pointer, sizes and strides of a memref or the
// value of a null slot; then the symbols, and last the addresses of the regions
// of the workspace (page on entries and images).
#include "EntryCode.h"

#include "gdn/Conversion/CallWords.h"
#include "gdn/Conversion/FormCode.h"
#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace gdn;

void gdn::emitEntryCode(func::FuncOp source) {
  Location loc = source.getLoc();
  OpBuilder b(source);
  auto pointer = LLVM::LLVMPointerType::get(source.getContext());
  Type i64 = b.getI64Type();
  tile::StageFields stage(source);
  ArrayAttr grid = stage.getGrid(), symbols = stage.getSymbols();
  auto code =
      func::FuncOp::create(b, loc, source.getName(),
                           b.getFunctionType({pointer, i64, i64, pointer}, {}));
  code->setAttr(stage.name, source->getAttr(stage.name));
  tile::StageFields(code).leaveCode();
  // Nothing else sees the scratch, and the words stay as they are.
  code.setArgAttr(3, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
  code.setArgAttr(3, LLVM::LLVMDialect::getAlignAttrName(),
                  b.getI64IntegerAttr(64));
  Block *entry = code.addEntryBlock();
  b.setInsertionPointToStart(entry);

  Block &body = source.getBody().front();
  WordReader reader(b, loc, entry->getArgument(0));
  IRMapping mapping;
  ArrayRef<BlockArgument> arguments = body.getArguments();
  SmallVector<Value> values = reader.arguments(
      arguments.drop_back(), symbols, stage.getWorkspace(),
      [](BlockArgument) { return 0; }, mapping);
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
