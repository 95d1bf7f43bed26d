// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The discardable attributes of a dialect, such as `gdn_tile.stage` on a
// function: one table says which there are, where each may stand and what it
// may be. Anything else with the dialect's name in front is refused. The page
// docs/spec/attributes.md has the same rows; a test compares them.
#ifndef GDN_DIALECT_ATTRIBUTETABLE_H
#define GDN_DIALECT_ATTRIBUTETABLE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"

namespace gdn {

/// Where an attribute stands; a row has those where it may.
enum AttributePlace : unsigned {
  nowhere = 0,     // on any other op
  onPrograms = 1,  // functions of any dialect but llvm
  onCode = 2,      // llvm.func
  onArguments = 4, // of any function
  onResults = 8,
  onModules = 16, // builtin.module
  onLoops = 32,   // scf.for
  onFunctions = onPrograms | onCode
};

/// One attribute where it stands.
struct AttributeUse {
  mlir::Operation *op;
  AttributePlace place;
  /// Of the argument or result.
  unsigned index;
  mlir::NamedAttribute attribute;
  /// The attribute that this one is a field of; none if it stands by itself.
  llvm::StringRef owner = {};

  llvm::StringRef getName() const { return attribute.getName().getValue(); }
  mlir::Attribute getValue() const { return attribute.getValue(); }
  /// As messages name it: 'gdn.name' of argument 0, 'grid' of 'gdn_tile.stage'.
  std::string str() const;
  mlir::InFlightDiagnostic emitError() const;
  /// Says that the value is not `what`, and what it is.
  mlir::InFlightDiagnostic emitExpected(const llvm::Twine &what) const;
};

/// A field of an attribute that is a dictionary.
struct FieldRow {
  llvm::StringLiteral name;
  /// What it is, as in "expects .. to be an i64 from 1 to 8".
  llvm::StringLiteral value;
  bool (*holds)(mlir::Attribute value);
  /// What remains to be said of a value that holds; null if nothing does.
  mlir::LogicalResult (*fits)(const AttributeUse &use) = nullptr;
  bool isRequired = false;
};

/// The fields of such an attribute.
class FieldTable {
public:
  constexpr FieldTable(llvm::ArrayRef<FieldRow> rows) : rows(rows) {}

  llvm::ArrayRef<FieldRow> getRows() const { return rows; }

  /// Fails, with a diagnostic, unless a row knows each field of the dictionary
  /// and its value is right, and what is required is there.
  mlir::LogicalResult verify(const AttributeUse &use) const;

private:
  llvm::ArrayRef<FieldRow> rows;
};

struct AttributeRow {
  llvm::StringLiteral name;
  /// A set of AttributePlace.
  unsigned places;
  /// What it is, as in "expects .. to be an i64 from 1 to 8".
  llvm::StringLiteral value;
  bool (*holds)(mlir::Attribute value);
  /// What remains to be said of a value that holds; null if nothing does.
  mlir::LogicalResult (*fits)(const AttributeUse &use) = nullptr;
  /// Of a dictionary.
  const FieldTable *fields = nullptr;
};

class AttributeTable {
public:
  constexpr AttributeTable(llvm::StringRef dialect,
                           llvm::ArrayRef<AttributeRow> rows)
      : dialect(dialect), rows(rows) {}

  llvm::ArrayRef<AttributeRow> getRows() const { return rows; }

  /// Fails, with a diagnostic, unless a row knows the attribute, lets it stand
  /// there, and its value is right.
  mlir::LogicalResult verify(const AttributeUse &use) const;

  /// What `verifyOperationAttribute` of the dialect does.
  mlir::LogicalResult verifyOfOp(mlir::Operation *op,
                                 mlir::NamedAttribute attribute) const;

private:
  llvm::StringRef dialect;
  llvm::ArrayRef<AttributeRow> rows;
};

/// Places as messages and the page name them: "arguments and results of
/// functions".
std::string describePlaces(unsigned places);

/// The type of a function, or null where its own attributes cannot be read:
/// attributes of dialects are verified before the function itself is.
mlir::FunctionType getReadableType(mlir::Operation *function);

bool isDictionary(mlir::Attribute value);
bool isUnit(mlir::Attribute value);
bool isStringArray(mlir::Attribute value);
bool isStringDictionary(mlir::Attribute value);

/// Fails unless all of `forms`, an array of strings, are linear forms;
/// `whose` says which they are.
mlir::LogicalResult verifyForms(const AttributeUse &use, mlir::Attribute forms,
                                const llvm::Twine &whose = "");

/// The same of all that the attribute holds.
mlir::LogicalResult verifyOwnForms(const AttributeUse &use);

/// True for an i64 from `least` to `most`.
template <int64_t least, int64_t most> bool isNumber(mlir::Attribute value) {
  auto number = mlir::dyn_cast<mlir::IntegerAttr>(value);
  return number && number.getType().isSignlessInteger(64) &&
         number.getInt() >= least && number.getInt() <= most;
}

} // namespace gdn

#endif // GDN_DIALECT_ATTRIBUTETABLE_H
