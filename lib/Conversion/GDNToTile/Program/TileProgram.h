// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile program while it is written: the kernel it comes from, where the
// builder stands, and the values that its steps share.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_TILEPROGRAM_H
#define GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_TILEPROGRAM_H

#include "Program/EntryViews.h"
#include "Program/KernelOperands.h"
#include "Program/OperandTypes.h"
#include "Program/StatePlanes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace gdn {

/// The most tokens of a sequence that can be pending.
constexpr int64_t mostPendingTokens = 8;

struct TileProgram {
  TileProgram(EntryViews &views, const KernelOperands &parts, int64_t tokens)
      : views(views), parts(parts), blockTokens(tokens),
        loc(KernelOp(parts.kernel).getLoc()), b(loc.getContext()) {}

  EntryViews &views;
  const KernelOperands &parts;
  int64_t blockTokens;   // tokens per block
  bool chunked = false;  // the chunk form, with its kind of state
  ChunkTypes chunkTypes; // of the chunk form
  /// Whether exponentials of token-wise work may be as good as 16 bits ask.
  bool fastExponentials = false;
  /// Whether gated norms take outputs of the rule where they are made.
  bool normsOutputs = false;
  mlir::Location loc;
  mlir::OpBuilder b;

  mlir::Value n, h;         // coordinates of the block: sequence, key head
  mlir::Value heads, ratio; // key heads, value heads per key head
  mlir::Value begin, end;   // tokens of the sequence
  mlir::Value slot;         // of the sequence
  mlir::Value accepted;     // pending tokens that the sequence's state receives
  /// With tokens that are pending over several steps: how many there are of the
  /// key head, whether the state receives them, and behind how many of them
  /// those of this step become pending.
  mlir::Value pendingCount, commits, firstPending;
  /// Whether the block writes what its key head has of pending tokens; null:
  /// it does.
  mlir::Value keyWriter;
  /// Where the last block of the key head's writes pending keys and the count,
  /// and a window that it shares; null: there is none.
  mlir::scf::IfOp keyBranch;
  mlir::Value firstCheckpoint,
      endCheckpoint; // of the sequence, if it may have any
  llvm::DenseMap<mlir::Value, mlir::Value> operandViews; // grouped by key head
  /// The first of the values, which are rows of the state, that a block of a
  /// V-split has; null: it has all of them.
  mlir::Value firstValue;
  int64_t numValues = 0;
  /// Loops over the sequence's tokens, and how many tokens there are at most; 0
  /// for any number.
  llvm::SmallVector<std::pair<mlir::scf::ForOp, int64_t>> tokenLoops;

