// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attributes of gdn; foremost `gdn.entry`, `gdn.name` and `gdn.dims`, the
// schema of an entry. A label such as entry_c1 is a constraint of
// docs/spec/entry.md.
#include "gdn/Dialect/AttributeTable.h"
#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GDN/IR/PoolOrder.h"
#include "gdn/Support/LinearForm.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace gdn;

namespace {
/// One argument or result of a function, as messages name it.
struct Port {
  mutable FunctionOpInterface func; // its getters are not const
  bool isResult;
  unsigned index;

  Type getType() const {
    return isResult ? func.getResultTypes()[index]
                    : func.getArgumentTypes()[index];
  }
  Attribute getAttr(StringRef name) const {
    return isResult ? func.getResultAttr(index, name)
                    : func.getArgAttr(index, name);
  }
  std::string str() const {
    return ((isResult ? "result " : "argument ") + Twine(index)).str();
  }
  InFlightDiagnostic emitError() const { return func->emitOpError(); }
};
} // namespace

static constexpr StringLiteral nameAttr = "gdn.name", dimsAttr = "gdn.dims";

/// The shape and elements of a tensor or pool; nothing for other types.
static std::optional<std::pair<ArrayRef<int64_t>, Type>> getShape(Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return std::make_pair(tensor.getShape(), tensor.getElementType());
  if (auto pool = dyn_cast<PoolType>(type))
    return std::make_pair(pool.getShape(), pool.getElementType());
  return std::nullopt;
}

// entry_c1
static bool isIdentifierString(Attribute value) {
  auto name = dyn_cast<StringAttr>(value);
  return name && isIdentifier(name);
}

/// Checks `gdn.dims` and gives its forms.
static FailureOr<SmallVector<LinearForm>> verifyDims(const Port &port,
                                                     Attribute attr) {
  // entry_c2
  auto shape = getShape(port.getType());
  if (!shape)
    return port.emitError() << "expects 'gdn.dims' on tensors and pools only, "
                               "but "
                            << port.str() << " is " << port.getType();
  auto array = cast<ArrayAttr>(attr);
  if (array.size() != shape->first.size())
    return port.emitError()
           << "expects 'gdn.dims' of " << port.str()
           << " to have one form per dimension, which is "
           << shape->first.size() << ", but got " << array.size();
  SmallVector<LinearForm> forms;
  for (auto [dim, size, text] :
       llvm::enumerate(shape->first, array.getAsRange<StringAttr>())) {
    // entry_c3
    llvm::Expected<LinearForm> form = LinearForm::parse(text.getValue());
    if (!form)
      return port.emitError()
             << "expects 'gdn.dims' of " << port.str() << " to hold linear "
             << "forms, but form " << dim
             << " is not: " << llvm::toString(form.takeError());
    if (form->hasQuotients())
      return port.emitError()
             << "expects 'gdn.dims' of " << port.str() << " to hold linear "
             << "forms, but form " << dim << " has a quotient: \""
             << form->str() << "\"";
    // entry_c4
    if (!ShapedType::isDynamic(size) && *form != LinearForm(size))
      return port.emitError()
             << "expects form " << dim << " of 'gdn.dims' of " << port.str()
             << " to be " << size << ", set by its type, but got \""
             << form->str() << "\"";
    forms.push_back(std::move(*form));
  }
  return forms;
}

/// The symbols that no chain of forms with one unknown each can give, in the
/// order of their first use: what binding could never solve.
static SmallVector<StringRef> getUnsolvable(ArrayRef<LinearForm> forms) {
  llvm::MapVector<StringRef, bool> solved;
  for (const LinearForm &form : forms)
    for (const LinearForm::Term &term : form.getTerms())
      solved.insert({term.symbol, false});
  for (bool changed = true; std::exchange(changed, false);)
    for (const LinearForm &form : forms) {
      SmallVector<StringRef> unknown;
      for (const LinearForm::Term &term : form.getTerms())
        if (!solved[term.symbol])
          unknown.push_back(term.symbol);
      if (unknown.size() == 1)
        changed = solved[unknown.front()] = true;
    }
  SmallVector<StringRef> left;
  for (auto [symbol, isSolved] : solved)
    if (!isSolved)
      left.push_back(symbol);
  return left;
}

