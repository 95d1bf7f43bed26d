// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes fields of dictionaries; see AttributeFields.h.
#include "gdn/Dialect/AttributeFields.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace gdn;

void AttributeFields::set(StringRef field, Attribute value) {
  NamedAttrList fields(op->getAttrOfType<DictionaryAttr>(attribute));
  if (value)
    fields.set(field, value);
  else
    fields.erase(field);
  op->setAttr(attribute, fields.getDictionary(op->getContext()));
}

void AttributeFields::setInt(StringRef field, int64_t value) {
  set(field, Builder(op->getContext()).getI64IntegerAttr(value));
}

void AttributeFields::setStrings(StringRef field, ArrayRef<StringRef> value) {
  set(field, Builder(op->getContext()).getStrArrayAttr(value));
}

void AttributeFields::setFlag(StringRef field, bool value) {
  set(field, value ? UnitAttr::get(op->getContext()) : Attribute());
}
