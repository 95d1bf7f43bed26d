// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The operands that ops with states share, for whoever builds such ops.
#ifndef GDN_DIALECT_GDN_IR_STATEOPERANDS_H
#define GDN_DIALECT_GDN_IR_STATEOPERANDS_H

#include "mlir/IR/Value.h"

namespace gdn {

/// Where the states of sequences are; docs/spec/slots.md. All but `pool` and
/// `slots` may be null.
struct StateOperands {
  mlir::Value pool, slots, writeSlots, cuSeqlens, hasInitial;
  mlir::Value cuCheckpoints, checkpointTokens, checkpointSlots;
  mlir::Value tokenSlots, parents, tokenPool, numAccepted;
  mlir::Value scales, low; // of states in planes

  /// The same sequences with states of another op.
  StateOperands in(mlir::Value ofPool, mlir::Value ofTokenPool) const {
    StateOperands other = *this;
    other.pool = ofPool;
    other.tokenPool = ofTokenPool;
    return other;
  }
};

/// The tokens of previous steps that are not in the states yet, or all null;
/// counts are null where they are those of one step, scales where keys and
/// deltas are f32.
struct PendingOperands {
  mlir::Value keys, deltas, decays, counts, scales;
};

} // namespace gdn

#endif // GDN_DIALECT_GDN_IR_STATEOPERANDS_H
