// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attributes of gdn_tile and the fields of gdn_tile.stage: which there are,
// and what each may be. The page docs/spec/attributes.md says what they mean.
#include "gdn/Dialect/AttributeTable.h"
#include "gdn/Dialect/Tile/IR/Tile.h"
#include "gdn/Support/LinearForm.h"

#include "TokenLoop.h"

#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace gdn;

static bool isName(Attribute value) {
  auto name = dyn_cast<StringAttr>(value);
  return name && !name.empty();
}

static bool isNameOrSeveral(Attribute value) {
  auto names = dyn_cast<ArrayAttr>(value);
  return isName(value) ||
         (names && !names.empty() && llvm::all_of(names, isName));
}

static bool isNeighbour(Attribute value) {
  auto name = dyn_cast<StringAttr>(value);
  return name && (name == "next" || name == "last");
}

static bool areSymbols(Attribute value) {
  auto isSymbol = [](Attribute symbol) {
    auto name = dyn_cast<StringAttr>(symbol);
    return name && isIdentifier(name);
  };
  auto array = dyn_cast<ArrayAttr>(value);
  return array && llvm::all_of(array, isSymbol);
}

static bool arePairedStrings(Attribute value) {
  return isStringArray(value) && cast<ArrayAttr>(value).size() % 2 == 0;
}

/// A region has at least the bytes of an element.
static bool areRegions(Attribute value) {
  auto isRegion = [](Attribute region) {
    return isStringArray(region) && !cast<ArrayAttr>(region).empty();
  };
  auto regions = dyn_cast<ArrayAttr>(value);
  return regions && llvm::all_of(regions, isRegion);
}

static bool isPairOfProducts(Attribute pair) {
  auto sides = dyn_cast<ArrayAttr>(pair);
  return sides && sides.size() == 2 && llvm::all_of(sides, isStringArray);
}

/// {any = [conditions, conditions, ..]}: two at least, none of them empty.
static bool areAlternatives(Attribute value) {
  auto any = dyn_cast<DictionaryAttr>(value);
  auto several = any ? any.getAs<ArrayAttr>("any") : ArrayAttr();
  return several && any.size() == 1 && several.size() >= 2 &&
         llvm::all_of(several, [](Attribute one) {
           auto pairs = dyn_cast<ArrayAttr>(one);
           return pairs && !pairs.empty() &&
                  llvm::all_of(pairs, isPairOfProducts);
         });
}

/// {any_batch = [conditions, ..]}: one at least, which may be empty.
static bool areOfAnyBatch(Attribute value) {
  auto named = dyn_cast<DictionaryAttr>(value);
  auto several = named ? named.getAs<ArrayAttr>("any_batch") : ArrayAttr();
  return several && named.size() == 1 && !several.empty() &&
         llvm::all_of(several, [](Attribute one) {
           auto pairs = dyn_cast<ArrayAttr>(one);
           return pairs && llvm::all_of(pairs, isPairOfProducts);
         });
}

/// Pairs of products, and alternatives and those of any batch once at most.
static bool areConditionsOfOne(Attribute value) {
  auto conditions = dyn_cast<ArrayAttr>(value);
  return conditions && llvm::count_if(conditions, areAlternatives) <= 1 &&
         llvm::count_if(conditions, areOfAnyBatch) <= 1 &&
         llvm::all_of(conditions, [](Attribute one) {
           return isPairOfProducts(one) || areAlternatives(one) ||
                  areOfAnyBatch(one);
         });
}

static bool areConditions(Attribute value) {
  auto byName = dyn_cast<DictionaryAttr>(value);
  return byName ? llvm::all_of(byName,
                               [](NamedAttribute variant) {
                                 return areConditionsOfOne(variant.getValue());
                               })
                : areConditionsOfOne(value);
}

static bool isUnitOrCount(Attribute value) {
  return isa<UnitAttr>(value) || isNumber<1, INT64_MAX>(value);
}

/// The inputs of a program; none of code, which takes words instead, and of a
/// function that is at fault itself.
static std::optional<ArrayRef<Type>> getProgramInputs(const AttributeUse &use) {
  FunctionType type = getReadableType(use.op);
  if (use.place == onCode || !type ||
      tile::StageFields(use.op).getScratchBytes() ||
      use.op->hasAttr("nvvm.kernel"))
    return std::nullopt;
  return type.getInputs();
}

/// Symbols differ, and are the first arguments of a program.
static LogicalResult verifySymbols(const AttributeUse &use) {
  auto symbols = cast<ArrayAttr>(use.getValue());
  llvm::SmallPtrSet<Attribute, 8> seen;
  for (Attribute symbol : symbols)
    if (!seen.insert(symbol).second)
      return use.emitError() << "expects the symbols of " << use.str()
                             << " to be unique, but got " << symbol << " twice";
  std::optional<ArrayRef<Type>> inputs = getProgramInputs(use);
  if (!inputs)
    return success();
  for (auto [i, symbol] : llvm::enumerate(symbols))
    if (i >= inputs->size() || !(*inputs)[i].isIndex())
      return use.emitError()
             << "expects argument " << i
             << " to be an index, the value of symbol " << symbol;
  return success();
}

