// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conditions of variants, as products of forms.
#include "Recurrence/Variants.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

using namespace mlir;
using namespace gdn;

static Attribute getNumber(OpBuilder &b, int64_t number) {
  return b.getStrArrayAttr(StringRef(std::to_string(number)));
}

func::FuncOp gdn::addVariant(func::FuncOp source, StringRef variant,
                             int64_t least, int64_t most) {
  OpBuilder b(source);
  auto copy = cast<func::FuncOp>(b.clone(*source));
  copy.setName((source.getName() + "_" + variant).str());
  tile::StageFields stage(copy);
  stage.setStageOf(source.getName());
  stage.setVariant(variant);
  Attribute units = stage.getGrid();
  SmallVector<Attribute> conditions;
  if (least > 0)
    conditions.push_back(b.getArrayAttr({getNumber(b, least), units}));
  if (most > 0)
    conditions.push_back(b.getArrayAttr({units, getNumber(b, most)}));
  stage.setConditions(b.getArrayAttr(conditions));
  return copy;
}

void gdn::addUnits(func::FuncOp variant, int64_t least, int64_t most,
                   int64_t rows) {
  OpBuilder b(variant);
  tile::StageFields stage(variant);
  ArrayAttr units = stage.getGrid();
  Attribute before = stage.getConditions(stage.getVariants().front());
  Attribute also = b.getArrayAttr(
      {b.getArrayAttr({getNumber(b, least), units}),
       b.getArrayAttr({getNumber(b, rows), b.getArrayAttr({units[0]})})});
  Attribute any = b.getDictionaryAttr(
      b.getNamedAttr("any", b.getArrayAttr({before, also})));
  stage.setConditions(
      b.getArrayAttr({b.getArrayAttr({units, getNumber(b, most)}), any}));
}
