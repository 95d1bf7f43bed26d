// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether a block of threads is the last to have read what it overwrites: what
// the ops of `gdn_tile.last_in_group` say that stores wait for. The program
// asks each of them once, with the first block of tokens, and keeps the answer
// in shared memory.
#ifndef GDN_LIB_SCHEDULE_TOKENS_LASTREADERS_H
#define GDN_LIB_SCHEDULE_TOKENS_LASTREADERS_H

#include "Tokens/TokenProgram.h"

#include "llvm/ADT/MapVector.h"

namespace gdn {

class LastReaders : TokenPart {
public:
  using TokenPart::TokenPart;

  /// Allocates the answers that `stores` wait for. The warp writes "no".
  void place(llvm::ArrayRef<mlir::Operation *> stores, int64_t warp);
  /// Asks the counters early, since the way to them and back is long. All
  /// threads must have read, and a barrier must follow that.
  void emitTickets(mlir::Value first);
  /// Writes the answers to emitTickets for all warps, or asks now.
  void emitAnswers(mlir::Value first);
  /// The answer to `last` for one warp, which asks when it has read the first
  /// rows of `window`. The block overwrites these.
  mlir::Value emitAnswer(tile::LastInGroupOp last, mlir::Value window,
                         mlir::Value first);
  /// The values of the program with the answers that emitAnswers left.
  mlir::IRMapping withAnswers();

private:
  /// An answer is 1 or 0.
  void store(mlir::Value number, mlir::Value flag);
  mlir::Value load(mlir::Value flag);

  // In the order in which code is written.
  llvm::MapVector<mlir::Operation *, mlir::Value> flags;
  llvm::DenseMap<mlir::Operation *, mlir::Value> tickets;
};

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_TOKENS_LASTREADERS_H