/// Checks the type of an entry's argument or result.
static LogicalResult verifyPortType(const Port &port) {
  // entry_c5
  Type type = port.getType();
  if (port.isResult ? isa<RankedTensorType>(type)
                    : isa<IndexType, RankedTensorType, PoolType>(type)) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return success();
    Type element = tensor.getElementType();
    if (element.isF32() || element.isBF16() || element.isF16() ||
        element.isF64() || element.isInteger(1) || element.isInteger(32) ||
        element.isInteger(64))
      return success();
    return port.emitError() << "expects the elements of " << port.str()
                            << " to be f32, bf16, f16, f64, i1, i32 or i64, "
                               "but got "
                            << element;
  }
  return port.emitError() << "expects " << port.str() << " to be "
                          << (port.isResult
                                  ? "a ranked tensor"
                                  : "an index, a ranked tensor or a pool")
                          << ", but got " << type;
}

/// Checks the attribute `name` of `port`, which has it, as the table does.
static LogicalResult verifyPort(const Port &port, StringRef name);

/// Checks that a function is an entry: every parameter is described, and the
/// descriptions fit together.
static LogicalResult verifyEntry(FunctionOpInterface func) {
  if (func.isExternal()) // entry_c6
    return func->emitOpError("expects an entry to have a body");
  SmallVector<Port> ports;
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    ports.push_back({func, /*isResult=*/false, i});
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    ports.push_back({func, /*isResult=*/true, i});

  llvm::StringMap<std::string> owners;
  SmallVector<LinearForm> forms;
  SmallVector<Port> symbolPorts;
  for (const Port &port : ports) {
    if (failed(verifyPortType(port)))
      return failure();
    // entry_c7
    Attribute name = port.getAttr(nameAttr), dims = port.getAttr(dimsAttr);
    bool isSymbol = port.getType().isIndex();
    if (!name || (!dims && !isSymbol))
      return port.emitError()
             << "expects " << port.str() << " of an entry to have '"
             << (name ? dimsAttr : nameAttr) << "'";
    if (failed(verifyPort(port, nameAttr)))
      return failure();
    // entry_c8
    auto [it, isFirst] =
        owners.try_emplace(cast<StringAttr>(name).getValue(), port.str());
    if (!isFirst)
      return port.emitError()
             << "expects the names of an entry to be unique, "
                "but "
             << it->second << " and " << port.str() << " are both " << name;
    if (isSymbol)
      symbolPorts.push_back(port);
    if (!dims)
      continue;
    if (failed(verifyPort(port, dimsAttr)))
      return failure();
    llvm::append_range(forms, *verifyDims(port, dims));
  }

  // entry_c9
  for (const Port &port : symbolPorts) {
    auto symbol = cast<StringAttr>(port.getAttr(nameAttr));
    if (llvm::none_of(forms, [&](const LinearForm &form) {
          return form.getCoefficient(symbol) != 0;
        }))
      return port.emitError()
             << "expects the symbol " << symbol << " of " << port.str()
             << " to occur in some 'gdn.dims' of the entry";
  }
  // entry_c10
  if (SmallVector<StringRef> left = getUnsolvable(forms); !left.empty())
    return func->emitOpError(
               "expects the sizes of the parameters to give every "
               "symbol, but no form has only '")
           << left.front() << "' unknown";
  return success();
}

