// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tile program of one gdn.kernel with the token recurrence.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_RECURRENTKERNEL_H
#define GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_RECURRENTKERNEL_H

#include "Recurrence/TokenBlock.h"
#include "Recurrence/TokenStates.h"

#include "gdn/Conversion/Precision.h"

namespace gdn {

/// Which form of the recurrence the tokens of a row take: in rows of at least
/// `chunkFrom` tokens chunk after chunk, while at least `chunkNext` are left;
/// the rest token by token.
struct Algorithm {
  int64_t tokens;      ///< per block of the recurrent form
  int64_t chunk;       ///< per chunk of the chunk form
  int64_t chunkFrom;   ///< 1: all in chunks; negative: none; 0: by the rule
  Precision precision; ///< of the chunk form
  bool valueHeads;     ///< a block serves one value head, not one key head
  int64_t lanes;       ///< of the CPU's vectors, for the rule; 0: not known
  int64_t segments; ///< of a row in the variant "segments"; 0: no such variant
  int64_t segmentsFrom;  ///< mean tokens of a row from which it is taken
  int64_t chunkNext = 0; ///< at most `chunkFrom`; 0: the same
  int64_t vSplit = 1; ///< blocks of a variant in two stages that share a head
  int64_t batchSegments = 0; ///< of such a variant; 0: whole rows
  bool firstApart = false;   ///< whether a row's first segment has a stage of
                             ///< its own, beside the maps of the others
  int64_t fusedChunks = 0;   ///< chunks whose intra-chunk work a block of the
                             ///< recurrence does at once; 0: none
  int64_t wholeCost = 0; ///< where lengths of rows decide if a block of such
                         ///< a recurrence does anything: hundredths of a chunk
                         ///< of V-splits that one of whole heads takes
  int64_t workers = 0;   ///< and the multiprocessors of the device
  bool ordersRows = false;   ///< whether it takes rows longest first
  int64_t shortPieces = 0;   ///< tokens of a piece in passes over memory of the
                             ///< first variant of a stage, which is for few
                             ///< tokens; 0: as many as are best for many
  bool tokenByToken = false; ///< whether rows whose products would take f32
                             ///< operands are computed token by token, and
                             ///< written on the way
};

/// The program of a block while it is written; see RecurrentKernel.cpp.
class RecurrentKernel : public TileProgram {
public:
  RecurrentKernel(EntryViews &views, const KernelOperands &parts,
                  const Algorithm &algorithm)
      : TileProgram(views, parts, algorithm.tokens), algorithm(algorithm) {
    if (parts.rule)
      chunkTypes = ChunkTypes::choose(parts, algorithm.precision);
  }
  virtual ~RecurrentKernel() = default;

  mlir::LogicalResult emit();

protected:
  /// The carried tile before the tokens of the block, f32.
  virtual mlir::Value loadStart(const Carry &carry, mlir::Value r) {
    return loadCarry(carry, r);
  }
  /// Keeps the carried tile after the tokens of the block.
  virtual void storeEnd(const Carry &carry, mlir::Value tile, mlir::Value r) {
    storeCarry(carry, tile, r);
  }

  /// The function's grid, and the sizes that all blocks share.
  mlir::LogicalResult emitGrid();
  /// Views of all operands and results, before any control flow.
  mlir::LogicalResult emitViews();
  /// Tokens and slot of the block's row; returns whether it is live, or null
  /// in a kernel without slots.
  mlir::Value emitBounds();
  /// The live tokens `begin` to `end`: all value heads of key head `h`, or the
  /// block's one.
  void emitRow();
  /// Zeros for the tokens `from` to `to`, which belong to no live row.
  void emitZeros(mlir::Value from, mlir::Value to);

  /// Element `at` of the row bounds, at least `low` and at most the number of
  /// tokens: others would reach past the buffers.
  mlir::Value rowBound(mlir::Value at, mlir::Value low);
  /// The same of an element that has been read.
  mlir::Value clampBound(mlir::Value raw, mlir::Value low);
  /// The bounds of a ragged row where rows have a bound.
  void emitShortBounds();

  mlir::Value head; // value head of the key head; null in a block of all
  std::string rowForm, headForm, valueForm; // rows, key heads, value heads
  mlir::Value lead; // tokens before the first row; 0 but in the padding's block
  const Algorithm &algorithm;

private:
  /// Notes on the function which tokens take chunks, of how many tokens, and
  /// what the operands of their products became.
  void recordForm();
  llvm::SmallVector<mlir::Value> emitBlocks(TokenBlock &block, mlir::Value from,
                                            mlir::Value to,
                                            llvm::ArrayRef<mlir::Value> start);
  llvm::SmallVector<mlir::Value> emitChunks(TokenBlock &block, mlir::Value from,
                                            mlir::Value to,
                                            llvm::ArrayRef<mlir::Value> start);
  llvm::SmallVector<mlir::Value> emitTokens(TokenBlock &block, mlir::Value from,
                                            mlir::Value to,
                                            llvm::ArrayRef<mlir::Value> start);
  void emitValueHead(mlir::Value r,
                     llvm::MutableArrayRef<mlir::Value> keyCarries);
  void emitOneValueHead(llvm::MutableArrayRef<mlir::Value> keyCarries);

  /// Whether a row is computed token by token and written on the way.
  bool goesTokenByToken();
  /// Whether the carried tile is written before the row's tokens are through.
  bool isWrittenInside(const Carry &carry) {
    return isWrittenOnTheWay(carry) || goesTokenByToken();
  }
  llvm::SmallVector<mlir::Value>
  emitRowTokens(TokenBlock &block, mlir::Value r,
                llvm::ArrayRef<mlir::Value> start);
  llvm::SmallVector<mlir::Value>
  emitPendingTokens(TokenBlock &block, mlir::Value r,
                    llvm::ArrayRef<mlir::Value> start);
  mlir::Value emitIsLastOfGroup(int64_t window);

  /// Per carry, whether the block writes it after every token; null: it does,
  /// or nobody does.
  llvm::SmallVector<mlir::Value> tokenWriters;
};

/// `algorithm` with the choices that are left to a rule made.
Algorithm chooseForm(const KernelOperands &parts, const Algorithm &algorithm);

/// Fills `views.function` with the program of `kernel`, whose results the
/// entry returns. An entry without
/// row bounds takes the recurrent form, token by token. Fails with an error on
/// the op that has no tile program.
mlir::LogicalResult emitRecurrentKernel(EntryViews &views, KernelOp kernel,
                                        const Algorithm &algorithm);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_RECURRENCE_RECURRENTKERNEL_H
