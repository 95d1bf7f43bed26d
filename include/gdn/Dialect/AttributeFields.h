// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fields of an attribute that is a dictionary, as C++ sees them: the
// classes of the dialects have a function for each field. What a field may hold
// their tables say.
#ifndef GDN_DIALECT_ATTRIBUTEFIELDS_H
#define GDN_DIALECT_ATTRIBUTEFIELDS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace gdn {

class AttributeFields {
public:
  /// Whether the op has the attribute.
  explicit operator bool() const { return op && op->hasAttr(attribute); }

protected:
  AttributeFields(mlir::Operation *op, llvm::StringLiteral attribute)
      : op(op), attribute(attribute) {}

  /// Null where there is none, or of another kind.
  template <typename AttrT = mlir::Attribute>
  AttrT get(llvm::StringRef field) const {
    auto fields =
        op ? op->getAttrOfType<mlir::DictionaryAttr>(attribute) : nullptr;
    return fields ? fields.getAs<AttrT>(field) : AttrT();
  }
  int64_t getInt(llvm::StringRef field, int64_t otherwise) const {
    auto number = get<mlir::IntegerAttr>(field);
    return number ? number.getInt() : otherwise;
  }
  /// Null takes the field away.
  void set(llvm::StringRef field, mlir::Attribute value);
  void setInt(llvm::StringRef field, int64_t value);
  void setStrings(llvm::StringRef field, llvm::ArrayRef<llvm::StringRef> value);
  void setFlag(llvm::StringRef field, bool value);

  mlir::Operation *op;

private:
  llvm::StringLiteral attribute;
};

} // namespace gdn

#endif // GDN_DIALECT_ATTRIBUTEFIELDS_H