  mlir::Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, loc, value);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::AddIOp>(loc, x, y);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) {
    return b.createOrFold<mlir::arith::MulIOp>(loc, x, y);
  }
  mlir::Value compare(mlir::arith::CmpIPredicate how, mlir::Value x,
                      mlir::Value y) {
    return mlir::arith::CmpIOp::create(b, loc, how, x, y);
  }
  mlir::Value both(mlir::Value x, mlir::Value y) {
    return mlir::arith::AndIOp::create(b, loc, x, y);
  }
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) {
    return mlir::arith::SelectOp::create(b, loc, condition, x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return mlir::arith::SubIOp::create(b, loc, x, y);
  }
  mlir::Value minimum(mlir::Value x, mlir::Value y) {
    return mlir::arith::MinUIOp::create(b, loc, x, y);
  }

  /// The builder goes to where `condition` holds.
  void enterIf(mlir::Value condition) {
    auto branch = mlir::scf::IfOp::create(b, loc, condition, false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  /// The end of the sequence's tokens. Where live sequences have a bound it is
  /// one here, too.
  mlir::Value lastEnd();
  /// Says of `tokenLoops` that they are, once the program is there.
  void markTokenLoops();
  /// The first of the block's values, of `all` how many it has.
  mlir::Value valueStart() { return firstValue ? firstValue : index(0); }
  int64_t valueCount(int64_t all) const { return firstValue ? numValues : all; }
  /// Value head `r` of this block's key head, among all value heads.
  mlir::Value headIndex(mlir::Value r) { return add(mul(h, ratio), r); }
  /// The number of heads of a tensor.
  mlir::Value headCount(mlir::Value value);
  /// Element `at` of an integer tensor, as an index.
  mlir::Value elementAt(mlir::Value tensor, mlir::ValueRange at);
  /// The slot that sequence `sequence` reads.
  mlir::Value slotOf(mlir::Value sequence);
  /// How many things blocks of a key head share, of which the last one to have
  /// read writes them: windows. Pending tokens with counts go with the last
  /// window, the key's, or alone.
  int64_t countShared();
  /// Whether the block is the last of its key head's to come here, for number
  /// `place` of these.
  mlir::Value isLastOfGroup(int64_t place);
  /// The number of slots in the kernel's `slots`.
  mlir::Value sequenceCount();
  /// Gives the function a region of the workspace of its variant: a row-major
  /// memref of `shape` with the given sizes, linear forms as text. `regions`
  /// receives what the workspace of the stage says of it.
  mlir::Value addRegion(llvm::ArrayRef<std::string> sizes,
                        llvm::ArrayRef<int64_t> shape, mlir::Type element,
                        llvm::SmallVectorImpl<mlir::Attribute> &regions);
  /// The first column of the sequence's window among those of its slot.
  mlir::Value windowStart() { return accepted ? accepted : index(0); }
  /// The slot contract: `id` is not negative, not null and below P.
  mlir::Value isLive(mlir::Value id, mlir::Value pool);
  /// First channel of a section's head among the convolution's channels.
  mlir::Value channel(Conv1dOp op, unsigned section, mlir::Value r);
  /// The chunk form keeps the state as dk x dv, times its value scale; what a
  /// carry holds is dv x dk.
  mlir::Value toChunkState(mlir::Value state);
  mlir::Value fromChunkState(mlir::Value state);
  /// The memory of the states of `carry`.
  StateMemory stateMemory(const Carry &carry);
  /// The carried tile before the sequence's first token, f32.
  mlir::Value loadCarry(const Carry &carry, mlir::Value r);
  /// The carried tile in the slot `from`, f32; `rows` of it are read,
  /// all of them where that is null, and others are zero. Of a window these are
  /// none or all if `whole`.
  mlir::Value loadCarryAt(const Carry &carry, mlir::Value r, mlir::Value from,
                          mlir::Value rows, bool whole = false);
  /// The window of `carry` before token `begin`, from the sequence's own
  /// inputs; only its first `rows` rows, unless that is null.
  mlir::Value loadOwnWindow(const Carry &carry, mlir::Value r,
                            mlir::Value rows = {}, bool whole = false);
  /// The window of `carry`: that of the pool, or the sequence's own inputs. One
  /// of the two is zero.
  mlir::Value joinWindow(const Carry &carry, mlir::Value kept, mlir::Value own);
  /// The rows of the carried tile that the sequence starts from: none where it
  /// starts from nothing, null where it never does.
  mlir::Value startRows(const Carry &carry);
  /// The slot that the carried tile goes to after the sequence's last token.
  /// The builder goes to where that is live.
  mlir::Value enterWrite(const Carry &carry);
  /// Writes the carried tile after the sequence's last token to its pool.
  void storeCarry(const Carry &carry, mlir::Value tile, mlir::Value r);
  /// Writes a carried tile to the slot `to`, which is live.
  void storeCarryAt(const Carry &carry, mlir::Value tile, mlir::Value r,
                    mlir::Value to) {
    storeCarryIn(carry.pool, carry, tile, r, to);
  }
  /// The same to a slot of `pool`.
  void storeCarryIn(mlir::Value pool, const Carry &carry, mlir::Value tile,
                    mlir::Value r, mlir::Value to);
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_TILEPROGRAM_H
