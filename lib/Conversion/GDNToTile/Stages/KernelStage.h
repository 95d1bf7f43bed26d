// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the stages of the variants "staged" share: what the workspace holds of
// each chunk slot, and of segments, where sequences are cut.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_STAGES_KERNELSTAGE_H
#define GDN_LIB_CONVERSION_GDNTOTILE_STAGES_KERNELSTAGE_H

#include "Program/SequenceProgram.h"
#include "Recurrence/TokenBlock.h"
#include "Stages/ChunkSlots.h"
#include "VariantSpec.h"

namespace gdn {

/// A variant that a stage is of, and when launches take it: with `saysWhen` the
/// stage says so.
struct StageVariant {
  std::string name;
  Conditions when;
  bool saysWhen = false;
  std::optional<Conditions> anyBatch = {}; // of launches whose bits depend on
                                           // no batch; none: it is not for them
};

/// What a stage is made from. The variants `variants` have it.
struct StageInputs {
  EntryViews &views;
  const KernelOperands &parts;
  const Algorithm &algorithm;
  mlir::ArrayRef<StageVariant> variants;
};

class KernelStage : public SequenceProgram {
public:
  explicit KernelStage(const StageInputs &inputs)
      : SequenceProgram(inputs.views, inputs.parts, inputs.algorithm),
        variants(inputs.variants) {
    blockTokens = algorithm.chunk;
    if (parts.rule)
      chunkTypes = ChunkTypes::chooseStaged(parts, algorithm.precision);
  }

  /// Fills the function with the program of the stage.
  mlir::LogicalResult emitStage();

protected:
  /// The grid, as linear forms; `slots` is the number of chunk slots.
  virtual llvm::SmallVector<std::string> gridOf(const std::string &slots) = 0;
  /// The program of a block, whose coordinate 0 is `first` and which has value
  /// head `head` of key head `h`.
  virtual void emitBlock(mlir::Value first) = 0;
  /// Whether the stage knows what the intra-chunk stage leaves of chunks.
  virtual bool readsIntraChunk() const { return algorithm.fusedChunks == 0; }
  /// Whether it has anything of chunks in the workspace.
  virtual bool readsChunks() const { return true; }

  /// Notes that the stage may run at the same time as a neighbour: that the
  /// "next" may begin at once, or that it reads nothing of what the "last"
  /// writes.
  void overlapWith(tile::Neighbour neighbour) {
    views.stage().setOverlaps(neighbour);
  }
  /// Notes that as many blocks, the last axis of the grid, work on the same
  /// chunks.
  void haveSameChunks(int64_t blocks) { views.stage().setSameChunks(blocks); }
  void copyAhead() { views.stage().setCopiesAhead(); }
  /// The state's carry, of the rows that the block has.
  Carry stateCarry();
  /// The sequence's state ahead of it and behind it, of the rows that the block
  /// has: in the pool or, of states in planes, in the workspace. Of the former
  /// `rows` are read and others are zero; null: all that there are.
  mlir::Value loadSequenceState(mlir::Value rows = {});
  void storeSequenceState(mlir::Value state);
  /// That of a window, of the values that the block has.
  Carry windowCarry(const Carry &carry);
  /// The block has the values of number `which` of `vSplit` blocks.
  void takeVSplit(mlir::Value which, int64_t vSplit);

  /// Rows of a chunk's tile of gates.
  enum Gate : int64_t { decayRow, strengthRow, freeRow, endRow, gateRows };

  /// A tile of a region of the workspace, at a head of the region's kind; of
  /// values those that the block has.
  mlir::Value loadRegion(mlir::Value region, mlir::Value chunkSlot,
                         mlir::Value head, mlir::Value rows = {});
  void storeRegion(mlir::Value tile, mlir::Value region, mlir::Value chunkSlot,
                   mlir::Value head);
  /// An operand of products, each part of which has a region.
  Operand loadOperand(const Operand &regions, mlir::Value chunkSlot,
                      mlir::Value head, mlir::Value rows = {});
  void storeOperand(const Operand &operand, const Operand &regions,
                    mlir::Value chunkSlot, mlir::Value head);
  /// A row of the gates of the block's value head, `count` elements of it.
  mlir::Value loadGate(Gate row, mlir::Value chunkSlot, int64_t count);
  void storeGate(mlir::Value tile, Gate row, mlir::Value chunkSlot);

