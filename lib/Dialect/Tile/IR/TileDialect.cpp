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

/// Each region is an argument, the last ones of the function: a row-major
/// memref whose sizes are the forms, but for the last form, which is the bytes
/// of an element.
static LogicalResult verifyWorkspace(FunctionOpInterface function,
                                     Attribute attribute) {
  auto regions = dyn_cast<ArrayAttr>(attribute);
  if (!regions || !llvm::all_of(regions, isStringArray))
    return function->emitOpError("expects 'gdn_tile.workspace' to be an array "
                                 "of arrays of strings, but got ")
           << attribute;
  // Lowered code takes words.
  if (function->hasAttr("gdn_tile.scratch_bytes") ||
      function->hasAttr("gdn_gpu.launch"))
    return success();
  ArrayRef<Type> inputs = function.getArgumentTypes();
  if (inputs.size() < regions.size())
    return function->emitOpError("expects an argument for each of the ")
           << regions.size() << " regions of 'gdn_tile.workspace'";
  unsigned first = inputs.size() - regions.size();
  for (auto [i, region] : llvm::enumerate(regions)) {
    auto type = dyn_cast<MemRefType>(inputs[first + i]);
    unsigned numForms = cast<ArrayAttr>(region).size();
    if (!type || !type.getLayout().isIdentity() ||
        type.getRank() + 1 != int64_t(numForms))
      return function->emitOpError("expects argument ")
             << first + i << " to be a row-major memref of rank "
             << int64_t(numForms) - 1 << ", region " << i
             << " of 'gdn_tile.workspace', but got " << inputs[first + i];
  }
  return success();
}

static LogicalResult verifyConditions(Operation *op, Attribute attribute) {
  auto isPair = [](Attribute pair) {
    auto sides = dyn_cast<ArrayAttr>(pair);
    return sides && sides.size() == 2 && llvm::all_of(sides, isStringArray);
  };
  auto arePairs = [&](Attribute attribute) {
    auto pairs = dyn_cast<ArrayAttr>(attribute);
    return pairs && llvm::all_of(pairs, isPair);
  };
  auto byName = dyn_cast<DictionaryAttr>(attribute);
  if (byName ? llvm::all_of(byName,
                            [&](NamedAttribute variant) {
                              return arePairs(variant.getValue());
                            })
             : arePairs(attribute))
    return success();
  return op->emitOpError("expects 'gdn_tile.conditions' to be an array of "
                         "pairs of arrays of strings, or several by name, but "
                         "got ")
         << attribute;
}

LogicalResult
tile::TileDialect::verifyOperationAttribute(Operation *op,
                                            NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  if (name == "gdn_tile.facts") {
    auto facts = dyn_cast<DictionaryAttr>(attribute.getValue());
    if (facts && llvm::all_of(facts, [](NamedAttribute fact) {
          return isa<StringAttr>(fact.getValue());
        }))
      return success();
    return op->emitOpError("expects '")
           << name << "' to be a dictionary of strings, but got "
           << attribute.getValue();
  }
  bool isGrid = name == "gdn_tile.grid" || name == "gdn_tile.groups";
  bool isSymbols = name == "gdn_tile.symbols";
  bool isName = name == "gdn_tile.stage_of" || name == "gdn_tile.variant" ||
                name == "gdn_tile.bits";
  bool isVariant = name == "gdn_tile.variant";
  bool isWorkspace = name == "gdn_tile.workspace";
  if (name == "gdn_tile.conditions")
    return verifyConditions(op, attribute.getValue());
  const bool isBeside = name == "gdn_tile.beside";
  if (!isGrid && !isSymbols && !isName && !isWorkspace && !isBeside)
    return success();
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitOpError("expects '") << name << "' on a function only";
  if (isWorkspace)
    return verifyWorkspace(function, attribute.getValue());
  if (isBeside) {
    auto neighbour = dyn_cast<StringAttr>(attribute.getValue());
    if (neighbour && (neighbour == "next" || neighbour == "last"))
      return success();
    return op->emitOpError("expects '")
           << name << "' to be \"next\" or \"last\", but got "
           << attribute.getValue();
  }
  bool areNames = isVariant && isStringArray(attribute.getValue());
  if (isName && !areNames && !isa<StringAttr>(attribute.getValue()))
    return op->emitOpError("expects '")
           << name << "' to be a string" << (isVariant ? " or several" : "")
           << ", but got " << attribute.getValue();
  if (isName)
    return success();
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
