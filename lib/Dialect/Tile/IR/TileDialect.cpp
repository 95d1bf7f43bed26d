// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Registration of the gdn_tile dialect, and what its attributes say of a
// function.
#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace gdn;

#include "gdn/Dialect/Tile/IR/TileDialect.cpp.inc"

void tile::TileDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "gdn/Dialect/Tile/IR/TileOps.cpp.inc"
      >();
}

static bool isStringArray(Attribute attr) {
  auto array = dyn_cast<ArrayAttr>(attr);
  return array && llvm::all_of(array, llvm::IsaPred<StringAttr>);
}

LogicalResult
tile::TileDialect::verifyOperationAttribute(Operation *op,
                                            NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  bool isGrid = name == "gdn_tile.grid" || name == "gdn_tile.groups";
  bool isSymbols = name == "gdn_tile.symbols";
  if (!isGrid && !isSymbols)
    return success();
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitOpError("expects '") << name << "' on a function only";
  if (!isStringArray(attribute.getValue()))
    return op->emitOpError("expects '")
           << name << "' to be an array of strings, but got "
           << attribute.getValue();
  // The code of an entry no longer has the symbols as arguments.
  if (isGrid || op->hasAttr("gdn_tile.scratch_bytes") ||
      op->hasAttr("nvvm.kernel"))
    return success();
  ArrayRef<Type> inputs = function.getArgumentTypes();
  for (auto [i, symbol] :
       llvm::enumerate(cast<ArrayAttr>(attribute.getValue())))
    if (i >= inputs.size() || !inputs[i].isIndex())
      return op->emitOpError("expects argument ")
             << i << " to be an index, the value of symbol " << symbol;
  return success();
}