  // The workspace, by sequence and value head, where states are in planes: the
  // state in f32.
  mlir::Value wideStates;
  // By chunk slot and value head: Y, Z and the gates; with a
  // decay per channel also Qf and Kf.
  Operand toState, toOutput;
  mlir::Value gates, fromQueries, fromKeys;
  // By rank in the order of the recurrence: the sequence.
  mlir::Value order;
  // By chunk slot and value head, where the norm runs beside the rule: how many
  // values of it have their outputs.
  mlir::Value signals;
  // By segment slot and value head, where sequences are cut: what precedes a
  // segment, or is to be added to what the one before it makes of its state,
  // times the scale of values; P of the segment.
  mlir::Value states, maps;
  // By chunk slot and key head, C x dk, and value head, C x dv; null for what
  // is in memory already, as products take it.
  Operand queries, keys, values;
  // The same of value heads, C x dk and 1 x C, with a decay per channel where
  // blocks prepare their chunks and gates are no numbers of f32 in memory; logs
  // as of `narrowLogs`.
  mlir::Value logDecays, strengths;
  // What queries and keys that lie in memory are to be multiplied with, 1 x C.
  mlir::Value queryNorms, keyNorms;

  /// `rows` rows of an input in memory from token `t` on, zeros past the
  /// `valid` ones; of values those that the block has, unless it wants all.
  /// Valid ones are all or none if `wholeRows`.
  mlir::Value loadInput(mlir::Value input, mlir::Value t, mlir::Value valid,
                        int64_t rows, bool wholeValues, bool wholeRows = false);
  /// Rows of a matrix of `states` or `maps`: all from `firstRow` on that the
  /// block has, of which `rows` are read and others are zero.
  mlir::Value loadRows(mlir::Value region, mlir::Value at, mlir::Value firstRow,
                       int64_t count, mlir::Value rows = {});
  void storeRows(mlir::Value tile, mlir::Value region, mlir::Value at,
                 mlir::Value firstRow, mlir::Value rows = {});
  /// What is known of the chunk of `valid` tokens from `t` on, of which
  /// `values` have values; without what only outputs need if `wantsOutput` is
  /// false.
  StoredChunk loadChunk(mlir::Value chunkSlot, mlir::Value t, mlir::Value valid,
                        mlir::Value valuesValid, bool wantsOutput);
  /// What loadChunk gives, prepared here; with the values `convolved`, unless
  /// that is null.
  StoredChunk emitIntraChunkAt(mlir::Value chunkSlot, mlir::Value t,
                               mlir::Value valid, mlir::Value valuesValid,
                               bool wantsOutput, mlir::Value convolved = {});

private:
  void describe();
  void addChunkRegions(const std::string &slots,
                       mlir::SmallVector<mlir::Attribute> &regions);
  /// The conditions of a variant over the symbols of the entry.
  mlir::ArrayAttr toAttribute(const StageVariant &variant);

  mlir::ArrayRef<StageVariant> variants;
};

/// The form of the number of chunk slots, without the sequences in it; empty if
/// it has none.
std::string getChunkForm(RuleOpInterface rule, int64_t chunk);

/// Tokens that a warp of a pass over memory works on at once: so few that there
/// are registers for many warps.
constexpr int64_t groupTokens = 4;
/// Whether that stage has anything to do.
bool hasPrologue(const KernelOperands &parts, const Algorithm &algorithm);
/// The norm of `input` of the rule, a query or a key, where that is a number of
/// 16 bits in memory and nothing else is done to it; else null.
L2NormOp getNormAlone(mlir::Value input);
/// Whether queries and keys are that, with a decay per channel: blocks that
/// prepare their chunks take them as they lie, and their norms from a stage.
bool hasNormsAlone(RuleOpInterface rule);
/// Whether gates of channels are computed, so that blocks that prepare their
/// chunks want them from a stage.
bool hasGatesAhead(RuleOpInterface rule);

/// Whether lengths choose between whole heads and halves of them, both by
/// blocks that prepare their chunks; else, with a decay per channel, between
/// whole heads by such blocks, and stages.
bool choosesHalves(const KernelOperands &parts, const Algorithm &algorithm);

/// Fills `inputs.views.function` with the program of a stage of a kernel that
/// can be computed in stages.
using EmitStage = mlir::LogicalResult(const StageInputs &inputs);
EmitStage emitWideningStage, emitPrologueStage, emitIntraChunkStage,
    emitMapsStage, emitFirstStage, emitScanStage, emitInterChunkStage,
    emitRoundingStage, emitNormStage;

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_STAGES_KERNELSTAGE_H
