// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops for sums of log decays and for scores with a decay per channel.
#ifndef GDN_LIB_CONVERSION_TILETOCPU_EXPANDDECAYOPS_H
#define GDN_LIB_CONVERSION_TILETOCPU_EXPANDDECAYOPS_H

#include "gdn/Dialect/Tile/IR/Tile.h"

namespace gdn {

/// Running sums of the rows of `from` in `to`; the buffers may be the same.
void expandPrefixSum(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value from, mlir::Value to, int64_t lanes);

/// Sums of the rows behind each row of `from` in `to`, likewise.
void expandSuffixSum(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value from, mlir::Value to, int64_t lanes);

/// Row `row` of `from` in `to`.
void expandExtractRow(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value from, int64_t row, mlir::Value to,
                      int64_t lanes);

/// A gdn_tile.decay_matrix in `to`; `decay` is scratch for exp(logDecay).
void expandDecayMatrix(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value logDecay, mlir::Value decay, mlir::Value to,
                       int64_t lanes);

/// Buffers of a gdn_tile.decay_scores; `decay` is scratch of the shape of
/// `logDecay` for exp(logDecay).
struct DecayScoresBuffers {
  mlir::Value query, key, logDecay, decay, queryScores, keyScores;
};
void expandDecayScores(mlir::OpBuilder &builder, mlir::Location loc,
                       const DecayScoresBuffers &buffers, int64_t lanes);

/// Buffers of a gdn_tile.decay_operands; scratch of f32: `decay`, `leftQuery`,
/// `leftKey` and `right` of the shape of `logDecay`, `between` with a row for
/// each pair of blocks.
struct DecayOperandsBuffers {
  mlir::Value query, key, logDecay, queryScores, keyScores, fromQuery, fromKey,
      toEnd, end;
  mlir::Value decay, leftQuery, leftKey, right, between;
};
void expandDecayOperands(mlir::OpBuilder &builder, mlir::Location loc,
                         const DecayOperandsBuffers &buffers, int64_t lanes);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_TILETOCPU_EXPANDDECAYOPS_H
