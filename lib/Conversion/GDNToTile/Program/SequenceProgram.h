// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile program whose blocks have a sequence each, or a piece of one: what
// recurrences and stages share. It knows neither.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_SEQUENCEPROGRAM_H
#define GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_SEQUENCEPROGRAM_H

#include "Program/TileProgram.h"

#include "gdn/Conversion/Precision.h"
#include "gdn/Support/FormCosts.h"

#include <optional>

namespace gdn {

/// Which form of the recurrence the tokens of a sequence take: in sequences of
/// at least `chunkFrom` tokens chunk after chunk, while at least `chunkNext`
/// are left; the rest token by token.
struct Algorithm {
  int64_t tokens;      ///< per block of the recurrent form
  int64_t chunk;       ///< per chunk of the chunk form
  int64_t chunkFrom;   ///< 1: all in chunks; negative: none; 0: by the rule
  Precision precision; ///< of the chunk form
  bool valueHeads;     ///< a block serves one value head, not one key head
  int64_t lanes;       ///< of the CPU's vectors, for the rule; 0: not known
  int64_t
      segments; ///< of a sequence in the variant "segments"; 0: no such variant
  int64_t segmentsFrom;  ///< mean tokens of a sequence from which it is taken
  int64_t chunkNext = 0; ///< at most `chunkFrom`; 0: the same
  int64_t vSplit = 1; ///< blocks of a variant in two stages that share a head
  int64_t batchSegments = 0; ///< of such a variant; 0: whole sequences
  bool mapsAlone = false;    ///< whether a variant only makes maps of sequences
  bool firstApart = false;   ///< whether a sequence's first segment has a stage
                             ///< of its own, beside the maps of the others
  int64_t fusedChunks = 0;   ///< chunks whose intra-chunk work a block of the
                             ///< recurrence does at once; 0: none
  int64_t wholeCost = 0;  ///< where lengths of sequences decide if a block of
                          ///< such a recurrence does anything: hundredths of a
                          ///< chunk of V-splits that one of whole heads takes,
                          ///< or, with a decay per channel, of one in stages
  int64_t workers = 0;    ///< and the multiprocessors of the device
  int64_t scanTokens = 0; ///< what maps and a scan cost, in tokens of a V-split
  bool copiesAhead = false;  ///< whether warps of their own copy what stages
                             ///< ahead of a recurrence prepared
  bool blocksStay = false;   ///< for one sequence and head after the other
  bool normWithRule = false; ///< whether such a recurrence has the gated norm
  bool normBehind = false;  ///< or has the bits of one, with the norm behind it
  bool hasSignals = false;  ///< whether the workspace has counters of chunks
                            ///< whose outputs are there
  bool normFollows = false; ///< whether the norm behind it runs beside it
  bool convWithRule = false;    ///< whether it convolves the rule's values
  bool ownChunk = false;        ///< whether others have chunks of other tokens
  bool ordersSequences = false; ///< whether it takes sequences longest first
  int64_t shortPieces = 0; ///< tokens of a piece in passes over memory of the
                           ///< first variant of a stage, which is for few
                           ///< tokens; 0: as many as are best for many
  bool wholeLoads = false; ///< whether passes say which loads have none of
                           ///< their rows or all
  int64_t chunkPieces = 0; ///< tokens of a warp of the prologue whose blocks
                           ///< have a chunk of inputs as one tile; 0: none has
  bool tokenByToken = false; ///< whether sequences whose products would take
                             ///< f32 operands are computed token by token, and
                             ///< written on the way
  std::optional<FormCosts> formCosts =
      std::nullopt; ///< of the CPU, for the rule
};

class SequenceProgram : public TileProgram {
public:
  SequenceProgram(EntryViews &views, const KernelOperands &parts,
                  const Algorithm &algorithm)
      : TileProgram(views, parts, algorithm.tokens), algorithm(algorithm) {
    if (parts.rule)
      chunkTypes = ChunkTypes::choose(parts, algorithm.precision);
  }
  virtual ~SequenceProgram() = default;

  /// Element `at` of the sequence bounds, at least `low` and at most the number
  /// of tokens: others would reach past the buffers.
  mlir::Value sequenceBound(mlir::Value at, mlir::Value low);

  mlir::Value head; // value head of the key head; null in a block of all
  /// How many sequences, key heads and value heads there are.
  std::string sequenceForm, headForm, valueForm;
  /// Tokens before the first sequence; 0 but in the padding's block.
  mlir::Value lead;
  const Algorithm &algorithm;

protected:
  /// The function's grid, and the sizes that all blocks share.
  mlir::LogicalResult emitGrid();
  /// Views of all operands and results, before any control flow.
  mlir::LogicalResult emitViews();
  /// Tokens and slot of the sequence `n`; returns whether it is live, or null
  /// in a kernel without slots.
  mlir::Value emitBounds();
  /// Zeros for the tokens `from` to `to`, which belong to no live sequence.
  void emitZeros(mlir::Value from, mlir::Value to);

private:
  /// A bound that has been read, likewise.
  mlir::Value clampBound(mlir::Value raw, mlir::Value low);
  /// The bounds of a sequence where sequences have a most number of tokens.
  void emitShortBounds();
  /// The end of sequence `n` as its block sees it: one that the entry does not
  /// take has no tokens.
  mlir::Value endIfTaken(mlir::Value first, mlir::Value last);
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_SEQUENCEPROGRAM_H
