// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the loops over a state's rows share: rows as vectors, decays, blocks of
// rows that stay in the first-level cache.
#ifndef GDN_LIB_CONVERSION_TILETOCPU_STATEROWS_H
#define GDN_LIB_CONVERSION_TILETOCPU_STATEROWS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace gdn {

/// Emits code on the rows of a state, `rows x columns`, vector by vector.
class StateRows {
public:
  StateRows(mlir::OpBuilder &b, mlir::Location loc, mlir::VectorType state,
            int64_t lanes);

protected:
  using Chunks = llvm::SmallVector<mlir::Value>; // of a row

  mlir::Value index(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, loc, value);
  }
  /// A loop whose body is where the builder stands from now on.
  mlir::scf::ForOp loop(mlir::Value from, mlir::Value to, int64_t step);
  mlir::Value splat(mlir::Value scalar) {
    return mlir::vector::BroadcastOp::create(b, loc, vector, scalar);
  }
  /// A row in f32, whatever the buffer holds.
  Chunks read(mlir::Value buffer, mlir::Value row);
  void write(mlir::Value chunk, mlir::Value buffer, mlir::Value row,
             int64_t column) {
    writeAt(chunk, buffer, row, index(column));
  }
  /// One vector of a row.
  mlir::Value readAt(mlir::Value buffer, mlir::Value row, mlir::Value column);
  void writeAt(mlir::Value chunk, mlir::Value buffer, mlir::Value row,
               mlir::Value column);
  /// Asks for a row of a state that streams from its pool, some way behind
  /// `row`.
  void emitPrefetch(mlir::Value memory, mlir::Value row);
  /// exp(log_decay) of the first `valid` tokens, to `decay`.
  void emitDecay(mlir::Value logDecay, mlir::Value decay, mlir::Value valid);
  /// The factor of token `t` on each chunk of a row.
  Chunks decayOf(mlir::Value decay, mlir::Value t);
  /// Loops over blocks of rows, and in each over the first `valid` tokens: the
  /// builder stands in the inner loop. `body` gets token, first and last row.
  void forBlocks(
      mlir::Value valid,
      llvm::function_ref<void(mlir::Value, mlir::Value, mlir::Value)> body);

  mlir::OpBuilder &b;
  mlir::Location loc;
  int64_t lanes, rows, columns;
  mlir::VectorType vector;
};

} // namespace gdn

#endif // GDN_LIB_CONVERSION_TILETOCPU_STATEROWS_H
