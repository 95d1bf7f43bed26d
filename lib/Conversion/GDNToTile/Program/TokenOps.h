// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Token-wise work on tiles: what gates, norms and casts do to a block of
// tokens of one head. All arithmetic is f32; rows are tokens.
#ifndef GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_TOKENOPS_H
#define GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_TOKENOPS_H

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/Tile/IR/Tile.h"

namespace gdn {

/// Builds a gdn_tile.map_rows over `inputs`. `body` gets the rows of the
/// inputs and returns the rows of the results, whose tiles have the types
/// `results`.
llvm::SmallVector<mlir::Value>
mapRows(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange inputs,
        mlir::TypeRange results,
        llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &,
                                                          mlir::ValueRange)>
            body);

/// `tile` in the given element type: extended exactly or rounded to nearest
/// even; itself if it has that type.
mlir::Value castTile(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value tile, mlir::Type element);

/// The same, but where `tile` is what a tile in that type was extended to, that
/// tile.
mlir::Value roundTile(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value tile, mlir::Type element);

/// `tile` in 16 bits: what it was extended from, or rounded to `element`.
mlir::Value narrowTile(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value tile, mlir::Type element);

/// Rows and columns exchanged.
mlir::Value transposeTile(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::Value tile);

/// `row` in the body of a map over rows: its elements up to the diagonal, or
/// ahead of it, whatever stands behind them, and zeros; `number` is the row's.
mlir::Value keepBelow(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value number, mlir::Value row,
                      bool diagonal = true);

/// Each row times `factor`.
mlir::Value scaleTile(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value tile, double factor);

/// `act` of every element; with exponentials as good as 16 bits ask if `fast`.
mlir::Value activateTile(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::Value tile, Activation activation,
                         bool fast = false);

/// Each row scaled to unit length (gdn.l2norm).
mlir::Value l2normTile(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value tile, double eps);

/// What that multiplies each row with.
mlir::Value inverseNormTile(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::Value tile, double eps);

/// `tile` in f32 with each row times an element of `factors`, rounded to
/// `element`.
mlir::Value scaleRowsTo(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::Value tile, mlir::Value factors,
                        mlir::Type element);

/// Log decay of a block of tokens (gdn.gates): `a` is `B` or `B x dk`, `aLog`
/// a scalar or null, `dtBias` a scalar or a row of `dk`. `fast`: with
/// exponentials to 1e-6 of what they are.
mlir::Value logDecayTile(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::Value a, mlir::Value aLog, mlir::Value dtBias,
                         GatesOp op, bool fast);

/// Log decays as the workspace has them, f16 (`scaleOfNarrowLogs` of
/// gdn_tile.decay_operands), and from there.
mlir::Value narrowLogs(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value tile);
mlir::Value widenLogs(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value tile);

/// Write strength of a block of tokens (gdn.gates).
mlir::Value betaTile(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value b, bool doubled);

/// Gated RMS norm of each row (gdn.gated_rms_norm); `weight` is one row,
/// `constants` the two scalars of the op's operand or none, `fast` as above.
mlir::Value gatedNormTile(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::Value tile, mlir::Value gate,
                          mlir::Value weight, mlir::ValueRange constants,
                          GatedRMSNormOp op, bool fast = false);

/// The same of outputs of the rule where they are made: of `tile` and `gate` as
/// they are in memory, and in f32. Of `width` values a row has those of `tile`,
/// all or half; the sum is over both halves then.
mlir::Value normOfOutputs(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::Value tile, mlir::Value gate,
                          mlir::Value weight, mlir::ValueRange constants,
                          GatedRMSNormOp op, int64_t width);

} // namespace gdn

#endif // GDN_LIB_CONVERSION_GDNTOTILE_PROGRAM_TOKENOPS_H