/// True if the function's own attributes can be read. Dialect attributes are
/// verified before the function itself is.
static bool isWellFormed(func::FuncOp func) {
  FunctionType type = getReadableType(func);
  auto fit = [](ArrayAttr attrs, unsigned count) {
    return !attrs || (attrs.size() == count &&
                      llvm::all_of(attrs, llvm::IsaPred<DictionaryAttr>));
  };
  return type && fit(func.getArgAttrsAttr(), type.getNumInputs()) &&
         fit(func.getResAttrsAttr(), type.getNumResults());
}

/// The schema belongs to gdn's level; a lowered function keeps the mark.
static LogicalResult verifyEntryMark(const AttributeUse &use) {
  auto func = dyn_cast<func::FuncOp>(use.op);
  return func && isWellFormed(func) ? verifyEntry(func) : success();
}

static LogicalResult verifyPortDims(const AttributeUse &use) {
  auto func = cast<FunctionOpInterface>(use.op);
  return verifyDims({func, use.place == onResults, use.index}, use.getValue());
}

/// Checks that `gdn.contiguous` names a dimension within the slots of a pool.
static LogicalResult verifyContiguous(const AttributeUse &use) {
  Port port = {cast<FunctionOpInterface>(use.op), /*isResult=*/false,
               use.index};
  // entry_c11
  auto pool = dyn_cast<PoolType>(port.getType());
  if (!pool)
    return port.emitError()
           << "expects '" << contiguousAttr << "' on pools only, but "
           << port.str() << " is " << port.getType();
  int64_t dim = cast<IntegerAttr>(use.getValue()).getInt();
  if (dim >= 1 && dim < pool.getRank())
    return success();
  return port.emitError() << "expects '" << contiguousAttr << "' of "
                          << port.str() << " to be a dimension from 1 to "
                          << pool.getRank() - 1 << ", but got " << dim;
}

std::optional<int64_t> gdn::getContiguousDim(FunctionOpInterface func,
                                             unsigned index) {
  auto pool = cast<PoolType>(func.getArgumentTypes()[index]);
  if (auto dim = func.getArgAttrOfType<IntegerAttr>(index, contiguousAttr))
    return dim.getInt();
  if (pool.getRank() == 4)
    return 3;
  return std::nullopt;
}

static bool isInteger64(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isSignlessInteger(64);
}
static bool isString(Attribute value) { return isa<StringAttr>(value); }
static bool isSeverity(Attribute value) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isSignlessInteger(32) &&
         number.getInt() >= 0 && number.getInt() <= 3;
}

static constexpr AttributeRow rows[] = {
    {"gdn.entry", onFunctions, "a unit attribute", isUnit, verifyEntryMark},
    {"gdn.facts", onFunctions, "a dictionary of strings", isStringDictionary},
    {nameAttr, onArguments | onResults, "a string that is an identifier",
     isIdentifierString},
    {dimsAttr, onArguments | onResults, "an array of strings", isStringArray,
     verifyPortDims},
    {contiguousAttr, onArguments, "an i64", isInteger64, verifyContiguous},
    // What was said of a compilation that is kept.
    {"gdn.severity", onModules, "an i32 from 0 to 3", isSeverity},
    {"gdn.message", onModules, "a string", isString},
};

static constexpr AttributeTable table("gdn", rows);

const AttributeTable &gdn::getAttributeTable() { return table; }

static LogicalResult verifyPort(const Port &port, StringRef name) {
  Attribute value = port.getAttr(name);
  return table.verify(
      {port.func, port.isResult ? onResults : onArguments, port.index,
       NamedAttribute(StringAttr::get(value.getContext(), name), value)});
}

LogicalResult GDNDialect::verifyOperationAttribute(Operation *op,
                                                   NamedAttribute attribute) {
  return table.verifyOfOp(op, attribute);
}

LogicalResult GDNDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                   unsigned index,
                                                   NamedAttribute attribute) {
  return table.verify({op, onArguments, index, attribute});
}

LogicalResult
GDNDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                        NamedAttribute attribute) {
  return table.verify({op, onResults, index, attribute});
}