/// Each region is an argument, the last ones of the function: a row-major
/// memref whose sizes are the forms, but for the last form, which is the bytes
/// of an element.
static LogicalResult verifyWorkspace(const AttributeUse &use) {
  auto regions = cast<ArrayAttr>(use.getValue());
  for (auto [i, region] : llvm::enumerate(regions))
    if (failed(verifyForms(use, region, " of region " + Twine(i))))
      return failure();
  std::optional<ArrayRef<Type>> inputs = getProgramInputs(use);
  if (!inputs)
    return success();
  if (inputs->size() < regions.size())
    return use.emitError() << "expects an argument for each of the "
                           << regions.size() << " regions of " << use.str()
                           << ", but got " << inputs->size();
  unsigned first = inputs->size() - regions.size();
  for (auto [i, region] : llvm::enumerate(regions)) {
    Type input = (*inputs)[first + i];
    auto type = dyn_cast<MemRefType>(input);
    int64_t rank = int64_t(cast<ArrayAttr>(region).size()) - 1;
    if (!type || !type.getLayout().isIdentity() || type.getRank() != rank)
      return use.emitError()
             << "expects argument " << first + i
             << " to be a row-major memref of rank " << rank << ", region " << i
             << " of " << use.str() << ", but got " << input;
  }
  return success();
}

static LogicalResult verifyConditions(const AttributeUse &use) {
  auto verifyPair = [&](Attribute pair, const Twine &which) {
    for (Attribute side : cast<ArrayAttr>(pair))
      if (failed(verifyForms(use, side, which)))
        return failure();
    return success();
  };
  auto verifyPairs = [&](Attribute conditions, const Twine &whose) {
    for (auto [i, one] : llvm::enumerate(cast<ArrayAttr>(conditions))) {
      auto any = dyn_cast<DictionaryAttr>(one);
      if (!any && failed(verifyPair(one, " of condition " + Twine(i) + whose)))
        return failure();
      if (!any)
        continue;
      auto alternatives = cast<ArrayAttr>(any.begin()->getValue());
      for (auto [j, several] : llvm::enumerate(alternatives))
        for (auto [k, pair] : llvm::enumerate(cast<ArrayAttr>(several)))
          if (failed(verifyPair(pair, " of condition " + Twine(k) +
                                          " of alternative " + Twine(j) +
                                          whose)))
            return failure();
    }
    return success();
  };
  auto byName = dyn_cast<DictionaryAttr>(use.getValue());
  if (!byName)
    return verifyPairs(use.getValue(), "");
  for (NamedAttribute variant : byName)
    if (failed(verifyPairs(variant.getValue(),
                           " of \"" + variant.getName().getValue() + "\"")))
      return failure();
  return success();
}

/// The last axis of the grid is so many blocks.
static LogicalResult verifyLastAxis(const AttributeUse &use) {
  ArrayAttr grid = tile::StageFields(use.op).getGrid();
  auto last = grid && !grid.empty()
                  ? dyn_cast<StringAttr>(grid.getValue().back())
                  : StringAttr();
  int64_t size = 0;
  if (last && !last.getValue().getAsInteger(10, size) &&
      size == cast<IntegerAttr>(use.getValue()).getInt())
    return success();
  InFlightDiagnostic diag =
      use.emitError()
      << "expects the last axis of 'grid' of 'gdn_tile.stage' to be "
      << cast<IntegerAttr>(use.getValue()).getInt() << ", as " << use.str()
      << " says, but got ";
  if (last)
    return diag << last;
  return diag << "none";
}

static constexpr FieldRow stageRows[] = {
    {"grid", "an array of linear forms", isStringArray, verifyOwnForms},
    {"symbols", "an array of identifiers", areSymbols, verifySymbols},
    {"groups", "an array of linear forms", isStringArray, verifyOwnForms},
    {"multiples", "an array of linear forms, in pairs", arePairedStrings,
     verifyOwnForms},
    {"facts", "a dictionary of strings", isStringDictionary},
    {"stage_of", "a string", isName},
    {"variant", "a string or several", isNameOrSeveral},
    {"workspace", "an array of arrays of at least one linear form", areRegions,
     verifyWorkspace},
    {"conditions",
     "an array of pairs of arrays of linear forms, with alternatives as {any = "
     "[..]} and {any_batch = [..]} once each at most, or several by name",
     areConditions, verifyConditions},
    {"overlaps", "\"next\" or \"last\"", isNeighbour},
    {"bits", "a string", isName},
    {"same_chunks", "an i64 of at least 2", isNumber<2, INT64_MAX>,
     verifyLastAxis},
    {"token_pieces", "an i64 of at least 1", isNumber<1, INT64_MAX>,
     verifyLastAxis},
    {"row_values", "an i64 of 1 to 8", isNumber<1, 8>},
    {"copies_ahead", "an i64 of 1", isNumber<1, 1>},
    {"blocks_stay", "an i64 of 1", isNumber<1, 1>},
    {"follows", "an i64 of 1", isNumber<1, 1>},
    {"awaits_stage", "an i64 of 1", isNumber<1, 1>},
    {"scratch_bytes", "an i64 of at least 0", isNumber<0, INT64_MAX>},
};

static constexpr FieldTable stageFields(stageRows);

static constexpr AttributeRow rows[] = {
    {"gdn_tile.stage", onFunctions, "a dictionary", isDictionary,
     /*fits=*/nullptr, &stageFields},
    {"gdn_tile.tokens", onLoops, "a unit attribute or an i64 of at least 1",
     isUnitOrCount, tile::verifyTokenLoop},
};

static constexpr AttributeTable table("gdn_tile", rows);

const AttributeTable &tile::getAttributeTable() { return table; }

LogicalResult
tile::TileDialect::verifyOperationAttribute(Operation *op,
                                            NamedAttribute attribute) {
  return table.verifyOfOp(op, attribute);
}

LogicalResult tile::TileDialect::verifyRegionArgAttribute(
    Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  return table.verify({op, onArguments, index, attribute});
}

LogicalResult tile::TileDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned index, NamedAttribute attribute) {
  return table.verify({op, onResults, index, attribute});
}
