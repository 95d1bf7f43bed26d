// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stage of the variant "staged" that is a pass over memory: of a chunk, each
// block has a piece for each head, and goes through it by groups of tokens that
// fit the registers of a warp.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_STAGES_TOKENGROUPSTAGE_H
#define GDN_LIB_CONVERSION_GDNTOTILE_STAGES_TOKENGROUPSTAGE_H

#include "Stages/ChunkStage.h"

namespace gdn {

class TokenGroupStage : public ChunkStage {
public:
  explicit TokenGroupStage(const StageInputs &inputs);

protected:
  using Tiles = llvm::SmallVector<mlir::Value>;
  /// How many tokens of a group are there: all that it can have if that is
  /// null, and all or none if `whole`.
  struct Rows {
    mlir::Value valid;
    bool whole = false;
  };

  llvm::SmallVector<std::string> gridOf(const std::string &slots) override;
  bool readsIntraChunk() const override { return false; }
  /// Whether it stands beside one of two recurrences, as lengths of sequences
  /// say. Beside the other one it has nothing to do, so there are no more
  /// blocks than run at the same time, and each goes through several pieces.
  bool isOfHalves() const { return algorithm.wholeCost != 0; }
  void emitBlock(mlir::Value chunkSlot) override;
  void emitChunkSlot(mlir::Value chunkSlot, mlir::Value isFirst,
                     mlir::Value valid) override;
  /// How many blocks share a piece, one for each head of something; with few
  /// blocks it is one for each value head.
  virtual std::string unitsForm() { return valueForm; }
  /// The program of a piece, whose first token is `begin` and whose chunk has
  /// the slot `chunkSlot`; `isFirst` says whether it is the first of its
  /// sequence.
  virtual void emitPiece(mlir::Value chunkSlot, mlir::Value isFirst) = 0;
  /// Group after group: `work` gets the group's first token within the piece,
  /// what `load` gave for it, and the tiles that are carried from group to
  /// group, for which it leaves the next; `start` gives those before a group.
  /// How many tokens a group has is null where they are all it can have. Tiles
  /// are loaded while the group before is worked on, unless they are `near`.
  void
  emitGroups(llvm::function_ref<Tiles(mlir::Value at, Rows rows)> load,
             llvm::function_ref<Tiles(mlir::Value at)> start,
             llvm::function_ref<void(mlir::Value at, mlir::Value valid,
                                     mlir::ValueRange loaded, Tiles &carried)>
                 work,
             bool near = false);

  /// What blocks have in common: the first token of the slot, how many count,
  /// whether it is its sequence's first.
  mlir::Value slotBegin, slotCount, isFirstSlot;
  mlir::Value first;   // token of the piece within the slot
  mlir::Value inChunk; // within its chunk
  mlir::Value count;   // tokens of the piece that count
  mlir::Value stored;  // that have a place in the workspace; null: all
  int64_t pieceTokens;
  bool wholeLoads; // see Algorithm
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_STAGES_TOKENGROUPSTAGE_H
