// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads and writes fields of gdn_tile.stage that have several forms.
#include "gdn/Dialect/Tile/IR/StageFields.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace gdn::tile;

static StringRef getWord(Neighbour neighbour) {
  return neighbour == Neighbour::next ? "next" : "last";
}

void StageFields::setStageOf(StringRef entry) {
  set("stage_of", StringAttr::get(op->getContext(), entry));
}

SmallVector<StringAttr> StageFields::getVariants() const {
  if (auto name = get<StringAttr>("variant"))
    return {name};
  if (auto names = get<ArrayAttr>("variant"))
    return llvm::to_vector(names.getAsRange<StringAttr>());
  return {};
}

void StageFields::setVariants(ArrayRef<StringAttr> names) {
  if (names.size() == 1)
    return set("variant", names.front());
  set("variant",
      ArrayAttr::get(op->getContext(),
                     SmallVector<Attribute>(names.begin(), names.end())));
}

void StageFields::setVariant(StringRef variant) {
  set("variant", StringAttr::get(op->getContext(), variant));
}

unsigned StageFields::countRegions() const {
  ArrayAttr regions = getWorkspace();
  return regions ? regions.size() : 0;
}

ArrayAttr StageFields::getConditions(StringRef variant) const {
  Attribute conditions = get("conditions");
  if (auto byName = dyn_cast_or_null<DictionaryAttr>(conditions))
    conditions = byName.get(variant);
  return dyn_cast_or_null<ArrayAttr>(conditions);
}

bool StageFields::overlapsWith(Neighbour neighbour) const {
  auto word = get<StringAttr>("overlaps");
  return word && word == getWord(neighbour);
}

void StageFields::setOverlaps(Neighbour neighbour) {
  set("overlaps", StringAttr::get(op->getContext(), getWord(neighbour)));
}

void StageFields::setBits(StringRef bits) {
  set("bits", StringAttr::get(op->getContext(), bits));
}

std::optional<int64_t> StageFields::getScratchBytes() const {
  auto bytes = get<IntegerAttr>("scratch_bytes");
  return bytes ? std::optional(bytes.getInt()) : std::nullopt;
}

void StageFields::leaveTokenPieces() {
  setGrid(ArrayAttr::get(op->getContext(), getGrid().getValue().drop_back()));
  set("token_pieces", Attribute());
}

void StageFields::leaveCode() {
  for (StringRef field :
       {"groups", "overlaps", "same_chunks", "token_pieces", "row_values",
        "copies_ahead", "blocks_stay", "follows", "awaits_stage"})
    set(field, Attribute());
}
