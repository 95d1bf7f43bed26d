// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Looks attributes up in a dialect's table; see AttributeTable.h.
#include "gdn/Dialect/AttributeTable.h"

#include "gdn/Support/LinearForm.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace gdn;

std::string AttributeUse::str() const {
  std::string text = ("'" + getName() + "'").str();
  if (place == onArguments)
    text += " of argument " + std::to_string(index);
  else if (place == onResults)
    text += " of result " + std::to_string(index);
  if (!owner.empty())
    text = ("'" + getName() + "' of '" + owner + "'").str();
  return text;
}

InFlightDiagnostic AttributeUse::emitError() const { return op->emitOpError(); }

InFlightDiagnostic AttributeUse::emitExpected(const Twine &what) const {
  return emitError() << "expects " << str() << " to be " << what << ", but got "
                     << getValue();
}

std::string gdn::describePlaces(unsigned places) {
  SmallVector<std::string, 2> words;
  if ((places & onFunctions) == onFunctions)
    words.push_back("functions");
  else if (places & onPrograms)
    words.push_back("functions of other dialects than llvm");
  else if (places & onCode)
    words.push_back("functions of the llvm dialect");
  if ((places & onArguments) && (places & onResults))
    words.push_back("arguments and results of functions");
  else if (places & onArguments)
    words.push_back("arguments of functions");
  else if (places & onResults)
    words.push_back("results of functions");
  if (places & onModules)
    words.push_back("modules");
  if (places & onLoops)
    words.push_back("loops (scf.for)");
  return llvm::join(words, " and ");
}

/// The known name that `name` is most likely meant to be; empty if there is
/// none like it.
template <typename Row>
static StringRef getNearest(StringRef name, ArrayRef<Row> rows) {
  StringRef nearest;
  unsigned least = 4; // a slip or two
  for (const Row &row : rows)
    if (unsigned distance = name.edit_distance(row.name); distance < least) {
      nearest = row.name;
      least = distance;
    }
  return nearest;
}

/// Says that the name of `use`, shown as `what`, is none, and which there is
/// like it, or all.
template <typename Row>
static InFlightDiagnostic suggest(InFlightDiagnostic diag,
                                  const AttributeUse &use,
                                  const std::string &what, ArrayRef<Row> rows) {
  diag << ", but got " << what;
  if (StringRef nearest = getNearest(use.getName(), rows); !nearest.empty()) {
    diag << "; like it is '" << nearest << "'";
    return diag;
  }
  auto names = llvm::map_range(
      rows, [](const Row &row) { return "'" + row.name.str() + "'"; });
  diag << "; there are " << llvm::join(names, ", ");
  return diag;
}

LogicalResult FieldTable::verify(const AttributeUse &use) const {
  auto fields = cast<DictionaryAttr>(use.getValue());
  for (NamedAttribute field : fields) {
    AttributeUse own = {use.op, use.place, use.index, field, use.getName()};
    const FieldRow *row = llvm::find_if(
        rows, [&](const FieldRow &row) { return row.name == own.getName(); });
    if (row == rows.end())
      return suggest(use.emitError()
                         << "expects a field that " << use.str() << " has",
                     own, ("'" + own.getName() + "'").str(), rows);
    if (!row->holds(own.getValue()))
      return own.emitExpected(row->value);
    if (row->fits && failed(row->fits(own)))
      return failure();
  }
  for (const FieldRow &row : rows)
    if (row.isRequired && !fields.get(row.name))
      return use.emitError() << "expects '" << row.name << "' in " << use.str()
                             << ", but got none";
  return success();
}

LogicalResult AttributeTable::verify(const AttributeUse &use) const {
  const AttributeRow *row = llvm::find_if(
      rows, [&](const AttributeRow &row) { return row.name == use.getName(); });
  if (row == rows.end())
    return suggest(use.emitError()
                       << "expects an attribute that " << dialect << " has",
                   use, use.str(), rows);
  if (!(row->places & use.place)) {
    InFlightDiagnostic diag = use.emitError()
                              << "expects '" << row->name << "' on "
                              << describePlaces(row->places) << " only";
    if (use.place == onArguments || use.place == onResults)
      diag << ", but got it on "
           << (use.place == onArguments ? "argument " : "result ") << use.index;
    return diag;
  }
  if (!row->holds(use.getValue()))
    return use.emitExpected(row->value);
  if (row->fields && failed(row->fields->verify(use)))
    return failure();
  return row->fits ? row->fits(use) : success();
}

LogicalResult AttributeTable::verifyOfOp(Operation *op,
                                         NamedAttribute attribute) const {
  AttributePlace place = nowhere;
  if (isa<ModuleOp>(op))
    place = onModules;
  else if (isa<scf::ForOp>(op))
    place = onLoops;
  else if (isa<FunctionOpInterface>(op))
    place = op->getName().getDialectNamespace() == "llvm" ? onCode : onPrograms;
  return verify({op, place, /*index=*/0, attribute});
}

FunctionType gdn::getReadableType(Operation *function) {
  if (!isa<FunctionOpInterface>(function))
    return {};
  auto attr = function->getAttrOfType<TypeAttr>("function_type");
  return attr ? dyn_cast<FunctionType>(attr.getValue()) : FunctionType();
}

bool gdn::isDictionary(Attribute value) { return isa<DictionaryAttr>(value); }

bool gdn::isUnit(Attribute value) { return isa<UnitAttr>(value); }

bool gdn::isStringArray(Attribute value) {
  auto array = dyn_cast<ArrayAttr>(value);
  return array && llvm::all_of(array, llvm::IsaPred<StringAttr>);
}

bool gdn::isStringDictionary(Attribute value) {
  auto fields = dyn_cast<DictionaryAttr>(value);
  return fields && llvm::all_of(fields, [](NamedAttribute field) {
           return isa<StringAttr>(field.getValue());
         });
}

LogicalResult gdn::verifyForms(const AttributeUse &use, Attribute forms,
                               const Twine &whose) {
  for (auto [i, text] :
       llvm::enumerate(cast<ArrayAttr>(forms).getAsRange<StringAttr>())) {
    llvm::Expected<LinearForm> form = LinearForm::parse(text.getValue());
    if (!form)
      return use.emitError()
             << "expects " << use.str() << " to hold linear forms, but form "
             << i << whose << " is not: " << llvm::toString(form.takeError());
  }
  return success();
}

LogicalResult gdn::verifyOwnForms(const AttributeUse &use) {
  return verifyForms(use, use.getValue());
}
