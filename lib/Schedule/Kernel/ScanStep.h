// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The delta rule of one token on a state in registers, in the order of sums
// that all schedules share.
#ifndef GDN_LIB_SCHEDULE_KERNEL_SCANSTEP_H
#define GDN_LIB_SCHEDULE_KERNEL_SCANSTEP_H

#include "gdn/Dialect/GPU/IR/GPU.h"

#include "mlir/IR/Builders.h"

namespace gdn {

/// One token as a scan takes it. Tiles are fragments of the state's layout.
struct ScanToken {
  mlir::Value key, query; ///< per_column
  mlir::Value value;      ///< per_row
  mlir::Value logDecay;   ///< an f32, or per_column with one per channel
  mlir::Value decay;      ///< per_column, in place of logarithms, or null
  mlir::Value beta;       ///< an f32; null: no delta term
};

/// What a scan of one token gives: the state as `state` was; the output and,
/// where it is asked for, `d`, per_row in f32.
struct ScanResult {
  mlir::Value state, output, delta;
};

/// Emits the scan of one token on fragments:
///   d = beta (v - e^g M k), o = e^g M q + d (k . q), M' = e^g M + d k^T,
/// or without beta d = v.
/// Arithmetic is f32; a narrower `state` is widened, and rounded at the end.
ScanResult emitScanStep(mlir::OpBuilder &b, mlir::Location loc,
                        mlir::Value state, const ScanToken &token,
                        bool withDelta = false, bool withState = true);

/// The state after the token, from what emitScanStep gave as its delta, with
/// one decay for the head: the same bits, for whoever has something to do
/// before.
mlir::Value emitScanUpdate(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value oldState, const ScanToken &token,
                           mlir::Value delta);

/// Both products of a state with a token, M k and M q, per_row in f32; the
/// state is not changed.
std::pair<mlir::Value, mlir::Value>
emitStateProducts(mlir::OpBuilder &b, mlir::Location loc, mlir::Value state,
                  mlir::Value key, mlir::Value query);

} // namespace gdn

#endif // GDN_LIB_SCHEDULE_KERNEL_SCANSTEP_H
