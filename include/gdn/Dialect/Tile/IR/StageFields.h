// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The attribute `gdn_tile.stage` of a function: what its program, or the code
// made of it, is a stage of, and how it is launched. docs/spec/attributes.md
// says what the fields mean.
#ifndef GDN_DIALECT_TILE_IR_STAGEFIELDS_H
#define GDN_DIALECT_TILE_IR_STAGEFIELDS_H

#include "gdn/Dialect/AttributeFields.h"

namespace gdn::tile {

/// A stage beside another of its variant.
enum class Neighbour { next, last };

class StageFields : public AttributeFields {
public:
  static constexpr llvm::StringLiteral name = "gdn_tile.stage";

  /// Of a function of any dialect; of null, nothing is there.
  explicit StageFields(mlir::Operation *function)
      : AttributeFields(function, name) {}

  // Arrays and dictionaries are null where they are not there.

  mlir::ArrayAttr getGrid() const { return get<mlir::ArrayAttr>("grid"); }
  void setGrid(llvm::ArrayRef<llvm::StringRef> forms) {
    setStrings("grid", forms);
  }
  void setGrid(mlir::ArrayAttr forms) { set("grid", forms); }

  mlir::ArrayAttr getSymbols() const { return get<mlir::ArrayAttr>("symbols"); }
  void setSymbols(llvm::ArrayRef<llvm::StringRef> names) {
    setStrings("symbols", names);
  }

  mlir::ArrayAttr getGroups() const { return get<mlir::ArrayAttr>("groups"); }
  void setGroups(llvm::ArrayRef<llvm::StringRef> forms) {
    setStrings("groups", forms);
  }

  mlir::ArrayAttr getMultiples() const {
    return get<mlir::ArrayAttr>("multiples");
  }
  void setMultiples(llvm::ArrayRef<llvm::StringRef> pairs) {
    setStrings("multiples", pairs);
  }

  mlir::DictionaryAttr getFacts() const {
    return get<mlir::DictionaryAttr>("facts");
  }
  void setFacts(mlir::DictionaryAttr facts) { set("facts", facts); }

  /// The entry; null of a program that is one by itself.
  mlir::StringAttr getStageOf() const {
    return get<mlir::StringAttr>("stage_of");
  }
  void setStageOf(llvm::StringRef entry);

  llvm::SmallVector<mlir::StringAttr> getVariants() const;
  /// One name is written as a string.
  void setVariants(llvm::ArrayRef<mlir::StringAttr> names);
  void setVariant(llvm::StringRef variant);

  mlir::ArrayAttr getWorkspace() const {
    return get<mlir::ArrayAttr>("workspace");
  }
  void setWorkspace(mlir::ArrayAttr regions) { set("workspace", regions); }
  unsigned countRegions() const;

  /// Those of `variant`, or of all that the stage is of; null for none.
  mlir::ArrayAttr getConditions(llvm::StringRef variant) const;
  /// An array, or a dictionary by variants.
  void setConditions(mlir::Attribute conditions) {
    set("conditions", conditions);
  }

  /// Whether the stage may run at the same time as that neighbour.
  bool overlapsWith(Neighbour neighbour) const;
  void setOverlaps(Neighbour neighbour);

  mlir::StringAttr getBits() const { return get<mlir::StringAttr>("bits"); }
  void setBits(llvm::StringRef bits);

  /// How many blocks, the last axis of the grid, have the same chunks; 1 if
  /// nobody says.
  int64_t getSameChunks() const { return getInt("same_chunks", 1); }
  void setSameChunks(int64_t blocks) { setInt("same_chunks", blocks); }

  /// How many pieces, the last axis of the grid, the tokens of a chunk are cut
  /// into, which need nothing of each other; 0 if nobody says.
  int64_t getTokenPieces() const { return getInt("token_pieces", 0); }
  void setTokenPieces(int64_t pieces) { setInt("token_pieces", pieces); }
  /// Takes that axis from the grid: a unit has all pieces.
  void leaveTokenPieces();

  /// How many neighbouring values of a row a lane has, where sums over rows are
  /// to have the order that another stage gives them; 0 if nobody says.
  int64_t getRowValues() const { return getInt("row_values", 0); }
  void setRowValues(int64_t values) { setInt("row_values", values); }

  /// Whether warps of their own are to copy what other stages prepared, ahead
  /// of those that multiply it.
  bool getCopiesAhead() const { return getInt("copies_ahead", 0) != 0; }
  void setCopiesAhead() { setInt("copies_ahead", 1); }

  /// Whether the stage runs beside the one ahead of it, and awaits signals of
  /// what it reads of that.
  bool getFollows() const { return getInt("follows", 0) != 0; }
  void setFollows() { setInt("follows", 1); }

  bool getBlocksStay() const { return getInt("blocks_stay", 0) != 0; }
  void setBlocksStay() { setInt("blocks_stay", 1); }

  /// Whether the launch that it awaits is a stage of the same call, in every
  /// variant.
  bool getAwaitsStage() const { return getInt("awaits_stage", 0) != 0; }
  void setAwaitsStage() { setInt("awaits_stage", 1); }

  /// Of code; none of programs.
  std::optional<int64_t> getScratchBytes() const;
  void setScratchBytes(int64_t bytes) { setInt("scratch_bytes", bytes); }

  /// Takes away what says something of programs alone.
  void leaveCode();
};

} // namespace gdn::tile

#endif // GDN_DIALECT_TILE_IR_STAGEFIELDS_H
